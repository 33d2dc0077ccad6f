//! Runs a model once on given values.

use std::sync::Arc;

use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{Engine, ModelBytes, ModelFormat, ModelSource, Port, Ports, SessionOptions};
use veracity_onnx::Model;
use veracity_tensor::SharedTensor;

/// Runs a model and gives its outputs, which are `like` the references.
pub(crate) fn run_once(
    engine: &dyn Engine,
    model: &Model,
    given: &dyn Fn(&str) -> Option<SharedTensor>,
    wanted: &[(&str, &SharedTensor)],
    options: &SessionOptions,
) -> Result<Vec<SharedTensor>> {
    let mut inputs = Vec::new();
    let mut input_ports = Vec::new();
    for info in model.inputs() {
        let value = given(&info.name).ok_or_else(|| missing(&info.name))?;
        input_ports.push(port(&info.name, &value));
        inputs.push(value);
    }
    let outputs: Vec<SharedTensor> = wanted
        .iter()
        .map(|(_, like)| SharedTensor::zeros(like.dtype(), like.shape().clone()))
        .collect();
    let output_ports = wanted.iter().map(|(name, like)| port(name, like)).collect();
    let source = ModelSource {
        format: ModelFormat::Onnx,
        bytes: ModelBytes::Memory(Arc::from(model.to_bytes()?)),
    };
    let ports = Ports { inputs: input_ports, outputs: output_ports };
    let mut session = engine.load(&source, &ports, options)?;
    let binding = session.bind(&inputs, &outputs)?;
    session.run(binding)?;
    Ok(outputs)
}

fn port(name: &str, value: &SharedTensor) -> Port {
    Port::new(name, value.dtype(), value.shape().clone())
}

fn missing(name: &str) -> Diagnostic {
    let message = format!("there is no value for the input {name:?} of the model");
    Diagnostic::error(codes::INPUT_MISSING, message)
}
