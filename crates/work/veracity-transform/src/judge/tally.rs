//! Sums up what was found about one rewrite.

use veracity_results::{RewriteCheck, Verdict};

use super::rules::{Outcome, Row, Rule};
use super::run::Failure;
use crate::{Class, Rewrite};

/// What was found about one rewrite so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    sets: Vec<String>,
    notes: Vec<String>,
    /// Why it is wrong.
    wrong: Option<String>,
    /// Why something about it is not known.
    open: Option<String>,
    is_structural: bool,
    rule: Option<Rule>,
    worst: Option<(String, String, f64, f64)>,
}

impl Tally {
    pub(super) fn structural(&mut self) {
        self.is_structural = true;
    }

    pub(super) fn ran_on(&mut self, set: &str) {
        self.sets.push(set.to_owned());
    }

    pub(super) fn is_wrong(&self) -> bool {
        self.wrong.is_some()
    }

    /// The values that it is given cannot be had.
    pub(super) fn unreachable(&mut self, reason: &str) {
        self.open.get_or_insert_with(|| format!("what it is given cannot be had: {reason}"));
    }

    /// One side could not be run. On made-up values that may be the fault of the values.
    pub(super) fn not_run(&mut self, set: &str, side: &str, failure: &Failure, is_real: bool) {
        let text = format!("{side} could not be run on {set} values: {}", failure.reason);
        if is_real {
            self.open.get_or_insert(text);
        } else {
            self.notes.push(text);
        }
    }

    /// What was there could be run, what came could not.
    pub(super) fn broken(&mut self, set: &str, failure: &Failure, is_real: bool) {
        if failure.is_lacking {
            self.not_run(set, "what came", failure, is_real);
        } else {
            let reason = &failure.reason;
            self.wrong.get_or_insert_with(|| {
                format!("what came cannot be run on {set} values: {reason}")
            });
        }
    }

    pub(super) fn unreadable(&mut self, set: &str, name: &str) {
        self.open.get_or_insert_with(|| format!("{name:?} cannot be had on {set} values"));
    }

    pub(super) fn unstable(&mut self, name: &str) {
        self.open.get_or_insert_with(|| {
            format!("{name:?} disagrees with itself when it is computed again")
        });
    }

    pub(super) fn add(&mut self, set: &str, output: &str, row: Row) {
        let ratio = |max_abs: f64, scale: f64| {
            if max_abs == 0.0 { 0.0 } else { max_abs / scale.max(f64::MIN_POSITIVE) }
        };
        let (is, scale) = (row.max_abs, row.scale);
        let most = self.worst.as_ref().map_or(-1.0, |(_, _, was, scale)| ratio(*was, *scale));
        let is_wrong = matches!(row.outcome, Outcome::Wrong(_));
        let first_wrong = is_wrong && self.wrong.is_none();
        if first_wrong || (ratio(is, scale) > most && (is_wrong || self.wrong.is_none())) {
            self.worst = Some((output.to_owned(), set.to_owned(), is, scale));
        }
        self.rule = self.rule.max(Some(row.rule));
        if let Outcome::Wrong(reason) = row.outcome {
            self.wrong.get_or_insert_with(|| format!("{output:?} on {set} values: {reason}"));
        }
    }

    pub(super) fn finish(self, rewrite: &Rewrite) -> RewriteCheck {
        let not_claimed = (rewrite.class == Class::ChangesComputation)
            .then(|| "the pass does not claim to keep the computation".to_owned());
        let unrun = (self.sets.is_empty() && !self.is_structural)
            .then(|| "it was not run on anything".to_owned());
        let open = self.open.or(not_claimed).or(unrun);
        let verdict = match (&self.wrong, &open) {
            (Some(_), _) => Verdict::Disproved,
            (None, Some(_)) => Verdict::NotComparable,
            (None, None) => Verdict::Proved,
        };
        let (value, worst_set, max_abs, scale) = self.worst.unwrap_or_default();
        let rule = match self.rule {
            Some(rule) => rule.name(),
            None if self.is_structural => "structure",
            None => "not run",
        };
        RewriteCheck {
            id: rewrite.id,
            pass: rewrite.pass.to_owned(),
            class: rewrite.class.name().to_owned(),
            index: rewrite.index,
            why: rewrite.applied.reason.clone(),
            verdict,
            kept: true,
            rule: rule.to_owned(),
            max_abs,
            scale,
            value,
            worst_set,
            sets: self.sets,
            reason: self.wrong.or(open),
            notes: self.notes,
        }
    }
}
