//! `models`: the nodes with their ports and model files.

use std::collections::HashMap;

use veracity_diag::{Diagnostic, codes, nearest};

use super::fields;
use super::ports::{self, ReadPort};
use crate::names::unusable_because;
use crate::places::Spans;
use crate::yaml::{Node as YamlNode, Problems, Span};
use crate::{Backend, BundlePath, Direction, MAX_BUNDLE_BYTES, Model, Node, Sum};

/// The nodes of a file, with what later checks need to know about them.
pub(super) struct Nodes(Vec<ReadNode>);

struct ReadNode {
    node: Node,
    inputs: Vec<ReadPort>,
    outputs: Vec<ReadPort>,
    /// Ports were left out because they could not be read.
    incomplete: bool,
}

impl Nodes {
    /// Nodes and ports by name.
    pub(super) fn index(&self) -> Index<'_> {
        let mut index = Index { nodes: &self.0, by_name: HashMap::new(), ports: HashMap::new() };
        for (position, read) in self.0.iter().enumerate() {
            index.by_name.insert(&read.node.name, position);
            for direction in [Direction::Input, Direction::Output] {
                for port in read.ports(direction) {
                    index.ports.entry((position, direction, &port.spec.name)).or_insert(port);
                }
            }
        }
        index
    }

    pub(super) fn into_nodes(self) -> Vec<Node> {
        let specs = |ports: Vec<ReadPort>| ports.into_iter().map(|port| port.spec).collect();
        self.0
            .into_iter()
            .map(|read| Node {
                inputs: specs(read.inputs),
                outputs: specs(read.outputs),
                ..read.node
            })
            .collect()
    }
}

impl ReadNode {
    fn ports(&self, direction: Direction) -> &[ReadPort] {
        match direction {
            Direction::Input => &self.inputs,
            Direction::Output => &self.outputs,
        }
    }
}

/// Nodes and ports by name.
pub(super) struct Index<'n> {
    /// In the order of execution.
    nodes: &'n [ReadNode],
    pub(super) by_name: HashMap<&'n str, usize>,
    pub(super) ports: HashMap<(usize, Direction, &'n str), &'n ReadPort>,
}

impl<'n> Index<'n> {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Name of the node at a position.
    pub(super) fn name(&self, node: usize) -> &'n str {
        &self.nodes[node].node.name
    }

    /// Names of all nodes.
    pub(super) fn names(&self) -> impl Iterator<Item = &'n str> {
        self.nodes.iter().map(|read| read.node.name.as_str())
    }

    /// Names of the ports of a node.
    pub(super) fn port_names(
        &self,
        node: usize,
        direction: Direction,
    ) -> impl Iterator<Item = &'n str> {
        self.nodes[node].ports(direction).iter().map(|port| port.spec.name.as_str())
    }

    /// Whether ports of a node are missing here because they could not be read.
    pub(super) fn is_incomplete(&self, node: usize) -> bool {
        self.nodes[node].incomplete
    }
}

/// Reads every node.
pub(super) fn read(
    root: &YamlNode,
    spans: &mut Spans,
    problems: &mut Problems<'_>,
) -> Option<Nodes> {
    let models = fields::required(root, "models", "the bundle", root.span, problems)?;
    let pairs = fields::mapping(models, "`models`", problems)?;
    if pairs.is_empty() {
        let message = "the bundle has no nodes";
        problems.add(models.span, Diagnostic::error(codes::BUNDLE_EMPTY, message));
    }
    let mut bytes = 0_u64;
    let mut nodes = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let Some(read) = read_node(key, value, spans, problems) else {
            continue;
        };
        for port in read.inputs.iter().chain(&read.outputs) {
            let before = bytes;
            bytes = bytes.saturating_add(port.spec.bytes());
            if before <= MAX_BUNDLE_BYTES && bytes > MAX_BUNDLE_BYTES {
                let message = format!(
                    "with this port the ports of the bundle take more than {MAX_BUNDLE_BYTES} bytes"
                );
                problems.add(port.span, Diagnostic::error(codes::SHAPE_TOO_LARGE, message));
            }
        }
        nodes.push(read);
    }
    Some(Nodes(nodes))
}

