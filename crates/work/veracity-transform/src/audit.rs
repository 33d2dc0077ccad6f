//! Asks a log what became of a model.
//!
//! Answers come from the log and the result alone; only whether the log explains the result needs
//! the original. Nodes go by their name, or by their first output where they have none.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use veracity_diag::{Diagnostic, Refusal, Result, codes, nearest};
use veracity_onnx::{Model, Node};
use veracity_results::{
    AuditReport, DeclinedMatch, Explanation, MappedValue, PassCount, RewriteLog, TouchedNodes,
};

use crate::fields::label;
use crate::lineage::{Lineage, Origin};
use crate::reverse::belongs;
use crate::{Elements, diff, replay};

/// Says whether a log explains a model, and what each pass did. With the original and the elements
/// at hand the rewrites are done again; without, only hashes are held against each other, and
/// whether the log explains the model stays open. That the model is another one than the log is
/// about, or the log another one than the model names, is known in any case.
pub fn audit(
    model: &Model,
    log: &RewriteLog,
    original: Option<(&Model, &Elements)>,
) -> AuditReport {
    let mut report = AuditReport {
        explained: None,
        problems: Vec::new(),
        nodes_before: log.nodes_before,
        nodes_after: model.main_nodes().len(),
        passes: counts(log),
        unexplained: None,
    };
    if let Err(refusal) = belongs(model, log) {
        report.explained = Some(false);
        report.problems.extend(messages(&refusal));
    }
    let Some((original, elements)) = original else { return report };
    match replay(original, log, elements) {
        Ok(_) if report.problems.is_empty() => report.explained = Some(true),
        Ok(replayed) => report.unexplained = Some(diff(&replayed, model)),
        Err(refusal) => {
            report.explained = Some(false);
            report.problems.extend(messages(&refusal));
        }
    }
    report
}

fn messages(refusal: &Refusal) -> impl Iterator<Item = String> + '_ {
    refusal.diagnostics().iter().map(ToString::to_string)
}

fn counts(log: &RewriteLog) -> Vec<PassCount> {
    let mut counts: Vec<PassCount> = Vec::new();
    for pass in &log.passes {
        if counts.iter().any(|count| count.pass == pass.name) {
            continue;
        }
        let records = || log.records.iter().filter(|record| record.pass == pass.name);
        counts.push(PassCount {
            pass: pass.name.clone(),
            class: pass.class.clone(),
            rewrites: records().count(),
            removed: records().map(|record| record.removed.len()).sum(),
            added: records().map(|record| record.added.len()).sum(),
            changed: records().map(|record| record.changed.len()).sum(),
            weights_added: records().map(|record| record.weights.len()).sum(),
            weights_dropped: records().map(|record| record.dropped.len()).sum(),
            rejected: log.rejected.iter().filter(|one| one.pass == pass.name).count(),
            declined: log.declined.iter().filter(|one| one.pass == pass.name).count(),
        });
    }
    counts
}

/// A log and its result, to be asked.
#[derive(Debug)]
pub struct Audit<'l> {
    log: &'l RewriteLog,
    lineage: Lineage,
    /// What each node is called, of the original, of the result and in between.
    names: BTreeMap<u32, String>,
    /// The nodes of the result by id, and the weights.
    nodes: HashMap<u32, Node>,
    weights: BTreeSet<String>,
}

impl<'l> Audit<'l> {
    /// Refused when the model is not the result of the log, or the log was changed.
    pub fn new(model: &Model, log: &'l RewriteLog) -> Result<Self> {
        belongs(model, log)?;
        let ids = log.order.iter().copied();
        let nodes: HashMap<u32, Node> = ids.zip(model.main_nodes()).collect();
        let weights = model.main_weights().into_iter().map(|(name, _)| name).collect();
        let names = names(log, &nodes);
        Ok(Self { log, lineage: Lineage::of(log), names, nodes, weights })
    }

    /// The nodes that a pass touched, or all passes, rewrite by rewrite.
    pub fn transformed_nodes(&self, pass: Option<&str>) -> Vec<TouchedNodes> {
        let wanted = self.log.records.iter().filter(|one| pass.is_none_or(|name| one.pass == name));
        wanted
            .map(|record| TouchedNodes {
                record: record.id,
                pass: record.pass.clone(),
                removed: self.called(record.removed.iter().map(|node| node.id)),
                added: self.called(record.added.iter().map(|node| node.id)),
                changed: record.changed.iter().map(|node| node.name.clone()).collect(),
            })
            .collect()
    }

    /// Where a value of the original is, through all rewrites. Refused for a value that is neither
    /// in the result nor in any record.
    pub fn map_value(&self, value: &str) -> Result<MappedValue> {
        let mut now = value.to_owned();
        let mut records = Vec::new();
        for record in &self.log.records {
            match record.values.get(&now) {
                None => {}
                Some(Some(new)) => {
                    records.push(record.id);
                    now.clone_from(new);
                }
                Some(None) => {
                    records.push(record.id);
                    return Ok(MappedValue { value: value.to_owned(), now: None, records });
                }
            }
        }
        if records.is_empty() && !self.is_there(value) {
            return Err(unknown(value, self.values()));
        }
        Ok(MappedValue { value: value.to_owned(), now: Some(now), records })
    }

