//! Rows of values that Python computed on both sides.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use veracity::drift::{self, Budget, DriftOptions, Place};
use veracity::results::{GraphRecord, SessionRecord};

use crate::drift::to_json;
use crate::errors::OrRaise;
use crate::input::Input;
use crate::options::invalid;

/// What was compared so far.
#[pyclass(module = "veracity._native")]
pub(crate) struct Ledger {
    /// Gone once the report was made.
    ledger: Option<drift::Ledger>,
    name: String,
}

#[pymethods]
impl Ledger {
    #[new]
    #[pyo3(signature = (*, name, reference, candidate, units, tolerance))]
    fn new(name: String, reference: String, candidate: String, units: f64, tolerance: f64) -> Self {
        let options = DriftOptions {
            model: name.clone(),
            reference,
            candidate,
            budget: Budget { units },
            tolerance,
            ..DriftOptions::default()
        };
        Self { ledger: Some(drift::Ledger::new(options)), name }
    }

    /// Adds a row; `place` has `name`, `op_type`, `node`, `module` and a `trace` of the stack.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    #[pyo3(signature = (place, reference, candidate=None, problem=None))]
    fn introduced(
        &mut self,
        place: BTreeMap<String, String>,
        reference: &Bound<'_, PyAny>,
        candidate: Option<&Bound<'_, PyAny>>,
        problem: Option<String>,
    ) -> PyResult<()> {
        let py = reference.py();
        let part = |key: &str| place.get(key).cloned().unwrap_or_default();
        let place = Place {
            name: part("name"),
            op_type: part("op_type"),
            node: part("node"),
            module: part("module"),
            source: drift::source_line(&part("trace")),
        };
        let reference = Input::from_object(&place.name, reference)?;
        let reference = reference.view().or_raise(py)?;
        let candidate =
            candidate.map(|value| Input::from_object(&place.name, value)).transpose()?;
        let candidate = candidate.as_ref().map(Input::view).transpose().or_raise(py)?;
        let ledger = self.ledger.as_mut().ok_or_else(closed).or_raise(py)?;
        ledger.introduced(place, &reference, candidate.as_ref(), problem).or_raise(py)
    }

    /// Adds to a row what arrives there.
    #[pyo3(signature = (name, reference, candidate, wide=None))]
    fn accumulated(
        &mut self,
        name: &str,
        reference: &Bound<'_, PyAny>,
        candidate: &Bound<'_, PyAny>,
        wide: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = reference.py();
        let [reference, candidate] =
            [reference, candidate].map(|value| Input::from_object(name, value));
        let (reference, candidate) = (reference?, candidate?);
        let wide = wide.map(|value| Input::from_object(name, value)).transpose()?;
        let wide = wide.as_ref().map(Input::view).transpose().or_raise(py)?;
        let (reference, candidate) =
            (reference.view().or_raise(py)?, candidate.view().or_raise(py)?);
        let ledger = self.ledger.as_mut().ok_or_else(closed).or_raise(py)?;
        ledger.accumulated(name, &reference, &candidate, wide.as_ref()).or_raise(py)
    }

    /// What was found; nothing can be added afterwards.
    #[pyo3(signature = (*, engine, version, device, inputs, outputs))]
    fn json(
        &mut self,
        py: Python<'_>,
        engine: String,
        version: String,
        device: String,
        inputs: Vec<String>,
        outputs: Vec<String>,
    ) -> PyResult<String> {
        let ledger = self.ledger.take().ok_or_else(closed).or_raise(py)?;
        let session =
            SessionRecord { node: self.name.clone(), engine, engine_version: version, device };
        let graph = GraphRecord { inputs, outputs, ..GraphRecord::default() };
        to_json(&ledger.report(session, graph)).or_raise(py)
    }
}

fn closed() -> veracity::Refusal {
    invalid("the report was already made".to_owned())
}
