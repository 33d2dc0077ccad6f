//! `pipeline`: how the nodes are connected, before it is known whether the connections make sense.

use veracity_diag::{Diagnostic, codes};

use super::fields;
use super::nodes::read_path;
use crate::places::Spans;
use crate::yaml::{Node as YamlNode, Problems, Span};
use crate::{Edge, PortRef, Spec};

/// Everything in `pipeline` that names ports, with positions.
#[derive(Default)]
pub(super) struct Wiring {
    pub(super) data_flow: Vec<ReadEdge>,
    pub(super) feedback_flow: Vec<ReadEdge>,
    pub(super) inputs: Vec<(PortRef, Span)>,
    pub(super) outputs: Vec<(PortRef, Span)>,
    /// Whether a feedback input starts from a value in a file.
    pub(super) has_initial_values: bool,
    /// Something could not be read, so what is missing may just be misspelt.
    pub(super) incomplete: bool,
}

/// An edge and the positions of its ends.
#[derive(Clone)]
pub(super) struct ReadEdge {
    pub(super) edge: Edge,
    pub(super) source_span: Span,
    pub(super) target_span: Span,
}

const KNOWN: [&str; 6] =
    ["configs", "data_flow", "feedback_flow", "initial_values", "inputs", "outputs"];

/// Reads the block. Settings go into `spec`, connections are returned.
pub(super) fn read(
    root: &YamlNode,
    spec: &mut Spec,
    spans: &mut Spans,
    problems: &mut Problems<'_>,
) -> Option<Wiring> {
    let block = fields::required(root, "pipeline", "the bundle", root.span, problems)?;
    let pairs = fields::mapping(block, "`pipeline`", problems)?;
    spec.pipeline_extra = fields::extra(pairs, &KNOWN, problems);
    read_configs(block, spec, problems);
    let mut wiring = Wiring::default();
    if let Some(path) = block.get("initial_values").filter(|node| !node.is_null()) {
        wiring.has_initial_values = true;
        spans.initial_values = Some(path.span);
        spec.initial_values = read_path(path, "`initial_values`", problems);
    }
    wiring.data_flow = read_flow(block, "data_flow", &mut wiring.incomplete, problems);
    wiring.feedback_flow = read_flow(block, "feedback_flow", &mut wiring.incomplete, problems);
    for read in wiring.data_flow.iter().chain(&wiring.feedback_flow) {
        spans.fed.entry(read.edge.target.clone()).or_insert(read.target_span);
    }
    wiring.inputs = read_ports(block, "inputs", &mut wiring.incomplete, problems);
    wiring.outputs = read_ports(block, "outputs", &mut wiring.incomplete, problems);
    Some(wiring)
}

fn read_configs(block: &YamlNode, spec: &mut Spec, problems: &mut Problems<'_>) {
    let Some(configs) = block.get("configs").filter(|node| !node.is_null()) else {
        return;
    };
    let Some(pairs) = fields::mapping(configs, "`configs`", problems) else {
        return;
    };
    spec.configs.extra = fields::extra(pairs, &["frequency"], problems);
    let Some(frequency) = configs.get("frequency").filter(|node| !node.is_null()) else {
        return;
    };
    let Some(hertz) = fields::number(frequency, "`frequency`", problems) else {
        return;
    };
    if hertz > 0.0 && hertz.is_finite() {
        spec.configs.frequency = Some(hertz);
    } else {
        let message = format!("`frequency` must be more than 0, not {hertz}");
        problems.add(frequency.span, Diagnostic::error(codes::FREQUENCY_INVALID, message));
    }
}

/// Reads `{source: [target, …]}`. A flow that is not there has no edges.
fn read_flow(
    block: &YamlNode,
    key: &str,
    incomplete: &mut bool,
    problems: &mut Problems<'_>,
) -> Vec<ReadEdge> {
    let Some(flow) = block.get(key) else {
        return Vec::new();
    };
    let Some(pairs) = fields::mapping(flow, &format!("`{key}`"), problems) else {
        *incomplete = true;
        return Vec::new();
    };
    let mut edges = Vec::new();
    for (source_node, targets) in pairs {
        let source = read_end(source_node, problems);
        let what = format!("the targets of an edge in `{key}`");
        let targets = fields::sequence(targets, &what, problems);
        *incomplete |= source.is_none() || targets.is_none();
        for target_node in targets.unwrap_or_default() {
            let target = read_end(target_node, problems);
            *incomplete |= target.is_none();
            if let (Some(source), Some(target)) = (source.clone(), target) {
                let edge = Edge { source, target };
                let (source_span, target_span) = (source_node.span, target_node.span);
                edges.push(ReadEdge { edge, source_span, target_span });
            }
        }
    }
    edges
}

fn read_end(node: &YamlNode, problems: &mut Problems<'_>) -> Option<PortRef> {
    let text = fields::text(node, "the end of an edge", problems)?;
    text.parse().ok().or_else(|| {
        let message = format!("edge end {text:?} is not written `node/port`");
        problems.add(node.span, Diagnostic::error(codes::EDGE_MALFORMED, message));
        None
    })
}

/// Reads `{node: [port, …]}`.
fn read_ports(
    block: &YamlNode,
    key: &str,
    incomplete: &mut bool,
    problems: &mut Problems<'_>,
) -> Vec<(PortRef, Span)> {
    let pairs = fields::required(block, key, "`pipeline`", block.span, problems)
        .and_then(|list| fields::mapping(list, &format!("`{key}` of the pipeline"), problems));
    *incomplete |= pairs.is_none();
    let mut ports = Vec::new();
    for (node, names) in pairs.unwrap_or_default() {
        let what = format!("a node in `{key}` of the pipeline");
        let node = fields::text(node, &what, problems);
        let what = format!("the ports of a node in `{key}` of the pipeline");
        let names = fields::sequence(names, &what, problems);
        *incomplete |= node.is_none() || names.is_none();
        for name in names.unwrap_or_default() {
            let text = fields::text(name, "the name of a port", problems);
            *incomplete |= text.is_none();
            if let (Some(node), Some(text)) = (node, text) {
                ports.push((PortRef::new(node, text), name.span));
            }
        }
    }
    ports
}
