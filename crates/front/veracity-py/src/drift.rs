//! Op-by-op parity, for Python: Python computes what the original gives, Rust does the rest.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use veracity::drift::{self, Budget, DriftOptions, Inputs, Outputs};
use veracity::results::DriftReport;
use veracity::tensor::Tensor;
use veracity::two::Rules;
use veracity::{EngineChoice, EngineSearch, Engines, SessionOptions};

use crate::errors::OrRaise;
use crate::input::Input;
use crate::options::{engine_choice, invalid, session_options};
use crate::output::object_from_tensor;
use crate::progress::shown;

/// Ranges by input, and how far inputs should reach.
type Domain = (BTreeMap<String, (i64, i64)>, Option<f64>);

/// One exported model beside what the original computed.
#[pyclass(module = "veracity._native")]
pub(crate) struct Parity {
    /// Gone while it is compared, and for good when that fails.
    parity: Option<drift::Parity>,
    compared: Option<Compared>,
}

/// Where the values of an original go while they are compared.
#[pyclass(module = "veracity._native")]
pub(crate) struct References {
    comparing: Option<drift::Comparing>,
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
        Ok(Self { parity: Some(parity), compared: None })
    }

    /// Ranges of integer inputs, and how far inputs should reach if something clips or rounds.
    fn domain(&mut self, py: Python<'_>) -> PyResult<Domain> {
        Ok(self.held(py)?.domain())
    }

    /// Keeps a weight that the model reads as an input. It is read where it is and must not change.
    fn weight(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let weight = Input::from_object(name, value)?.shared().or_raise(value.py())?;
        self.held(value.py())?.weight(name, weight);
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
        self.held(py)?.original(model, weights, names).or_raise(py)
    }

    /// Keeps a copy of a weight of the original's model.
    fn original_weight(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let input = Input::from_object(name, value)?;
        self.held(value.py())?.original_weight(name, &input.view().or_raise(value.py())?);
        Ok(())
    }

    /// Keeps a copy of a weight of the original, by its name in the export.
    fn named_weight(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let input = Input::from_object(name, value)?;
        self.held(value.py())?.named_weight(name, &input.view().or_raise(value.py())?);
        Ok(())
    }

    /// Keeps a copy of what the original computed, for `explain` and `repro`.
    fn reference(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let input = Input::from_object(name, value)?;
        self.held(value.py())?.reference(name, &input.view().or_raise(value.py())?);
        Ok(())
    }

    /// Compares the `expected` values; `record` hands them over, to the `References` that it gets.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    #[pyo3(signature = (*, name, reference, candidate, units, rules, tolerance, memory_bytes, engine, threads, site_packages, expected, record))]
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
        site_packages: Vec<PathBuf>,
        expected: BTreeSet<String>,
        record: &Bound<'_, PyAny>,
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
        let Some(parity) = self.parity.take() else { return Err(not_there()).or_raise(py) };
        let (parity, report) = shown(|| {
            let comparing =
                py.detach(|| parity.compare(&engines, options.clone(), &expected)).or_raise(py)?;
            let values = Bound::new(py, References { comparing: Some(comparing) })?;
            let recorded = record.call1((&values,));
            // Whoever keeps the object has nothing of the comparison.
            let comparing = values.borrow_mut().comparing.take();
            recorded?;
            let comparing = comparing.ok_or_else(not_there).or_raise(py)?;
            py.detach(|| comparing.finish()).or_raise(py)
        })?;
        self.parity = Some(parity);
        self.compared = Some(Compared { report, engines, options });
        Ok(())
    }

    /// Inputs on which the model and its original part, each with what it is. `original` gets lists of
    /// inputs by name and gives the outputs for each, or `None`.
    fn screen<'py>(
        &self,
        py: Python<'py>,
        original: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<(String, Bound<'py, PyDict>)>> {
        let Some(Compared { engines, options, .. }) = &self.compared else {
            return Err(not_run()).or_raise(py);
        };
        let parity = self.parity.as_ref().ok_or_else(not_there).or_raise(py)?;
        let failed = RefCell::new(None);
        let run = |draws: &[Inputs]| {
            let none = || vec![None; draws.len()];
            if failed.borrow().is_some() {
                return none();
            }
            outputs_of(original, draws).unwrap_or_else(|error| {
                *failed.borrow_mut() = Some(error);
                none()
            })
        };
        let found = parity.screen(engines, options, &run).or_raise(py)?.found;
        if let Some(error) = failed.into_inner() {
            return Err(error);
        }
        found.into_iter().map(|one| Ok((one.said, as_dict(py, &one.inputs)?))).collect()
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
        let parity = self.parity.as_ref().ok_or_else(not_there).or_raise(py)?;
        let needs = parity.needs(report, engines, options, rows).or_raise(py)?;
        Ok((needs.original.into_iter().collect(), needs.named.into_iter().collect()))
    }

    /// Finds out what makes the first rows wrong that are.
    fn explain(&mut self, py: Python<'_>, rows: usize) -> PyResult<()> {
        let Some(Compared { report, engines, options }) = &mut self.compared else {
            return Err(not_run()).or_raise(py);
        };
        let parity = self.parity.as_ref().ok_or_else(not_there).or_raise(py)?;
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
        let parity = self.parity.as_ref().ok_or_else(not_there).or_raise(py)?;
        py.detach(move || parity.repro(&folder, report, engines, options, row.as_deref()))
            .or_raise(py)
    }

    /// What was found.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        let Some(compared) = &self.compared else { return Err(not_run()).or_raise(py) };
        to_json(&compared.report).or_raise(py)
    }
}

