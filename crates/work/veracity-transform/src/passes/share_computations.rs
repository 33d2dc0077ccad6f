//! Nodes that compute the same from the same values are kept once.
//!
//! The first of them, in running order, stays; all others go in one rewrite, which names the one
//! that stays as its witness.

use std::collections::HashMap;

use veracity_onnx::{Node, NodeId, Patch};

use crate::evaluate::is_random;
use crate::{Class, Found, Pass, View};

/// Keeps nodes that compute the same once.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShareComputations;

impl Pass for ShareComputations {
    fn name(&self) -> &'static str {
        "share-computations"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "keeps nodes that compute the same from the same values once"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        let mut groups: HashMap<String, usize> = HashMap::new();
        let mut twins: Vec<Vec<(NodeId, &Node)>> = Vec::new();
        for (id, node) in view.graph().nodes() {
            // A node that reads nothing is a constant, or random.
            if node.reads_itself().next().is_none() {
                continue;
            }
            let group = *groups.entry(key(node)).or_insert(twins.len());
            match twins.get_mut(group) {
                Some(known) if known[0].1.computes_like(node) => known.push((id, node)),
                Some(_) => {}
                None => twins.push(vec![(id, node)]),
            }
        }
        for alike in twins.iter().filter(|alike| alike.len() > 1) {
            share(view, found, alike);
        }
    }
}

/// What tells most nodes apart: operator, inputs and plain attributes.
fn key(node: &Node) -> String {
    let mut attributes: Vec<String> = node
        .attribute_names()
        .map(|name| {
            let (int, float) = (node.int_of(name), node.float_of(name).map(f32::to_bits));
            format!("{name} {int:?} {float:?} {:?} {:?}", node.string_of(name), node.ints_of(name))
        })
        .collect();
    attributes.sort_unstable();
    format!("{:?} {:?} {:?} {attributes:?}", node.op_domain(), node.op_type(), node.inputs())
}

fn share(view: &View<'_>, found: &mut Found, alike: &[(NodeId, &Node)]) {
    let Some((&(twin, kept), others)) = alike.split_first() else { return };
    let mut patch = Patch::because(String::new());
    let mut anchor = None;
    for &(id, node) in others {
        match replaced(view, kept, node) {
            Err(reason) => found.decline(id, reason),
            Ok(values) => {
                // An output of the model moves its name to the value that stays: one can.
                let moves = |patch: &Patch| {
                    patch.replace.iter().any(|(old, _)| view.graph().is_output(old))
                };
                let new = Patch { replace: values, ..Patch::default() };
                if moves(&patch) && moves(&new) {
                    continue;
                }
                patch = patch.remove(id);
                patch.replace.extend(new.replace);
                anchor.get_or_insert(id);
            }
        }
    }
    if let Some(anchor) = anchor {
        patch.reason = format!("{:?} is computed already", patch.replace[0].0);
        found.propose(anchor, patch.context(twin));
    }
}

/// The values of a node with those of its twin, or why it must stay.
fn replaced(view: &View<'_>, kept: &Node, node: &Node) -> Result<Vec<(String, String)>, String> {
    if !node.op_domain().is_empty() {
        return Err("it is no standard operator and may have a state".to_owned());
    }
    if is_random(node.op_type()) || (node.is("Dropout") && node.input(2).is_some()) {
        return Err("it may give something else each time".to_owned());
    }
    if node.has_bodies() {
        return Err("it has bodies".to_owned());
    }
    let mut values = Vec::new();
    for (index, value) in node.outputs().iter().enumerate().filter(|(_, value)| !value.is_empty()) {
        let Some(same) = kept.output(index) else {
            return Err("its twin does not give all of its outputs".to_owned());
        };
        if view.graph().is_output(value) && view.graph().is_output(same) {
            return Err("both are outputs of the model".to_owned());
        }
        values.push((value.clone(), same.to_owned()));
    }
    Ok(values)
}
