//! How two models differ in their structure, whoever made them.
//!
//! Nodes of the main graphs are matched by the names of the values that they give, and then, front to
//! back, by operator, attributes and what they read, so that a graph in which all values were renamed
//! is still the same. Inputs and outputs of the models go by their names, weights by their names and
//! then by their elements. Only structure is compared: two models that differ may compute the same.

mod nodes;
mod weights;

use std::collections::BTreeMap;

use veracity_onnx::{Model, ValueInfo};
use veracity_results::{FieldChange, MODEL_DIFF_SCHEMA_VERSION, ModelDiff};

use crate::fields::map_changes;

/// How `after` differs from `before`.
pub fn diff(before: &Model, after: &Model) -> ModelDiff {
    let weights = weights::compare(before, after);
    let nodes = nodes::compare(before, after, &weights.renamed);
    ModelDiff {
        schema_version: MODEL_DIFF_SCHEMA_VERSION.to_owned(),
        nodes_before: before.main_nodes().len(),
        nodes_after: after.main_nodes().len(),
        nodes_same: nodes.same,
        removed: nodes.removed,
        added: nodes.added,
        changed: nodes.changed,
        weights_removed: weights.removed,
        weights_added: weights.added,
        weights_changed: weights.changed,
        weights_renamed: weights.renamed,
        model: model_changes(before, after),
    }
}

fn model_changes(before: &Model, after: &Model) -> Vec<FieldChange> {
    let ports = |infos: Vec<ValueInfo>| -> BTreeMap<String, String> {
        infos.into_iter().map(|info| (info.name.clone(), info.to_string())).collect()
    };
    let versions = |model: &Model| -> BTreeMap<String, String> {
        let named = |domain: &str| if domain.is_empty() { "ai.onnx" } else { domain }.to_owned();
        let opsets = model.opsets().into_iter();
        opsets.map(|(domain, version)| (named(&domain), version.to_string())).collect()
    };
    let facts = |model: &Model| -> BTreeMap<String, String> {
        [("format version", model.ir_version().to_string()), ("producer", model.producer())]
            .map(|(name, text)| (name.to_owned(), text))
            .into()
    };
    let notes = |model: &Model| model.metadata().into_iter().collect();
    let mut all = map_changes("", &facts(before), &facts(after));
    all.extend(map_changes("opset ", &versions(before), &versions(after)));
    let (taken, given) = ((before.accepted_inputs(), after.accepted_inputs()), "input ");
    all.extend(map_changes(given, &ports(taken.0), &ports(taken.1)));
    all.extend(map_changes("output ", &ports(before.outputs()), &ports(after.outputs())));
    all.extend(order_changes(before, after));
    all.extend(map_changes("metadata ", &notes(before), &notes(after)));
    all.extend(part_changes(before, after));
    all
}

/// Inputs and outputs that are the same and stand in another order.
fn order_changes(before: &Model, after: &Model) -> Vec<FieldChange> {
    let names = |infos: Vec<ValueInfo>| -> Vec<String> {
        infos.into_iter().map(|info| info.name).collect()
    };
    let lists = [
        ("order of inputs", names(before.accepted_inputs()), names(after.accepted_inputs())),
        ("order of outputs", names(before.outputs()), names(after.outputs())),
    ];
    let moved = lists.into_iter().filter(|(_, before, after)| {
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names
        };
        before != after && sorted(before) == sorted(after)
    });
    moved
        .map(|(field, before, after)| FieldChange {
            field: field.to_owned(),
            before: Some(before.join(", ")),
            after: Some(after.join(", ")),
        })
        .collect()
}

/// Functions and sparse weights, which are compared as a whole.
fn part_changes(before: &Model, after: &Model) -> Vec<FieldChange> {
    let (before, after) = (before.further_parts(), after.further_parts());
    let text = |bytes: &Vec<u8>| format!("{} bytes", bytes.len());
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differing = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    differing
        .map(|name| FieldChange {
            field: name.clone(),
            before: before.get(name).map(text),
            after: after.get(name).map(text),
        })
        .collect()
}
