//! Changing ONNX models, for Python: files or bytes in, a change to ask and to write out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use veracity::report::{TextOptions, rewrites};
use veracity::transform::{
    Audit, Change, CheckOptions, Inputs, LogOptions, Model, OnFail, TransformOptions, Validation,
    bisect_model, diff, pass_facts, reverse, reverse_file, transform_model,
};
use veracity::{EngineSearch, Engines, reports};

use crate::drift::to_json;
use crate::errors::OrRaise;
use crate::input::Input;
use crate::options::{engine_choice, invalid, session_options};
use crate::progress::shown;

/// Adds what is in this file.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Transformed>()?;
    module.add_function(wrap_pyfunction!(transform, module)?)?;
    module.add_function(wrap_pyfunction!(transform_bisect, module)?)?;
    module.add_function(wrap_pyfunction!(transform_passes, module)?)?;
    module.add_function(wrap_pyfunction!(transform_reverse, module)?)?;
    module.add_function(wrap_pyfunction!(transform_diff, module)?)
}

/// A model that was changed.
#[pyclass(module = "veracity._native", frozen)]
pub(crate) struct Transformed {
    change: Change,
}

#[pymethods]
impl Transformed {
    /// The new model, as the bytes of its file.
    fn model<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.change.model()?.to_bytes()).or_raise(py)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The original, found from the log alone.
    fn reverse<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let original = || {
            let recorded = self.change.recorded()?;
            reverse(&recorded.model, &recorded.log, &recorded.elements)?.to_bytes()
        };
        let bytes = py.detach(original).or_raise(py)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes the model; with its log and what is needed to undo it, unless it is not wanted.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    fn write(&self, py: Python<'_>, path: PathBuf, with_log: bool) -> PyResult<()> {
        py.detach(|| self.change.write(&path, with_log)).or_raise(py)
    }

    /// Writes what was done as a page.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    fn write_page(&self, py: Python<'_>, name: &str, path: PathBuf) -> PyResult<()> {
        py.detach(|| reports::write_change_page(name, &self.change, &path)).or_raise(py)
    }

    /// The log, as JSON.
    fn log_json(&self, py: Python<'_>) -> PyResult<String> {
        self.change.recorded().and_then(|recorded| to_json(&recorded.log)).or_raise(py)
    }

    /// What checking showed, as JSON; `None` when nothing was checked.
    fn checks_json(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.change.checks.as_ref().map(to_json).transpose().or_raise(py)
    }

    /// What was done, as text.
    fn text(&self, py: Python<'_>, name: &str, width: usize) -> PyResult<String> {
        let options = TextOptions { width, ..TextOptions::default() };
        let log = &self.change.recorded().or_raise(py)?.log;
        Ok(rewrites::text(name, log, self.change.checks.as_ref(), &options))
    }

    /// What was done, as Markdown.
    fn markdown(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        let log = &self.change.recorded().or_raise(py)?.log;
        Ok(rewrites::markdown(name, log, self.change.checks.as_ref()))
    }

    /// Nodes that a pass touched, or all passes.
    #[pyo3(signature = (name=None))]
    fn transformed_nodes(&self, py: Python<'_>, name: Option<&str>) -> PyResult<String> {
        self.ask(py, |audit| to_json(&audit.transformed_nodes(name)))
    }

    /// Where a value of the original is.
    fn map_value(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        self.ask(py, |audit| to_json(&audit.map_value(name)?))
    }

    /// Where a node of the result comes from.
    fn explain(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        self.ask(py, |audit| to_json(&audit.explain(name)?))
    }

    /// Why passes left a node alone.
    fn why_not(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        self.ask(py, |audit| to_json(&audit.why_not(name)?))
    }
}

impl Transformed {
    fn ask(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&Audit<'_>) -> veracity::Result<String>,
    ) -> PyResult<String> {
        let recorded = self.change.recorded().or_raise(py)?;
        let audit = Audit::new(&recorded.model, &recorded.log);
        audit.and_then(|audit| question(&audit)).or_raise(py)
    }
}