fn read_node(
    key: &YamlNode,
    value: &YamlNode,
    spans: &mut Spans,
    problems: &mut Problems<'_>,
) -> Option<ReadNode> {
    let name = fields::text(key, "the name of a node", problems)?;
    if let Some(why) = unusable_because(name) {
        let message = format!("node name {name:?} {why}");
        problems.add(key.span, Diagnostic::error(codes::NODE_NAME_INVALID, message));
    }
    let what = format!("node {name:?}");
    spans.nodes.insert(name.to_owned(), key.span);
    let mut read = ReadNode {
        node: Node { name: name.to_owned(), ..Node::default() },
        inputs: Vec::new(),
        outputs: Vec::new(),
        incomplete: false,
    };
    let Some(pairs) = fields::mapping(value, &what, problems) else {
        read.incomplete = true;
        return Some(read);
    };
    for direction in [Direction::Input, Direction::Output] {
        let (ports, complete) =
            match fields::required(value, &format!("{direction}s"), &what, key.span, problems) {
                Some(list) => ports::read(list, name, direction, spans, problems),
                None => (Vec::new(), false),
            };
        read.incomplete |= !complete;
        match direction {
            Direction::Input => read.inputs = ports,
            Direction::Output => read.outputs = ports,
        }
    }
    if let Some(parameters) = fields::required(value, "parameters", &what, key.span, problems) {
        read_parameters(parameters, key.span, &mut read.node, spans, problems);
    }
    read.node.extra = fields::extra(pairs, &["inputs", "outputs", "parameters"], problems);
    Some(read)
}

fn read_parameters(
    parameters: &YamlNode,
    owner: Span,
    node: &mut Node,
    spans: &mut Spans,
    problems: &mut Problems<'_>,
) {
    let what = format!("`parameters` of node {:?}", node.name);
    let Some(pairs) = fields::mapping(parameters, &what, problems) else {
        return;
    };
    let known = ["model_path", "md5sum", "sha256sum", "backend"];
    node.parameters = fields::extra(pairs, &known, problems);
    let backend = fields::required(parameters, "backend", &what, owner, problems);
    let path = fields::required(parameters, "model_path", &what, owner, problems);
    let (Some(backend), Some(path)) = (backend, path) else {
        return;
    };
    if backend.is_null() && path.is_null() {
        return; // Described, not exported: fine until someone wants to run it.
    }
    spans.models.insert(node.name.clone(), path.span);
    let backend = read_backend(backend, problems);
    let path = read_path(path, "`model_path`", problems);
    let sha256 = read_sum(parameters, "sha256sum", &what, owner, problems);
    let md5 = read_sum(parameters, "md5sum", &what, owner, problems);
    if let (Some(backend), Some(path), Some(sha256), Some(md5)) = (backend, path, sha256, md5) {
        node.model = Some(Model { backend, path, sha256, md5 });
    }
}

fn read_backend(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Backend> {
    if node.is_null() {
        let message = "a model file is given, but not its backend";
        problems.add(node.span, Diagnostic::error(codes::BACKEND_UNKNOWN, message));
        return None;
    }
    let name = fields::text(node, "`backend`", problems)?;
    Backend::from_name(name).or_else(|| {
        let names = Backend::ALL.map(Backend::name);
        let mut diagnostic = Diagnostic::error(
            codes::BACKEND_UNKNOWN,
            format!("backend {name:?} is not one of {}", names.join(", ")),
        );
        if let Some(near) = nearest(name, names) {
            diagnostic = diagnostic.hint(format!("did you mean `{near}`?"));
        }
        problems.add(node.span, diagnostic);
        None
    })
}

/// A path that stays inside of the bundle.
pub(super) fn read_path(
    node: &YamlNode,
    what: &str,
    problems: &mut Problems<'_>,
) -> Option<BundlePath> {
    if node.is_null() {
        let message = format!("{what} names no file");
        problems.add(node.span, Diagnostic::error(codes::MODEL_ABSENT, message));
        return None;
    }
    match fields::text(node, what, problems)?.parse() {
        Ok(path) => Some(path),
        Err(diagnostic) => {
            problems.add(node.span, diagnostic);
            None
        }
    }
}

/// A hash that must be there.
pub(super) fn read_sum<const N: usize>(
    node: &YamlNode,
    key: &str,
    owner: &str,
    span: Span,
    problems: &mut Problems<'_>,
) -> Option<Sum<N>> {
    let value = fields::required(node, key, owner, span, problems)?;
    // A hash of digits only, written without quotes, is a number for YAML: take its text.
    let text = value.scalar().map_or("", |scalar| &scalar.text);
    let sum = text.parse().ok();
    if sum.is_none() {
        let message = format!("`{key}` must be {} hexadecimal digits", 2 * N);
        problems.add(value.span, Diagnostic::error(codes::HASH_MALFORMED, message));
    }
    sum
}
