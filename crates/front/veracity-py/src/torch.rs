//! What is needed of torch, looked up once, and only in a process that has imported it.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use veracity::tensor::DType;

/// Objects of the torch module.
pub(crate) struct Torch {
    pub(crate) tensor: Py<PyType>,
    pub(crate) empty: Py<PyAny>,
    strided: Py<PyAny>,
    /// torch's dtype objects; `None` for those that an older torch does not have.
    dtypes: Vec<(DType, Option<Py<PyAny>>)>,
}

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

impl Torch {
    /// torch, if this process has imported it.
    pub(crate) fn loaded(py: Python<'_>) -> PyResult<Option<&'static Self>> {
        if let Some(torch) = TORCH.get(py) {
            return Ok(Some(torch));
        }
        let modules = py.import("sys")?.getattr("modules")?;
        let module = modules.call_method1("get", ("torch",))?;
        // A module that is still being imported has no tensors to hand over yet.
        if module.is_none() || !module.hasattr("Tensor")? {
            return Ok(None);
        }
        TORCH.get_or_try_init(py, || Self::new(&module)).map(Some)
    }

    fn new(module: &Bound<'_, PyAny>) -> PyResult<Self> {
        let dtype = |dtype: DType| (dtype, module.getattr(dtype.name()).ok().map(Bound::unbind));
        Ok(Self {
            tensor: module.getattr("Tensor")?.cast_into::<PyType>()?.unbind(),
            empty: module.getattr("empty")?.unbind(),
            strided: module.getattr("strided")?.unbind(),
            dtypes: DType::ALL.into_iter().map(dtype).collect(),
        })
    }

    /// The dtype behind a torch dtype object.
    pub(crate) fn dtype_from_object(&self, object: &Bound<'_, PyAny>) -> Option<DType> {
        let is_it =
            |known: &Option<Py<PyAny>>| known.as_ref().is_some_and(|known| known.is(object));
        self.dtypes.iter().find(|(_, known)| is_it(known)).map(|(dtype, _)| *dtype)
    }

    /// The torch dtype object of a dtype.
    pub(crate) fn object_from_dtype(&self, dtype: DType) -> Option<&Py<PyAny>> {
        self.dtypes
            .iter()
            .find(|(known, _)| *known == dtype)
            .and_then(|(_, object)| object.as_ref())
    }

    /// Whether a tensor has plain strided memory.
    pub(crate) fn is_strided(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(tensor.getattr("layout")?.is(&self.strided))
    }
}
