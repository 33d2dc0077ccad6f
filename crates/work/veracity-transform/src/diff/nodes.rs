//! Nodes of two models, by the values that they give and then by what they compute from what.

use std::collections::{BTreeMap, HashMap, HashSet};

use veracity_onnx::{Model, Node};
use veracity_results::{FieldChange, NodeDifference, NodeRecord};

use crate::fields::{changes, label, node_record, operator};

/// How nodes differ.
#[derive(Default)]
pub(super) struct Nodes {
    pub(super) same: usize,
    pub(super) removed: Vec<NodeRecord>,
    pub(super) added: Vec<NodeRecord>,
    pub(super) changed: Vec<NodeDifference>,
}

pub(super) fn compare(before: &Model, after: &Model, renamed: &[(String, String)]) -> Nodes {
    let (old, new) = (before.main_nodes(), after.main_nodes());
    let mut pairs = Pairs::by_name(&old, &new);
    pairs.by_structure(&old, &new, renamed);
    let mut found = Nodes::default();
    for (index, node) in old.iter().enumerate() {
        let Some(&other) = pairs.forward.get(&index) else {
            found.removed.push(node_record(position(index), node));
            continue;
        };
        let fields = differing(node, &new[other], &pairs.values);
        if fields.is_empty() {
            found.same += 1;
            continue;
        }
        found.changed.push(NodeDifference {
            before: position(index),
            after: position(other),
            name: label(node).to_owned(),
            op_type: operator(node),
            fields,
        });
    }
    let fresh = new.iter().enumerate().filter(|(index, _)| !pairs.taken.contains(index));
    found.added = fresh.map(|(index, node)| node_record(position(index), node)).collect();
    found
}

fn position(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// What differs, values aside that only have another name.
fn differing(before: &Node, after: &Node, values: &HashMap<String, String>) -> Vec<FieldChange> {
    let mapped = |names: &[String]| -> Vec<String> {
        names.iter().map(|name| values.get(name).unwrap_or(name).clone()).collect()
    };
    let same_inputs = mapped(before.inputs()) == after.inputs();
    let same_outputs = mapped(before.outputs()) == after.outputs();
    let mut fields = changes(before, after);
    fields.retain(|change| match change.field.as_str() {
        "inputs" => !same_inputs,
        "outputs" => !same_outputs,
        _ => true,
    });
    fields
}

/// Which node of the first model is which of the second.
#[derive(Default)]
struct Pairs {
    forward: BTreeMap<usize, usize>,
    taken: HashSet<usize>,
    /// Names of values in the second model, where they are others.
    values: HashMap<String, String>,
}

impl Pairs {
    /// Nodes that give a value of the same name are the same node.
    fn by_name(old: &[Node], new: &[Node]) -> Self {
        let mut givers: HashMap<&str, usize> = HashMap::new();
        for (index, node) in new.iter().enumerate() {
            for output in node.outputs().iter().filter(|name| !name.is_empty()) {
                givers.entry(output).or_insert(index);
            }
        }
        let mut pairs = Self::default();
        for (index, node) in old.iter().enumerate() {
            let named = node.outputs().iter().find_map(|name| givers.get(name.as_str()));
            if let Some(&other) = named.filter(|other| !pairs.taken.contains(other)) {
                pairs.join(index, node, other, &new[other]);
            }
        }
        pairs
    }

    /// Of the others, nodes that compute the same from the same values are the same node.
    fn by_structure(&mut self, old: &[Node], new: &[Node], renamed: &[(String, String)]) {
        for (before, after) in renamed {
            self.values.insert(before.clone(), after.clone());
        }
        let mut waiting: HashMap<(String, Vec<String>), Vec<usize>> = HashMap::new();
        for (index, node) in new.iter().enumerate().rev() {
            if !self.taken.contains(&index) {
                let key = (operator(node), node.inputs().to_vec());
                waiting.entry(key).or_default().push(index);
            }
        }
        // In running order, so that what a node reads is matched before.
        for (index, node) in old.iter().enumerate() {
            if self.forward.contains_key(&index) {
                continue;
            }
            let mapped = |name: &String| self.values.get(name).unwrap_or(name).clone();
            let key = (operator(node), node.inputs().iter().map(mapped).collect());
            let Some(candidates) = waiting.get_mut(&key) else { continue };
            let alike = candidates.iter().rposition(|&other| node.computes_like(&new[other]));
            if let Some(at) = alike {
                let other = candidates.remove(at);
                self.join(index, node, other, &new[other]);
            }
        }
    }

    fn join(&mut self, index: usize, node: &Node, other: usize, twin: &Node) {
        self.forward.insert(index, other);
        self.taken.insert(other);
        for (before, after) in node.outputs().iter().zip(twin.outputs()) {
            if before != after && !before.is_empty() && !after.is_empty() {
                self.values.insert(before.clone(), after.clone());
            }
        }
    }
}
