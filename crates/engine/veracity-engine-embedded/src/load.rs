//! Makes a session of the bytes of a model.
//!
//! The file is read twice: by `veracity-onnx`, which bounds what bytes may do to memory and tells
//! the ports, and by tract, whose own view of the nodes is the one that the lint must judge.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tract_onnx::pb::ModelProto;
use tract_onnx::prelude::{
    Framework as _, InferenceFact, InferenceModelExt as _, IntoRunnable as _, OutletId,
    TractResult, TypedModel, TypedSimplePlan,
};
use veracity_diag::{Code, Diagnostic, Place, Refusal, Reporter, Result, codes};
use veracity_engine::{ModelBytes, OptimizationLevel, Port, Ports};
use veracity_onnx::{DeclaredPort, Model, check_ports};
use veracity_tensor::{DType, Shape};

use crate::dtype::{dtype_from_tract, tract_from_dtype};
use crate::session::EmbeddedModel;
use crate::{lint, quiet};

/// Loads a model and checks that it can be run, and run as declared.
pub(crate) fn load(
    bytes: &ModelBytes,
    ports: &Ports,
    optimization: OptimizationLevel,
) -> Result<EmbeddedModel> {
    let (model, bytes, folder) = read(bytes)?;
    check_declared(&model, ports)?;
    check_external(&model, folder)?;
    let proto = quiet::call(|| tract_onnx::onnx().proto_model_for_read(&mut &bytes[..]))
        .map_err(not_loaded)?;
    lint::check(&proto, ports, model.op_count())?;
    let plan = quiet::call(|| typed(&proto, folder, ports)).map_err(not_loaded)?;
    check_outputs(&plan, &ports.outputs)?;
    let plan = quiet::call(|| runnable(plan, optimization)).map_err(not_loaded)?;
    EmbeddedModel::new(plan, ports.clone())
}

/// Loads a model for outputs whose dtypes and shapes are to be found, and says what they are.
pub(crate) fn load_undeclared(
    bytes: &ModelBytes,
    inputs: Vec<Port>,
    outputs: &[&str],
    optimization: OptimizationLevel,
) -> Result<(EmbeddedModel, Ports)> {
    let (model, bytes, folder) = read(bytes)?;
    let mut ports = Ports { inputs, outputs: Vec::new() };
    check_declared(&model, &ports)?;
    check_external(&model, folder)?;
    let proto = quiet::call(|| tract_onnx::onnx().proto_model_for_read(&mut &bytes[..]))
        .map_err(not_loaded)?;
    lint::check(&proto, &ports, model.op_count())?;
    // Only the names matter to `typed`.
    let named = outputs.iter().map(|name| Port::new(*name, DType::Bool, Shape::scalar()));
    ports.outputs = named.collect();
    let plan = quiet::call(|| typed(&proto, folder, &ports)).map_err(not_loaded)?;
    ports.outputs = outputs
        .iter()
        .enumerate()
        .map(|(index, name)| found_port(&plan, index, name))
        .collect::<Result<_>>()?;
    let plan = quiet::call(|| runnable(plan, optimization)).map_err(not_loaded)?;
    Ok((EmbeddedModel::new(plan, ports.clone())?, ports))
}

/// What tract knows about an output before it runs.
fn found_port(model: &TypedModel, index: usize, name: &str) -> Result<Port> {
    let fact = quiet::call(|| model.output_fact(index).cloned()).map_err(not_loaded)?;
    let shape = fact.shape.as_concrete().and_then(Shape::new);
    if let (Some(dtype), Some(shape)) = (dtype_from_tract(fact.datum_type), shape) {
        return Ok(Port::new(name, dtype, shape));
    }
    let message = format!(
        "the value {name:?} is {:?} {:?}, which is not known before it runs",
        fact.datum_type, fact.shape
    );
    Err(refusal(codes::ENGINE_UNSUPPORTED, message))
}

/// The model, its bytes, and the folder of its external data if there can be one.
fn read(bytes: &ModelBytes) -> Result<(Model, Bytes, Option<&Path>)> {
    let (bytes, folder) = match bytes {
        ModelBytes::Memory(bytes) => (Bytes::from_owner(Arc::clone(bytes)), None),
        ModelBytes::File(path) => {
            let bytes = std::fs::read(path).map_err(|error| {
                let code = match error.kind() {
                    std::io::ErrorKind::NotFound => codes::FILE_NOT_FOUND,
                    _ => codes::FILE_UNREADABLE,
                };
                refusal(code, format!("the model file cannot be read: {error}"))
            })?;
            (Bytes::from(bytes), path.parent())
        }
    };
    // What is no model at all is refused by every engine with the same code.
    let model = Model::from_bytes(bytes.clone())
        .map_err(|problem| not_loaded(&problem.first_error().message))?;
    Ok((model, bytes, folder))
}

