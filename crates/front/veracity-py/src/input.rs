//! Reads torch tensors and NumPy arrays where they are.
#![expect(unsafe_code, reason = "borrows the memory of objects that Python keeps alive")]

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use veracity::drift::held;
use veracity::tensor::{DType, Shape, SharedTensor, TensorView};
use veracity::{Diagnostic, Refusal, codes};

use crate::errors::OrRaise;
use crate::torch::Torch;

/// Which library a value came from, so that outputs go back the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    /// NumPy.
    Numpy,
    /// torch.
    Torch,
}

/// A value that Python owns: where its elements are.
pub(crate) struct Input<'py> {
    pub(crate) library: Library,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<usize>,
    /// Distance between neighbours in elements; `None` when row-major.
    strides: Option<Vec<isize>>,
    start: *const u8,
    /// The device it came from, when its elements had to be copied to the CPU first.
    pub(crate) device: Option<Bound<'py, PyAny>>,
    /// Keeps the memory alive.
    owner: Bound<'py, PyAny>,
}

impl<'py> Input<'py> {
    /// Looks at a value. Refused when it is neither a tensor nor an array, or of a dtype that
    /// bundles do not have.
    pub(crate) fn from_object(key: &str, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Some(torch) = Torch::loaded(value.py())?
            && value.is_instance(torch.tensor.bind(value.py()))?
        {
            return Self::from_torch(key, value, torch);
        }
        // Asking for an array imports NumPy; where that fails, say so instead of panicking.
        value.py().import(pyo3::intern!(value.py(), "numpy"))?;
        if let Ok(array) = value.cast::<PyUntypedArray>() {
            if array.hasattr(pyo3::intern!(value.py(), "mask"))? {
                let message = format!("input {key:?} is a masked array, whose mask would be lost");
                return Err(refuse(codes::INPUT_DTYPE, message)).or_raise(value.py());
            }
            return Self::from_numpy(key, array);
        }
        let kind = value.get_type().name()?;
        let message = format!("input {key:?} is a {kind}, not a tensor or an array");
        Err(refuse(codes::INPUT_DTYPE, message)).or_raise(value.py())
    }

    /// The elements when they lie row-major without gaps.
    pub(crate) fn contiguous_bytes(&self) -> Option<&[u8]> {
        let elements: usize = self.dims.iter().product();
        // SAFETY: the owner keeps row-major elements of this dtype and shape alive. Python's lock
        // is held, so no Python code writes them meanwhile; native code of another thread that
        // does is as wrong as it would be beside a torch operation.
        self.strides
            .is_none()
            .then(|| unsafe { bytes_at(self.start, elements * self.dtype.size()) })
    }

