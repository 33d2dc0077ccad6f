//! One run whose outputs come in memory of the library, so that nobody needs to know their shapes.
#![expect(unsafe_code, reason = "the library works on raw memory")]

use std::ffi::{CString, c_char};
use std::ptr::NonNull;

use ort_sys::{ONNXType, OrtValue};
use veracity_tensor::{Shape, Tensor};

use super::Runner;
use crate::api::{Called, Failure, Owned, check};
use crate::dtype::{dtype_from_onnx, onnx_from_dtype};

impl Runner {
    /// Runs the model once and copies what it gave. `None` stands for an output that is no tensor
    /// of a dtype that we have.
    pub(crate) fn fetch(
        &self,
        inputs: &[(&str, &Tensor)],
        outputs: &[&str],
    ) -> Called<Vec<Option<Tensor>>> {
        // The library refuses to run for nothing.
        if outputs.is_empty() {
            return Ok(Vec::new());
        }
        let values: Vec<Owned<OrtValue>> =
            inputs.iter().map(|(_, value)| self.value_of(value)).collect::<Called<_>>()?;
        let input_names = c_names(inputs.iter().map(|(name, _)| *name))?;
        let output_names = c_names(outputs.iter().copied())?;
        let pointers = |names: &[CString]| -> Vec<*const c_char> {
            names.iter().map(|name| name.as_ptr()).collect()
        };
        let fed: Vec<*const OrtValue> =
            values.iter().map(|value| value.as_ptr().cast_const()).collect();
        let mut fetched: Vec<*mut OrtValue> = vec![std::ptr::null_mut(); outputs.len()];
        // SAFETY: session, options, names and values are live, and the arrays are as long as said.
        // Where an output is null, the library puts a new value in the memory of the CPU.
        let status = unsafe {
            (self.api.Run)(
                self.session.as_ptr(),
                self.run_options.as_ptr(),
                pointers(&input_names).as_ptr(),
                fed.as_ptr(),
                fed.len(),
                pointers(&output_names).as_ptr(),
                outputs.len(),
                fetched.as_mut_ptr(),
            )
        };
        check(self.api, status)?;
        let owned: Vec<Called<Owned<OrtValue>>> = fetched
            .into_iter()
            .map(|value| {
                // SAFETY: the library made the value for us, and nothing else releases it.
                unsafe {
                    Owned::new(self.api, self.api.ReleaseValue, |out| {
                        *out = value;
                        ort_sys::OrtStatusPtr(std::ptr::null_mut())
                    })
                }
            })
            .collect();
        owned.into_iter().map(|value| self.copied(&value?)).collect()
    }

    /// A value of the library over the memory of a tensor, which must outlive it.
    fn value_of(&self, tensor: &Tensor) -> Called<Owned<OrtValue>> {
        let dims: Vec<i64> =
            tensor.shape().dims().iter().map(|&dim| dim.cast_signed() as i64).collect();
        // SAFETY: the caller keeps the tensor for longer than the value; inputs are only read; the
        // dims are copied.
        unsafe {
            Owned::new(self.api, self.api.ReleaseValue, |out| {
                (self.api.CreateTensorWithDataAsOrtValue)(
                    self.memory_info.as_ptr(),
                    tensor.bytes().as_ptr().cast_mut().cast(),
                    tensor.bytes().len(),
                    dims.as_ptr(),
                    dims.len(),
                    onnx_from_dtype(tensor.dtype()),
                    out,
                )
            })
        }
    }

    /// A copy of a value that is in the memory of the CPU.
    fn copied(&self, value: &Owned<OrtValue>) -> Called<Option<Tensor>> {
        let api = self.api;
        let (mut kind, mut element, mut rank) = (0_i32, 0_i32, 0);
        // SAFETY: the value is live; the out parameters are as large as what is written to them.
        unsafe {
            check(api, (api.GetValueType)(value.as_ptr(), (&raw mut kind).cast()))?;
            if kind != ONNXType::ONNX_TYPE_TENSOR as i32 {
                return Ok(None);
            }
            let info = Owned::new(api, api.ReleaseTensorTypeAndShapeInfo, |out| {
                (api.GetTensorTypeAndShape)(value.as_ptr(), out)
            })?;
            check(api, (api.GetTensorElementType)(info.as_ptr(), (&raw mut element).cast()))?;
            check(api, (api.GetDimensionsCount)(info.as_ptr(), &raw mut rank))?;
            let mut sizes = vec![0_i64; rank];
            check(api, (api.GetDimensions)(info.as_ptr(), sizes.as_mut_ptr(), rank))?;
            let Some(dtype) = dtype_from_onnx(element) else { return Ok(None) };
            let dims: Option<Vec<usize>> =
                sizes.into_iter().map(|size| usize::try_from(size).ok()).collect();
            let shape = dims.and_then(Shape::new);
            let shape = shape.ok_or_else(|| Failure::other("an output has an impossible shape"))?;
            let mut start = std::ptr::null_mut();
            check(api, (api.GetTensorMutableData)(value.as_ptr(), &raw mut start))?;
            let len = shape.elements() * dtype.size();
            let bytes: &[u8] = match NonNull::new(start.cast::<u8>()) {
                Some(start) if len > 0 => std::slice::from_raw_parts(start.as_ptr(), len),
                _ => &[],
            };
            Ok(Tensor::from_bytes(dtype, shape, bytes).ok())
        }
    }
}

fn c_names<'n>(names: impl Iterator<Item = &'n str>) -> Called<Vec<CString>> {
    let nul = |_contained| Failure::other("a name contains a NUL");
    names.map(|name| CString::new(name).map_err(nul)).collect()
}
