//! A model's inputs and outputs laid over memory, and the call that runs the model on it.
//!
//! Everything that a run passes to the library is made beforehand, so a run makes no Rust
//! allocation. There are two ways, and a test table that both pass.
#![expect(unsafe_code, reason = "the library works on raw memory")]

mod every_run;
mod fetch;
mod once;

use std::ffi::CString;

use ort_sys::{OrtMemoryInfo, OrtRunOptions, OrtSession, OrtValue};
use veracity_tensor::SharedTensor;

use crate::api::{Api, Called, Owned};
use crate::bound::every_run::EveryRun;
use crate::bound::once::Once;
use crate::dtype::onnx_from_dtype;

/// A session with what is the same for all its bindings.
pub(crate) struct Runner {
    session: Owned<OrtSession>,
    run_options: Owned<OrtRunOptions>,
    memory_info: Owned<OrtMemoryInfo>,
    api: Api,
}

/// How inputs and outputs are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passing {
    /// Handed over once; the library writes into our memory. 3 % faster on a tiny model, and more
    /// with more ports: no names are looked up when it runs. For the CPU only.
    Once,
    /// Handed over with every run, and outputs are fetched from memory of the library. Any other
    /// device needs this. Handed over once, an input is copied to the device once, and what is
    /// written later is never seen. And when the library copies an output from the device into our
    /// memory, it does not mind another shape.
    EveryRun,
}

/// Names and memory of inputs or outputs.
pub(crate) type Side<'a> = [(&'a CString, &'a SharedTensor)];

/// One set of memory, ready to be run on.
pub(crate) enum Bound {
    /// See [`Passing::Once`].
    Once(Once),
    /// See [`Passing::EveryRun`].
    EveryRun(EveryRun),
}

impl Runner {
    /// Makes a session ready to be bound and run.
    pub(crate) fn new(api: Api, session: Owned<OrtSession>) -> Called<Self> {
        // SAFETY: both functions fill the out parameter with a new object.
        unsafe {
            let run_options =
                Owned::new(api, api.ReleaseRunOptions, |out| (api.CreateRunOptions)(out))?;
            let memory_info = Owned::new(api, api.ReleaseMemoryInfo, |out| {
                let allocator = ort_sys::OrtAllocatorType::OrtArenaAllocator;
                let memory = ort_sys::OrtMemType::OrtMemTypeDefault;
                (api.CreateCpuMemoryInfo)(allocator, memory, out)
            })?;
            Ok(Self { session, run_options, memory_info, api })
        }
    }

    /// Lays inputs and outputs over memory. The binding must not outlive the runner.
    pub(crate) fn bind(&self, inputs: &Side, outputs: &Side, passing: Passing) -> Called<Bound> {
        Ok(match passing {
            Passing::Once => Bound::Once(Once::new(self, inputs, outputs)?),
            Passing::EveryRun => Bound::EveryRun(EveryRun::new(self, inputs, outputs)?),
        })
    }

    /// Runs the model once. Nothing else may touch the bound memory meanwhile.
    pub(crate) fn run(&self, bound: &mut Bound) -> Called<()> {
        match bound {
            Bound::Once(bound) => bound.run(self),
            Bound::EveryRun(bound) => bound.run(self),
        }
    }

    /// Values of the library over the memory of tensors, which must outlive them.
    fn values_over(&self, side: &Side) -> Called<Vec<Owned<OrtValue>>> {
        side.iter().map(|(_, tensor)| self.value_over(tensor)).collect()
    }

    fn value_over(&self, tensor: &SharedTensor) -> Called<Owned<OrtValue>> {
        let dims = onnx_dims(tensor);
        // SAFETY: the memory has `byte_len` bytes and is kept alive by the binding for longer than
        // the value; the dims are copied.
        unsafe {
            Owned::new(self.api, self.api.ReleaseValue, |out| {
                (self.api.CreateTensorWithDataAsOrtValue)(
                    self.memory_info.as_ptr(),
                    tensor.as_mut_ptr().cast(),
                    tensor.byte_len(),
                    dims.as_ptr(),
                    dims.len(),
                    onnx_from_dtype(tensor.dtype()),
                    out,
                )
            })
        }
    }
}

/// Sizes of a tensor's axes as the library counts them.
fn onnx_dims(tensor: &SharedTensor) -> Vec<i64> {
    tensor.shape().dims().iter().map(|&dim| dim.cast_signed() as i64).collect()
}

/// The memory of one side, kept alive.
fn tensors_of(side: &Side) -> Vec<SharedTensor> {
    side.iter().map(|(_, tensor)| SharedTensor::clone(tensor)).collect()
}
