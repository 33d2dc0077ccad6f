//! A model with its inputs and what must come out.

use std::sync::Arc;

use veracity_diag::Result as Answer;
use veracity_engine::{
    Binding, Device, Engine, ModelBytes, ModelFormat, ModelSource, Port, Ports, Session,
    SessionOptions,
};
use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_tensor::{SharedTensor, Tensor};

use crate::memory::{blank, read, shared};
use crate::values::{Closeness, compare};

/// Operator version of all models: the one that torch exports by default.
pub(crate) const OPSET: i64 = 18;

/// Name and value of an input or output.
pub(crate) type Named<'a> = (&'a str, &'a Tensor);

/// A graph with the inputs it is given and the outputs it must give. Its ports are those tensors.
pub(crate) struct Trial {
    graph: GraphBuilder,
    inputs: Vec<(String, Tensor)>,
    expected: Vec<(String, Tensor)>,
    closeness: Closeness,
}

impl Trial {
    /// A graph without nodes. Outputs must be bit for bit as expected, unless
    /// [`Trial::within`] says otherwise.
    pub(crate) fn new(inputs: &[Named<'_>], expected: &[Named<'_>]) -> Self {
        Self::on(graph(inputs, expected), inputs, expected)
    }

    /// As [`Trial::new`], with a graph that declares its inputs and outputs already.
    pub(crate) fn on(graph: GraphBuilder, inputs: &[Named<'_>], expected: &[Named<'_>]) -> Self {
        let owned = |side: &[Named<'_>]| {
            side.iter().map(|(name, tensor)| ((*name).to_owned(), (*tensor).clone())).collect()
        };
        let (inputs, expected) = (owned(inputs), owned(expected));
        Self { graph, inputs, expected, closeness: Closeness::Bits }
    }

    pub(crate) fn node(mut self, node: Node) -> Self {
        self.graph = self.graph.node(node);
        self
    }

    pub(crate) fn constant(mut self, name: &str, value: &Tensor) -> Self {
        self.graph = self.graph.initializer(name, value);
        self
    }

    pub(crate) fn within(mut self, tolerance: f64) -> Self {
        self.closeness = Closeness::Within(tolerance);
        self
    }

    /// Loads, binds and runs the model once.
    pub(crate) fn check(self, engine: &dyn Engine) -> Result<(), String> {
        let model = self.graph.finish().map_err(told("make"))?;
        check_model(
            engine,
            &model,
            &borrowed(&self.inputs),
            &borrowed(&self.expected),
            self.closeness,
        )
    }
}

fn borrowed(side: &[(String, Tensor)]) -> Vec<Named<'_>> {
    side.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect()
}

/// Loads, binds and runs a finished model once.
pub(crate) fn check_model(
    engine: &dyn Engine,
    model: &Model,
    inputs: &[Named<'_>],
    expected: &[Named<'_>],
    closeness: Closeness,
) -> Result<(), String> {
    let mut session = load(engine, model, &ports(inputs, expected))?;
    let outputs: Vec<_> = expected.iter().map(|(_, tensor)| blank(tensor)).collect();
    let inputs: Vec<_> = inputs.iter().map(|(_, tensor)| shared(tensor)).collect();
    let binding = bind(&mut session, &inputs, &outputs)?;
    run(&mut session, binding)?;
    for ((name, tensor), output) in expected.iter().zip(&outputs) {
        compare(name, tensor, &read(output), closeness)?;
    }
    Ok(())
}

/// A graph with these inputs and outputs and nothing in between.
pub(crate) fn graph(inputs: &[Named<'_>], outputs: &[Named<'_>]) -> GraphBuilder {
    let mut graph = GraphBuilder::new("case", OPSET);
    for (name, tensor) in inputs {
        graph = graph.input(*name, tensor.dtype(), tensor.shape().dims().iter().copied());
    }
    for (name, tensor) in outputs {
        graph = graph.output(*name, tensor.dtype(), tensor.shape().dims().iter().copied());
    }
    graph
}

/// Ports that fit these tensors.
pub(crate) fn ports(inputs: &[Named<'_>], outputs: &[Named<'_>]) -> Ports {
    let side = |tensors: &[Named<'_>]| {
        let port =
            |(name, tensor): &Named<'_>| Port::new(*name, tensor.dtype(), tensor.shape().clone());
        tensors.iter().map(port).collect()
    };
    Ports { inputs: side(inputs), outputs: side(outputs) }
}

/// Options of all cases: numbers are judged on the CPU.
pub(crate) fn options() -> SessionOptions {
    SessionOptions { device: Device::Cpu, ..SessionOptions::default() }
}

/// A model in memory, as an engine takes it.
pub(crate) fn source(model: &Model) -> Result<ModelSource, String> {
    let bytes: Arc<[u8]> = model.to_bytes().map_err(told("write"))?.into();
    Ok(ModelSource { format: ModelFormat::Onnx, bytes: ModelBytes::Memory(bytes) })
}

/// The engine's answer to a model.
pub(crate) fn try_load(
    engine: &dyn Engine,
    model: &Model,
    ports: &Ports,
) -> Result<Answer<Session>, String> {
    Ok(engine.load(&source(model)?, ports, &options()))
}

pub(crate) fn load(engine: &dyn Engine, model: &Model, ports: &Ports) -> Result<Session, String> {
    try_load(engine, model, ports)?.map_err(told("load"))
}

pub(crate) fn bind(
    session: &mut Session,
    inputs: &[SharedTensor],
    outputs: &[SharedTensor],
) -> Result<Binding, String> {
    session.bind(inputs, outputs).map_err(told("bind"))
}

pub(crate) fn run(session: &mut Session, binding: Binding) -> Result<(), String> {
    session.run(binding).map_err(told("run"))
}

/// Says at which step something was refused.
pub(crate) fn told(step: &str) -> impl Fn(veracity_diag::Refusal) -> String {
    move |refusal| format!("{step}: {refusal}")
}
