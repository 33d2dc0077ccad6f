//! Compares the outputs of the whole model with those of the original.

use std::collections::BTreeSet;
use std::sync::Arc;

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
}

struct Answered {
    name: String,
    values: Values,
    /// What the original answers, once it was asked.
    answers: Option<Result<Vec<Tensor>, Failure>>,
    /// Outputs that are not the same when the original is run again.
    unstable: BTreeSet<usize>,
}

impl Whole {
    pub(crate) fn new(original: Graph, sets: Vec<Given>) -> Self {
        let sets = sets
            .iter()
            .map(|given| Answered {
                name: given.name.clone(),
                values: given_values(&original, given),
                answers: None,
                unstable: BTreeSet::new(),
            })
            .collect();
        let side = Side::whole(&original);
        let outputs = original.declared_outputs().into_iter().map(|output| output.name);
        let outputs = outputs.filter(|name| side.makes(name)).collect();
        Self { original, side, outputs, sets }
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
        self.ask_original(bench);
        let mut side = Side::whole(graph);
        side.keep_for(self.outputs.iter().map(String::as_str));
        // Each node brings roundings of its own, of either sign.
        #[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
        let roundings = ROUNDINGS * (self.original.len().max(1) as f64).sqrt();
        let limit = options.approximate_limit;
        let demand = Demand { class, roundings, limit, is_real: true };
        let mut checks = Vec::new();
        for set in 0..self.sets.len() {
            for mut check in self.on_set(bench, graph, &side, set, demand, options.inputs.seed) {
                label(&mut check);
                checks.push(check);
            }
        }
        checks
    }

    /// Runs the original on every set, and once more on the first one: what disagrees with itself
    /// says nothing about a rewrite.
    fn ask_original(&mut self, bench: &mut Bench<'_>) {
        let wanted: Vec<&str> = self.outputs.iter().map(String::as_str).collect();
        let mut is_first = true;
        for set in self.sets.iter_mut().filter(|set| set.answers.is_none()) {
            let job = [Job { side: &self.side, wanted: &wanted, values: (0, &set.values) }];
            let once =
                bench.run(&self.original, &job).pop().unwrap_or_else(|| Err(Failure::lost()));
            if let (true, Ok(once)) = (is_first, &once)
                && let Some(Ok(again)) = bench.run(&self.original, &job).pop()
            {
                let pairs = once.iter().zip(&again).enumerate();
                let differs = pairs.filter(|(_, (one, two))| {
                    one.shape() != two.shape() || first_other_bits(one, two).is_some()
                });
                set.unstable = differs.map(|(index, _)| index).collect();
                is_first = false;
            }
            set.answers = Some(once);
        }
        let unstable: BTreeSet<usize> =
            self.sets.iter().flat_map(|set| set.unstable.iter().copied()).collect();
        self.sets.iter_mut().for_each(|set| set.unstable.clone_from(&unstable));
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
            if held.unstable.contains(&index) {
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
        check.rule = row.rule.name().to_owned();
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

    /// Takes over what a run of the original gave, so that it is not run again.
    pub(crate) fn answer(&mut self, set: usize, answers: Vec<Arc<Tensor>>) {
        let answers = answers.iter().map(|tensor| (**tensor).clone()).collect();
        self.sets[set].answers = Some(Ok(answers));
    }
}

/// What is wrong, when something is.
pub(crate) fn differs(checks: &[CumulativeCheck]) -> Option<String> {
    let found = checks.iter().find(|check| check.verdict == Verdict::Disproved)?;
    let reason = found.reason.as_deref().unwrap_or_default();
    Some(format!("output {:?} on {} inputs: {reason}", found.output, found.set))
}
