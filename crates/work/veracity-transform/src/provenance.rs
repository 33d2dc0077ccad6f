//! Notes in the result that say where each node comes from.
//!
//! A node that a rewrite made, changed, or let stand for another carries `veracity.from`, a JSON
//! list of names of nodes of the original, and `veracity.rewrites`, a JSON list of numbers of
//! records in the log. Lists are whole, however long. Notes of others on nodes that are gone live on
//! at the nodes that came instead: first those of the node that gave the same value, then of the
//! others, and never in the place of one that is there. An original that was itself a result hands
//! its own `veracity.from` on, so that names are those of the first original.

use std::collections::{BTreeMap, HashMap};

use veracity_onnx::{Applied, Model, Node};
use veracity_results::RewriteLog;

use crate::fields::label;
use crate::lineage::{Lineage, Origin};
use crate::log_sha256;

/// Key of the names of original nodes.
pub(crate) const FROM_KEY: &str = "veracity.from";
/// Key of the numbers of records.
pub(crate) const REWRITES_KEY: &str = "veracity.rewrites";
/// Key of the hash of the log.
pub(crate) const LOG_KEY: &str = "veracity.log.sha256";
/// Key of the hash of the original.
const ORIGINAL_KEY: &str = "veracity.original.sha256";
/// Key of the signature of all passes.
const SIGNATURE_KEY: &str = "veracity.signature";

/// The result with all its notes. `steps` is what each record of the log did.
pub(crate) fn annotate(
    result: &Model,
    original: &Model,
    log: &RewriteLog,
    steps: &[&Applied],
) -> Model {
    note_model(&note_nodes(result, original, log, steps), log)
}

/// The result with the notes on its nodes. They do not depend on hashes of models.
pub(crate) fn note_nodes(
    result: &Model,
    original: &Model,
    log: &RewriteLog,
    steps: &[&Applied],
) -> Model {
    let lineage = Lineage::of(log);
    let originals = original.main_nodes();
    let foreign = foreign_keys(steps);
    let notes = log.order.iter().enumerate().filter_map(|(index, id)| {
        let origin = lineage.node(*id)?;
        let mut entries: Vec<(String, String)> =
            foreign.get(id).into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
        entries.push((FROM_KEY.to_owned(), names(origin, &originals)));
        entries.push((REWRITES_KEY.to_owned(), json(&origin.rewrites)));
        Some((index, entries))
    });
    result.annotated(notes.collect::<Vec<_>>(), [])
}

/// The result with the notes on the model itself.
pub(crate) fn note_model(result: &Model, log: &RewriteLog) -> Model {
    let notes = [
        (ORIGINAL_KEY, log.original_sha256.clone()),
        (LOG_KEY, log_sha256(log)),
        (SIGNATURE_KEY, log.signature.clone()),
    ];
    result.annotated([], notes.map(|(key, value)| (key.to_owned(), value)))
}

/// Names of original nodes, in the order of the file, each once.
fn names(origin: &Origin, originals: &[Node]) -> String {
    let mut names: Vec<String> = Vec::new();
    for node in origin.from.iter().filter_map(|&id| originals.get(id as usize)) {
        for name in earlier(node).unwrap_or_else(|| vec![label(node).to_owned()]) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    json(&names)
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// What an earlier transformation says that a node comes from.
fn earlier(node: &Node) -> Option<Vec<String>> {
    let (_, text) = node.metadata().find(|(key, _)| *key == FROM_KEY)?;
    serde_json::from_str(text).ok()
}

/// Notes of others that nodes inherit from those that they came for, by id.
fn foreign_keys(steps: &[&Applied]) -> HashMap<u32, BTreeMap<String, String>> {
    let mut inherited: HashMap<u32, BTreeMap<String, String>> = HashMap::new();
    for applied in steps {
        let gone = applied.removed.iter().map(|(id, node)| (id.0, node));
        let gone: Vec<(u32, &Node)> =
            gone.chain(applied.changed.iter().map(|(id, before, _)| (id.0, before))).collect();
        let made = applied.added.iter().map(|(id, node)| (id.0, node));
        let made: Vec<(u32, &Node)> =
            made.chain(applied.changed.iter().map(|(id, _, after)| (id.0, after))).collect();
        let before: Vec<_> =
            made.iter().map(|(_, node)| heritage(node, &gone, &inherited)).collect();
        for ((id, _), keys) in made.iter().zip(before) {
            inherited.insert(*id, keys);
        }
    }
    inherited
}

fn heritage(
    node: &Node,
    gone: &[(u32, &Node)],
    inherited: &HashMap<u32, BTreeMap<String, String>>,
) -> BTreeMap<String, String> {
    let gives_the_same = |other: &Node| {
        other.outputs().iter().any(|name| !name.is_empty() && node.outputs().contains(name))
    };
    let (first, rest): (Vec<_>, Vec<_>) = gone.iter().partition(|(_, other)| gives_the_same(other));
    let mut keys = BTreeMap::new();
    for (id, other) in first.into_iter().chain(rest) {
        let own = other.metadata();
        let older = inherited.get(&id).into_iter().flatten().map(|(k, v)| (k.as_str(), v.as_str()));
        for (key, value) in own.chain(older).filter(|(key, _)| !key.starts_with("veracity.")) {
            keys.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        }
    }
    for (key, _) in node.metadata() {
        keys.remove(key);
    }
    keys
}
