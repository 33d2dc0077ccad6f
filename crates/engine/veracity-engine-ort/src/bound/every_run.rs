//! Inputs and outputs that are handed over with every run.
#![expect(unsafe_code, reason = "the library works on raw memory")]

use std::ffi::{CString, c_char};

use ort_sys::OrtValue;
use veracity_tensor::SharedTensor;

use super::{Runner, Side, onnx_dims, tensors_of};
use crate::api::{Api, Called, Failure, Owned, check};
use crate::dtype::onnx_from_dtype;

/// Memory that is passed to the library for each run.
pub(crate) struct EveryRun {
    // Pointers to the names and values below, in arrays as the library takes them.
    input_names: Vec<*const c_char>,
    output_names: Vec<*const c_char>,
    inputs: Vec<*const OrtValue>,
    /// Null, but for the time between a run and the copying of what it gave.
    fetched: Vec<*mut OrtValue>,
    targets: Vec<Target>,
    _names: Vec<CString>,
    _values: Vec<Owned<OrtValue>>,
    _inputs: Vec<SharedTensor>,
}

/// Where an output is copied to.
struct Target {
    tensor: SharedTensor,
    /// Its sizes, and room for those that came.
    dims: Vec<i64>,
    fetched_dims: Vec<i64>,
}

impl EveryRun {
    pub(super) fn new(runner: &Runner, inputs: &Side, outputs: &Side) -> Called<Self> {
        let names: Vec<CString> =
            inputs.iter().chain(outputs).map(|(name, _)| CString::clone(name)).collect();
        let mut input_names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let output_names = input_names.split_off(inputs.len());
        let values = runner.values_over(inputs)?;
        Ok(Self {
            input_names,
            output_names,
            inputs: values.iter().map(|value| value.as_ptr().cast_const()).collect(),
            fetched: vec![std::ptr::null_mut(); outputs.len()],
            targets: outputs.iter().map(|(_, tensor)| Target::new(tensor)).collect(),
            _names: names,
            _values: values,
            _inputs: tensors_of(inputs),
        })
    }

    pub(super) fn run(&mut self, runner: &Runner) -> Called<()> {
        // The library refuses to run for nothing.
        if self.targets.is_empty() {
            return Ok(());
        }
        // SAFETY: session, options, names and values are live, the arrays are as long as said, and
        // the caller lets nobody else touch the memory behind the values. Where an output is null,
        // the library puts a new value in the memory of the CPU.
        let status = unsafe {
            (runner.api.Run)(
                runner.session.as_ptr(),
                runner.run_options.as_ptr(),
                self.input_names.as_ptr(),
                self.inputs.as_ptr(),
                self.inputs.len(),
                self.output_names.as_ptr(),
                self.output_names.len(),
                self.fetched.as_mut_ptr(),
            )
        };
        let mut result = check(runner.api, status);
        for (value, target) in self.fetched.iter_mut().zip(&mut self.targets) {
            let value = std::mem::replace(value, std::ptr::null_mut());
            if result.is_ok() {
                result = target.copy_from(runner.api, value);
            }
            // SAFETY: the value was made for us; null is allowed.
            unsafe { (runner.api.ReleaseValue)(value) };
        }
        result
    }
}

impl Target {
    fn new(tensor: &SharedTensor) -> Self {
        let dims = onnx_dims(tensor);
        Self { tensor: tensor.clone(), fetched_dims: vec![0; dims.len()], dims }
    }

    /// Copies a value that is in the memory of the CPU, if it has our dtype and shape.
    fn copy_from(&mut self, api: Api, value: *mut OrtValue) -> Called<()> {
        let mut element = 0_i32;
        let mut rank = 0;
        let mut start = std::ptr::null_mut();
        // SAFETY: the value is live; the out parameters are as large as what is written to them.
        unsafe {
            let info = Owned::new(api, api.ReleaseTensorTypeAndShapeInfo, |out| {
                (api.GetTensorTypeAndShape)(value, out)
            })?;
            check(api, (api.GetTensorElementType)(info.as_ptr(), (&raw mut element).cast()))?;
            check(api, (api.GetDimensionsCount)(info.as_ptr(), &raw mut rank))?;
            if rank == self.dims.len() {
                let room = self.fetched_dims.as_mut_ptr();
                check(api, (api.GetDimensions)(info.as_ptr(), room, rank))?;
            }
            check(api, (api.GetTensorMutableData)(value, &raw mut start))?;
        }
        let same_dtype = element == onnx_from_dtype(self.tensor.dtype()) as i32;
        if !same_dtype || rank != self.dims.len() || self.fetched_dims != self.dims {
            let (dtype, shape) = (self.tensor.dtype(), self.tensor.shape());
            let message = format!("an output declared as {dtype} {shape} came in another shape");
            return Err(Failure::other_shape(message));
        }
        if self.tensor.byte_len() > 0 {
            // SAFETY: dtype and shape are the same, so both have this length; one belongs to the
            // library and one to us, and the caller lets nobody else touch ours.
            unsafe {
                let (from, to) = (start.cast_const().cast(), self.tensor.as_mut_ptr());
                std::ptr::copy_nonoverlapping::<u8>(from, to, self.tensor.byte_len());
            }
        }
        Ok(())
    }
}
