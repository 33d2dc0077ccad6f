//! The inputs and outputs of one node.

use std::collections::HashSet;

use veracity_diag::{Diagnostic, codes, nearest};
use veracity_tensor::{DType, Shape};

use super::fields;
use crate::names::unusable_because;
use crate::places::Spans;
use crate::yaml::{Atom, Kind, Node as YamlNode, Problems, Span};
use crate::{AxisNames, Direction, MAX_PORT_BYTES, PortRef, PortSpec};

/// A port, and whether its dtype and shape can be relied on.
pub(super) struct ReadPort {
    pub(super) spec: PortSpec,
    pub(super) span: Span,
    /// `false` when dtype or shape are stand-ins because the file has none that can be read.
    pub(super) sound: bool,
}

const KNOWN: [&str; 7] =
    ["name", "dtype", "shape", "type", "kind", "element_names", "temporal_period_ms"];

/// Reads the ports on one side of a node, and says whether that was all of them.
pub(super) fn read(
    list: &YamlNode,
    node: &str,
    direction: Direction,
    spans: &mut Spans,
    problems: &mut Problems<'_>,
) -> (Vec<ReadPort>, bool) {
    let what = format!("`{direction}s` of node {node:?}");
    let Some(items) = fields::sequence(list, &what, problems) else {
        return (Vec::new(), false);
    };
    let mut names = HashSet::new();
    let mut ports = Vec::with_capacity(items.len());
    for (position, item) in items.iter().enumerate() {
        let what = format!("{direction} {} of node {node:?}", position + 1);
        let Some(port) = read_port(item, &what, problems) else {
            continue;
        };
        if !names.insert(port.spec.name.clone()) {
            let message = format!("node {node:?} has two {direction}s named {:?}", port.spec.name);
            problems.add(port.span, Diagnostic::error(codes::DUPLICATE_PORT, message));
        }
        let key = (PortRef::new(node, &port.spec.name), direction);
        spans.ports.entry(key).or_insert(port.span);
        ports.push(port);
    }
    let complete = ports.len() == items.len();
    (ports, complete)
}

fn read_port(item: &YamlNode, what: &str, problems: &mut Problems<'_>) -> Option<ReadPort> {
    let pairs = fields::mapping(item, what, problems)?;
    let name_node = fields::required(item, "name", what, item.span, problems)?;
    let name = fields::text(name_node, &format!("the name of {what}"), problems)?;
    if let Some(why) = unusable_because(name) {
        let message = format!("port name {name:?} {why}");
        problems.add(name_node.span, Diagnostic::error(codes::NODE_NAME_INVALID, message));
    }
    let dtype = fields::required(item, "dtype", what, item.span, problems)
        .and_then(|node| read_dtype(node, problems));
    let shape = fields::required(item, "shape", what, item.span, problems)
        .and_then(|node| read_shape(node, dtype.map_or(1, DType::size), problems));
    let sound = dtype.is_some() && shape.is_some();
    let mut port = PortSpec::new(name, dtype.unwrap_or(DType::F32), shape.unwrap_or_default());
    port.extra = fields::extra(pairs, &KNOWN, problems);
    read_meaning(item, &mut port, problems);
    if let Some(names) = item.get("element_names").filter(|_| sound)
        && let Some(why) = port.element_names_problem()
    {
        problems.add(names.span, Diagnostic::warning(codes::ELEMENT_NAMES_MISMATCH, why));
    }
    Some(ReadPort { spec: port, span: name_node.span, sound })
}

pub(crate) fn read_dtype(node: &YamlNode, problems: &mut Problems<'_>) -> Option<DType> {
    let name = fields::text(node, "`dtype`", problems)?;
    DType::from_name(name).or_else(|| {
        let message = format!("dtype {name:?} is not known");
        let mut diagnostic = Diagnostic::error(codes::DTYPE_UNKNOWN, message);
        if let Some(near) = nearest(name, DType::ALL.map(DType::name)) {
            diagnostic = diagnostic.hint(format!("did you mean `{near}`?"));
        }
        problems.add(node.span, diagnostic);
        None
    })
}