    /// Where a node or a weight of the result comes from. Refused for a name that the result does
    /// not have.
    pub fn explain(&self, name: &str) -> Result<Explanation> {
        let found = self.log.order.iter().find(|id| self.is_called(**id, name));
        let (origin, declined) = match found {
            Some(id) => (self.lineage.node(*id).cloned(), self.declined_at(|one| one == *id)),
            None if self.weights.contains(name) => (self.lineage.weight(name).cloned(), Vec::new()),
            None => return Err(unknown(name, self.labels())),
        };
        let own = || found.iter().map(|id| **id).filter(|id| self.is_original(*id)).collect();
        let origin =
            origin.unwrap_or_else(|| Origin { from: own(), rewrites: BTreeSet::default() });
        let told = self.log.records.iter().filter(|record| origin.rewrites.contains(&record.id));
        Ok(Explanation {
            name: name.to_owned(),
            from: self.called(origin.from.iter().copied()),
            reasons: told.map(|record| format!("{}: {}", record.pass, record.reason)).collect(),
            records: origin.rewrites.iter().copied().collect(),
            declined,
        })
    }

    /// Why passes left a node alone: one of the result, or one of the original by what it became.
    /// Refused for a name that neither has.
    pub fn why_not(&self, name: &str) -> Result<Vec<DeclinedMatch>> {
        let called = |id: &u32| self.names.get(id).is_some_and(|known| known == name);
        let ids: BTreeSet<u32> = self
            .names
            .keys()
            .copied()
            .filter(|id| called(id) || self.is_called(*id, name))
            .collect();
        if ids.is_empty() {
            return Err(unknown(name, self.names.values().map(String::as_str)));
        }
        let heirs = self.log.order.iter().filter(|id| {
            self.lineage.node(**id).is_some_and(|origin| !origin.from.is_disjoint(&ids))
        });
        let heirs: BTreeSet<u32> = heirs.copied().collect();
        Ok(self.declined_at(|id| ids.contains(&id) || heirs.contains(&id)))
    }

    fn declined_at(&self, here: impl Fn(u32) -> bool) -> Vec<DeclinedMatch> {
        let declined = self.log.declined.iter();
        declined.filter(|one| one.node.is_some_and(&here)).cloned().collect()
    }

    fn is_original(&self, id: u32) -> bool {
        (id as usize) < self.log.nodes_before
    }

    /// Whether a node of the result has this name or gives this value.
    fn is_called(&self, id: u32, name: &str) -> bool {
        let found = self.nodes.get(&id);
        found
            .is_some_and(|node| label(node) == name || node.outputs().iter().any(|one| one == name))
    }

    fn is_there(&self, value: &str) -> bool {
        self.values().any(|known| known == value)
    }

    fn values(&self) -> impl Iterator<Item = &str> {
        let nodes = self.log.order.iter().filter_map(|id| self.nodes.get(id));
        let touched = nodes.flat_map(|node| node.inputs().iter().chain(node.outputs()));
        touched.chain(&self.weights).map(String::as_str)
    }

    fn labels(&self) -> impl Iterator<Item = &str> {
        let nodes = self.log.order.iter().filter_map(|id| self.nodes.get(id));
        nodes.map(label).chain(self.weights.iter().map(String::as_str))
    }

    fn called(&self, ids: impl Iterator<Item = u32>) -> Vec<String> {
        ids.map(|id| self.names.get(&id).cloned().unwrap_or_default()).collect()
    }
}

/// What every node is called that the log or the result knows.
fn names(log: &RewriteLog, nodes: &HashMap<u32, Node>) -> BTreeMap<u32, String> {
    let mut names: BTreeMap<u32, String> =
        log.order.iter().filter_map(|id| Some((*id, label(nodes.get(id)?).to_owned()))).collect();
    // What a node was called before it was changed is what the original calls it.
    for record in log.records.iter().rev() {
        for node in record.removed.iter().chain(&record.added) {
            let first = || node.outputs.iter().find(|output| !output.is_empty()).cloned();
            let name = if node.name.is_empty() { first() } else { Some(node.name.clone()) };
            names.insert(node.id, name.unwrap_or_default());
        }
        for node in &record.changed {
            names.insert(node.id, node.name.clone());
        }
    }
    names
}

fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Refusal {
    let message = format!("nothing is called {name:?} here");
    let found = Diagnostic::error(codes::AUDIT_UNKNOWN, message);
    match nearest(name, known) {
        Some(other) => found.hint(format!("did you mean {other:?}?")).into(),
        None => found.into(),
    }
}
