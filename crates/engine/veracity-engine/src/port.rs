//! What a bundle declares about a model's inputs and outputs.

use veracity_diag::{Diagnostic, Result, codes};
use veracity_tensor::{DType, Shape, SharedTensor};

/// One declared input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name in the model and in the bundle.
    pub name: String,
    /// Type of the elements.
    pub dtype: DType,
    /// Sizes of the axes.
    pub shape: Shape,
}

/// Declared inputs and outputs, in the order of the model's arguments and results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// Inputs.
    pub inputs: Vec<Port>,
    /// Outputs.
    pub outputs: Vec<Port>,
}

impl Port {
    /// A port, for ports written in code.
    pub fn new(name: impl Into<String>, dtype: DType, shape: impl Into<Shape>) -> Self {
        Self { name: name.into(), dtype, shape: shape.into() }
    }
}

impl Ports {
    /// Refuses memory that does not fit the ports in count, dtype or shape.
    pub fn check_binding(&self, inputs: &[SharedTensor], outputs: &[SharedTensor]) -> Result<()> {
        check_side("inputs", &self.inputs, inputs)?;
        check_side("outputs", &self.outputs, outputs)
    }
}

fn check_side(side: &str, ports: &[Port], tensors: &[SharedTensor]) -> Result<()> {
    let mismatch = |message| Err(Diagnostic::error(codes::ENGINE_BIND_MISMATCH, message).into());
    if ports.len() != tensors.len() {
        return mismatch(format!(
            "the model has {} {side}, {} buffers were given",
            ports.len(),
            tensors.len()
        ));
    }
    for (port, tensor) in ports.iter().zip(tensors) {
        if port.dtype != tensor.dtype() || port.shape != *tensor.shape() {
            return mismatch(format!(
                "port {:?} is {} {}, its buffer is {} {}",
                port.name,
                port.dtype,
                port.shape,
                tensor.dtype(),
                tensor.shape()
            ));
        }
    }
    Ok(())
}
