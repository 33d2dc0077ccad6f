//! Builds the tree from parser events, without recursion and within the limits.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};
use veracity_diag::{Diagnostic, codes};

use super::{
    CoreTag, Kind, MAX_DEPTH, MAX_NODES, MAX_TEXT_BYTES, Node, Problems, Scalar, Source, Span,
};

/// Reads the one document of a file. What can be survived (a key that stands twice) is noted and
/// reading goes on; `None` means that there is no tree.
pub(crate) fn load(source: &Source, problems: &mut Problems<'_>) -> Option<Node> {
    // Over characters, not bytes: the other input of the parser miscounts non-ASCII directives.
    let mut parser = Parser::new_from_iter(source.text().chars());
    let mut builder = Builder::default();
    while let Some(event) = parser.next_event() {
        let step = match event {
            Ok((event, span)) => builder.take(event, span_from(span.start, span.end), problems),
            Err(error) => Err(syntax_problem(&error)),
        };
        if let Err(Stop(problem)) = step {
            problems.add(problem.0, problem.1);
            return None;
        }
    }
    if builder.root.is_none() {
        problems.add_to_file(Diagnostic::error(codes::YAML_NOT_ONE_DOCUMENT, "the file is empty"));
    }
    builder.root
}

/// A problem that ends the reading, and where it is.
struct Stop(Box<(Span, Diagnostic)>);

fn stop(span: Span, code: veracity_diag::Code, message: impl Into<String>) -> Stop {
    Stop(Box::new((span, Diagnostic::error(code, message))))
}

/// Size of a subtree with every alias written out.
#[derive(Clone, Copy, Default)]
struct Weight {
    nodes: u64,
    text_bytes: u64,
    /// Nodes on the longest way down, this one included.
    height: usize,
}

impl Weight {
    fn leaf(text: &str) -> Self {
        Self { nodes: 1, text_bytes: text.len() as u64, height: 1 }
    }

    fn add_child(&mut self, child: Self) {
        self.nodes += child.nodes;
        self.text_bytes += child.text_bytes;
        self.height = self.height.max(child.height + 1);
    }
}

/// A list or mapping that is still open.
struct Frame {
    span: Span,
    anchor: usize,
    weight: Weight,
    /// Elements, or keys and values in turn.
    children: Vec<Node>,
    is_mapping: bool,
}

#[derive(Default)]
struct Builder {
    open: Vec<Frame>,
    /// Finished anchored nodes by the parser's number for the anchor.
    anchors: HashMap<usize, (Node, Weight)>,
    total: Weight,
    documents: usize,
    root: Option<Node>,
}

impl Builder {
    fn take(
        &mut self,
        event: Event<'_>,
        span: Span,
        problems: &mut Problems<'_>,
    ) -> Result<(), Stop> {
        match event {
            Event::DocumentStart(_) => self.start_document(span),
            Event::Scalar(text, style, anchor, tag) => {
                let weight = Weight::leaf(&text);
                let kind = Kind::Scalar(scalar_from(text, style, tag, span)?);
                self.finish_node(Node { span, kind: Rc::new(kind) }, anchor, weight, weight)
            }
            Event::Alias(anchor) => self.take_alias(anchor, span),
            Event::SequenceStart(anchor, tag) => self.start_collection(span, anchor, tag, false),
            Event::MappingStart(anchor, tag) => self.start_collection(span, anchor, tag, true),
            Event::SequenceEnd | Event::MappingEnd => self.end_collection(problems),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn start_document(&mut self, span: Span) -> Result<(), Stop> {
        self.documents += 1;
        if self.documents > 1 {
            let message = "a second YAML document starts here";
            return Err(stop(span, codes::YAML_NOT_ONE_DOCUMENT, message));
        }
        Ok(())
    }

    fn start_collection(
        &mut self,
        span: Span,
        anchor: usize,
        tag: Option<Cow<'_, Tag>>,
        is_mapping: bool,
    ) -> Result<(), Stop> {
        let expected = if is_mapping { "map" } else { "seq" };
        if let Some(tag) = tag
            && !(tag.is_yaml_core_schema() && tag.suffix == expected)
        {
            return Err(unsupported_tag(&tag, span));
        }
        let weight = Weight { nodes: 1, text_bytes: 0, height: 1 };
        self.count(weight, span)?;
        self.open.push(Frame { span, anchor, weight, children: Vec::new(), is_mapping });
        Ok(())
    }

    fn end_collection(&mut self, problems: &mut Problems<'_>) -> Result<(), Stop> {
        let frame = self.open.pop().expect("the parser closes only what it opened");
        let kind = if frame.is_mapping {
            Kind::Mapping(pairs_from(frame.children, problems)?)
        } else {
            Kind::Sequence(frame.children)
        };
        let node = Node { span: frame.span, kind: Rc::new(kind) };
        // Its parts were counted when they were read.
        self.finish_node(node, frame.anchor, frame.weight, Weight::default())
    }

    fn take_alias(&mut self, anchor: usize, span: Span) -> Result<(), Stop> {
        let Some((node, weight)) = self.anchors.get(&anchor) else {
            let message = "an alias stands inside of the value that it names";
            return Err(stop(span, codes::YAML_UNSUPPORTED, message));
        };
        let (node, weight) = (Node { span, kind: Rc::clone(&node.kind) }, *weight);
        self.finish_node(node, 0, weight, weight)
    }

    /// Hands a finished node to its parent. `counted` is what it adds to the totals.
    fn finish_node(
        &mut self,
        node: Node,
        anchor: usize,
        weight: Weight,
        counted: Weight,
    ) -> Result<(), Stop> {
        self.count(counted, node.span)?;
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), weight));
        }
        match self.open.last_mut() {
            Some(parent) => {
                parent.weight.add_child(weight);
                parent.children.push(node);
            }
            None => self.root = Some(node),
        }
        Ok(())
    }

    fn count(&mut self, weight: Weight, span: Span) -> Result<(), Stop> {
        self.total.nodes += weight.nodes;
        self.total.text_bytes += weight.text_bytes;
        let message = if self.open.len() + weight.height > MAX_DEPTH {
            format!("the YAML nests deeper than {MAX_DEPTH} levels")
        } else if self.total.nodes > MAX_NODES {
            format!("the YAML has more than {MAX_NODES} values, aliases written out")
        } else if self.total.text_bytes > MAX_TEXT_BYTES {
            format!("the YAML holds more than {MAX_TEXT_BYTES} bytes of text, aliases written out")
        } else {
            return Ok(());
        };
        Err(stop(span, codes::YAML_TOO_COMPLEX, message))
    }
}

