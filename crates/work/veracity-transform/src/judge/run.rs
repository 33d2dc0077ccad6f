//! Runs sides of windows, many in one model, and each model on many sets of values.

use std::collections::HashMap;
use std::sync::Arc;

use veracity_diag::{Refusal, Result};
use veracity_engine::{Device, Engine, Evaluation, OptimizationLevel, SessionOptions};
use veracity_onnx::Graph;
use veracity_tensor::Tensor;

use super::CheckOptions;
use super::columns::Columns;
use super::constants::Constants;
use super::merged::Merged;
use super::window::Side;

/// Values by name.
pub(crate) type Values = HashMap<String, Arc<Tensor>>;

/// One side of a window on one set of values.
#[derive(Clone, Copy)]
pub(crate) struct Job<'w> {
    pub(crate) side: &'w Side,
    /// Names that the side makes.
    pub(crate) wanted: &'w [&'w str],
    /// What it is given. Jobs with the same number get the same values.
    pub(crate) values: (usize, &'w Values),
}

/// Why something could not be run.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    /// Whether the engine has no such operator: nothing is wrong with the model then.
    pub(crate) is_lacking: bool,
}

/// What runs models, and how often it did.
pub(crate) struct Bench<'e> {
    pub(crate) engine: &'e dyn Engine,
    session: SessionOptions,
    constants: Constants,
    /// Models that were run so far.
    pub(crate) runs: usize,
}

/// Values, or why there are none.
pub(crate) type Got = std::result::Result<Vec<Tensor>, Failure>;

impl<'e> Bench<'e> {
    /// Runs what stands in the file and nothing else: no graph is rewritten by the engine.
    pub(crate) fn new(engine: &'e dyn Engine, options: &CheckOptions) -> Self {
        let session = SessionOptions {
            threads: options.threads,
            device: Device::Cpu,
            optimization: OptimizationLevel::None,
        };
        Self { engine, session, constants: Constants::new(options.memory), runs: 0 }
    }

    /// Runs jobs together. Sides that are run on several sets of values of the same shapes are loaded
    /// once. What fails is run alone, so that it hides nothing else.
    pub(crate) fn run(&mut self, of: &Graph, jobs: &[Job<'_>]) -> Vec<Got> {
        let mut found: Vec<Option<Got>> = jobs.iter().map(|_| None).collect();
        for columns in Columns::of(jobs) {
            let got = self.loaded_once(of, &columns).unwrap_or_else(|| {
                let jobs: Vec<Job<'_>> = columns.order().map(|at| jobs[at]).collect();
                self.run_in(of, &jobs, false)
            });
            for (at, got) in columns.order().zip(got) {
                found[at] = Some(got);
            }
        }
        found.into_iter().map(|got| got.unwrap_or_else(|| Err(Failure::lost()))).collect()
    }

    /// The same in float64.
    pub(crate) fn run_wide(&mut self, of: &Graph, jobs: &[Job<'_>]) -> Vec<Got> {
        self.run_in(of, jobs, true)
    }

    /// Runs one side several times, each for some values.
    pub(crate) fn run_each(
        &mut self,
        of: &Graph,
        side: &Side,
        runs: &[(&[&str], &Values)],
    ) -> Vec<Got> {
        let job = |(set, &(wanted, values))| Job { side, wanted, values: (set, values) };
        let jobs: Vec<Job<'_>> = runs.iter().enumerate().map(job).collect();
        self.run(of, &jobs)
    }

    /// Runs several rows with one model; `None` when there is one row, or something fails.
    fn loaded_once(&mut self, of: &Graph, columns: &Columns<'_, '_>) -> Option<Vec<Got>> {
        let rows = Some(columns.rows()).filter(|rows| *rows > 1)?;
        let merged = columns.merged(&mut self.constants).ok()?;
        let inputs: Vec<Vec<(&str, &Tensor)>> =
            (0..rows).map(|row| columns.inputs(&merged, row)).collect::<Option<_>>()?;
        let outputs: Vec<Vec<String>> = (0..rows).map(|row| columns.outputs(row)).collect();
        let outputs: Vec<Vec<&str>> =
            outputs.iter().map(|names| names.iter().map(String::as_str).collect()).collect();
        let runs: Vec<Evaluation<'_>> = inputs
            .iter()
            .zip(&outputs)
            .map(|(inputs, outputs)| Evaluation { inputs, outputs })
            .collect();
        self.runs += runs.len();
        let source = merged.source(of).ok()?;
        let found = self.engine.evaluate_each(&source, &runs, &self.session).ok()?;
        Some(columns.by_job(found)?.into_iter().map(Ok).collect())
    }

    fn run_in(&mut self, of: &Graph, jobs: &[Job<'_>], wide: bool) -> Vec<Got> {
        if jobs.is_empty() {
            return Vec::new();
        }
        match self.together(of, jobs, wide) {
            Ok(found) => found.into_iter().map(Ok).collect(),
            Err(failure) if jobs.len() == 1 => vec![Err(failure)],
            Err(_) => {
                let (first, second) = jobs.split_at(jobs.len() / 2);
                let mut found = self.run_in(of, first, wide);
                found.extend(self.run_in(of, second, wide));
                found
            }
        }
    }

    fn together(
        &mut self,
        of: &Graph,
        jobs: &[Job<'_>],
        wide: bool,
    ) -> std::result::Result<Vec<Vec<Tensor>>, Failure> {
        let mut merged = Merged::default();
        for (number, job) in jobs.iter().enumerate() {
            merged.add(number, job.side, job.wanted, job.values, &mut self.constants)?;
        }
        if wide {
            merged.widen()?;
        }
        let outputs: Vec<&str> = merged.outputs().collect();
        let found = if outputs.is_empty() {
            Vec::new()
        } else {
            self.runs += 1;
            self.evaluate(of, &merged, &outputs).map_err(|refusal| failure(&refusal))?
        };
        let mut found = found.into_iter();
        jobs.iter()
            .map(|job| {
                let take = |name: &&str| found.next().flatten().ok_or_else(|| no_tensor(name));
                job.wanted.iter().map(take).collect()
            })
            .collect()
    }

    fn evaluate(
        &self,
        of: &Graph,
        merged: &Merged<'_>,
        outputs: &[&str],
    ) -> Result<Vec<Option<Tensor>>> {
        let source = merged.source(of)?;
        let inputs = merged.inputs();
        self.engine.evaluate(&source, &inputs, outputs, &self.session)
    }
}

fn failure(refusal: &Refusal) -> Failure {
    let message = &refusal.first_error().message;
    let is_lacking = message.contains("NOT_IMPLEMENTED")
        || message.contains("Could not find an implementation")
        || message.contains("is not a registered function/op")
        || message.contains("No Op registered");
    let line = message.lines().next().unwrap_or_default();
    Failure { reason: line.chars().take(400).collect(), is_lacking }
}

fn no_tensor(name: &str) -> Failure {
    Failure { reason: format!("{name:?} is no tensor of a known type"), is_lacking: true }
}

impl Failure {
    /// Nothing came back for a job.
    pub(crate) fn lost() -> Self {
        Self { reason: "the value is not known".to_owned(), is_lacking: true }
    }
}
