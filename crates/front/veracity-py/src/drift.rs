//! Op-by-op parity, for Python: Python computes what the original gives, Rust does the rest.

use std::path::PathBuf;

use pyo3::prelude::*;
use veracity::drift::{self, Budget, DriftOptions};
use veracity::results::DriftReport;
use veracity::{EngineChoice, EngineSearch, Engines, SessionOptions};

use crate::errors::OrRaise;
use crate::input::Input;
use crate::options::{engine_choice, invalid, session_options};

/// One exported model beside what the original computed.
#[pyclass(module = "veracity._native")]
pub(crate) struct Parity {
    parity: drift::Parity,
    report: Option<DriftReport>,
}

#[pymethods]
impl Parity {
    #[new]
    fn new(py: Python<'_>, model: Vec<u8>) -> PyResult<Self> {
        let parity = py.detach(|| drift::Parity::new(model)).or_raise(py)?;
        Ok(Self { parity, report: None })
    }

    /// Keeps a copy of an input of the model.
    fn input(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let input = Input::from_object(name, value)?;
        self.parity.input(name, &input.view().or_raise(value.py())?);
        Ok(())
    }

    /// Keeps a copy of what the original computed.
    fn reference(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let input = Input::from_object(name, value)?;
        self.parity.reference(name, &input.view().or_raise(value.py())?);
        Ok(())
    }

    /// Compares. `keep` holds the values of the export for `wide`.
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    #[pyo3(signature = (*, name, units, tolerance, memory_bytes, engine, threads, keep, site_packages))]
    fn run(
        &mut self,
        py: Python<'_>,
        name: String,
        units: f64,
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
        let defaults = DriftOptions::default();
        let threads = session_options("cpu", threads).or_raise(py)?.threads;
        let options = DriftOptions {
            model: name,
            budget: Budget { units },
            tolerance,
            memory_bytes,
            session: SessionOptions { threads, ..defaults.session },
            ..defaults
        };
        let parity = &mut self.parity;
        let report = py.detach(|| parity.run(&engines, &options, keep)).or_raise(py)?;
        self.report = Some(report);
        Ok(())
    }

    /// Says what a value is in float64.
    fn wide(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let Some(report) = self.report.as_mut() else { return Err(not_run()).or_raise(py) };
        let input = Input::from_object(name, value)?;
        self.parity.wide(report, name, &input.view().or_raise(py)?).or_raise(py)
    }

    /// What was found.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        let Some(report) = &self.report else { return Err(not_run()).or_raise(py) };
        serde_json::to_string(report).map_err(|error| invalid(error.to_string())).or_raise(py)
    }
}

fn not_run() -> veracity::Refusal {
    invalid("nothing was compared yet".to_owned())
}
