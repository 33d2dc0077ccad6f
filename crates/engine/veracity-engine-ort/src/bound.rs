//! A model's inputs and outputs laid over memory, and the call that runs the model on it.
//!
//! Everything that a run passes to the library is made beforehand: a run is one foreign call and
//! makes no Rust allocation.
#![expect(unsafe_code, reason = "the library works on raw memory")]

use std::ffi::{CString, c_char};

use ort_sys::{OrtIoBinding, OrtMemoryInfo, OrtRunOptions, OrtSession, OrtValue};
use veracity_tensor::SharedTensor;

use crate::api::{Api, Called, Failure, Owned, check};
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
    /// Handed over once. 3 % faster on a tiny model, and more with more ports: the library looks up
    /// no names when it runs.
    Once,
    /// Handed over with every run. A session on another device needs this: handed over once, an
    /// input would be copied to the device once and later values would never be seen.
    EveryRun,
}

/// Names and memory of inputs or outputs.
pub(crate) type Side<'a> = [(&'a CString, &'a SharedTensor)];

/// One set of memory, with everything that a run passes to the library.
pub(crate) struct Bound {
    // Fields are dropped in this order: first what leads to the values, then the values, then the
    // memory behind them.
    call: Call,
    _values: Vec<Owned<OrtValue>>,
    outputs: Vec<SharedTensor>,
    _inputs: Vec<SharedTensor>,
    /// Whether a run has shown that the library writes to our memory.
    seen_writing: bool,
}

enum Call {
    Once(Owned<OrtIoBinding>),
    EveryRun(Arguments),
}

/// Names and values, in arrays as the library takes them.
struct Arguments {
    input_names: Vec<*const c_char>,
    inputs: Vec<*const OrtValue>,
    output_names: Vec<*const c_char>,
    outputs: Vec<*mut OrtValue>,
    _names: Vec<CString>,
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

    /// Lays inputs and outputs over memory.
    pub(crate) fn bind(&self, inputs: &Side, outputs: &Side, passing: Passing) -> Called<Bound> {
        let values_over = |side: &Side| -> Called<Vec<_>> {
            side.iter().map(|(_, tensor)| self.value_over(tensor)).collect()
        };
        let (input_values, output_values) = (values_over(inputs)?, values_over(outputs)?);
        let call = match passing {
            Passing::Once => {
                Call::Once(self.io_binding(inputs, &input_values, outputs, &output_values)?)
            }
            Passing::EveryRun => Call::EveryRun(Arguments {
                inputs: input_values.iter().map(|value| value.as_ptr().cast_const()).collect(),
                outputs: output_values.iter().map(Owned::as_ptr).collect(),
                ..Arguments::named(inputs, outputs)
            }),
        };
        Ok(Bound {
            call,
            _values: input_values.into_iter().chain(output_values).collect(),
            outputs: outputs.iter().map(|(_, tensor)| SharedTensor::clone(tensor)).collect(),
            _inputs: inputs.iter().map(|(_, tensor)| SharedTensor::clone(tensor)).collect(),
            seen_writing: false,
        })
    }

    /// Runs the model once. Nothing else may touch the bound memory meanwhile.
    pub(crate) fn run(&self, bound: &mut Bound) -> Called<()> {
        // The library refuses to run for nothing.
        if bound.outputs.is_empty() {
            return Ok(());
        }
        let (api, session, options) =
            (self.api, self.session.as_ptr(), self.run_options.as_ptr().cast_const());
        // SAFETY: session, options, names and values are live, the arrays are as long as said, and
        // the caller lets nobody else touch the memory behind the values. An output that is not
        // null is written to and not replaced.
        let status = unsafe {
            match &mut bound.call {
                Call::Once(binding) => (api.RunWithBinding)(session, options, binding.as_ptr()),
                Call::EveryRun(arguments) => (api.Run)(
                    session,
                    options,
                    arguments.input_names.as_ptr(),
                    arguments.inputs.as_ptr(),
                    arguments.inputs.len(),
                    arguments.output_names.as_ptr(),
                    arguments.outputs.len(),
                    arguments.outputs.as_mut_ptr(),
                ),
            }
        };
        check(api, status)?;
        if bound.seen_writing { Ok(()) } else { self.see_writing(bound) }
    }

