//! One rewrite as a record.

use std::collections::{BTreeMap, BTreeSet};

use veracity_onnx::{Applied, Graph, Node, NodeId, Weight};
use veracity_results::{
    ChangedNode, NewWeight, NodeRecord, RewriteRecord, WeightRecord, WeightSource,
};

use super::elements::Sharing;
use crate::digest::Hashes;
use crate::fields::{changes, label, node_record};
use crate::{Rewrite, base64};

/// The record of a rewrite; `graph` is as it was before.
pub(super) fn record(
    graph: &Graph,
    rewrite: &Rewrite,
    version: u32,
    sharing: &Sharing,
    hashes: &Hashes,
) -> RewriteRecord {
    let applied = &rewrite.applied;
    RewriteRecord {
        id: rewrite.id,
        pass: rewrite.pass.to_owned(),
        version,
        class: rewrite.class.name().to_owned(),
        round: rewrite.round,
        index: rewrite.index,
        anchor: Some(rewrite.anchor.0).filter(|&id| id != u32::MAX),
        reason: applied.reason.clone(),
        removed: applied.removed.iter().map(|(id, node)| node_record(id.0, node)).collect(),
        added: applied.added.iter().map(|(id, node)| whole_node(id.0, node)).collect(),
        changed: applied.changed.iter().map(changed_node).collect(),
        context: applied.context.iter().map(|(id, _)| id.0).collect(),
        standing: standing(graph, applied),
        rerouted: rerouted(graph, applied),
        values: values(applied),
        replaced: applied.replaced.clone(),
        weights: new_weights(graph, applied, sharing, hashes),
        dropped: applied.dropped.iter().map(|(name, it)| weight_record(name, it, hashes)).collect(),
    }
}

fn whole_node(id: u32, node: &Node) -> NodeRecord {
    NodeRecord { proto: base64::encode(&node.to_bytes()), ..node_record(id, node) }
}

fn changed_node((id, before, after): &(NodeId, Node, Node)) -> ChangedNode {
    ChangedNode {
        id: id.0,
        name: label(before).to_owned(),
        inputs: before.inputs().to_vec(),
        outputs: before.outputs().to_vec(),
        fields: changes(before, after),
        proto: base64::encode(&after.to_bytes()),
    }
}

fn weight_record(name: &str, weight: &Weight, hashes: &Hashes) -> WeightRecord {
    WeightRecord {
        name: name.to_owned(),
        dtype: weight.type_name(),
        dims: weight.dims(),
        sha256: hashes.weight(weight),
    }
}

fn new_weights(
    graph: &Graph,
    applied: &Applied,
    sharing: &Sharing,
    hashes: &Hashes,
) -> Vec<NewWeight> {
    if applied.weights.is_empty() {
        return Vec::new();
    }
    let removed = applied.removed.iter().map(|(_, node)| node);
    let rewritten = removed.chain(applied.changed.iter().map(|(_, before, _)| before));
    let read: BTreeSet<&str> = rewritten.flat_map(Node::reads_itself).collect();
    let source = |name: &str| {
        let sha256 = hashes.weight(graph.weight(name)?);
        Some(WeightSource { name: name.to_owned(), sha256 })
    };
    let from: Vec<WeightSource> = read.into_iter().filter_map(source).collect();
    let whole = |(name, weight): &(String, Weight)| NewWeight {
        weight: weight_record(name, weight, hashes),
        from: from.clone(),
        proto: base64::encode(&sharing.outline(weight, hashes)),
    };
    applied.weights.iter().map(whole).collect()
}

/// Nodes that stay and give what is read instead of what went.
fn standing(graph: &Graph, applied: &Applied) -> Vec<u32> {
    let rewritten = rewritten(applied);
    let givers = applied.replaced.iter().filter_map(|(_, new)| graph.producer(new));
    let staying: BTreeSet<u32> =
        givers.map(|(id, _)| id.0).filter(|id| !rewritten.contains(id)).collect();
    staying.into_iter().collect()
}

/// Nodes that stay and read something else since.
fn rerouted(graph: &Graph, applied: &Applied) -> Vec<u32> {
    let rewritten = rewritten(applied);
    let moved = applied.replaced.iter().chain(&applied.renamed).map(|(old, _)| old);
    let readers = moved.flat_map(|old| graph.readers(old)).map(|id| id.0);
    let staying: BTreeSet<u32> = readers.filter(|id| !rewritten.contains(id)).collect();
    staying.into_iter().collect()
}

fn rewritten(applied: &Applied) -> BTreeSet<u32> {
    let removed = applied.removed.iter().map(|(id, _)| id.0);
    removed.chain(applied.changed.iter().map(|(id, ..)| id.0)).collect()
}

/// Values that are others now, or gone; followed to the end where a value moved twice.
fn values(applied: &Applied) -> BTreeMap<String, Option<String>> {
    let mut map = applied.value_map();
    for (name, _) in &applied.dropped {
        map.entry(name.clone()).or_insert(None);
    }
    // A constant that became a weight under its own name is still there.
    for (name, _) in &applied.weights {
        if map.get(name) == Some(&None) {
            map.remove(name);
        }
    }
    let renamed: BTreeMap<&String, &String> =
        applied.renamed.iter().map(|(from, to)| (from, to)).collect();
    for (old, new) in &mut map {
        let last = new.as_ref().and_then(|new| renamed.get(new)).filter(|last| **last != old);
        if let Some(last) = last {
            *new = Some((*last).clone());
        }
    }
    map
}
