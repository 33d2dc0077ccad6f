//! What torch calls for every call of the user's, in place of a Python method.
//!
//! A method in Python would be one more frame to make, and to look through for the user's line, on
//! every operation. What is rare is left to Python.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::Recorder;

/// The handler of a function mode of torch.
#[pyclass(module = "veracity._native", frozen)]
pub(crate) struct FunctionMode {
    recorder: Py<Recorder>,
    /// By class of tensors: whether it computes in a way of its own.
    ways: Py<PyDict>,
    /// By function: what is called where a call is recorded as it is, else `None`.
    usual: Py<PyDict>,
    has_own_way: Py<PyAny>,
    find_usual: Py<PyAny>,
}

#[pymethods]
impl FunctionMode {
    #[new]
    fn new(
        py: Python<'_>,
        recorder: Py<Recorder>,
        has_own_way: Py<PyAny>,
        find_usual: Py<PyAny>,
    ) -> Self {
        let (ways, usual) = (PyDict::new(py).unbind(), PyDict::new(py).unbind());
        Self { recorder, ways, usual, has_own_way, find_usual }
    }

    /// Runs and records a call. The mode is the object whose method this is: torch asks for it.
    #[pyo3(signature = (mode, func, types, args, kwargs = None))]
    fn __call__<'py>(
        &self,
        mode: &Bound<'py, PyAny>,
        func: &Bound<'py, PyAny>,
        types: &Bound<'py, PyTuple>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = func.py();
        for kind in types {
            if remembered(&self.ways, &self.has_own_way, &kind)?.is_truthy()? {
                return mode
                    .call_method1(intern!(py, "own_way"), (kind, func, types, args, kwargs));
            }
        }
        let usual = remembered(&self.usual, &self.find_usual, func)?;
        if usual.is_none() {
            return mode.call_method1(intern!(py, "look"), (func, args, kwargs));
        }
        self.recorder.get().call(&usual, args, kwargs)
    }
}

/// What a function of Python's says about a value, asked once.
fn remembered<'py>(
    known: &Py<PyDict>,
    ask: &Py<PyAny>,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    if let Some(found) = known.bind(py).get_item(value)? {
        return Ok(found);
    }
    let found = ask.bind(py).call1((value,))?;
    known.bind(py).set_item(value, &found)?;
    Ok(found)
}
