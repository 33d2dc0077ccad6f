//! Compares models with an original, for searches and for results of other tools.

use std::sync::Arc;

use veracity_engine::Engine;
use veracity_onnx::Graph;
use veracity_results::{CumulativeCheck, Verdict};

use super::CheckOptions;
use super::run::Bench;
use super::whole::Whole;
use crate::Class;

/// Compares models with one original, which is run once for each set of inputs.
pub struct Comparer<'e> {
    bench: Bench<'e>,
    whole: Whole,
    options: CheckOptions,
    problem: Option<String>,
    /// The set that showed a difference; the others are not run after that.
    showing: Option<usize>,
}

/// What comparing a model showed.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The answer over all outputs.
    pub verdict: Verdict,
    /// What is wrong, or why it cannot be said.
    pub reason: Option<String>,
}

impl<'e> Comparer<'e> {
    /// Compares with this model.
    pub fn new(original: &Graph, engine: &'e dyn Engine, options: &CheckOptions) -> Self {
        let (sets, problem) = match options.inputs.of(original) {
            Ok(sets) => (sets, None),
            Err(problem) => (Vec::new(), Some(problem)),
        };
        Self {
            bench: Bench::new(engine, options),
            whole: Whole::new(Arc::new(original.clone()), &sets),
            options: options.clone(),
            problem,
            showing: None,
        }
    }

    /// Every output on every set of inputs.
    pub fn compare(&mut self, candidate: &Graph, class: Class) -> Vec<CumulativeCheck> {
        self.whole.compare(&mut self.bench, candidate, class, &self.options, |_| {})
    }

    /// The first difference that is found. Once a set of inputs has shown one, only that set is run.
    pub fn first_difference(&mut self, candidate: &Graph, class: Class) -> Difference {
        if let Some(problem) = &self.problem {
            return Difference { verdict: Verdict::NotComparable, reason: Some(problem.clone()) };
        }
        let sets = match self.showing {
            Some(set) => set..set + 1,
            None => 0..self.whole.len(),
        };
        let mut worst = Difference { verdict: Verdict::Proved, reason: None };
        for set in sets {
            for check in
                self.whole.compare_on(&mut self.bench, candidate, class, &self.options, &[set])
            {
                if check.verdict > worst.verdict {
                    let reason = check.reason.as_deref().unwrap_or_default();
                    let (output, set) = (&check.output, &check.set);
                    let reason = format!("output {output:?} on {set} inputs: {reason}");
                    worst = Difference { verdict: check.verdict, reason: Some(reason) };
                }
            }
            if worst.verdict == Verdict::Disproved {
                self.showing = Some(set);
                return worst;
            }
        }
        worst
    }

    /// Models that were run so far.
    pub fn runs(&self) -> usize {
        self.bench.runs
    }
}
