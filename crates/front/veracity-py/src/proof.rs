//! Proofs, for Python: making one while models are exported, repeating one, and showing it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use veracity::proof::{self, Builder, CheckOptions, Label, Samples, ToleranceChoice};
use veracity::report::{TextOptions, proof_text};
use veracity::results::{
    self, Environment, Reference, SessionRecord, Tolerance, TolerancePolicy, Verdict,
};
use veracity::{
    Bundle, Diagnostic, EngineChoice, EngineProvider, EngineSearch, Engines, RunOptions, reports,
};

use crate::bundle::{draft_from, tensors_from};
use crate::errors::OrRaise;
use crate::input::Input;
use crate::options::{engine_choice, invalid, session_options};
use crate::progress::shown;
use crate::python_engine::PythonEngines;

/// What is known about a bundle.
#[pyclass(frozen, module = "veracity._native")]
pub(crate) struct Proof {
    proof: results::Proof,
    bundle: PathBuf,
}

#[pymethods]
impl Proof {
    /// All of it, as it stands in `proof.json`.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        serde_json::to_string_pretty(&self.proof)
            .map_err(|error| invalid(format!("cannot be written: {error}")))
            .or_raise(py)
    }

    /// A text for people, a screen long.
    fn text(&self) -> String {
        proof_text(&self.proof, &TextOptions::default())
    }

    /// Writes it as a page.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    fn write_page(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| reports::write_proof_page(&self.proof, &path)).or_raise(py)
    }

    /// The same about a bundle that was moved.
    fn at(&self, bundle: PathBuf) -> Self {
        Self { proof: self.proof.clone(), bundle }
    }

    /// Puts it into its bundle.
    fn save(&self, py: Python<'_>) -> PyResult<()> {
        let save = || proof::save(&Bundle::open(&self.bundle)?, &self.proof);
        py.detach(save).or_raise(py)
    }
}

/// Collects what comparisons say while models are exported.
#[pyclass(module = "veracity._native")]
pub(crate) struct ProofBuilder {
    builder: Builder,
    policy: TolerancePolicy,
}

#[pymethods]
impl ProofBuilder {
    #[new]
    fn new(py: Python<'_>, policy_json: &str) -> PyResult<Self> {
        let policy: TolerancePolicy = from_json(policy_json).or_raise(py)?;
        Ok(Self { builder: Builder::new(policy.clone()), policy })
    }

    /// Adds a node that is to be proved.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    fn declare(&mut self, node: &str, outputs: Vec<String>) {
        self.builder.declare(node, outputs.iter().map(String::as_str));
    }

    /// Compares an output on a recorded sample or, when `fresh`, on a fresh one. Nothing is copied.
    fn compare(
        &mut self,
        node: &str,
        port: &str,
        fresh: bool,
        number: usize,
        reference: &Bound<'_, PyAny>,
        candidate: &Bound<'_, PyAny>,
    ) -> PyResult<&'static str> {
        let py = reference.py();
        let reference = Input::from_object(port, reference)?;
        let candidate = Input::from_object(port, candidate)?;
        let (reference, candidate) =
            (reference.view().or_raise(py)?, candidate.view().or_raise(py)?);
        let label = if fresh { Label::Fresh(number) } else { Label::Recorded(number) };
        Ok(word(self.builder.compare(node, port, label, &reference, &candidate)))
    }

    /// Says something about a node as a whole, as a diagnostic in JSON.
    fn refuse(
        &mut self,
        py: Python<'_>,
        node: &str,
        disproved: bool,
        diagnostic_json: &str,
    ) -> PyResult<()> {
        let reason: Diagnostic = from_json(diagnostic_json).or_raise(py)?;
        let verdict = if disproved { Verdict::Disproved } else { Verdict::NotComparable };
        self.builder.refuse_node(node, verdict, reason);
        Ok(())
    }

    /// Says that the code of a node disagrees with itself.
    fn unrepeatable(&mut self, node: &str, why: &str) {
        self.builder.unrepeatable(node, why);
    }

    /// Says that the same inputs gave different values.
    fn unstable(&mut self, node: &str, port: &str, difference: f64, beyond_tolerance: bool) {
        self.builder.unstable(node, port, difference, beyond_tolerance);
    }

    /// Remembers what an input was.
    fn input(&mut self, node: &str, port: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value_of = Input::from_object(port, value)?;
        self.builder.input(node, port, &value_of.view().or_raise(value.py())?);
        Ok(())
    }

    /// Says why there are no fresh inputs, or fewer.
    fn fresh_note(&mut self, node: &str, text: &str) {
        self.builder.fresh_note(node, text);
    }

    /// Says how many passes of a node were seen, kept or not.
    fn passes(&mut self, node: &str, seen: usize) {
        self.builder.passes(node, seen);
    }

    /// Says how many further fresh inputs agreed, of which nothing is kept.
    fn tried(&mut self, node: &str, count: usize) {
        self.builder.tried(node, count);
    }

    /// Says how many planted faults the samples of a node find, as JSON.
    fn adequacy(&mut self, py: Python<'_>, node: &str, adequacy_json: &str) -> PyResult<()> {
        self.builder.adequacy(node, from_json(adequacy_json).or_raise(py)?);
        Ok(())
    }

    /// Writes a bundle from a draft in JSON: runs it over time before anybody else can see it, sums
    /// up, and puts the proof into it. The builder is empty afterwards.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    #[pyo3(signature = (folder, draft_json, initial_values, *, facts_json, device, site_packages))]
    fn write_bundle(
        &mut self,
        py: Python<'_>,
        folder: PathBuf,
        draft_json: &str,
        initial_values: &Bound<'_, PyDict>,
        facts_json: &str,
        device: &str,
        site_packages: Vec<PathBuf>,
    ) -> PyResult<Proof> {
        let draft = draft_from(draft_json).or_raise(py)?;
        let initial = tensors_from(initial_values)?;
        let facts: Facts = from_json(facts_json).or_raise(py)?;
        let options = session_options(device, 1).or_raise(py)?;
        let search = EngineSearch { site_packages, ..EngineSearch::default() };
        let elsewhere = Engines::new(EngineChoice::Auto, search.clone());
        let engines = PythonEngines::for_proving(search);
        let builder = std::mem::replace(&mut self.builder, Builder::new(self.policy.clone()));
        let policy = &self.policy;
        let prove = |bundle: &Bundle| -> veracity::Result<results::Proof> {
            let mut builder = builder;
            let samples = samples_if_needed(bundle)?;
            let mut sessions = facts.sessions;
            let found =
                proof::prove_elsewhere(bundle, &samples, &elsewhere, &sessions, &mut builder);
            sessions.extend(found.sessions);
            let run_options = RunOptions::new().with_session(options.clone());
            // Over time it is run as it will be run, where that can be done here.
            let over_time: &dyn EngineProvider =
                if found.is_complete { &elsewhere } else { &engines };
            builder.rollout(proof::roll_out(bundle, &samples, over_time, &run_options, policy));
            builder.noticed(facts.findings);
            let environment = proof::environment(sessions, &options);
            let environment = Environment { threads: facts.threads, ..environment };
            let made = builder.finish(proof::subject(bundle), facts.reference, environment);
            Ok(results::Proof { pipeline: Some(proof::describe(bundle)), ..made })
        };
        let write = || -> veracity::Result<Proof> {
            let mut prove = Some(prove);
            let mut made = None;
            let bundle = draft.write_proved(&folder, initial, &mut |bundle| {
                let prove = prove.take().expect("a bundle is proved once");
                let json = proof::to_json(made.insert(prove(bundle)?))?;
                Ok(json)
            })?;
            let proof = made.expect("a bundle that was written was proved");
            Ok(Proof { proof, bundle })
        };
        py.detach(write).or_raise(py)
    }
}

