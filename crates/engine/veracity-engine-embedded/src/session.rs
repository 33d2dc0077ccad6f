//! A loaded model, seen through the declared ports.
#![expect(unsafe_code, reason = "elements move between tract and buffers that others alias")]

use std::sync::Arc;

use tract_onnx::prelude::{DatumType, TValue, TVec, Tensor, TypedSimplePlan};
use tract_onnx::tract_core::model::TypedSimpleState;
use veracity_diag::{Code, Diagnostic, Place, Refusal, Result, codes};
use veracity_engine::{Model, Port, Ports, Session};
use veracity_tensor::{DType, SharedTensor};

use crate::dtype::{dtype_from_tract, tract_from_dtype};
use crate::quiet;

/// A loaded model.
pub(crate) struct EmbeddedModel {
    plan: Arc<TypedSimplePlan>,
    /// What a run works in. `None` before the first run, after one that failed, and always when
    /// the model has operators that remember (see [`EmbeddedModel::run_plan`]).
    state: Option<TypedSimpleState>,
    ports: Ports,
    bindings: Vec<Bound>,
    place: Place,
}

struct Bound {
    inputs: Vec<SharedTensor>,
    outputs: Vec<SharedTensor>,
}

impl EmbeddedModel {
    /// A session. Its ports are those of the plan.
    pub(crate) fn new(plan: Arc<TypedSimplePlan>, ports: Ports) -> Result<Self> {
        let model =
            Self { plan, state: None, ports, bindings: Vec::new(), place: Place::default() };
        // A model that no run could start is refused now.
        let started = quiet::call(|| model.plan.spawn());
        started.map_err(|problem| model.refusal(codes::ENGINE_LOAD_FAILED, problem))?;
        Ok(model)
    }

    /// Says where the model came from.
    pub(crate) fn at(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    fn run_plan(&mut self, inputs: TVec<TValue>) -> std::result::Result<TVec<TValue>, String> {
        let mut state = match self.state.take() {
            Some(state) => state,
            None => quiet::call(|| self.plan.spawn())?,
        };
        let outputs = quiet::call(|| state.run(inputs))?;
        // A recurrent operator keeps its last hidden state for the next run and then ignores the
        // initial one that it is given. State is the pipeline's here, never the engine's, so what
        // has a memory starts anew each time.
        if state.op_states.iter().all(Option::is_none) {
            self.state = Some(state);
        }
        Ok(outputs)
    }

    fn refusal(&self, code: Code, message: String) -> Refusal {
        Diagnostic::error(code, message).at(self.place.clone()).into()
    }

    fn port_refusal(&self, code: Code, port: &Port, message: String) -> Diagnostic {
        let place = Place { port: Some(port.name.clone()), ..self.place.clone() };
        Diagnostic::error(code, message).at(place)
    }

    fn read_inputs(&self, bound: &Bound) -> Result<TVec<TValue>> {
        let inputs = self.ports.inputs.iter().zip(&bound.inputs);
        inputs.map(|(port, tensor)| self.read_input(port, tensor)).collect()
    }

    fn read_input(&self, port: &Port, tensor: &SharedTensor) -> Result<TValue> {
        // SAFETY: the caller of `run` lets nobody else touch the bound memory.
        let bytes = unsafe { tensor.bytes() };
        if let Some(problem) = unusable_elements(port.dtype, bytes) {
            let message = format!("input {:?} holds {problem}", port.name);
            return Err(self
                .port_refusal(codes::ENGINE_RUN_FAILED, port, message)
                .hint("the embedded engine may lose a NaN; use `--engine ort` for such inputs")
                .into());
        }
        let datum = tract_from_dtype(port.dtype).ok_or_else(|| {
            self.refusal(codes::ENGINE_UNSUPPORTED, format!("{} is not supported", port.dtype))
        })?;
        // SAFETY: every pattern of bits is an element of a number type, and of booleans only 0 and
        // 1 have been let through; tract compares the length with the shape.
        let made = unsafe { Tensor::from_raw_dt(datum, port.shape.dims(), bytes) };
        let tensor =
            made.map_err(|error| self.refusal(codes::ENGINE_RUN_FAILED, format!("{error:#}")))?;
        Ok(tensor.into())
    }

    fn write_outputs(&self, bound: &Bound, values: &[TValue]) -> Result<()> {
        if values.len() != bound.outputs.len() {
            let (declared, returned) = (bound.outputs.len(), values.len());
            let message = format!("the model returned {returned} values, {declared} are declared");
            return Err(self.refusal(codes::ENGINE_OUTPUT_MISMATCH, message));
        }
        for ((port, tensor), value) in self.ports.outputs.iter().zip(&bound.outputs).zip(values) {
            self.write_output(port, tensor, value)?;
        }
        Ok(())
    }

    fn write_output(&self, port: &Port, target: &SharedTensor, value: &Tensor) -> Result<()> {
        let dtype = dtype_from_tract(value.datum_type());
        if dtype != Some(port.dtype) || value.shape() != port.shape.dims() {
            let message = format!(
                "output {:?} is {:?} {:?}, declared is {} {}",
                port.name,
                value.datum_type(),
                value.shape(),
                port.dtype,
                port.shape
            );
            return Err(self.port_refusal(codes::ENGINE_OUTPUT_MISMATCH, port, message).into());
        }
        let sizes =
            match value.datum_type() {
                DatumType::TDim => quiet::call(|| Ok(value.cast_to::<i64>()?.into_owned()))
                    .map(Some)
                    .map_err(|problem| self.refusal(codes::ENGINE_RUN_FAILED, problem))?,
                _ => None,
            };
        let bytes = sizes.as_ref().unwrap_or(value).as_bytes();
        // SAFETY: the caller of `run` lets nobody else touch the bound memory, and `bind` saw to it
        // that no other output and no input is there.
        let target = unsafe { target.bytes_mut() };
        if target.len() != bytes.len() {
            let message = format!("output {:?} has {} bytes", port.name, bytes.len());
            return Err(self.port_refusal(codes::ENGINE_OUTPUT_MISMATCH, port, message).into());
        }
        target.copy_from_slice(bytes);
        Ok(())
    }
}

impl Model for EmbeddedModel {
    fn bind(&mut self, inputs: &[SharedTensor], outputs: &[SharedTensor]) -> Result<()> {
        self.bindings.push(Bound { inputs: inputs.to_vec(), outputs: outputs.to_vec() });
        Ok(())
    }