/// Pairs up keys and values. Every key that stands twice is noted; the first one counts.
fn pairs_from(children: Vec<Node>, problems: &mut Problems<'_>) -> Result<Vec<(Node, Node)>, Stop> {
    let mut lines: HashMap<String, u32> = HashMap::with_capacity(children.len() / 2);
    let mut pairs = Vec::with_capacity(children.len() / 2);
    let mut children = children.into_iter();
    while let (Some(key), Some(value)) = (children.next(), children.next()) {
        let Some(scalar) = key.scalar() else {
            let message = format!("a key must be text, not {}", key.kind_name());
            return Err(stop(key.span, codes::YAML_UNSUPPORTED, message));
        };
        if scalar.plain && scalar.text == "<<" {
            let message = "merge keys (`<<`) are not read: readers disagree about them";
            return Err(stop(key.span, codes::YAML_UNSUPPORTED, message));
        }
        if let Some(line) = lines.get(&scalar.text) {
            let message = format!("key {:?} stands twice (first in line {line})", scalar.text);
            problems.add(key.span, Diagnostic::error(codes::YAML_DUPLICATE_KEY, message));
        } else {
            lines.insert(scalar.text.clone(), key.span.line);
            pairs.push((key, value));
        }
    }
    Ok(pairs)
}

fn scalar_from(
    text: Cow<'_, str>,
    style: ScalarStyle,
    tag: Option<Cow<'_, Tag>>,
    span: Span,
) -> Result<Scalar, Stop> {
    let tag =
        tag.map(|tag| core_tag(&tag).ok_or_else(|| unsupported_tag(&tag, span))).transpose()?;
    Ok(Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain, tag })
}

fn core_tag(tag: &Tag) -> Option<CoreTag> {
    if tag.handle == "!" && tag.suffix.is_empty() {
        return Some(CoreTag::Str); // A lone `!` means: do not guess.
    }
    match tag.is_yaml_core_schema().then_some(tag.suffix.as_str())? {
        "null" => Some(CoreTag::Null),
        "bool" => Some(CoreTag::Bool),
        "int" => Some(CoreTag::Int),
        "float" => Some(CoreTag::Float),
        "str" => Some(CoreTag::Str),
        _ => None,
    }
}

fn unsupported_tag(tag: &Tag, span: Span) -> Stop {
    let name = format!("{}{}", tag.handle, tag.suffix);
    let mut stop = stop(span, codes::YAML_UNSUPPORTED, format!("tag {name:?} is not read"));
    stop.0.1.hints.push("only numbers, text, lists and dicts are read, no Python objects".into());
    stop
}

fn syntax_problem(error: &ScanError) -> Stop {
    let span = span_from(*error.marker(), *error.marker());
    let info = error.info();
    if info.contains("recursion limit") {
        let message = format!("the YAML nests deeper than {MAX_DEPTH} levels");
        stop(span, codes::YAML_TOO_COMPLEX, message)
    } else if info.contains("unknown anchor") {
        let message = "an alias names an anchor that does not exist";
        stop(span, codes::YAML_UNKNOWN_ANCHOR, message)
    } else {
        stop(span, codes::YAML_SYNTAX, format!("not valid YAML: {info}"))
    }
}

/// The parser counts characters and lines as we do, columns from 0.
fn span_from(start: Marker, end: Marker) -> Span {
    let to_u32 = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Span {
        index: to_u32(start.index()),
        length: to_u32(end.index().saturating_sub(start.index())),
        line: to_u32(start.line()),
        column: to_u32(start.col()).saturating_add(1),
    }
}
