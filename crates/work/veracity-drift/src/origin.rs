//! Which compared value an uncompared one is computed for.

use std::collections::{BTreeMap, BTreeSet};

use veracity_onnx::{BodyValue, NodeFacts};
use veracity_results::Unmapped;

/// Values of the export that were not compared, each with the compared value that it feeds first.
/// Values inside of branches and loops are part of what the node around them gives.
pub(crate) fn unmapped(
    nodes: &[NodeFacts],
    bodies: &[BodyValue],
    compared: &BTreeSet<&str>,
) -> Vec<Unmapped> {
    let mut part_of: BTreeMap<&str, Option<String>> = BTreeMap::new();
    for node in nodes.iter().rev() {
        let own = node.outputs.iter().find(|output| compared.contains(output.as_str())).cloned();
        let further = || {
            let mut outputs = node.outputs.iter();
            outputs.find_map(|output| part_of.get(output.as_str()).cloned().flatten())
        };
        let serves = own.or_else(further);
        for input in node.inputs.iter().filter(|input| !compared.contains(input.as_str())) {
            // Nodes are seen backwards: the last one to be written is the first to be run. A reader
            // that serves nothing does not hide one that does.
            if serves.is_some() || !part_of.contains_key(input.as_str()) {
                part_of.insert(input, serves.clone());
            }
        }
    }
    let outputs = nodes.iter().flat_map(|node| {
        let outputs = node.outputs.iter().filter(|output| !output.is_empty());
        outputs.map(move |output| (output, &node.op_type))
    });
    let serves = |output: &str| part_of.get(output).cloned().flatten();
    let outside = outputs
        .filter(|(output, _)| !compared.contains(output.as_str()))
        .map(|(output, op_type)| entry(output.clone(), op_type, serves(output)));
    let inside = bodies.iter().map(|BodyValue { outer, name, op_type }| {
        let own = compared.contains(outer.as_str()).then(|| outer.clone());
        entry(format!("{outer}/{name}"), op_type, own.or_else(|| serves(outer)))
    });
    outside.chain(inside).collect()
}

fn entry(name: String, op_type: &str, part_of: Option<String>) -> Unmapped {
    let reason = part_of.is_none().then(|| "it feeds no compared value".to_owned());
    Unmapped { name, op_type: op_type.to_owned(), part_of, reason }
}
