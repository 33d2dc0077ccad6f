//! Op-by-op parity, for Python: Python computes what the original gives, Rust does the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use pyo3::prelude::*;
use veracity::drift::{self, Budget, DriftOptions};
use veracity::results::DriftReport;
use veracity::two::Rules;
use veracity::{EngineChoice, EngineSearch, Engines, SessionOptions};

use crate::errors::OrRaise;
use crate::input::Input;
use crate::options::{engine_choice, invalid, session_options};
use crate::progress::shown;

/// One exported model beside what the original computed.
#[pyclass(module = "veracity._native")]
pub(crate) struct Parity {
    parity: drift::Parity,
    compared: Option<Compared>,
}

/// What was found, and how.
struct Compared {
    report: DriftReport,
    engines: Engines,
    options: DriftOptions,
}

#[pymethods]
impl Parity {
    #[new]
    fn new(py: Python<'_>, model: Vec<u8>) -> PyResult<Self> {
        let parity = py.detach(|| drift::Parity::new(model)).or_raise(py)?;
        Ok(Self { parity, compared: None })
    }

    /// Keeps a copy of an input of the model.
    fn input(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let input = Input::from_object(name, value)?;
        self.parity.input(name, &input.view().or_raise(value.py())?);
        Ok(())
    }

    /// Keeps a copy of a weight that the model reads as an input.
    fn weight(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let input = Input::from_object(name, value)?;
        self.parity.weight(name, &input.view().or_raise(value.py())?);
        Ok(())
    }

    /// Keeps the original as a model of its own.
    fn original(
        &mut self,
        py: Python<'_>,
        model: Vec<u8>,
        weights: BTreeSet<String>,
        names: BTreeMap<String, String>,
    ) -> PyResult<()> {
        self.parity.original(model, weights, names).or_raise(py)
    }

    /// Keeps a copy of a weight of the original's model.
    fn original_weight(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let input = Input::from_object(name, value)?;
        self.parity.original_weight(name, &input.view().or_raise(value.py())?);
        Ok(())
    }

    /// Keeps a copy of a weight of the original, by its name in the export.
    fn named_weight(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let input = Input::from_object(name, value)?;
        self.parity.named_weight(name, &input.view().or_raise(value.py())?);
        Ok(())
    }

    /// Keeps a copy of what the original computed.
    fn reference(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let input = Input::from_object(name, value)?;
        self.parity.reference(name, &input.view().or_raise(value.py())?);
        Ok(())
    }

    /// Compares. `keep` holds the values of the export for `wide`.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    #[pyo3(signature = (*, name, reference, candidate, units, rules, tolerance, memory_bytes, engine, threads, keep, site_packages))]
    fn run(
        &mut self,
        py: Python<'_>,
        name: String,
        reference: String,
        candidate: String,
        units: f64,
        rules: Option<PathBuf>,
        tolerance: f64,
        memory_bytes: usize,
        engine: &str,
        threads: usize,
        keep: bool,
        site_packages: Vec<PathBuf>,
    ) -> PyResult<()> {
        let choice: EngineChoice = engine_choice(engine).or_raise(py)?;
        let search = EngineSearch { site_packages, ..EngineSearch::default() };
        let engines = Engines::new(choice, search);
        let rules = rules.as_deref().map(Rules::read).transpose().or_raise(py)?.unwrap_or_default();
        let defaults = DriftOptions::default();
        let threads = session_options("cpu", threads).or_raise(py)?.threads;
        let options = DriftOptions {
            model: name,
            reference,
            candidate,
            rules,
            budget: Budget { units },
            tolerance,
            memory_bytes,
            session: SessionOptions { threads, ..defaults.session },
        };
        let parity = &mut self.parity;
        let report = py.detach(|| shown(|| parity.run(&engines, &options, keep))).or_raise(py)?;
        self.compared = Some(Compared { report, engines, options });
        Ok(())
    }

    /// Says what a value is in float64.
    fn wide(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let Some(compared) = self.compared.as_mut() else { return Err(not_run()).or_raise(py) };
        let input = Input::from_object(name, value)?;
        self.parity.wide(&mut compared.report, name, &input.view().or_raise(py)?).or_raise(py)
    }

    /// Whether an operator is wrong.
    fn is_disproved(&self) -> bool {
        self.compared.as_ref().is_some_and(|compared| compared.report.origin.is_some())
    }

    /// What `explain` could use: weights of the original's model, and names of constants.
    fn needs(&self, py: Python<'_>, rows: usize) -> PyResult<(Vec<String>, Vec<String>)> {
        let Some(Compared { report, engines, options }) = &self.compared else {
            return Err(not_run()).or_raise(py);
        };
        let needs = self.parity.needs(report, engines, options, rows).or_raise(py)?;
        Ok((needs.original.into_iter().collect(), needs.named.into_iter().collect()))
    }

    /// Finds out what makes the first rows wrong that are.
    fn explain(&mut self, py: Python<'_>, rows: usize) -> PyResult<()> {
        let Some(Compared { report, engines, options }) = &mut self.compared else {
            return Err(not_run()).or_raise(py);
        };
        let parity = &self.parity;
        py.detach(|| parity.explain(report, engines, options, rows)).or_raise(py)
    }

    /// Writes a repro of a row, by default of the origin; gives the name of the row.
    #[pyo3(signature = (folder, row=None))]
    fn repro(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        row: Option<String>,
    ) -> PyResult<Option<String>> {
        let Some(Compared { report, engines, options }) = &self.compared else {
            return Err(not_run()).or_raise(py);
        };
        let parity = &self.parity;
        py.detach(move || parity.repro(&folder, report, engines, options, row.as_deref()))
            .or_raise(py)
    }

    /// What was found.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        let Some(compared) = &self.compared else { return Err(not_run()).or_raise(py) };
        to_json(&compared.report).or_raise(py)
    }
}

/// Runs a repro again; gives what that showed.
#[pyfunction]
pub(crate) fn rerun(
    py: Python<'_>,
    folder: PathBuf,
    engine: &str,
    site_packages: Vec<PathBuf>,
) -> PyResult<String> {
    let choice: EngineChoice = engine_choice(engine).or_raise(py)?;
    let search = EngineSearch { site_packages, ..EngineSearch::default() };
    let engines = Engines::new(choice, search);
    let found = py.detach(move || drift::rerun(&folder, &engines)).or_raise(py)?;
    to_json(&found).or_raise(py)
}

pub(crate) fn to_json(value: &impl serde::Serialize) -> veracity::Result<String> {
    serde_json::to_string(value).map_err(|error| invalid(error.to_string()))
}

fn not_run() -> veracity::Refusal {
    invalid("nothing was compared yet".to_owned())
}
