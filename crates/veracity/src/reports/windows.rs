//! Pictures of rewrites: what was replaced, and what replaced it.
//!
//! They show operators and how these hang together, without names, so that rewrites of the same
//! shape share a picture: a model with a thousand rewrites has a few dozen shapes.

use std::collections::{BTreeMap, BTreeSet};

use veracity_draw::layout;
use veracity_report::html::{Drawing, Window, Windows};
use veracity_results::{
    NodeRecord, Pipeline, PipelineEdge, PipelineNode, PipelinePort, PortName, RewriteLog,
};
use veracity_transform::sides;

use super::drawing::shown;

/// Nodes on one side that are drawn; more are told as text.
const MOST_NODES: usize = 12;

/// Shapes of a log that are drawn.
const MOST_SHAPES: usize = 150;

/// An operator with its inputs and outputs; values are numbered as they are met.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Operator {
    name: String,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

/// The pictures of a log. A single node on each side needs none.
pub(super) fn windows(log: &RewriteLog) -> Windows {
    let mut found = Windows::default();
    let mut known: BTreeMap<Vec<Operator>, Option<usize>> = BTreeMap::new();
    for record in &log.records {
        let (before, after) = sides(record);
        let is_plain = before.len().max(after.len()) < 2;
        let mut side = |nodes: &[NodeRecord]| {
            if is_plain || nodes.is_empty() || nodes.len() > MOST_NODES {
                return None;
            }
            let outline = outline(nodes);
            if let Some(shape) = known.get(&outline) {
                return *shape;
            }
            let has_room = found.shapes.len() < MOST_SHAPES;
            let drawn = if has_room { draw(&outline) } else { None };
            let shape = drawn.map(|drawn| {
                found.shapes.push(drawn);
                found.shapes.len() - 1
            });
            known.insert(outline, shape);
            shape
        };
        let shapes = (side(&before), side(&after));
        found.rewrites.push(Window { before, after, shapes });
    }
    found
}

fn outline(nodes: &[NodeRecord]) -> Vec<Operator> {
    let mut values: BTreeMap<&str, usize> = BTreeMap::new();
    let mut outline = Vec::new();
    for node in nodes {
        let [inputs, outputs] = [&node.inputs, &node.outputs].map(|names| {
            let used = names.iter().filter(|name| !name.is_empty());
            let number = |name| {
                let next = values.len();
                *values.entry(name).or_insert(next)
            };
            used.map(String::as_str).map(number).collect()
        });
        outline.push(Operator { name: node.op_type.clone(), inputs, outputs });
    }
    outline
}

fn draw(outline: &[Operator]) -> Option<Drawing> {
    let mut drawing = shown(&layout(&pipeline(outline)).ok()?);
    for one in &mut drawing.boxes {
        one.texts.retain(|text| text.is_title);
    }
    Some(drawing)
}

/// Values that come from outside or go there have no line and no row: each would be a stub without
/// a name.
fn pipeline(outline: &[Operator]) -> Pipeline {
    let name = |index: usize| format!("{} {}", index + 1, outline[index].name);
    let mut edges = Vec::new();
    for (index, reader) in outline.iter().enumerate() {
        for (row, value) in reader.inputs.iter().enumerate() {
            let giver = outline.iter().enumerate().find_map(|(at, node)| {
                let port = node.outputs.iter().position(|output| output == value)?;
                (at != index).then(|| PortName::new(name(at), port.to_string()))
            });
            let target = PortName::new(name(index), row.to_string());
            edges.extend(giver.map(|source| PipelineEdge { source, target, delay: 0 }));
        }
    }
    let ports = |node: &str, side: fn(&PipelineEdge) -> &PortName| -> Vec<PipelinePort> {
        let rows: BTreeSet<&String> = edges
            .iter()
            .map(side)
            .filter(|port| port.node == node)
            .map(|port| &port.port)
            .collect();
        let port = |row: &String| PipelinePort { name: row.clone(), ..PipelinePort::default() };
        rows.into_iter().map(port).collect()
    };
    let node = |index: usize| PipelineNode {
        name: name(index),
        inputs: ports(&name(index), |edge| &edge.target),
        outputs: ports(&name(index), |edge| &edge.source),
        ..PipelineNode::default()
    };
    let nodes = (0..outline.len()).map(node).collect();
    Pipeline { nodes, edges, ..Pipeline::default() }
}
