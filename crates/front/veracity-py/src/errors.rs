//! Refusals as Python exceptions. The classes are defined in Python, in `veracity.errors`.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use veracity::{Diagnostic, Refusal};

/// The exception for a refusal.
pub(crate) fn error_from_refusal(py: Python<'_>, refusal: &Refusal) -> PyErr {
    let build = || -> PyResult<PyErr> {
        let found = list_from_diagnostics(py, refusal.diagnostics())?;
        let module = py.import("veracity.errors")?;
        let error = module.call_method1("error_from_diagnostics", (found,))?;
        Ok(PyErr::from_value(error))
    };
    build().unwrap_or_else(|error| error)
}

/// Findings as Python objects.
pub(crate) fn list_from_diagnostics<'py>(
    py: Python<'py>,
    diagnostics: &[Diagnostic],
) -> PyResult<Bound<'py, PyList>> {
    let class = py.import("veracity.errors")?.getattr("Diagnostic")?;
    let found = PyList::empty(py);
    for diagnostic in diagnostics {
        let fields = (
            diagnostic.code.to_string(),
            diagnostic.severity.to_string(),
            diagnostic.message.as_str(),
            diagnostic.place.to_string(),
            PyTuple::new(py, &diagnostic.hints)?,
        );
        found.append(class.call1(fields)?)?;
    }
    Ok(found)
}

/// Turns refusals into exceptions where they leave Rust.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for veracity::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|refusal| error_from_refusal(py, &refusal))
    }
}
