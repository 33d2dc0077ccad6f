//! Compares the outputs of the whole model with those of the original.

use std::collections::BTreeSet;

use veracity_onnx::Graph;
use veracity_results::{CumulativeCheck, Verdict};
use veracity_tensor::Tensor;

use super::CheckOptions;
use super::inputs::Given;
use super::rules::{Demand, Outcome, ROUNDINGS, Row, Rule, compare};
use super::run::{Bench, Failure, Job, Values};
use super::second::{Suspect, look};
use super::store::given_values;
use super::values::first_other_bits;
use super::window::Side;
use crate::Class;

/// The original with its answers.
pub(crate) struct Whole {
    original: Graph,
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
    answers: Option<Result<Vec<Tensor>, Failure>>,
}

impl Whole {
    pub(crate) fn new(original: Graph, sets: &[Given]) -> Self {
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

    /// Compares a graph with the original on every set, output by output. Outputs that are inputs
    /// or constants cannot change: a patch does not touch them.
    pub(crate) fn compare(
        &mut self,
        bench: &mut Bench<'_>,
        graph: &Graph,
        class: Class,
        options: &CheckOptions,
        label: impl Fn(&mut CumulativeCheck),
    ) -> Vec<CumulativeCheck> {
        let mut checks = Vec::new();
        for set in 0..self.sets.len() {
            for mut check in self.compare_on(bench, graph, class, options, set) {
                label(&mut check);
                checks.push(check);
            }
        }
        checks
    }

    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Compares on one set.
    pub(crate) fn compare_on(
        &mut self,
        bench: &mut Bench<'_>,
        graph: &Graph,
        class: Class,
        options: &CheckOptions,
        set: usize,
    ) -> Vec<CumulativeCheck> {
        self.ask_original(bench, set);
        let mut side = Side::whole(graph);
        side.keep_for(self.outputs.iter().map(String::as_str));
        // Each node brings roundings of its own, of either sign, and others make them larger.
        #[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
        let roundings = 4.0 * ROUNDINGS * (self.original.len().max(1) as f64).sqrt();
        let limit = options.approximate_limit;
        let demand = Demand { class, roundings, limit, is_real: true };
        self.on_set(bench, graph, &side, set, demand, options.inputs.seed)
    }

    /// Runs the original, and the first time once more: what disagrees with itself says nothing
    /// about a rewrite.
    fn ask_original(&mut self, bench: &mut Bench<'_>, set: usize) {
        if self.sets[set].answers.is_some() {
            return;
        }
        let wanted: Vec<&str> = self.outputs.iter().map(String::as_str).collect();
        let job = Job { side: &self.side, wanted: &wanted, values: (0, &self.sets[set].values) };
        // In one model, twice: an engine may draw the same random numbers whenever it starts.
        let jobs = if self.unstable.is_none() { vec![job, job] } else { vec![job] };
        let mut found = bench.run(&self.original, &jobs).into_iter();
        let once = found.next().unwrap_or_else(|| Err(Failure::lost()));
        if let (Ok(once), Some(Ok(again))) = (&once, found.next()) {
            let pairs = once.iter().zip(&again).enumerate();
            let differs = pairs.filter(|(_, (one, two))| {
                one.shape() != two.shape() || first_other_bits(one, two).is_some()
            });
            self.unstable = Some(differs.map(|(index, _)| index).collect());
        }
        self.sets[set].answers = Some(once);
    }

    fn on_set(
        &self,
        bench: &mut Bench<'_>,
        graph: &Graph,
        side: &Side,
        set: usize,
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
        let wanted: Vec<&str> = self.outputs.iter().map(String::as_str).collect();
        let job = Job { side, wanted: &wanted, values: (0, &held.values) };
        let after = match bench.run(graph, &[job]).pop() {
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
