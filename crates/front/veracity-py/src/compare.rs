//! Comparing tensors from Python.

use pyo3::prelude::*;
use veracity::compare::check_output;
use veracity::results::Tolerance;
use veracity::{Diagnostic, codes};

use crate::errors::OrRaise;
use crate::input::Input;

/// Checks a computed tensor against the recorded one; gives what was found as JSON. Refused when
/// shape or dtype differ.
#[pyfunction]
#[pyo3(signature = (reference, candidate, *, rtol, atol, equal_nan))]
pub(crate) fn compare(
    reference: &Bound<'_, PyAny>,
    candidate: &Bound<'_, PyAny>,
    rtol: f64,
    atol: f64,
    equal_nan: bool,
) -> PyResult<String> {
    let py = reference.py();
    let reference = Input::from_object("reference", reference)?;
    let candidate = Input::from_object("candidate", candidate)?;
    let check = || {
        let tolerance = Tolerance::new(atol, rtol)?;
        let found = check_output(&reference.view()?, &candidate.view()?, tolerance, equal_nan)?;
        serde_json::to_string(&found).map_err(|error| {
            Diagnostic::error(codes::USAGE, format!("cannot be written: {error}")).into()
        })
    };
    check().or_raise(py)
}