fn check_declared(model: &Model, ports: &Ports) -> Result<()> {
    let mut reporter = Reporter::new();
    for (side, ports) in [("input", &ports.inputs), ("output", &ports.outputs)] {
        for (index, port) in ports.iter().enumerate() {
            if ports[..index].iter().any(|earlier| earlier.name == port.name) {
                let message = format!("the {side} {:?} is declared twice", port.name);
                reporter.report(port_finding(codes::DUPLICATE_PORT, port, message));
            }
        }
    }
    reporter.absorb(check_ports(model, &as_declared(&ports.inputs), &as_declared(&ports.outputs)));
    reporter.finish().map(drop)
}

fn as_declared(ports: &[Port]) -> Vec<DeclaredPort<'_>> {
    ports.iter().map(|port| (&*port.name, port.dtype, &port.shape)).collect()
}

fn check_external(model: &Model, folder: Option<&Path>) -> Result<()> {
    if folder.is_none() && !model.external_data()?.is_empty() {
        let message = "weights lie in another file, but the model was given as bytes alone";
        return Err(refusal(codes::ONNX_EXTERNAL_DATA, message.to_owned()));
    }
    Ok(())
}

/// The model with inputs and outputs in the declared order and all inputs of the declared shape.
fn typed(proto: &ModelProto, folder: Option<&Path>, ports: &Ports) -> TractResult<TypedModel> {
    let folder = folder.and_then(Path::to_str);
    // Shapes that the file states for inner values may name sizes that are fixed here.
    let parsed = tract_onnx::onnx().with_ignore_value_info(true).parse(proto, folder)?;
    let outlets = |ports: &[Port]| -> TractResult<Vec<OutletId>> {
        let find = |port: &Port| parsed.outlets_by_name.get(&port.name).copied();
        let missing = || tract_onnx::prelude::TractError::msg("a declared port has no value");
        ports.iter().map(|port| find(port).ok_or_else(missing)).collect()
    };
    let (inputs, outputs) = (outlets(&ports.inputs)?, outlets(&ports.outputs)?);
    let mut model = parsed.model;
    model.set_input_outlets(&inputs)?;
    model.select_output_outlets(&outputs)?;
    for (port, outlet) in ports.inputs.iter().zip(inputs) {
        model.set_outlet_fact(outlet, fact_of(port))?;
    }
    model.into_typed()
}

fn fact_of(port: &Port) -> InferenceFact {
    let fact = InferenceFact::shape(port.shape.dims());
    match tract_from_dtype(port.dtype) {
        Some(datum) => fact.with_datum_type(datum),
        None => fact,
    }
}

/// `None` runs the graph as it was translated. `Basic` adds rewrites on the level of the graph:
/// folded constants, dropped no-ops; tract has nothing between that and the next level. `All` adds the choice of kernels and data layouts.
fn runnable(
    model: TypedModel,
    optimization: OptimizationLevel,
) -> TractResult<Arc<TypedSimplePlan>> {
    let rewritten = match optimization {
        OptimizationLevel::None => return model.into_runnable(),
        OptimizationLevel::Basic | OptimizationLevel::Extended => {
            model.clone().into_decluttered()?
        }
        OptimizationLevel::All => model.clone().into_optimized()?,
    };
    if is_torn(&rewritten)? { model.into_runnable() } else { rewritten.into_runnable() }
}

/// Whether rewriting took a node away that others still read: of some graphs in which two parts are
/// alike tract leaves a placeholder, which cannot be run.
fn is_torn(model: &TypedModel) -> TractResult<bool> {
    let order = model.eval_order()?;
    Ok(order.iter().any(|node| model.node(*node).op.name() == "Dummy"))
}

/// Refuses outputs that are known to have another dtype or shape than declared. A shape that only
/// a run can tell is checked by the run.
fn check_outputs(model: &TypedModel, ports: &[Port]) -> Result<()> {
    let mut reporter = Reporter::new();
    for (index, port) in ports.iter().enumerate() {
        let fact = quiet::call(|| model.output_fact(index).cloned()).map_err(not_loaded)?;
        let dtype = dtype_from_tract(fact.datum_type);
        let dims = fact.shape.as_concrete();
        if dtype != Some(port.dtype) || dims.is_some_and(|dims| dims != port.shape.dims()) {
            let computed =
                dtype.map_or_else(|| format!("{:?}", fact.datum_type), |d| d.to_string());
            let message = format!(
                "the output {:?} is {} {} in the bundle, {computed} {:?} in the model",
                port.name, port.dtype, port.shape, fact.shape
            );
            reporter.report(port_finding(codes::ONNX_PORT_MISMATCH, port, message));
        }
    }
    reporter.finish().map(drop)
}

fn port_finding(code: Code, port: &Port, message: String) -> Diagnostic {
    let place = Place { port: Some(port.name.clone()), ..Place::default() };
    Diagnostic::error(code, message).at(place)
}

fn not_loaded(problem: impl AsRef<str>) -> Refusal {
    refusal(codes::ENGINE_LOAD_FAILED, format!("the model cannot be loaded: {}", problem.as_ref()))
}

fn refusal(code: Code, message: String) -> Refusal {
    Diagnostic::error(code, message).into()
}