/// Changes a model: a path, or the bytes of a file.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
#[pyo3(signature = (model, *, passes, validate, on_fail, inputs, seed, dims, provenance, engine, threads, site_packages))]
fn transform(
    py: Python<'_>,
    model: Source,
    passes: Vec<String>,
    validate: &str,
    on_fail: &str,
    inputs: Vec<Bound<'_, PyDict>>,
    seed: u64,
    dims: BTreeMap<String, usize>,
    provenance: bool,
    engine: &str,
    threads: usize,
    site_packages: Vec<PathBuf>,
) -> PyResult<Transformed> {
    let original = py.detach(move || model.read()).or_raise(py)?;
    let word = |what: &str, given: &str| invalid(format!("{given:?} is not a value of `{what}`"));
    let validation =
        Validation::from_name(validate).ok_or_else(|| word("validate", validate)).or_raise(py)?;
    let on_fail =
        OnFail::from_name(on_fail).ok_or_else(|| word("on_fail", on_fail)).or_raise(py)?;
    let check = checked_on(py, &inputs, seed, dims, threads)?;
    let check = CheckOptions { validation, on_fail, ..check };
    let log = LogOptions { provenance };
    let options = TransformOptions { passes, check, log, ..TransformOptions::default() };
    let engines = engines(py, engine, site_packages)?;
    let change =
        py.detach(|| shown(|| transform_model(&original, &options, &engines))).or_raise(py)?;
    Ok(Transformed { change })
}

/// Finds the rewrite that makes a model wrong, as JSON; `None` when the models agree.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
#[pyo3(signature = (model, *, passes, repro, inputs, seed, dims, engine, threads, site_packages))]
fn transform_bisect(
    py: Python<'_>,
    model: Source,
    passes: Vec<String>,
    repro: Option<PathBuf>,
    inputs: Vec<Bound<'_, PyDict>>,
    seed: u64,
    dims: BTreeMap<String, usize>,
    engine: &str,
    threads: usize,
    site_packages: Vec<PathBuf>,
) -> PyResult<Option<String>> {
    let original = py.detach(move || model.read()).or_raise(py)?;
    let check = checked_on(py, &inputs, seed, dims, threads)?;
    let options = TransformOptions { passes, check, ..TransformOptions::default() };
    let engines = engines(py, engine, site_packages)?;
    let found =
        py.detach(|| bisect_model(&original, &options, &engines, repro.as_deref())).or_raise(py)?;
    found.as_ref().map(to_json).transpose().or_raise(py)
}

fn engines(py: Python<'_>, engine: &str, site_packages: Vec<PathBuf>) -> PyResult<Engines> {
    let search = EngineSearch { site_packages, ..EngineSearch::default() };
    Ok(Engines::new(engine_choice(engine).or_raise(py)?, search))
}

fn checked_on(
    py: Python<'_>,
    inputs: &[Bound<'_, PyDict>],
    seed: u64,
    dims: BTreeMap<String, usize>,
    threads: usize,
) -> PyResult<CheckOptions> {
    let threads = session_options("cpu", threads).or_raise(py)?.threads;
    let recorded = inputs.iter().map(tensors).collect::<PyResult<_>>()?;
    let inputs = Inputs { seed, named: dims, recorded, ..Inputs::default() };
    Ok(CheckOptions { inputs, threads, ..CheckOptions::default() })
}

fn tensors(given: &Bound<'_, PyDict>) -> PyResult<BTreeMap<String, veracity::tensor::Tensor>> {
    let mut found = BTreeMap::new();
    for (name, value) in given {
        let name: String = name.extract()?;
        let input = Input::from_object(&name, &value)?;
        let tensor = input.view().or_raise(given.py())?.to_tensor();
        found.insert(name, tensor);
    }
    Ok(found)
}

/// A model as it is given: a path, or the bytes of a file.
#[derive(FromPyObject)]
enum Source {
    Bytes(Vec<u8>),
    Path(PathBuf),
}

impl Source {
    fn read(self) -> veracity::Result<Model> {
        match self {
            Self::Bytes(bytes) => Model::from_bytes(bytes.into()),
            Self::Path(path) => Model::read_whole(path),
        }
    }
}

/// Every pass, as JSON.
#[pyfunction]
fn transform_passes(py: Python<'_>) -> PyResult<String> {
    to_json(&pass_facts()).or_raise(py)
}

/// The original of a model that was written with its log.
#[pyfunction]
fn transform_reverse(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyBytes>> {
    let bytes = py.detach(move || reverse_file(&path)?.to_bytes()).or_raise(py)?;
    Ok(PyBytes::new(py, &bytes))
}

/// How two models differ, as JSON and as text.
#[pyfunction]
fn transform_diff(
    py: Python<'_>,
    before: Source,
    after: Source,
    width: usize,
) -> PyResult<(String, String)> {
    let found = py.detach(move || Ok(diff(&before.read()?, &after.read()?))).or_raise(py)?;
    let options = TextOptions { width, ..TextOptions::default() };
    Ok((to_json(&found).or_raise(py)?, rewrites::diff_text(&found, &options)))
}
