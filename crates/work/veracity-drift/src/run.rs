//! Runs a model once on given values.
#![expect(unsafe_code, reason = "reads and writes memory that a session shares, between runs")]

use std::collections::BTreeMap;
use std::sync::Arc;

use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{Engine, ModelBytes, ModelFormat, ModelSource, Port, Ports, SessionOptions};
use veracity_onnx::Model;
use veracity_tensor::{SharedTensor, Tensor, TensorView};

/// What a model is to give: as the reference has it.
pub(crate) type Wanted<'t> = [(&'t str, &'t Tensor)];

/// Runs a model and hands each output, in the order of `wanted`, to `look`.
pub(crate) fn run_once(
    engine: &dyn Engine,
    model: &Model,
    given: &dyn Fn(&str) -> Option<Tensor>,
    wanted: &Wanted<'_>,
    options: &SessionOptions,
    look: &mut dyn FnMut(usize, &TensorView<'_>) -> Result<()>,
) -> Result<()> {
    let mut inputs = Vec::new();
    let mut input_ports = Vec::new();
    for info in model.inputs() {
        let value = given(&info.name).ok_or_else(|| missing(&info.name))?;
        let memory = SharedTensor::zeros(value.dtype(), value.shape().clone());
        // SAFETY: nobody else has this memory yet.
        unsafe { memory.bytes_mut().copy_from_slice(value.bytes()) };
        input_ports.push(Port::new(info.name, value.dtype(), value.shape().clone()));
        inputs.push(memory);
    }
    let outputs: Vec<SharedTensor> = wanted
        .iter()
        .map(|(_, like)| SharedTensor::zeros(like.dtype(), like.shape().clone()))
        .collect();
    let output_ports = wanted
        .iter()
        .map(|(name, like)| Port::new(*name, like.dtype(), like.shape().clone()))
        .collect();
    let source = ModelSource {
        format: ModelFormat::Onnx,
        bytes: ModelBytes::Memory(Arc::from(model.to_bytes()?)),
    };
    let ports = Ports { inputs: input_ports, outputs: output_ports };
    let mut session = engine.load(&source, &ports, options)?;
    let binding = session.bind(&inputs, &outputs)?;
    session.run(binding)?;
    for (index, memory) in outputs.iter().enumerate() {
        // SAFETY: the session does not run any more.
        let bytes = unsafe { memory.bytes() };
        look(index, &TensorView::new(memory.dtype(), memory.shape(), bytes)?)?;
    }
    Ok(())
}

/// Values by name, for models whose inputs they are.
pub(crate) fn by_name(values: &BTreeMap<String, Tensor>) -> impl Fn(&str) -> Option<Tensor> {
    |name| values.get(name).cloned()
}

fn missing(name: &str) -> Diagnostic {
    let message = format!("there is no value for the input {name:?} of the model");
    Diagnostic::error(codes::INPUT_MISSING, message)
}
