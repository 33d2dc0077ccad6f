//! The pipeline of a proof, as a page shows it.
//!
//! A proof describes its bundle. One of an earlier version does not, but it knows its nodes, their
//! inputs and outputs, and what the roll-out saw at each port: which output feeds which input.

use veracity_draw::{Align, Label, Layout, Weight, layout};
use veracity_report::html::{Anchor, Drawing, DrawnBox, DrawnLine, DrawnText};
use veracity_results::{
    NodeProof, Pipeline, PipelineEdge, PipelineNode, PipelinePort, PortName, Proof, Role,
};

/// Free space around a drawing.
const MARGIN: i32 = 16;

/// A drawing of the bundle, where it can be drawn. A page without one is still a page.
pub(super) fn drawing(proof: &Proof) -> Option<Drawing> {
    let mut pipeline = proof.pipeline.clone().unwrap_or_else(|| observed(proof));
    for node in &mut pipeline.nodes {
        let known = proof.nodes.iter().find(|one| one.node == node.name);
        node.verdict = known.map(|one| one.verdict);
    }
    let found = layout(&pipeline).ok()?;
    Some(shown(&found))
}

/// The pipeline as far as the measurements of a proof know it, for one that does not describe it.
fn observed(proof: &Proof) -> Pipeline {
    let nodes: Vec<PipelineNode> = proof.nodes.iter().map(|one| node(proof, one)).collect();
    let has = |name: &PortName, is_input: bool| {
        let node = nodes.iter().find(|node| node.name == name.node);
        let ports = node.map(|node| if is_input { &node.inputs } else { &node.outputs });
        ports.is_some_and(|ports| ports.iter().any(|port| port.name == name.port))
    };
    let edges: Vec<PipelineEdge> = proof
        .rollout
        .ports
        .iter()
        .filter(|port| matches!(port.role, Role::Edge | Role::Feedback))
        .filter_map(|port| {
            let (source, target) = (name(&port.source)?, name(&port.port)?);
            let delay = u32::from(port.role == Role::Feedback);
            let is_known = has(&source, false) && has(&target, true);
            is_known.then_some(PipelineEdge { source, target, delay })
        })
        .collect();
    let is_run = proof.rollout.verdict.is_some();
    let is_fed = |port: &PortName| edges.iter().any(|edge| edge.target == *port);
    let inputs = proof.inputs.iter().filter_map(|input| name(&input.port));
    let inputs = inputs.filter(|port| is_run && !is_fed(port) && has(port, true)).collect();
    let outputs = proof.rollout.ports.iter().filter(|port| port.role == Role::Output);
    let outputs = outputs.filter_map(|port| name(&port.port)).filter(|port| has(port, false));
    let outputs = outputs.collect();
    let name = proof.subject.bundle.clone();
    Pipeline { name, rate_hz: None, nodes, edges, inputs, outputs }
}

fn node(proof: &Proof, node: &NodeProof) -> PipelineNode {
    let own = |port: &str| name(port).filter(|found| found.node == node.node);
    let inputs = proof.inputs.iter().filter_map(|input| own(&input.port));
    let inputs = inputs.map(|found| PipelinePort { name: found.port, ..PipelinePort::default() });
    let output = |port: &veracity_results::PortProof| {
        let kind = port.samples.first().map_or("", |sample| sample.reference.as_str());
        let (dtype, shape) = kind.split_once('[').unwrap_or((kind, ""));
        let sizes = shape.trim_end_matches(']').split(", ").filter_map(|size| size.parse().ok());
        let (dtype, shape) = (dtype.to_owned(), sizes.collect());
        Some(PipelinePort { name: own(&port.port)?.port, dtype, shape, ..PipelinePort::default() })
    };
    let model = proof.subject.models.iter().find(|model| model.node == node.node);
    PipelineNode {
        name: node.node.clone(),
        format: model.map(|model| model.backend.clone()).filter(|format| !format.is_empty()),
        inputs: inputs.collect(),
        outputs: node.ports.iter().filter_map(output).collect(),
        verdict: None,
    }
}

fn name(port: &str) -> Option<PortName> {
    port.split_once('/').map(|(node, port)| PortName::new(node, port))
}

/// Boxes and lines, without title and legend: a page has its own.
pub(crate) fn shown(found: &Layout) -> Drawing {
    let (left, top, right, bottom) = extent(found);
    let boxes = found.blocks.iter().map(|block| {
        // A proof may not know the types of inputs; what has none is not a scalar of no type.
        let ports = block.ports.iter().flat_map(|port| &port.labels);
        let ports = ports.filter(|label| label.text.trim() != "[]");
        DrawnBox {
            node: block.node.clone(),
            x: block.x - left,
            y: block.y - top,
            width: block.width,
            height: block.height,
            verdict: block.verdict,
            texts: block.labels.iter().chain(ports).map(|label| text(label, left, top)).collect(),
        }
    });
    let lines = found.routes.iter().map(|route| {
        let (source, target) = (&route.source, &route.target);
        DrawnLine {
            points: route.points.iter().map(|(x, y)| (x - left, y - top)).collect(),
            delay: route.delay,
            label: route.label.as_ref().map(|label| text(label, left, top)),
            title: format!("{}/{} to {}/{}", source.node, source.port, target.node, target.port),
        }
    });
    let (width, height) = (right - left, bottom - top);
    Drawing { width, height, boxes: boxes.collect(), lines: lines.collect() }
}

/// Where boxes and lines are, with free space around: left, top, right, bottom.
fn extent(found: &Layout) -> (i32, i32, i32, i32) {
    let corners = found
        .blocks
        .iter()
        .flat_map(|block| [(block.x, block.y), (block.x + block.width, block.y + block.height)]);
    let points = corners.chain(found.routes.iter().flat_map(|route| route.points.iter().copied()));
    let around = points.fold(None, |around, (x, y)| {
        let (left, top, right, bottom) = around.unwrap_or((x, y, x, y));
        Some((x.min(left), y.min(top), x.max(right), y.max(bottom)))
    });
    let (left, top, right, bottom) = around.unwrap_or_default();
    (left - MARGIN, top - MARGIN, right + MARGIN, bottom + MARGIN)
}

fn text(label: &Label, left: i32, top: i32) -> DrawnText {
    DrawnText {
        text: label.text.clone(),
        full: label.full.clone(),
        x: label.x - left,
        y: label.y - top,
        anchor: match label.align {
            Align::Start => Anchor::Start,
            Align::Middle => Anchor::Middle,
            Align::End => Anchor::End,
        },
        is_title: label.weight == Weight::SemiBold,
        is_quiet: label.is_quiet,
        width: label.width,
    }
}
