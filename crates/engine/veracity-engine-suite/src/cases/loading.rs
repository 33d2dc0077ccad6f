//! Models that must not be loaded.

use std::sync::Arc;

use veracity_diag::{Code, codes};
use veracity_engine::{Engine, ModelBytes, ModelFormat, ModelSource, Port, Ports};
use veracity_onnx::{Dim, GraphBuilder, Model, Node};
use veracity_tensor::DType;

use crate::Case;
use crate::trial::{OPSET, load, options, source, told};

pub(super) const CASES: &[Case] = &[
    Case { id: "load_refuses_a_missing_input", run: missing_input },
    Case { id: "load_refuses_a_missing_output", run: missing_output },
    Case { id: "load_refuses_an_input_that_nobody_feeds", run: undeclared_input },
    Case { id: "load_refuses_a_wrong_dtype", run: wrong_dtype },
    Case { id: "load_refuses_a_wrong_shape", run: wrong_shape },
    Case { id: "load_refuses_garbage", run: garbage },
    Case { id: "load_refuses_a_model_cut_short", run: cut_short },
    Case { id: "load_refuses_an_unknown_operator", run: unknown_operator },
    Case { id: "load_refuses_a_missing_file", run: missing_file },
    Case { id: "load_refuses_a_format_it_does_not_support", run: wrong_format },
];

/// `y = -x` on two axes, the first of any size.
fn model() -> Result<Model, String> {
    let dims = || [Dim::from("batch"), Dim::from(2)];
    GraphBuilder::new("case", OPSET)
        .input("x", DType::F32, dims())
        .node(Node::new("Neg", ["x"], ["y"]))
        .output("y", DType::F32, dims())
        .finish()
        .map_err(told("make"))
}

/// Ports that fit [`model`].
fn good_ports() -> Ports {
    Ports {
        inputs: vec![Port::new("x", DType::F32, [3, 2])],
        outputs: vec![Port::new("y", DType::F32, [3, 2])],
    }
}

/// The engine must refuse, first of all for one of these reasons.
fn must_refuse(
    engine: &dyn Engine,
    source: &ModelSource,
    ports: &Ports,
    reasons: &[Code],
) -> Result<(), String> {
    match engine.load(source, ports, &options()) {
        Ok(_) => Err("the model was loaded".to_owned()),
        Err(refusal) if reasons.contains(&refusal.first_error().code) => Ok(()),
        Err(refusal) => Err(format!("refused for another reason: {refusal}")),
    }
}

/// The engine takes [`model`] with good ports, and refuses it with these.
fn must_refuse_ports(
    engine: &dyn Engine,
    change: impl Fn(&mut Ports),
    reason: Code,
) -> Result<(), String> {
    load(engine, &model()?, &good_ports())?;
    let mut ports = good_ports();
    change(&mut ports);
    must_refuse(engine, &source(&model()?)?, &ports, &[reason])
}

fn missing_input(engine: &dyn Engine) -> Result<(), String> {
    let extra = || Port::new("extra", DType::F32, [3, 2]);
    must_refuse_ports(engine, |ports| ports.inputs.push(extra()), codes::ONNX_PORT_MISSING)
}

fn missing_output(engine: &dyn Engine) -> Result<(), String> {
    let rename = |ports: &mut Ports| ports.outputs[0].name = "Y".into();
    must_refuse_ports(engine, rename, codes::ONNX_PORT_MISSING)
}

fn undeclared_input(engine: &dyn Engine) -> Result<(), String> {
    must_refuse_ports(engine, |ports| ports.inputs.clear(), codes::ONNX_INPUT_UNDECLARED)
}

fn wrong_dtype(engine: &dyn Engine) -> Result<(), String> {
    let reason = codes::ONNX_PORT_MISMATCH;
    must_refuse_ports(engine, |ports| ports.inputs[0].dtype = DType::F64, reason)?;
    must_refuse_ports(engine, |ports| ports.outputs[0].dtype = DType::I32, reason)
}

fn wrong_shape(engine: &dyn Engine) -> Result<(), String> {
    let reason = codes::ONNX_PORT_MISMATCH;
    must_refuse_ports(engine, |ports| ports.inputs[0].shape = [3, 4].into(), reason)?;
    must_refuse_ports(engine, |ports| ports.inputs[0].shape = [6].into(), reason)?;
    must_refuse_ports(engine, |ports| ports.outputs[0].shape = [3, 2, 1].into(), reason)
}

/// What an engine may say to a file that is no model.
const NO_MODEL: &[Code] = &[codes::ENGINE_LOAD_FAILED, codes::ONNX_MALFORMED];

fn must_refuse_bytes(engine: &dyn Engine, bytes: &[u8]) -> Result<(), String> {
    let bytes: Arc<[u8]> = bytes.into();
    let source = ModelSource { format: ModelFormat::Onnx, bytes: ModelBytes::Memory(bytes) };
    must_refuse(engine, &source, &good_ports(), NO_MODEL)
}

fn garbage(engine: &dyn Engine) -> Result<(), String> {
    for bytes in [&b"this is not a model"[..], &[], &[0xff; 100], &[0; 100]] {
        must_refuse_bytes(engine, bytes)?;
    }
    Ok(())
}

fn cut_short(engine: &dyn Engine) -> Result<(), String> {
    let whole = model()?.to_bytes().map_err(told("write"))?;
    must_refuse_bytes(engine, &whole[..whole.len() / 2])?;
    must_refuse_bytes(engine, &whole[..whole.len() - 1])
}

fn unknown_operator(engine: &dyn Engine) -> Result<(), String> {
    let model = GraphBuilder::new("case", OPSET)
        .input("x", DType::F32, [3, 2])
        .node(Node::new("NoSuchOperator", ["x"], ["y"]))
        .output("y", DType::F32, [3, 2])
        .finish()
        .map_err(told("make"))?;
    let reasons = [codes::ENGINE_LOAD_FAILED, codes::ENGINE_UNSUPPORTED];
    must_refuse(engine, &source(&model)?, &good_ports(), &reasons)
}

fn missing_file(engine: &dyn Engine) -> Result<(), String> {
    let bytes = ModelBytes::File("no/such/folder/model.onnx".into());
    let source = ModelSource { format: ModelFormat::Onnx, bytes };
    let reasons = [codes::FILE_NOT_FOUND, codes::ENGINE_LOAD_FAILED];
    must_refuse(engine, &source, &good_ports(), &reasons)
}

fn wrong_format(engine: &dyn Engine) -> Result<(), String> {
    for format in [ModelFormat::Onnx, ModelFormat::TorchScript, ModelFormat::Pt2] {
        if !engine.supports(format) {
            let source = ModelSource { format, ..source(&model()?)? };
            must_refuse(engine, &source, &good_ports(), &[codes::ENGINE_UNSUPPORTED_FORMAT])?;
        }
    }
    Ok(())
}
