//! Compares the outputs of the whole model with those of the original.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use veracity_onnx::Graph;
use veracity_results::{CumulativeCheck, Verdict};
use veracity_tensor::Tensor;

use super::CheckOptions;
use super::inputs::Given;
use super::rules::{Demand, Outcome, ROUNDINGS, Row, Rule, compare};
use super::run::{Bench, Failure, Got, Values};
use super::second::{Suspect, look};
use super::store::{Store, given_values};
use super::values::same_bits;
use super::window::Side;
use crate::Class;

/// The original with its answers.
pub(crate) struct Whole {
    original: Arc<Graph>,
    side: Side,
    outputs: Vec<String>,
    sets: Vec<Answered>,
    /// Outputs that are not the same when the original is run again, once that was tried.
    unstable: Option<BTreeSet<usize>>,
}

struct Answered {
    name: String,
    values: Values,
    /// What the original answers, once it was asked.
    answers: Option<Result<Vec<Arc<Tensor>>, Failure>>,
}

impl Whole {
    pub(crate) fn new(original: Arc<Graph>, sets: &[Given]) -> Self {
        let sets = sets
            .iter()
            .map(|given| Answered {
                name: given.name.clone(),
                values: given_values(&original, given),
                answers: None,
            })
            .collect();
        let side = Side::whole(&original);
        let outputs = original.declared_outputs().into_iter().map(|output| output.name);
        let outputs = outputs.filter(|name| side.makes(name)).collect();
        Self { original, side, outputs, sets, unstable: None }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.sets.iter().map(|set| set.name.clone()).collect()
    }

    /// Takes over what is known about the original, so that it is not run again for it.
    pub(crate) fn learn(&mut self, store: &Store) {
        let Some(unstable) = store.unstable() else { return };
        let found = self.outputs.iter().enumerate().filter(|(_, name)| unstable.contains(*name));
        self.unstable = Some(found.map(|(index, _)| index).collect());
        for set in self.sets.iter_mut().filter(|set| set.answers.is_none()) {
            set.answers = store.answers(&set.name, &self.outputs).map(Ok);
        }
    }

    /// Compares a graph with the original on every set, output by output. Outputs that are inputs
    /// or constants cannot change: a patch does not touch them.
    pub(crate) fn compare(
        &mut self,
        bench: &mut Bench<'_>,
        graph: &Graph,
        class: Class,
        options: &CheckOptions,
        label: impl FnMut(&mut CumulativeCheck),
    ) -> Vec<CumulativeCheck> {
        let all: Vec<usize> = (0..self.sets.len()).collect();
        let mut checks = self.compare_on(bench, graph, class, options, &all);
        checks.iter_mut().for_each(label);
        checks
    }

    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Compares on some of the sets.
    pub(crate) fn compare_on(
        &mut self,
        bench: &mut Bench<'_>,
        graph: &Graph,
        class: Class,
        options: &CheckOptions,
        sets: &[usize],
    ) -> Vec<CumulativeCheck> {
        self.ask_original(bench, sets);
        let mut side = Side::whole(graph);
        side.keep_for(self.outputs.iter().map(String::as_str));
        // Each node brings roundings of its own, of either sign, and others make them larger.
        #[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
        let roundings = 4.0 * ROUNDINGS * (self.original.len().max(1) as f64).sqrt();
        let limit = options.approximate_limit;
        let demand = Demand { class, roundings, limit, is_real: true };
        let wanted: Vec<&str> = self.outputs.iter().map(String::as_str).collect();
        let answered: Vec<usize> = sets
            .iter()
            .copied()
            .filter(|&set| matches!(self.sets[set].answers, Some(Ok(_))))
            .collect();
        let runs: Vec<(&[&str], &Values)> =
            answered.iter().map(|&set| (wanted.as_slice(), &self.sets[set].values)).collect();
        let after = bench.run_each(graph, &side, &runs);
        let mut after: BTreeMap<usize, Got> = answered.into_iter().zip(after).collect();
        let seed = options.inputs.seed;
        sets.iter()
            .flat_map(|&set| self.on_set(bench, set, after.remove(&set), demand, seed))
            .collect()
    }

