//! Outputs of all steps, stacked along a leading axis.

use std::path::Path;

use veracity::tensor::file::{self, TensorMap};
use veracity::tensor::{Shape, Tensor};
use veracity::{Bundle, Diagnostic, OutputId, Place, PlannedPort, Result, Runner, codes};

use crate::commands::target;

/// Most memory that the outputs of a run may take. They are written in one piece at the end.
const MAX_BYTES: u64 = 4 << 30;

/// Outputs of all steps, stacked along a leading axis.
pub(super) struct Outputs {
    stacks: Vec<Stack>,
}

struct Stack {
    key: String,
    step_bytes: usize,
    tensor: Tensor,
}

/// Refuses a file that could not be written at the end, and one that must not be overwritten.
pub(super) fn check_path(path: &Path, bundle: &Bundle, inputs: Option<&Path>) -> Result<()> {
    target::check(path, bundle, inputs)?;
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    if extension != "npz" && extension != "safetensors" {
        let message = "outputs cannot be written to a file of this name";
        return Err(Diagnostic::error(codes::TENSOR_FILE_KIND, message)
            .at(Place::file(path.display().to_string()))
            .hint("name it `.npz` or `.safetensors`")
            .into());
    }
    Ok(())
}

impl Outputs {
    /// Memory for the outputs of `steps` steps; refused when that is too much.
    pub(super) fn new(runner: &Runner, steps: u64) -> Result<Self> {
        let step_bytes: u64 = runner.outputs().map(|port| bytes_of(port) as u64).sum();
        let stacks = (step_bytes.saturating_mul(steps) <= MAX_BYTES)
            .then(|| runner.outputs().map(|port| Stack::new(port, steps)).collect())
            .flatten();
        match stacks {
            Some(stacks) => Ok(Self { stacks }),
            None => Err(too_large(step_bytes, steps).into()),
        }
    }

    /// Keeps what the last step gave.
    pub(super) fn keep(&mut self, step: u64, runner: &Runner) -> Result<()> {
        for (index, stack) in self.stacks.iter_mut().enumerate() {
            let bytes = runner.output_bytes(OutputId(index))?;
            // `new` made room for every step, so the position fits a `usize`.
            let start = usize::try_from(step).unwrap_or(usize::MAX) * stack.step_bytes;
            stack.tensor.bytes_mut()[start..start + stack.step_bytes].copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Writes all of it.
    pub(super) fn write(self, path: &Path) -> Result<()> {
        let tensors: TensorMap =
            self.stacks.into_iter().map(|stack| (stack.key, stack.tensor)).collect();
        file::write(path, &tensors)
    }
}

impl Stack {
    fn new(port: &PlannedPort, steps: u64) -> Option<Self> {
        let mut dims = vec![usize::try_from(steps).ok()?];
        dims.extend_from_slice(port.shape.dims());
        Some(Self {
            key: port.key.to_string(),
            step_bytes: bytes_of(port),
            tensor: Tensor::zeros(port.dtype, Shape::new(dims)?),
        })
    }
}

fn bytes_of(port: &PlannedPort) -> usize {
    port.shape.elements() * port.dtype.size()
}

fn too_large(step_bytes: u64, steps: u64) -> Diagnostic {
    let message = format!(
        "the outputs of {steps} steps, {step_bytes} bytes each, take more memory than the {} GiB allowed",
        MAX_BYTES >> 30
    );
    let fitting = MAX_BYTES / step_bytes.max(1);
    let refused = Diagnostic::error(codes::TENSOR_TOO_LARGE, message);
    if fitting == 0 {
        refused.hint("run it without `--outputs`")
    } else {
        refused.hint(format!("run at most {fitting} steps (`--steps`), or without `--outputs`"))
    }
}
