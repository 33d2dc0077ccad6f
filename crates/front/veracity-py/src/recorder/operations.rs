//! What the recorder must know about an operation before it runs. The table is in Python, beside
//! torch; each function is classified once.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What calling a function means for the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Tensors in, tensors out.
    Compute,
    /// A value leaves for Python.
    Escape,
    /// Reads nothing of the values: dtype, device, gradient switches.
    Metadata,
    /// Reads sizes, which are fixed unless they depend on data.
    Shape,
    /// Gives the address of the memory away.
    Memory,
    /// Gives an array away that shares the memory; the result is replaced by a recording array.
    Array,
    /// Shares the memory with another tensor library; found again by its address.
    Share,
    /// Cannot be recorded; the reason is told when it meets a traced value.
    Refused,
}

/// A parameter of a function: it may be given by position or by name.
pub(super) type Parameter = (usize, String);

/// A classified function.
#[pyclass(frozen, module = "veracity._native")]
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, named in Python")]
pub(crate) struct Operation {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The arguments that are written, by position and by name.
    pub(super) writes: Vec<Parameter>,
    /// The argument that must be true for `writes` to hold.
    pub(super) switch: Option<Parameter>,
    /// Whether the result is a plain copy or alias of the first argument.
    pub(super) identity: bool,
    /// Whether the layout decides if the result is a copy or an alias.
    pub(super) may_alias: bool,
    /// Whether the size of the result depends on values.
    pub(super) ragged: bool,
    /// Whether it draws random numbers.
    pub(super) random: bool,
    /// It draws random numbers when all of these arguments are true: position, name, default.
    pub(super) random_when: Vec<(usize, String, bool)>,
    /// Whether it raises on some values and not on others.
    pub(super) may_raise: bool,
    /// Whether it divides: integers by zero raise, floats do not.
    pub(super) divides: bool,
    /// Whether it replaces every element of what it writes without looking at the old ones.
    pub(super) overwrites: bool,
    /// Why it is refused.
    pub(super) reason: String,
}

#[pymethods]
impl Operation {
    #[new]
    #[pyo3(signature = (number, name, kind, *, writes=vec![], switch=None, identity=false,
                        may_alias=false, ragged=false, random=false, random_when=vec![], overwrites=false,
                        may_raise=false, divides=false, reason=String::new()))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    #[expect(clippy::fn_params_excessive_bools, reason = "keywords in Python")]
    fn new(
        number: u32,
        name: String,
        kind: &str,
        writes: Vec<Parameter>,
        switch: Option<Parameter>,
        identity: bool,
        may_alias: bool,
        ragged: bool,
        random: bool,
        random_when: Vec<(usize, String, bool)>,
        overwrites: bool,
        may_raise: bool,
        divides: bool,
        reason: String,
    ) -> PyResult<Self> {
        let kind = match kind {
            "compute" => Kind::Compute,
            "escape" => Kind::Escape,
            "metadata" => Kind::Metadata,
            "shape" => Kind::Shape,
            "memory" => Kind::Memory,
            "array" => Kind::Array,
            "share" => Kind::Share,
            "refused" => Kind::Refused,
            other => return Err(PyValueError::new_err(format!("no kind {other:?}"))),
        };
        Ok(Self {
            number,
            name,
            kind,
            writes,
            switch,
            identity,
            may_alias,
            ragged,
            random,
            random_when,
            may_raise,
            divides,
            overwrites,
            reason,
        })
    }

    /// Name, for people.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }
}

impl Operation {
    /// Whether its arguments after the first say where to read or write.
    pub(super) fn indexes(&self) -> bool {
        matches!(self.name.as_str(), "__getitem__" | "__setitem__")
    }
}

/// Every function seen so far with its operation.
pub(super) struct Operations {
    known: Py<PyDict>,
    classify: Py<PyAny>,
}

impl Operations {
    pub(super) fn new(py: Python<'_>, classify: Py<PyAny>) -> Self {
        Self { known: PyDict::new(py).unbind(), classify }
    }

    /// The operation of a function. Getters are new objects on each use, but equal: a dict finds
    /// them.
    pub(super) fn get<'py>(&self, func: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Operation>> {
        let py = func.py();
        let known = self.known.bind(py);
        if let Some(operation) = known.get_item(func)? {
            return Ok(operation.cast_into()?);
        }
        let operation = self.classify.bind(py).call1((func, known.len()))?;
        known.set_item(func, &operation)?;
        Ok(operation.cast_into()?)
    }
}