    unsafe fn run(&mut self, binding: usize) -> Result<()> {
        let inputs = self.read_inputs(&self.bindings[binding])?;
        let values = self.run_plan(inputs).map_err(|problem| {
            let message = format!("the model could not be run: {problem}");
            self.refusal(codes::ENGINE_RUN_FAILED, message)
        })?;
        self.write_outputs(&self.bindings[binding], &values)
    }

    fn device(&self) -> String {
        "cpu".to_owned()
    }
}

/// Runs a model on copies of these values, and gives copies of what it gave.
pub(crate) fn run_once(
    model: EmbeddedModel,
    ports: Ports,
    inputs: &[(&str, &veracity_tensor::Tensor)],
) -> Result<Vec<Option<veracity_tensor::Tensor>>> {
    let memory = |port: &Port| SharedTensor::zeros(port.dtype, port.shape.clone());
    let outputs: Vec<SharedTensor> = ports.outputs.iter().map(memory).collect();
    let inputs: Vec<SharedTensor> = inputs
        .iter()
        .map(|(_, value)| {
            let shared = SharedTensor::zeros(value.dtype(), value.shape().clone());
            // SAFETY: nobody else has this memory yet.
            unsafe { shared.bytes_mut() }.copy_from_slice(value.bytes());
            shared
        })
        .collect();
    let mut session = Session::new(ports, model);
    let binding = session.bind(&inputs, &outputs)?;
    session.run(binding)?;
    // SAFETY: the only session that has this memory has run.
    Ok(outputs.iter().map(|output| Some(unsafe { output.to_tensor() })).collect())
}

/// What keeps elements from being handed to tract, if anything does.
fn unusable_elements(dtype: DType, bytes: &[u8]) -> Option<&'static str> {
    // A float is not finite when all bits of its exponent are set.
    let not_finite = match dtype {
        DType::F16 => any(bytes, |bits| u16::from_le_bytes(bits) & 0x7C00 == 0x7C00),
        DType::BF16 => any(bytes, |bits| u16::from_le_bytes(bits) & 0x7F80 == 0x7F80),
        DType::F32 => any(bytes, |bits| !f32::from_le_bytes(bits).is_finite()),
        DType::F64 => any(bytes, |bits| !f64::from_le_bytes(bits).is_finite()),
        DType::Bool => {
            return bytes.iter().any(|&byte| byte > 1).then_some("bytes that are no booleans");
        }
        _ => false,
    };
    not_finite.then_some("NaN or infinity")
}

fn any<const SIZE: usize>(bytes: &[u8], matches: impl Fn([u8; SIZE]) -> bool) -> bool {
    bytes.as_chunks().0.iter().any(|&element| matches(element))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_are_not_finite_are_found_in_every_float_dtype() {
        let finite = |dtype, bytes: &[u8]| unusable_elements(dtype, bytes).is_none();
        for (dtype, good, bad) in [
            (DType::F32, f32::MAX.to_le_bytes().to_vec(), f32::NAN.to_le_bytes().to_vec()),
            (DType::F32, 0f32.to_le_bytes().to_vec(), f32::NEG_INFINITY.to_le_bytes().to_vec()),
            (DType::F64, f64::MIN.to_le_bytes().to_vec(), f64::INFINITY.to_le_bytes().to_vec()),
            (DType::F16, 0x7BFFu16.to_le_bytes().to_vec(), 0x7C00u16.to_le_bytes().to_vec()),
            (DType::F16, 0xFBFFu16.to_le_bytes().to_vec(), 0xFE01u16.to_le_bytes().to_vec()),
            (DType::BF16, 0x7F7Fu16.to_le_bytes().to_vec(), 0x7F80u16.to_le_bytes().to_vec()),
            (DType::Bool, vec![0, 1], vec![0, 2]),
        ] {
            assert!(finite(dtype, &good), "{dtype} {good:?}");
            let second = [good.clone(), bad.clone()].concat();
            assert!(!finite(dtype, &second), "{dtype} {bad:?}");
        }
        assert!(finite(DType::U8, &[255]));
        assert!(finite(DType::F32, &[]));
    }
}