    /// Runs the original where it was not yet run, and once more when that was never done: what
    /// disagrees with itself says nothing about a rewrite.
    fn ask_original(&mut self, bench: &mut Bench<'_>, sets: &[usize]) {
        let open: Vec<usize> =
            sets.iter().copied().filter(|&set| self.sets[set].answers.is_none()).collect();
        // Loaded once: an engine may draw the same random numbers whenever it starts.
        let again = open.first().filter(|_| self.unstable.is_none());
        let wanted: Vec<&str> = self.outputs.iter().map(String::as_str).collect();
        let runs: Vec<(&[&str], &Values)> = open
            .iter()
            .chain(again)
            .map(|&set| (wanted.as_slice(), &self.sets[set].values))
            .collect();
        let mut found = bench.run_each(&self.original, &self.side, &runs);
        let again = again.and_then(|_| found.pop());
        if let (Some(Ok(once)), Some(Ok(again))) = (found.first(), &again) {
            let pairs = once.iter().zip(again).enumerate();
            let differs = pairs.filter(|(_, (one, two))| !same_bits(one, two));
            self.unstable = Some(differs.map(|(index, _)| index).collect());
        }
        for (set, answers) in open.into_iter().zip(found) {
            let shared = answers.map(|values| values.into_iter().map(Arc::new).collect());
            self.sets[set].answers = Some(shared);
        }
    }

    fn on_set(
        &self,
        bench: &mut Bench<'_>,
        set: usize,
        after: Option<Got>,
        demand: Demand,
        seed: u64,
    ) -> Vec<CumulativeCheck> {
        let held = &self.sets[set];
        let open = |output: &String, verdict, reason: String| {
            let mut check = self.blank(set, output);
            (check.verdict, check.reason) = (verdict, Some(reason));
            check
        };
        let all = |verdict, reason: &str| {
            self.outputs.iter().map(|output| open(output, verdict, reason.to_owned())).collect()
        };
        let before = match &held.answers {
            Some(Ok(before)) => before,
            Some(Err(failure)) => {
                let reason = format!("the original could not be run: {}", failure.reason);
                return all(Verdict::NotComparable, &reason);
            }
            None => return all(Verdict::NotComparable, "the original was not run"),
        };
        let after = match after {
            Some(Ok(after)) => after,
            Some(Err(failure)) if failure.is_lacking => {
                let reason = format!("the result could not be run: {}", failure.reason);
                return all(Verdict::NotComparable, &reason);
            }
            Some(Err(failure)) => {
                let reason = format!("the result cannot be run: {}", failure.reason);
                return all(Verdict::Disproved, &reason);
            }
            None => return all(Verdict::NotComparable, "the result was not run"),
        };
        let mut checks = Vec::new();
        for (index, output) in self.outputs.iter().enumerate() {
            if self.unstable.as_ref().is_some_and(|found| found.contains(&index)) {
                let reason = "the original disagrees with itself when it is run again";
                checks.push(open(output, Verdict::NotComparable, reason.to_owned()));
                continue;
            }
            let (before, after) = (&before[index], &after[index]);
            let mut row = compare(before, after, demand);
            if row.outcome == Outcome::Suspect {
                let values = (0, &held.values);
                let suspect = Suspect { side: &self.side, output, values, before, after, row };
                let looked = look(bench, &self.original, &[suspect], seed).pop();
                let Some(looked) = looked else { continue };
                row = looked;
            }
            checks.push(self.judged(set, output, row, demand.class));
        }
        checks
    }

    fn judged(&self, set: usize, output: &str, row: Row, class: Class) -> CumulativeCheck {
        let mut check = self.blank(set, output);
        row.rule.name().clone_into(&mut check.rule);
        (check.max_abs, check.scale) = (row.max_abs, row.scale);
        (check.verdict, check.reason) = match row.outcome {
            Outcome::Wrong(reason) => (Verdict::Disproved, Some(reason)),
            _ if class == Class::ChangesComputation => {
                let reason = "a pass does not claim to keep the computation";
                (Verdict::NotComparable, Some(reason.to_owned()))
            }
            _ => (Verdict::Proved, None),
        };
        check
    }

    fn blank(&self, set: usize, output: &str) -> CumulativeCheck {
        CumulativeCheck {
            pass: String::new(),
            rewrites: 0,
            set: self.sets[set].name.clone(),
            output: output.to_owned(),
            verdict: Verdict::NotComparable,
            rule: Rule::SameBits.name().to_owned(),
            max_abs: 0.0,
            scale: 0.0,
            reason: None,
        }
    }
}

/// What is wrong, when something is.
pub(crate) fn differs(checks: &[CumulativeCheck]) -> Option<String> {
    let found = checks.iter().find(|check| check.verdict == Verdict::Disproved)?;
    let reason = found.reason.as_deref().unwrap_or_default();
    Some(format!("output {:?} on {} inputs: {reason}", found.output, found.set))
}