impl Parity {
    fn held(&mut self, py: Python<'_>) -> PyResult<&mut drift::Parity> {
        self.parity.as_mut().ok_or_else(not_there).or_raise(py)
    }
}

fn as_dict<'py>(py: Python<'py>, inputs: &Inputs) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (name, value) in inputs {
        found.set_item(name, object_from_tensor(py, value)?)?;
    }
    Ok(found)
}

/// What the original gives for each of these inputs.
fn outputs_of(original: &Bound<'_, PyAny>, draws: &[Inputs]) -> PyResult<Vec<Outputs>> {
    let py = original.py();
    let given: Vec<_> = draws.iter().map(|draw| as_dict(py, draw)).collect::<PyResult<_>>()?;
    let found: Vec<Option<Vec<Bound<'_, PyAny>>>> = original.call1((given,))?.extract()?;
    let tensor = |value: &Bound<'_, PyAny>| -> PyResult<Option<Tensor>> {
        let input = Input::from_object("output", value)?;
        Ok(input.view().ok().map(|view| view.to_tensor()))
    };
    let outputs = |row: Option<Vec<Bound<'_, PyAny>>>| -> PyResult<Outputs> {
        row.map(|row| row.iter().map(tensor).collect()).transpose()
    };
    found.into_iter().map(outputs).collect()
}

#[pymethods]
impl References {
    /// Keeps a copy of an input of the model; all of them come before the first value.
    fn input(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let input = Input::from_object(name, value)?;
        let view = input.view().or_raise(value.py())?;
        self.open(value.py())?.input(name, &view);
        Ok(())
    }

    /// Takes what the original computed, and what that is in float64; compares once there is enough.
    #[pyo3(signature = (name, value, wide=None))]
    fn value(
        &mut self,
        name: &str,
        value: &Bound<'_, PyAny>,
        wide: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = value.py();
        let input = Input::from_object(name, value)?;
        let wide = wide.map(|wide| Input::from_object(name, wide)).transpose()?;
        let wide = wide.as_ref().map(Input::view).transpose().or_raise(py)?;
        let view = input.view().or_raise(py)?;
        let comparing = self.open(py)?;
        comparing.reference(name, &view, wide.as_ref()).or_raise(py)?;
        py.detach(|| comparing.advance()).or_raise(py)
    }
}

impl References {
    fn open(&mut self, py: Python<'_>) -> PyResult<&mut drift::Comparing> {
        self.comparing.as_mut().ok_or_else(not_there).or_raise(py)
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

fn not_there() -> veracity::Refusal {
    invalid("this comparison has ended".to_owned())
}

fn not_run() -> veracity::Refusal {
    invalid("nothing was compared yet".to_owned())
}
