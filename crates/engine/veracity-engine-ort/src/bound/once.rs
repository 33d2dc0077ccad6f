//! Inputs and outputs that are handed over once.
#![expect(unsafe_code, reason = "the library works on raw memory")]

use ort_sys::{OrtIoBinding, OrtValue};
use veracity_tensor::SharedTensor;

use super::{Runner, Side, tensors_of};
use crate::api::{Called, Failure, Owned, check};

/// Memory that the library reads and writes by itself when it runs.
pub(crate) struct Once {
    // Fields are dropped in this order: first what leads to the values, then the values, then the
    // memory behind them.
    binding: Owned<OrtIoBinding>,
    _values: [Vec<Owned<OrtValue>>; 2],
    outputs: Vec<SharedTensor>,
    _inputs: Vec<SharedTensor>,
    /// Whether a run has shown that the library writes to our memory.
    seen_writing: bool,
}

impl Once {
    pub(super) fn new(runner: &Runner, inputs: &Side, outputs: &Side) -> Called<Self> {
        let api = runner.api;
        let values = [runner.values_over(inputs)?, runner.values_over(outputs)?];
        // SAFETY: the session and the values outlive the binding, and names are copied.
        let binding = unsafe {
            let binding = Owned::new(api, api.ReleaseIoBinding, |out| {
                (api.CreateIoBinding)(runner.session.as_ptr(), out)
            })?;
            for ((name, _), value) in inputs.iter().zip(&values[0]) {
                check(api, (api.BindInput)(binding.as_ptr(), name.as_ptr(), value.as_ptr()))?;
            }
            for ((name, _), value) in outputs.iter().zip(&values[1]) {
                check(api, (api.BindOutput)(binding.as_ptr(), name.as_ptr(), value.as_ptr()))?;
            }
            binding
        };
        Ok(Self {
            binding,
            _values: values,
            outputs: tensors_of(outputs),
            _inputs: tensors_of(inputs),
            seen_writing: false,
        })
    }

    pub(super) fn run(&mut self, runner: &Runner) -> Called<()> {
        // The library refuses to run for nothing.
        if self.outputs.is_empty() {
            return Ok(());
        }
        let (session, options) = (runner.session.as_ptr(), runner.run_options.as_ptr());
        // SAFETY: session, options and binding are live, and so is the memory that was bound; the
        // caller lets nobody else touch it.
        let status =
            unsafe { (runner.api.RunWithBinding)(session, options, self.binding.as_ptr()) };
        check(runner.api, status)?;
        if self.seen_writing { Ok(()) } else { self.see_writing(runner) }
    }

    /// Makes sure, after the first run, that the outputs went into our memory. The library may put
    /// an output elsewhere without a word, and stale outputs would look like results.
    #[cold]
    fn see_writing(&mut self, runner: &Runner) -> Called<()> {
        if !self.last_outputs_are_ours(runner)? {
            return Err(Failure::other("it left an output in memory of its own"));
        }
        self.seen_writing = true;
        Ok(())
    }

    fn last_outputs_are_ours(&self, runner: &Runner) -> Called<bool> {
        let api = runner.api;
        let mut allocator = std::ptr::null_mut();
        let mut values = std::ptr::null_mut();
        let mut count = 0;
        // SAFETY: the library writes an array of `count` values. Both the values and the array are
        // ours to release.
        unsafe {
            check(api, (api.GetAllocatorWithDefaultOptions)(&raw mut allocator))?;
            let get = api.GetBoundOutputValues;
            check(api, get(self.binding.as_ptr(), allocator, &raw mut values, &raw mut count))?;
            let mut same = Ok(count == self.outputs.len());
            for index in 0..count {
                let value = *values.add(index);
                let mut address = std::ptr::null_mut();
                let got = check(api, (api.GetTensorMutableData)(value, &raw mut address));
                (api.ReleaseValue)(value);
                let ours = self.outputs.get(index).map(|tensor| tensor.as_mut_ptr().cast());
                same = same.and_then(|same| got.map(|()| same && ours == Some(address)));
            }
            check(api, (api.AllocatorFree)(allocator, values.cast()))?;
            same
        }
    }
}
