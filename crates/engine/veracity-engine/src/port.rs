//! What a bundle declares about a model's inputs and outputs.

use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};
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
    /// Refuses memory that does not fit the ports in count, dtype or shape, and memory of an
    /// output that is bound a second time: an engine would read what it has already overwritten.
    pub fn check_binding(&self, inputs: &[SharedTensor], outputs: &[SharedTensor]) -> Result<()> {
        check_side("inputs", &self.inputs, inputs)?;
        check_side("outputs", &self.outputs, outputs)?;
        match first_aliased(inputs, outputs) {
            Some(index) => Err(self.aliased(index)),
            None => Ok(()),
        }
    }

    #[cold]
    fn aliased(&self, output: usize) -> Refusal {
        let name = &self.outputs[output].name;
        let message = format!("the buffer of output {name:?} is bound a second time");
        let place = Place { port: Some(name.clone()), ..Place::default() };
        Diagnostic::error(codes::ENGINE_BIND_MISMATCH, message).at(place).into()
    }
}

/// The first output whose memory is also that of an input or of an earlier output. Buffers without
/// bytes cannot be overwritten.
fn first_aliased(inputs: &[SharedTensor], outputs: &[SharedTensor]) -> Option<usize> {
    outputs.iter().enumerate().position(|(index, output)| {
        let mut others = inputs.iter().chain(&outputs[..index]);
        output.byte_len() > 0 && others.any(|other| other.as_mut_ptr() == output.as_mut_ptr())
    })
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
