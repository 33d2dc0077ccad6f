//! A loaded model, seen through the declared ports.
#![expect(unsafe_code, reason = "a repeated input is copied between buffers that others alias")]

#[cfg(test)]
mod tests;

use std::ffi::CString;

use veracity_diag::{Code, Diagnostic, Place, Refusal, Result, codes};
use veracity_engine::Model;
use veracity_tensor::SharedTensor;

use crate::api::{Called, Failure, FailureKind};
use crate::bound::{Bound, Passing, Runner};
use crate::check::PortNames;

/// A loaded model.
pub(crate) struct OrtModel {
    // Dropped before the session that they were made for.
    bindings: Vec<(Bound, Vec<Copied>)>,
    runner: Runner,
    input_names: Vec<CString>,
    outputs: Vec<Output>,
    passing: Passing,
    device: String,
    place: Place,
}

// SAFETY: the library lets a session be used from any thread, and the pointers lead to memory that
// this value owns or keeps alive.
unsafe impl Send for OrtModel {}

/// Where a declared output comes from.
enum Output {
    /// The library computes it.
    Computed(CString),
    /// It is the input of that position. The library would hand out the input's own memory and
    /// leave the bound one as it was, so it is not asked.
    Repeated(usize),
}

/// Memory of an input, and of the output that repeats it.
struct Copied {
    from: SharedTensor,
    to: SharedTensor,
}

impl OrtModel {
    /// A model from a session of the library. The names are those of the declared ports.
    pub(crate) fn new(
        runner: Runner,
        (input_names, output_names): PortNames,
        passing: Passing,
        device: String,
        place: Place,
    ) -> Self {
        let outputs = output_names
            .into_iter()
            .map(|name| match input_names.iter().position(|input| *input == name) {
                Some(input) => Output::Repeated(input),
                None => Output::Computed(name),
            })
            .collect();
        Self { bindings: Vec::new(), runner, input_names, outputs, passing, device, place }
    }

    fn make_bound(
        &self,
        inputs: &[SharedTensor],
        outputs: &[SharedTensor],
    ) -> Called<(Bound, Vec<Copied>)> {
        let fed: Vec<_> = self.input_names.iter().zip(inputs).collect();
        let mut computed = Vec::new();
        let mut copies = Vec::new();
        for (output, tensor) in self.outputs.iter().zip(outputs) {
            match output {
                Output::Computed(name) => computed.push((name, tensor)),
                Output::Repeated(input) => {
                    copies.push(Copied { from: inputs[*input].clone(), to: tensor.clone() });
                }
            }
        }
        Ok((self.runner.bind(&fed, &computed, self.passing)?, copies))
    }

    fn refusal(&self, code: Code, message: String) -> Refusal {
        Diagnostic::error(code, message).at(self.place.clone()).into()
    }

    #[cold]
    fn run_refusal(&self, failure: &Failure) -> Refusal {
        let code = match failure.kind {
            FailureKind::OtherShape => codes::ENGINE_OUTPUT_MISMATCH,
            FailureKind::Unsupported | FailureKind::Other => codes::ENGINE_RUN_FAILED,
        };
        self.refusal(code, format!("ONNX Runtime could not run the model: {}", failure.message))
    }
}

impl Model for OrtModel {
    fn bind(&mut self, inputs: &[SharedTensor], outputs: &[SharedTensor]) -> Result<()> {
        let bound = self.make_bound(inputs, outputs).map_err(|failure| {
            let message = format!("ONNX Runtime refused the buffers: {}", failure.message);
            self.refusal(codes::ENGINE_BIND_MISMATCH, message)
        })?;
        self.bindings.push(bound);
        Ok(())
    }

    unsafe fn run(&mut self, binding: usize) -> Result<()> {
        let (bound, copies) = &mut self.bindings[binding];
        if let Err(failure) = self.runner.run(bound) {
            return Err(self.run_refusal(&failure));
        }
        for Copied { from, to } in copies {
            // SAFETY: both have the dtype and the shape of the port, so the same length; the session
            // saw to it that they are two buffers, and the caller lets nobody else touch them.
            unsafe {
                std::ptr::copy_nonoverlapping(from.as_mut_ptr(), to.as_mut_ptr(), to.byte_len());
            }
        }
        Ok(())
    }

    fn device(&self) -> String {
        self.device.clone()
    }
}
