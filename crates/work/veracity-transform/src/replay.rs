//! Does the rewrites of a log again.

use veracity_diag::{Diagnostic, Refusal, Result, codes};
use veracity_onnx::{Applied, Graph, Model, Node, NodeId, Patch, Weight};
use veracity_results::{RewriteLog, RewriteRecord};

use crate::log::{Elements, ORIGINAL};
use crate::provenance::annotate;
use crate::{base64, model_sha256};

/// Does the rewrites of a log again, on the original. The result is byte for byte the one that the
/// log is about, or refused.
pub fn replay(original: &Model, log: &RewriteLog, elements: &Elements) -> Result<Model> {
    let found = model_sha256(original);
    if found != log.original_sha256 {
        let message = format!("the log is about the original {}", log.original_sha256);
        return Err(Diagnostic::error(codes::LOG_MISFIT, message)
            .hint(format!("this model is {found}"))
            .into());
    }
    let (graph, steps) = rewritten(original, log, elements)?;
    let result = graph.to_model()?;
    let steps: Vec<&Applied> = steps.iter().collect();
    let result = if log.provenance { annotate(&result, original, log, &steps) } else { result };
    let found = model_sha256(&result);
    if found != log.result_sha256 {
        let message = format!("the rewrites give {found} instead of {}", log.result_sha256);
        return Err(Diagnostic::error(codes::REPLAY_DIFFERS, message).into());
    }
    Ok(result)
}

/// The graph after all rewrites, and what each of them did.
fn rewritten(
    original: &Model,
    log: &RewriteLog,
    elements: &Elements,
) -> Result<(Graph, Vec<Applied>)> {
    let stored = original.stored();
    let find = |address: &str| match address.strip_prefix(ORIGINAL) {
        Some(index) => stored.get(index.parse::<usize>().ok()?).cloned(),
        // What later rewrites dropped is never looked at.
        None if address == crate::log::GONE => Some(bytes::Bytes::new()),
        None => elements.get(address),
    };
    let mut graph = Graph::new(original.clone())?;
    let mut steps = Vec::with_capacity(log.records.len());
    for record in &log.records {
        let patch = read_patch(record, find).map_err(|found| in_record(found, record))?;
        let applied = graph.apply(&patch).map_err(|found| in_record(found, record))?;
        let ids = applied.added.iter().map(|(id, _)| id.0);
        if !ids.eq(record.added.iter().map(|node| node.id)) {
            let found = Diagnostic::error(codes::REPLAY_DIFFERS, "a new node gets another id");
            return Err(in_record(found.into(), record));
        }
        steps.push(applied);
    }
    graph.reorder(&log.order.iter().copied().map(NodeId).collect::<Vec<_>>())?;
    Ok((graph, steps))
}

fn in_record(found: Refusal, record: &RewriteRecord) -> Refusal {
    let place = veracity_diag::Place {
        node: Some(format!("rewrite {} ({})", record.id, record.pass)),
        ..veracity_diag::Place::default()
    };
    found.within(&place)
}

fn read_patch(
    record: &RewriteRecord,
    find: impl Fn(&str) -> Option<bytes::Bytes>,
) -> Result<Patch> {
    let mut patch = Patch {
        remove: record.removed.iter().map(|node| NodeId(node.id)).collect(),
        replace: record.replaced.clone(),
        drop_weights: record.dropped.iter().map(|weight| weight.name.clone()).collect(),
        context: record.context.iter().copied().map(NodeId).collect(),
        ..Patch::because(&record.reason)
    };
    for node in &record.added {
        patch.add.push(Node::from_bytes(&decoded(&node.proto)?)?);
    }
    for node in &record.changed {
        patch.change.push((NodeId(node.id), Node::from_bytes(&decoded(&node.proto)?)?));
    }
    for new in &record.weights {
        let weight = Weight::from_bytes(&decoded(&new.proto)?, &find)?;
        patch.weights.push((new.weight.name.clone(), weight));
    }
    Ok(patch)
}

fn decoded(text: &str) -> Result<Vec<u8>> {
    base64::decode(text).ok_or_else(|| {
        Diagnostic::error(codes::LOG_UNREADABLE, "a node or weight is not base64").into()
    })
}

/// The patch that does the same again.
pub(crate) fn patch_of(applied: &Applied) -> Patch {
    Patch {
        remove: applied.removed.iter().map(|(id, _)| *id).collect(),
        change: applied.changed.iter().map(|(id, _, after)| (*id, after.clone())).collect(),
        add: applied.added.iter().map(|(_, node)| node.clone()).collect(),
        weights: applied.weights.clone(),
        drop_weights: applied.dropped.iter().map(|(name, _)| name.clone()).collect(),
        replace: applied.replaced.clone(),
        context: applied.context.iter().map(|(id, _)| *id).collect(),
        ..Patch::because(&applied.reason)
    }
}