    /// The elements as a view.
    pub(crate) fn view(&self) -> veracity::Result<TensorView<'_>> {
        let impossible = || refuse(codes::INPUT_SHAPE, "the shape is too large".to_owned());
        let shape = Shape::new(self.dims.clone()).ok_or_else(impossible)?;
        let Some(strides) = &self.strides else {
            let bytes = self.contiguous_bytes().unwrap_or_default();
            return TensorView::new(self.dtype, &shape, bytes);
        };
        let (before, length) = self.reach(strides);
        // SAFETY: the owner's elements lie between its lowest and highest address, which `reach`
        // computes from its own shape and strides.
        let bytes = unsafe { bytes_at(self.start.sub(before), length) };
        TensorView::strided(self.dtype, &shape, strides, before, bytes)
    }

    /// The elements where they are, for as long as somebody holds the result: nothing may write them
    /// meanwhile. Those that do not lie row-major are copied.
    pub(crate) fn shared(self) -> veracity::Result<SharedTensor> {
        let view = self.view()?;
        let is_plain =
            self.strides.is_none() && self.start.addr().is_multiple_of(self.dtype.size());
        if !is_plain || view.shape().elements() == 0 {
            return Ok(held(&view));
        }
        let (shape, owner) = (view.shape().clone(), self.owner.unbind());
        // SAFETY: row-major elements, and aligned; the owner keeps them alive. That nothing writes
        // them is what the caller promised.
        Ok(unsafe { SharedTensor::over(self.dtype, shape, self.start, owner) })
    }

    /// Bytes before the first element, and bytes from the lowest to the highest address.
    fn reach(&self, strides: &[isize]) -> (usize, usize) {
        if self.dims.contains(&0) {
            return (0, 0);
        }
        let size = self.dtype.size();
        let span = |(&dim, &stride): (&usize, &isize)| (dim - 1) * stride.unsigned_abs() * size;
        let axes = || self.dims.iter().zip(strides);
        let before: usize = axes().filter(|(_, stride)| **stride < 0).map(span).sum();
        let after: usize = axes().filter(|(_, stride)| **stride > 0).map(span).sum();
        (before, before + after + size)
    }

    fn from_torch(key: &str, tensor: &Bound<'py, PyAny>, torch: &Torch) -> PyResult<Self> {
        let py = tensor.py();
        let object = tensor.getattr("dtype")?;
        let Some(dtype) = torch.dtype_from_object(&object) else {
            let message = format!("input {key:?} is {object}, which bundles do not have");
            return Err(refuse(codes::INPUT_DTYPE, message)).or_raise(py);
        };
        if !torch.is_strided(tensor)? {
            let message =
                format!("input {key:?} is a tensor without strides, such as a sparse one");
            return Err(refuse(codes::INPUT_DEVICE, message)).or_raise(py);
        }
        let (owner, device) = Self::on_cpu(tensor)?;
        let contiguous: bool = owner.call_method0("is_contiguous")?.extract()?;
        let strides =
            if contiguous { None } else { Some(owner.call_method0("stride")?.extract()?) };
        let address: usize = owner.call_method0("data_ptr")?.extract()?;
        let dims: Vec<usize> = owner.getattr("shape")?.extract()?;
        let input = Self {
            library: Library::Torch,
            dtype,
            dims,
            strides,
            start: std::ptr::with_exposed_provenance(address),
            device,
            owner,
        };
        input.check_storage(key)?;
        Ok(input)
    }

    /// Refuses a tensor whose storage does not hold its elements: one whose storage was resized,
    /// or a subclass that describes itself wrongly.
    fn check_storage(&self, key: &str) -> PyResult<()> {
        let py = self.owner.py();
        let storage = self.owner.call_method0(pyo3::intern!(py, "untyped_storage"))?;
        let first: usize = storage.call_method0(pyo3::intern!(py, "data_ptr"))?.extract()?;
        let length: usize = storage.call_method0(pyo3::intern!(py, "nbytes"))?.extract()?;
        let row_major = Shape::new(self.dims.clone()).map(|shape| shape.contiguous_strides());
        let strides = self.strides.as_ref().or(row_major.as_ref()).map_or(&[][..], |all| all);
        let (before, reach) = self.reach(strides);
        let start = self.start.addr();
        let inside = start.checked_sub(before).is_some_and(|lowest| {
            lowest >= first && reach <= length && lowest - first <= length - reach
        });
        if reach == 0 || inside {
            return Ok(());
        }
        let message = format!("input {key:?} is a tensor whose memory does not hold its elements");
        Err(refuse(codes::INPUT_DEVICE, message)).or_raise(py)
    }

    /// The tensor with readable elements on the CPU, and the device it came from if elsewhere.
    fn on_cpu(
        tensor: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        // A view that is negated on read has the negated elements nowhere in memory.
        let plain = if tensor.call_method0("is_neg")?.extract()? {
            tensor.call_method0("resolve_neg")?
        } else {
            tensor.clone()
        };
        if plain.getattr("is_cpu")?.extract()? {
            return Ok((plain, None));
        }
        let device = plain.getattr("device")?;
        Ok((plain.call_method0("cpu")?, Some(device)))
    }

    fn from_numpy(key: &str, array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        let py = array.py();
        let descr = array.dtype();
        let Some(dtype) = dtype_from_descr(&descr)? else {
            let message = format!("input {key:?} is {descr}, which bundles do not have");
            return Err(refuse(codes::INPUT_DTYPE, message)).or_raise(py);
        };
        let size = dtype.size().cast_signed();
        let misaligned = array.strides().iter().any(|stride| stride % size != 0);
        if misaligned {
            // A field of a structured array may lie between whole elements.
            let numpy = py.import("numpy")?;
            let copy = numpy.call_method1("array", (array,))?.cast_into::<PyUntypedArray>()?;
            return Self::from_numpy(key, &copy);
        }
        let strides = array.strides().iter().map(|stride| stride / size).collect();
        // SAFETY: the object is a NumPy array, checked by the cast, and is borrowed.
        let start = unsafe { (*array.as_array_ptr()).fields.data };
        Ok(Self {
            library: Library::Numpy,
            dtype,
            dims: array.shape().to_vec(),
            strides: if array.is_c_contiguous() { None } else { Some(strides) },
            start: start.cast_const().cast(),
            device: None,
            owner: array.as_any().clone(),
        })
    }
}

fn dtype_from_descr(descr: &Bound<'_, numpy::PyArrayDescr>) -> PyResult<Option<DType>> {
    // Elements in foreign byte order would be read as other numbers.
    if descr.is_native_byteorder() == Some(false) {
        return Ok(None);
    }
    Ok(match (descr.kind(), descr.itemsize()) {
        (b'b', 1) => Some(DType::Bool),
        (b'f', 2) => Some(DType::F16),
        (b'f', 4) => Some(DType::F32),
        (b'f', 8) => Some(DType::F64),
        (b'i', 1) => Some(DType::I8),
        (b'i', 2) => Some(DType::I16),
        (b'i', 4) => Some(DType::I32),
        (b'i', 8) => Some(DType::I64),
        (b'u', 1) => Some(DType::U8),
        (b'u', 2) => Some(DType::U16),
        (b'u', 4) => Some(DType::U32),
        (b'u', 8) => Some(DType::U64),
        // `ml_dtypes` registers bfloat16 under this name.
        (_, 2) if descr.getattr("name")?.extract::<String>()? == "bfloat16" => Some(DType::BF16),
        _ => None,
    })
}

fn refuse(code: veracity::Code, message: String) -> Refusal {
    Diagnostic::error(code, message).into()
}

/// # Safety
/// `length` bytes at `start` are readable while the result lives; `start` may be null when
/// `length` is 0.
unsafe fn bytes_at<'a>(start: *const u8, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: passed on to the caller.
    unsafe { std::slice::from_raw_parts(start, length) }
}