/// What only Python knows about a proof that it made.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Facts {
    reference: Reference,
    sessions: Vec<SessionRecord>,
    threads: usize,
    findings: Vec<Diagnostic>,
}

/// What counts as equal in a check, as Python gives it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    /// Those that were derived while the bundle was exported.
    auto: bool,
    tolerance: Option<Tolerance>,
    ports: BTreeMap<String, Tolerance>,
    equal_nan: Option<bool>,
}

impl Given {
    /// What is not given is what the bundle's own proof was judged by.
    fn choice(self, bundle: &Bundle) -> veracity::Result<ToleranceChoice> {
        let base = if self.auto { ToleranceChoice::Auto } else { ToleranceChoice::AsRecorded };
        let recorded = proof::policy(bundle, &base)?;
        let equal_nan = self.equal_nan.unwrap_or(recorded.equal_nan);
        let mut policy = self.tolerance.map_or(recorded, TolerancePolicy::new);
        policy.ports.extend(self.ports);
        policy.equal_nan = equal_nan;
        Ok(ToleranceChoice::Given(policy))
    }
}

/// Repeats the proof of a bundle here.
#[pyfunction]
#[pyo3(signature = (path, *, engine, given_json, threads, site_packages))]
pub(crate) fn check(
    py: Python<'_>,
    path: PathBuf,
    engine: &str,
    given_json: &str,
    threads: usize,
    site_packages: Vec<PathBuf>,
) -> PyResult<Proof> {
    let given: Given = from_json(given_json).or_raise(py)?;
    let choice = engine_choice(engine).or_raise(py)?;
    let session = session_options("auto", threads).or_raise(py)?;
    let search = EngineSearch { site_packages, ..EngineSearch::default() };
    let elsewhere = Engines::new(choice, search.clone());
    let engines = PythonEngines::for_running(choice, search);
    let check = || -> veracity::Result<results::Proof> {
        let bundle = Bundle::open(&path)?;
        let tolerance = given.choice(&bundle)?;
        let options = CheckOptions { tolerance, session, ..CheckOptions::default() };
        proof::check_in_both(&bundle, &engines, &elsewhere, &options)
    };
    let made = py.detach(|| shown(check)).or_raise(py)?;
    Ok(Proof { proof: made, bundle: path })
}

/// Records the hashes of a bundle's files as they are now; returns the files that changed.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
pub(crate) fn seal(py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
    let sealed = || Ok(proof::seal(&Bundle::open(&path)?)?.changed);
    py.detach(sealed).or_raise(py)
}

/// A fingerprint of a tensor's bytes: equal bytes have equal ones.
#[pyfunction]
pub(crate) fn fingerprint(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let input = Input::from_object("value", value)?;
    let view = input.view().or_raise(value.py())?;
    let found = match view.contiguous_bytes() {
        Some(bytes) => proof::fingerprint(bytes),
        None => proof::fingerprint(&view.to_bytes()),
    };
    Ok(format!("{found:?}"))
}

/// The recorded values, where a roll-out or a second engine needs them: they may be many.
fn samples_if_needed(bundle: &Bundle) -> veracity::Result<Samples> {
    let spec = bundle.spec();
    let flows = !spec.data_flow.is_empty() || !spec.feedback_flow.is_empty();
    if !flows && !spec.nodes.iter().any(proof::is_pt2) {
        return Ok(Samples::default());
    }
    Samples::read(bundle)
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Proved => "proved",
        Verdict::Conditional => "conditional",
        Verdict::Disproved => "disproved",
        Verdict::NotComparable => "not_comparable",
    }
}

fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> veracity::Result<T> {
    serde_json::from_str(text).map_err(|error| invalid(error.to_string()))
}
