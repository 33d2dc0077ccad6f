//! Loads and runs models made in code.
#![expect(unsafe_code, reason = "tests read and write the memory that sessions are bound to")]

use std::sync::Arc;

use veracity_diag::{Refusal, Result};
use veracity_engine::{
    Engine as _, ModelBytes, ModelFormat, ModelSource, Port, Ports, Session, SessionOptions,
};
use veracity_engine_embedded::EmbeddedEngine;
use veracity_onnx::{GraphBuilder, Node};
use veracity_tensor::{DType, Element, SharedTensor, Tensor};

pub(crate) const OPSET: i64 = 18;

/// A tensor from its elements.
pub(crate) fn tensor<E: Element, const RANK: usize>(dims: [usize; RANK], elements: &[E]) -> Tensor {
    Tensor::from_slice(dims, elements).unwrap()
}

/// A vector of float32.
pub(crate) fn floats(elements: &[f32]) -> Tensor {
    tensor([elements.len()], elements)
}

/// A vector of int64.
pub(crate) fn integers(elements: &[i64]) -> Tensor {
    tensor([elements.len()], elements)
}

/// A vector of booleans.
pub(crate) fn booleans(elements: &[bool]) -> Tensor {
    let bytes: Vec<u8> = elements.iter().map(|&element| element.into()).collect();
    Tensor::from_bytes(DType::Bool, [elements.len()].into(), &bytes).unwrap()
}

/// A graph with inputs `x0`, `x1`, … and outputs `y0`, `y1`, … like these tensors.
pub(crate) fn graph(opset: i64, inputs: &[Tensor], outputs: &[Tensor]) -> GraphBuilder {
    let mut graph = GraphBuilder::new("test", opset);
    for (index, tensor) in inputs.iter().enumerate() {
        let dims = tensor.shape().dims().iter().copied();
        graph = graph.input(format!("x{index}"), tensor.dtype(), dims);
    }
    for (index, tensor) in outputs.iter().enumerate() {
        let dims = tensor.shape().dims().iter().copied();
        graph = graph.output(format!("y{index}"), tensor.dtype(), dims);
    }
    graph
}

/// The ports of such a graph.
pub(crate) fn ports(inputs: &[Tensor], outputs: &[Tensor]) -> Ports {
    let side = |letter: &str, tensors: &[Tensor]| {
        let named = tensors.iter().enumerate();
        named
            .map(|(index, tensor)| {
                Port::new(format!("{letter}{index}"), tensor.dtype(), tensor.shape().clone())
            })
            .collect()
    };
    Ports { inputs: side("x", inputs), outputs: side("y", outputs) }
}

pub(crate) fn source(graph: GraphBuilder) -> ModelSource {
    let bytes: Arc<[u8]> = graph.finish().unwrap().to_bytes().unwrap().into();
    ModelSource { format: ModelFormat::Onnx, bytes: ModelBytes::Memory(bytes) }
}

pub(crate) fn load(graph: GraphBuilder, ports: &Ports) -> Result<Session> {
    EmbeddedEngine.load(&source(graph), ports, &SessionOptions::default())
}

/// Why a graph is refused.
pub(crate) fn refusal(graph: GraphBuilder, inputs: &[Tensor], outputs: &[Tensor]) -> Refusal {
    load(graph, &ports(inputs, outputs)).map(drop).unwrap_err()
}

/// What a graph gives for these inputs; the outputs are like `expected`.
pub(crate) fn run(
    graph: GraphBuilder,
    inputs: &[Tensor],
    expected: &[Tensor],
) -> Result<Vec<Tensor>> {
    let mut session = load(graph, &ports(inputs, expected))?;
    let inputs: Vec<SharedTensor> = inputs.iter().map(shared).collect();
    let outputs: Vec<SharedTensor> = expected.iter().map(like).collect();
    let binding = session.bind(&inputs, &outputs)?;
    session.run(binding)?;
    Ok(outputs.iter().map(read).collect())
}

/// A graph of one node on all inputs and constants (`c0`, `c1`, …, which come last).
pub(crate) fn one_node(
    op: &str,
    inputs: &[Tensor],
    constants: &[Tensor],
    outputs: &[Tensor],
    attributes: impl FnOnce(Node) -> Node,
) -> GraphBuilder {
    let mut graph = graph(OPSET, inputs, outputs);
    for (index, constant) in constants.iter().enumerate() {
        graph = graph.initializer(format!("c{index}"), constant);
    }
    let given = (0..inputs.len()).map(|index| format!("x{index}"));
    let taken = given.chain((0..constants.len()).map(|index| format!("c{index}")));
    let made = (0..outputs.len()).map(|index| format!("y{index}"));
    graph.node(attributes(Node::new(op, taken, made)))
}

pub(crate) fn like(tensor: &Tensor) -> SharedTensor {
    SharedTensor::zeros(tensor.dtype(), tensor.shape().clone())
}

pub(crate) fn shared(tensor: &Tensor) -> SharedTensor {
    let memory = like(tensor);
    write(&memory, tensor);
    memory
}

pub(crate) fn write(memory: &SharedTensor, tensor: &Tensor) {
    // SAFETY: no session runs while a test writes.
    unsafe { memory.bytes_mut() }.copy_from_slice(tensor.bytes());
}

pub(crate) fn read(memory: &SharedTensor) -> Tensor {
    // SAFETY: no session runs while a test reads.
    unsafe { memory.to_tensor() }
}

/// Whether two tensors agree: floats of 32 bits to 2e-6 of their size, all else to the bit.
pub(crate) fn agree(expected: &Tensor, actual: &Tensor) -> bool {
    if expected.dtype() != DType::F32 {
        return expected == actual;
    }
    let numbers = |tensor: &Tensor| tensor.as_slice::<f32>().unwrap().to_vec();
    let close = |(a, b): (f32, f32)| (a - b).abs() <= 2e-6 * a.abs().max(1.0);
    expected.shape() == actual.shape()
        && numbers(expected).into_iter().zip(numbers(actual)).all(close)
}