    /// Makes sure, after the first run, that the outputs went into our memory. The library may put
    /// an output elsewhere without a word, and stale outputs would look like results.
    #[cold]
    fn see_writing(&self, bound: &mut Bound) -> Called<()> {
        if let Call::Once(binding) = &bound.call
            && !self.last_outputs_are(&bound.outputs, binding)?
        {
            return Err(Failure::new("it left an output in memory of its own"));
        }
        bound.seen_writing = true;
        Ok(())
    }

    /// A value of the library over the memory of a tensor.
    fn value_over(&self, tensor: &SharedTensor) -> Called<Owned<OrtValue>> {
        let dims: Vec<i64> =
            tensor.shape().dims().iter().map(|&dim| dim.cast_signed() as i64).collect();
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

    fn io_binding(
        &self,
        inputs: &Side,
        input_values: &[Owned<OrtValue>],
        outputs: &Side,
        output_values: &[Owned<OrtValue>],
    ) -> Called<Owned<OrtIoBinding>> {
        let api = self.api;
        // SAFETY: the session and the values outlive the binding, and names are copied.
        unsafe {
            let binding = Owned::new(api, api.ReleaseIoBinding, |out| {
                (api.CreateIoBinding)(self.session.as_ptr(), out)
            })?;
            for ((name, _), value) in inputs.iter().zip(input_values) {
                let bind = api.BindInput;
                check(api, bind(binding.as_ptr(), name.as_ptr(), value.as_ptr()))?;
            }
            for ((name, _), value) in outputs.iter().zip(output_values) {
                let bind = api.BindOutput;
                check(api, bind(binding.as_ptr(), name.as_ptr(), value.as_ptr()))?;
            }
            Ok(binding)
        }
    }

    /// Whether the outputs of the last run are in the memory of these tensors.
    fn last_outputs_are(
        &self,
        tensors: &[SharedTensor],
        binding: &Owned<OrtIoBinding>,
    ) -> Called<bool> {
        let api = self.api;
        let mut allocator = std::ptr::null_mut();
        let mut values = std::ptr::null_mut();
        let mut count = 0;
        // SAFETY: the library writes an array of `count` values. Both the values and the array are
        // ours to release.
        unsafe {
            check(api, (api.GetAllocatorWithDefaultOptions)(&raw mut allocator))?;
            let get = api.GetBoundOutputValues;
            check(api, get(binding.as_ptr(), allocator, &raw mut values, &raw mut count))?;
            let mut same = Ok(count == tensors.len());
            for index in 0..count {
                let value = *values.add(index);
                let mut address = std::ptr::null_mut();
                let got = check(api, (api.GetTensorMutableData)(value, &raw mut address));
                (api.ReleaseValue)(value);
                let ours = tensors.get(index).map(|tensor| tensor.as_mut_ptr().cast());
                same = same.and_then(|same| got.map(|()| same && ours == Some(address)));
            }
            check(api, (api.AllocatorFree)(allocator, values.cast()))?;
            same
        }
    }
}

impl Arguments {
    /// Arguments that have their names, and no values yet.
    fn named(inputs: &Side, outputs: &Side) -> Self {
        let names: Vec<CString> =
            inputs.iter().chain(outputs).map(|(name, _)| CString::clone(name)).collect();
        let mut input_names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let output_names = input_names.split_off(inputs.len());
        let (inputs, outputs) = (Vec::new(), Vec::new());
        Self { input_names, inputs, output_names, outputs, _names: names }
    }
}
