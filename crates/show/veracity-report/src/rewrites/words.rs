//! Figures and words that every form of a report uses.

use std::collections::BTreeMap;

use veracity_results::{RewriteChecks, RewriteLog, Verdict};

use crate::Tone;
use crate::plain::count;

/// What one pass did.
pub(crate) struct PassSummary {
    pub(crate) name: String,
    pub(crate) class: String,
    pub(crate) rewrites: usize,
    pub(crate) declined: usize,
    /// Largest error of its rewrites that stayed, as far as they could be compared.
    pub(crate) error: Option<f64>,
    /// The worst verdict of those.
    pub(crate) verdict: Option<Verdict>,
}

/// A line for each pass, in the order in which they ran.
pub(crate) fn summaries(log: &RewriteLog, checks: Option<&RewriteChecks>) -> Vec<PassSummary> {
    let mut rewrites: BTreeMap<&str, usize> = BTreeMap::new();
    for record in &log.records {
        *rewrites.entry(&record.pass).or_default() += 1;
    }
    let mut declined: BTreeMap<&str, usize> = BTreeMap::new();
    for one in &log.declined {
        *declined.entry(&one.pass).or_default() += 1;
    }
    let checked = |name: &str| {
        let all = checks.into_iter().flat_map(|checks| &checks.rewrites);
        all.filter(|check| check.kept && check.pass == name).collect::<Vec<_>>()
    };
    let summary = |name: &str, class: &str| {
        let found = checked(name);
        let seen = found.iter().filter(|check| check.verdict != Verdict::NotComparable);
        PassSummary {
            name: name.to_owned(),
            class: class.to_owned(),
            rewrites: rewrites.get(name).copied().unwrap_or(0),
            declined: declined.get(name).copied().unwrap_or(0),
            error: seen.map(|check| check.max_abs).reduce(f64::max),
            verdict: found.iter().map(|check| check.verdict).max(),
        }
    };
    log.passes.iter().map(|pass| summary(&pass.name, &pass.class)).collect()
}

/// What became of the model, in a sentence.
pub(crate) fn answer(log: &RewriteLog, checks: Option<&RewriteChecks>) -> String {
    if log.records.is_empty() && log.rejected.is_empty() {
        return format!("its {} stay as they are", count(log.nodes_before, "node"));
    }
    let rounds = count(log.rounds, "round");
    let change = format!("{} nodes became {} in {rounds}", log.nodes_before, log.nodes_after);
    match checks {
        Some(checks) => {
            let engine = format!("{} {}", checks.engine, checks.engine_version);
            format!("{change}; checked on {engine} ({})", checks.validation)
        }
        None => change,
    }
}

pub(super) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Proved => "proved",
        Verdict::Conditional => "conditional",
        Verdict::Disproved => "disproved",
        Verdict::NotComparable => "not comparable",
    }
}

pub(super) fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Proved => Tone::Good,
        Verdict::Disproved => Tone::Bad,
        Verdict::Conditional | Verdict::NotComparable => Tone::Doubt,
    }
}

/// A number in few columns.
pub(super) fn figure(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.2e}") }
}