pub(crate) fn read_shape(
    node: &YamlNode,
    element_bytes: usize,
    problems: &mut Problems<'_>,
) -> Option<Shape> {
    let dims: Option<Vec<usize>> = match &*node.kind {
        Kind::Sequence(items) => {
            // Every bad size is noted, not only the first.
            let dims: Vec<_> = items.iter().map(|item| read_dim(item, problems)).collect();
            dims.into_iter().collect()
        }
        // LEAPP also reads a list that was written as text.
        Kind::Scalar(scalar) => {
            let dims = dims_from_text(&scalar.text).filter(|_| node.text().is_some());
            dims.or_else(|| bad_dim(node, "a shape must be a list of sizes", problems))
        }
        Kind::Mapping(_) => bad_dim(node, "a shape must be a list of sizes", problems),
    };
    let dims = dims?;
    let too_large = || format!("shape {dims:?} takes more than {MAX_PORT_BYTES} bytes");
    let shape = Shape::new(dims.clone()).filter(|shape| {
        // Axes of size 0 do not count, so that no product of axes is ever large.
        let sizes = shape.dims().iter().filter(|&&dim| dim != 0);
        sizes.product::<usize>() as u64 <= MAX_PORT_BYTES / element_bytes as u64
    });
    if shape.is_none() {
        problems.add(node.span, Diagnostic::error(codes::SHAPE_TOO_LARGE, too_large()));
    }
    shape
}

fn read_dim(node: &YamlNode, problems: &mut Problems<'_>) -> Option<usize> {
    match node.scalar().map(crate::yaml::Scalar::atom) {
        Some(Atom::Int(size)) if size < 0 => {
            bad_dim(node, &format!("a size cannot be {size}"), problems)
        }
        // What does not fit is too large for any limit; the limit reports it.
        Some(Atom::Int(size)) => Some(usize::try_from(size).unwrap_or(usize::MAX)),
        Some(Atom::TooLarge) => Some(usize::MAX),
        _ => {
            let message = format!("a size must be a whole number, not {}", node.kind_name());
            bad_dim(node, &message, problems)
        }
    }
}

fn bad_dim<T>(node: &YamlNode, message: &str, problems: &mut Problems<'_>) -> Option<T> {
    let diagnostic = Diagnostic::error(codes::SHAPE_INVALID, message)
        .hint("shapes are fixed at export, such as `[1, 48]`; `[]` is a scalar");
    problems.add(node.span, diagnostic);
    None
}

fn dims_from_text(text: &str) -> Option<Vec<usize>> {
    let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
    if inner.is_empty() {
        return Some(Vec::new());
    }
    inner.split(',').map(|dim| dim.trim().parse().ok()).collect()
}

/// Reads what the values mean. What cannot be understood is kept as an extra key.
fn read_meaning(item: &YamlNode, port: &mut PortSpec, problems: &mut Problems<'_>) {
    if let Some(kind) = item.get("kind").filter(|node| !node.is_null()) {
        port.kind = fields::text(kind, "`kind`", problems).map(str::to_owned);
    }
    if let Some(kind) = item.get("type").filter(|node| node.text() != Some("tensor")) {
        let message = "`type` is not `tensor`; it is read as a tensor all the same";
        problems.add(kind.span, Diagnostic::warning(codes::YAML_WRONG_KIND, message));
        port.extra.push("type".to_owned(), fields::value_from(kind, problems));
    }
    if let Some(names) = item.get("element_names").filter(|node| !node.is_null()) {
        port.element_names = read_element_names(names);
        if port.element_names.is_none() {
            let message = "element names are not one list of names for each axis";
            problems.add(names.span, Diagnostic::warning(codes::ELEMENT_NAMES_MISMATCH, message));
            port.extra.push("element_names".to_owned(), fields::value_from(names, problems));
        }
    }
    if let Some(period) = item.get("temporal_period_ms").filter(|node| !node.is_null()) {
        port.temporal_period_ms = fields::number(period, "`temporal_period_ms`", problems);
        if port.temporal_period_ms.is_some_and(|period| !(period > 0.0 && period.is_finite())) {
            let message = "`temporal_period_ms` must be more than 0";
            problems.add(period.span, Diagnostic::error(codes::FREQUENCY_INVALID, message));
        }
    }
}

pub(crate) fn read_element_names(node: &YamlNode) -> Option<Vec<AxisNames>> {
    let Kind::Sequence(axes) = &*node.kind else {
        return None;
    };
    axes.iter()
        .map(|axis| match &*axis.kind {
            Kind::Sequence(names) => {
                let names: Option<_> =
                    names.iter().map(|name| name.text().map(str::to_owned)).collect();
                names.map(AxisNames::Named)
            }
            _ if axis.is_null() => Some(AxisNames::Unnamed),
            _ => (axis.text() == Some(AxisNames::TEMPORAL)).then_some(AxisNames::Temporal),
        })
        .collect()
}
