//! Writes down what was done to a model, so that it can be done again and undone.
//!
//! Nothing is hashed while passes run. [`record`] does the rewrites once more on the original, which
//! shows that the records suffice, notes who reads something else since, and hashes what went and
//! came. Elements are told apart by where they lie: what the result shares with the original is kept
//! in neither of the two files.

mod elements;
mod files;
mod records;
mod sides;

use std::collections::HashMap;

use serde_json::Value;
use veracity_diag::Result;
use veracity_onnx::{Graph, Model, NodeId};
use veracity_results::{
    DeclinedMatch, PassParameter, PassRecord, REWRITES_SCHEMA_VERSION, RejectedRewrite, RewriteLog,
};

use crate::digest::{Hashes, ModelHash, model_sha256, sha256};
use crate::fields::label;
use crate::provenance::{note_model, note_nodes};
use crate::replay::patch_of;
use crate::{Parameter, Pass, Pipeline, Transformed};

pub use elements::Elements;
pub(crate) use elements::{GONE, ORIGINAL, RESULT};
pub use files::{elements_path, log_path, read_checked_log, read_log};
pub use sides::sides;

/// What is written down.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// Whether nodes of the result say where they come from, and the model names its log.
    pub provenance: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { provenance: true }
    }
}

/// A result with everything that tells how it came about.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The result.
    pub model: Model,
    /// What was done.
    pub log: RewriteLog,
    /// What is needed to do it again and to undo it.
    pub elements: Elements,
}

/// Writes down how a graph became what it is. `original` is the model that the graph was made of.
pub fn record(
    original: &Model,
    pipeline: &Pipeline,
    done: &Transformed,
    options: LogOptions,
) -> Result<Recorded> {
    let result = done.graph.to_model()?;
    let sharing = elements::Sharing::of(original, &result);
    std::thread::scope(|scope| {
        // The two models are hashed side by side: only what stands behind the graph of the result
        // depends on the hash of the original.
        let original_hash = scope.spawn(|| model_sha256(original));
        let hashes = Hashes::of(sharing.to_hash(&done.rewrites));
        let mut log = unhashed(original, pipeline, done, &sharing, &hashes)?;
        log.provenance = options.provenance;
        let steps: Vec<_> = done.rewrites.iter().map(|rewrite| &rewrite.applied).collect();
        let noted =
            if log.provenance { note_nodes(&result, original, &log, &steps) } else { result };
        let body = ModelHash::body(&noted);
        log.original_sha256 = original_hash.join().unwrap_or_else(|_| model_sha256(original));
        let model = if log.provenance { note_model(&noted, &log) } else { noted };
        log.result_sha256 = body.finish(&model);
        let elements = sharing.elements(original, &done.rewrites, &hashes)?;
        Ok(Recorded { model, log, elements })
    })
}

/// The log without the hashes of the two models.
fn unhashed(
    original: &Model,
    pipeline: &Pipeline,
    done: &Transformed,
    sharing: &elements::Sharing,
    hashes: &Hashes,
) -> Result<RewriteLog> {
    let mut graph = Graph::new(original.clone())?;
    let mut records = Vec::with_capacity(done.rewrites.len());
    for rewrite in &done.rewrites {
        let version = version_of(pipeline, rewrite.pass);
        records.push(records::record(&graph, rewrite, version, sharing, hashes));
        graph.apply(&patch_of(&rewrite.applied))?;
    }
    let names = names(original, done);
    Ok(RewriteLog {
        schema_version: REWRITES_SCHEMA_VERSION.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        original_sha256: String::new(),
        result_sha256: String::new(),
        signature: pipeline.signature(),
        provenance: false,
        passes: pipeline.passes().iter().map(|pass| pass_record(pass.as_ref())).collect(),
        rounds: done.rounds,
        settled: done.settled,
        nodes_before: original.main_nodes().len(),
        nodes_after: done.graph.len(),
        records,
        rejected: done.rejected.iter().map(|(rewrite, why)| rejected(rewrite, why)).collect(),
        declined: declined(done, &names),
        order: done.graph.nodes().map(|(id, _)| id.0).collect(),
    })
}

/// The hash of a log by which its result names it: over its JSON with an empty `result_sha256`,
/// which is known later.
pub fn log_sha256(log: &RewriteLog) -> String {
    let mut value = serde_json::to_value(log).unwrap_or_default();
    if let Some(hash) = value.get_mut("result_sha256") {
        *hash = Value::String(String::new());
    }
    sha256(value.to_string().as_bytes())
}

fn version_of(pipeline: &Pipeline, name: &str) -> u32 {
    let found = pipeline.passes().iter().find(|pass| pass.name() == name);
    found.map_or(0, |pass| pass.version())
}

fn pass_record(pass: &dyn Pass) -> PassRecord {
    let typed = |parameter| match parameter {
        Parameter::Integer(value) => PassParameter::Integer(value),
        Parameter::Number(value) => PassParameter::Number(value),
        Parameter::Switch(value) => PassParameter::Switch(value),
        Parameter::Word(value) => PassParameter::Word(value),
    };
    let parameters = pass.parameters().into_iter();
    PassRecord {
        name: pass.name().to_owned(),
        version: pass.version(),
        class: pass.class().name().to_owned(),
        parameters: parameters.map(|(name, value)| (name.to_owned(), typed(value))).collect(),
        signature: pass.signature(),
    }
}

fn rejected(rewrite: &crate::Rewrite, problem: &str) -> RejectedRewrite {
    let removed = rewrite.applied.removed.iter().map(|(_, node)| node);
    let changed = rewrite.applied.changed.iter().map(|(_, before, _)| before);
    RejectedRewrite {
        pass: rewrite.pass.to_owned(),
        nodes: removed.chain(changed).map(|node| label(node).to_owned()).collect(),
        reason: rewrite.applied.reason.clone(),
        problem: problem.to_owned(),
    }
}

/// What every node that ever was is called.
fn names(original: &Model, done: &Transformed) -> HashMap<NodeId, String> {
    let ids = (0_u32..).map(NodeId);
    let mut names: HashMap<NodeId, String> =
        ids.zip(original.main_nodes().iter().map(|node| label(node).to_owned())).collect();
    for rewrite in &done.rewrites {
        let added = rewrite.applied.added.iter().map(|(id, node)| (*id, label(node).to_owned()));
        names.extend(added);
    }
    names
}

fn declined(done: &Transformed, names: &HashMap<NodeId, String>) -> Vec<DeclinedMatch> {
    let mut all = Vec::new();
    for (pass, found) in &done.declined {
        for one in found {
            let name = names.get(&one.anchor);
            all.push(DeclinedMatch {
                pass: (*pass).to_owned(),
                node: name.map(|_| one.anchor.0),
                name: name.cloned().unwrap_or_default(),
                reason: one.reason.clone(),
            });
        }
    }
    all
}
