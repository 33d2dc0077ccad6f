//! What differs between two nodes, as text.

use std::collections::{BTreeMap, BTreeSet};

use veracity_onnx::Node;
use veracity_results::{FieldChange, NodeRecord};

/// The operator, `domain::Operator` outside of the default domain.
pub(crate) fn operator(node: &Node) -> String {
    match node.op_domain() {
        "" => node.op_type().to_owned(),
        domain => format!("{domain}::{}", node.op_type()),
    }
}

/// What a node is called: its name, or its first output where it has none.
pub(crate) fn label(node: &Node) -> &str {
    let first = || node.outputs().iter().find(|output| !output.is_empty());
    match node.name() {
        "" => first().map_or("", String::as_str),
        name => name,
    }
}

/// A node by its facts.
pub(crate) fn node_record(id: u32, node: &Node) -> NodeRecord {
    NodeRecord {
        id,
        name: node.name().to_owned(),
        op_type: operator(node),
        inputs: node.inputs().to_vec(),
        outputs: node.outputs().to_vec(),
        proto: String::new(),
    }
}

/// Every field that differs.
pub(crate) fn changes(before: &Node, after: &Node) -> Vec<FieldChange> {
    let mut found = Vec::new();
    let mut field = |name: &str, before: String, after: String| {
        if before != after {
            found.push(FieldChange {
                field: name.to_owned(),
                before: Some(before),
                after: Some(after),
            });
        }
    };
    field("operator", operator(before), operator(after));
    field("name", before.name().to_owned(), after.name().to_owned());
    field("inputs", before.inputs().join(", "), after.inputs().join(", "));
    field("outputs", before.outputs().join(", "), after.outputs().join(", "));
    found.extend(attribute_changes(before, after));
    let notes = |node: &Node| -> BTreeMap<String, String> {
        node.metadata().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    found.extend(map_changes("metadata ", &notes(before), &notes(after)));
    found
}

/// Attributes that differ.
pub(crate) fn attribute_changes(before: &Node, after: &Node) -> Vec<FieldChange> {
    let (before, after) = (before.attributes(), after.attributes());
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differing = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    differing
        .map(|name| FieldChange {
            field: format!("attribute {name}"),
            before: before.get(name).map(veracity_onnx::Attribute::text),
            after: after.get(name).map(veracity_onnx::Attribute::text),
        })
        .collect()
}

/// Keys whose texts differ.
pub(crate) fn map_changes(
    prefix: &str,
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<FieldChange> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differing = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    differing
        .map(|name| FieldChange {
            field: format!("{prefix}{name}"),
            before: before.get(name).cloned(),
            after: after.get(name).cloned(),
        })
        .collect()
}
