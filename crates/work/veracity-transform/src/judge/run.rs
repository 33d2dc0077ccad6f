//! Runs sides of windows, many in one model, each with names of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use veracity_diag::{Refusal, Result};
use veracity_engine::{
    Device, Engine, Evaluation, ModelBytes, ModelFormat, ModelSource, OptimizationLevel,
    SessionOptions,
};
use veracity_onnx::{Graph, Node};
use veracity_tensor::Tensor;

use super::CheckOptions;
use super::constants::Constants;
use super::values::widened;
use super::window::Side;

/// Constants above this many bytes are handed in: writing them into a model copies them thrice.
const HANDED_IN: usize = 1 << 16;

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

    /// Runs jobs together; what fails is run alone, so that it hides nothing else.
    pub(crate) fn run(&mut self, of: &Graph, jobs: &[Job<'_>]) -> Vec<Got> {
        self.run_in(of, jobs, false)
    }

    /// The same in float64.
    pub(crate) fn run_wide(&mut self, of: &Graph, jobs: &[Job<'_>]) -> Vec<Got> {
        self.run_in(of, jobs, true)
    }

    /// Runs one side several times, each for some values: loaded once where shapes are the same.
    pub(crate) fn run_each(
        &mut self,
        of: &Graph,
        side: &Side,
        runs: &[(&[&str], &Values)],
    ) -> Vec<Got> {
        if let Some(found) = self.loaded_once(of, side, runs) {
            return found.into_iter().map(Ok).collect();
        }
        let job = |(set, &(wanted, values))| Job { side, wanted, values: (set, values) };
        let jobs: Vec<Job<'_>> = runs.iter().enumerate().map(job).collect();
        self.run(of, &jobs)
    }

    fn loaded_once(
        &mut self,
        of: &Graph,
        side: &Side,
        runs: &[(&[&str], &Values)],
    ) -> Option<Vec<Vec<Tensor>>> {
        let (_, first) = runs.first()?;
        let all: BTreeSet<&str> =
            runs.iter().flat_map(|(wanted, _)| wanted.iter().copied()).collect();
        let wanted: Vec<&str> = all.into_iter().collect();
        let mut merged = Merged::default();
        let job = Job { side, wanted: &wanted, values: (0, first) };
        merged.add(0, &job, &mut self.constants).ok()?;
        let inputs: Vec<Vec<(&str, &Tensor)>> =
            runs.iter().map(|(_, values)| merged.inputs_of(values)).collect::<Option<_>>()?;
        let inside: Vec<Vec<String>> = runs
            .iter()
            .map(|(wanted, _)| wanted.iter().map(|name| format!("0/{name}")).collect())
            .collect();
        let outputs: Vec<Vec<&str>> =
            inside.iter().map(|names| names.iter().map(String::as_str).collect()).collect();
        let runs: Vec<Evaluation<'_>> = inputs
            .iter()
            .zip(&outputs)
            .map(|(inputs, outputs)| Evaluation { inputs, outputs })
            .collect();
        self.runs += runs.len();
        let found =
            self.engine.evaluate_each(&merged.source(of).ok()?, &runs, &self.session).ok()?;
        found.into_iter().map(|run| run.into_iter().collect()).collect()
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
            merged.add(number, job, &mut self.constants)?;
        }
        if wide {
            merged.widen()?;
        }
        let outputs: Vec<&str> = merged.window.outputs.iter().map(String::as_str).collect();
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
        let inputs: Vec<(&str, &Tensor)> =
            merged.inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.as_ref())).collect();
        self.engine.evaluate(&source, &inputs, outputs, &self.session)
    }
}

/// Jobs that are put together in one model.
#[derive(Default)]
struct Merged<'w> {
    window: veracity_onnx::Window,
    inputs: BTreeMap<String, Arc<Tensor>>,
    /// Constants that are in already.
    known: std::collections::HashSet<&'w str>,
}

impl<'w> Merged<'w> {
    fn add(
        &mut self,
        number: usize,
        job: &Job<'w>,
        constants: &mut Constants,
    ) -> std::result::Result<(), Failure> {
        let (set, values) = job.values;
        let mut names: HashMap<String, String> = HashMap::new();
        for (name, weight) in &job.side.weights {
            let inside = format!("constant/{name}");
            names.insert(name.clone(), inside.clone());
            if !self.known.insert(name) {
                continue;
            }
            match weight.dtype() {
                Some(_) if weight.size() > HANDED_IN => {
                    let tensor = constants.tensor(weight).ok_or_else(|| no_elements(name))?;
                    self.hand_in(inside, tensor);
                }
                _ => self.window.weights.push((inside, weight.clone())),
            }
        }
        for name in job.side.made() {
            names.insert(name.to_owned(), format!("{number}/{name}"));
        }
        let reads = job.side.nodes.iter().flat_map(Node::reads);
        for name in reads.filter(|name| !names.contains_key(name)).collect::<Vec<_>>() {
            if let Some(value) = values.get(&name) {
                let inside = format!("given {set}/{name}");
                if !self.inputs.contains_key(&inside) {
                    self.hand_in(inside.clone(), value.clone());
                }
                names.insert(name, inside);
            }
        }
        let nodes = job.side.nodes.iter().map(|node| node.clone().renamed(&names).named(""));
        self.window.nodes.extend(nodes);
        let wanted = job.wanted.iter().map(|name| format!("{number}/{name}"));
        self.window.outputs.extend(wanted);
        Ok(())
    }

    fn source(&self, of: &Graph) -> Result<ModelSource> {
        let bytes = self.window.to_model(of)?.to_bytes()?;
        let bytes = ModelBytes::Memory(Arc::from(bytes));
        Ok(ModelSource { format: ModelFormat::Onnx, bytes })
    }

    /// What the one job is given when it is run on other values; `None` when their shapes differ.
    fn inputs_of<'v>(&'v self, values: &'v Values) -> Option<Vec<(&'v str, &'v Tensor)>> {
        let other = |(inside, first): (&'v String, &'v Arc<Tensor>)| {
            let tensor = match inside.strip_prefix("given 0/") {
                Some(name) => values.get(name)?,
                None => first,
            };
            let same = (tensor.dtype(), tensor.shape()) == (first.dtype(), first.shape());
            same.then_some((inside.as_str(), tensor.as_ref()))
        };
        self.inputs.iter().map(other).collect()
    }

    fn hand_in(&mut self, name: String, tensor: Arc<Tensor>) {
        let dims = tensor.shape().dims().to_vec();
        self.window.inputs.push((name.clone(), tensor.dtype(), dims));
        self.inputs.insert(name, tensor);
    }

    fn widen(&mut self) -> std::result::Result<(), Failure> {
        let wide = self.window.widened();
        self.window = wide.ok_or_else(|| no_elements("a constant"))?;
        for tensor in self.inputs.values_mut() {
            *tensor = Arc::new(widened(tensor));
        }
        Ok(())
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

fn no_elements(name: &str) -> Failure {
    Failure { reason: format!("the elements of {name:?} are not at hand"), is_lacking: true }
}

impl Failure {
    /// Nothing came back for a job.
    pub(crate) fn lost() -> Self {
        Self { reason: "the value is not known".to_owned(), is_lacking: true }
    }
}
