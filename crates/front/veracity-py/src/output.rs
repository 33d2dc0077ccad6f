//! Hands elements to Python as fresh tensors and arrays.
#![expect(unsafe_code, reason = "fills the memory of objects that were just made")]

use half::f16;
use numpy::{IxDyn, PyArray, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use veracity::tensor::{DType, Tensor};
use veracity::{Diagnostic, codes};

use crate::errors::OrRaise;
use crate::input::Library;
use crate::torch::Torch;

/// A new object of the library that holds a copy of row-major elements.
pub(crate) fn object_from_bytes<'py>(
    py: Python<'py>,
    library: Library,
    dtype: DType,
    dims: &[usize],
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    match (library, Torch::loaded(py)?) {
        (Library::Torch, Some(torch)) => torch_from_bytes(py, torch, dtype, dims, bytes),
        _ => numpy_from_bytes(py, dtype, dims, bytes),
    }
}

/// A copy of a tensor, for torch where it is imported.
pub(crate) fn object_from_tensor<'py>(
    py: Python<'py>,
    tensor: &Tensor,
) -> PyResult<Bound<'py, PyAny>> {
    let dims = tensor.shape().dims();
    object_from_bytes(py, Library::Torch, tensor.dtype(), dims, tensor.bytes())
}

fn torch_from_bytes<'py>(
    py: Python<'py>,
    torch: &Torch,
    dtype: DType,
    dims: &[usize],
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let Some(object) = torch.object_from_dtype(dtype) else {
        return Err(unsupported(dtype, "this version of torch")).or_raise(py);
    };
    let keywords = pyo3::types::PyDict::new(py);
    keywords.set_item(pyo3::intern!(py, "dtype"), object)?;
    // The default device may be another one, and one without memory at that.
    keywords.set_item(pyo3::intern!(py, "device"), pyo3::intern!(py, "cpu"))?;
    let tensor = torch.empty.bind(py).call((PyTuple::new(py, dims)?,), Some(&keywords))?;
    let address: usize = tensor.call_method0("data_ptr")?.extract()?;
    if !bytes.is_empty() {
        assert_ne!(address, 0, "a CPU tensor with elements has memory");
        let target = std::ptr::with_exposed_provenance_mut::<u8>(address);
        // SAFETY: the tensor was just made on the CPU with this dtype and shape, is row-major,
        // and nobody else has it yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
    }
    Ok(tensor)
}

fn numpy_from_bytes<'py>(
    py: Python<'py>,
    dtype: DType,
    dims: &[usize],
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match dtype {
        DType::F16 => filled::<f16>(py, dims, bytes),
        DType::F32 => filled::<f32>(py, dims, bytes),
        DType::F64 => filled::<f64>(py, dims, bytes),
        DType::I8 => filled::<i8>(py, dims, bytes),
        DType::I16 => filled::<i16>(py, dims, bytes),
        DType::I32 => filled::<i32>(py, dims, bytes),
        DType::I64 => filled::<i64>(py, dims, bytes),
        DType::U8 => filled::<u8>(py, dims, bytes),
        DType::U16 => filled::<u16>(py, dims, bytes),
        DType::U32 => filled::<u32>(py, dims, bytes),
        DType::U64 => filled::<u64>(py, dims, bytes),
        DType::Bool => filled::<bool>(py, dims, bytes),
        DType::BF16 => {
            let Ok(module) = py.import("ml_dtypes") else {
                return Err(unsupported(dtype, "NumPy without the package `ml_dtypes`"))
                    .or_raise(py);
            };
            filled::<u16>(py, dims, bytes).call_method1("view", (module.getattr("bfloat16")?,))?
        }
    })
}

fn filled<'py, E: numpy::Element + Copy>(
    py: Python<'py>,
    dims: &[usize],
    bytes: &[u8],
) -> Bound<'py, PyAny> {
    // SAFETY: the elements are plain numbers and are all written below; a bool is 0 or 1 because
    // engines write ONNX and torch bools.
    let array = unsafe { PyArray::<E, IxDyn>::new(py, IxDyn(dims), false) };
    assert_eq!(array.len() * size_of::<E>(), bytes.len(), "the runtime fills whole tensors");
    // SAFETY: the array was just made row-major with this many bytes, and nobody else has it yet.
    unsafe {
        let target = array.data().cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
    }
    array.into_any()
}

fn unsupported(dtype: DType, library: &str) -> veracity::Refusal {
    Diagnostic::error(codes::DTYPE_UNSUPPORTED, format!("{library} has no {dtype}"))
        .hint("hand torch tensors over to get torch tensors back")
        .into()
}
