//! Models and weights that the tests of arithmetic passes are made of.

use veracity_onnx::{Dim, GraphBuilder, Model, Node, Weight};
use veracity_tensor::{DType, Tensor};

/// A weight with elements between -1 and 1 that depend on the seed.
pub(crate) fn weight(dtype: DType, dims: &[usize], seed: usize) -> (DType, Vec<usize>, Vec<f64>) {
    let count: usize = dims.iter().product();
    let element = |index: usize| {
        let step = u32::try_from((index * 7919 + seed * 3571 + 17) % 2003).unwrap();
        f64::from(step) / 1001.0 - 1.0
    };
    (dtype, dims.to_vec(), (0..count).map(element).collect())
}

/// A weight of float32.
pub(crate) fn some(dims: &[usize], seed: usize) -> Tensor {
    tensor(&weight(DType::F32, dims, seed))
}

/// These elements.
pub(crate) fn floats(dtype: DType, dims: &[usize], elements: &[f64]) -> Tensor {
    Weight::from_floats(dtype, dims, elements).unwrap().tensor().unwrap()
}

/// One number of float32 without axes.
pub(crate) fn scalar(number: f32) -> Tensor {
    Tensor::from_slice([], &[number]).unwrap()
}

/// A list of integers.
pub(crate) fn ints(listed: &[i64]) -> Tensor {
    Tensor::from_slice([listed.len()], listed).unwrap()
}

pub(crate) fn tensor((dtype, dims, elements): &(DType, Vec<usize>, Vec<f64>)) -> Tensor {
    floats(*dtype, dims, elements)
}

/// An operator that nothing is known about, not even how many axes its result has.
pub(crate) fn opaque(from: &str, to: &str) -> Node {
    Node::new("Opaque", [from], [to]).domain("somebody.else")
}

/// A model that takes `x`; its outputs have a number of axes and no known sizes.
pub(crate) struct Made {
    pub(crate) opset: i64,
    pub(crate) dtype: DType,
    pub(crate) x: Vec<Dim>,
    pub(crate) weights: Vec<(&'static str, Tensor)>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) outputs: Vec<(&'static str, usize)>,
}

impl Made {
    /// Takes `x` of this shape, runs the nodes and gives `y` with so many axes.
    pub(crate) fn new(x: &[usize], nodes: Vec<Node>, rank: usize) -> Self {
        let x = x.iter().map(|&size| Dim::Fixed(size)).collect();
        let (weights, outputs) = (Vec::new(), vec![("y", rank)]);
        Self { opset: 18, dtype: DType::F32, x, weights, nodes, outputs }
    }

    pub(crate) fn with(mut self, name: &'static str, tensor: Tensor) -> Self {
        self.weights.retain(|(other, _)| *other != name);
        self.weights.push((name, tensor));
        self
    }

    pub(crate) fn opset(mut self, opset: i64) -> Self {
        self.opset = opset;
        self
    }

    pub(crate) fn gives(mut self, name: &'static str, rank: usize) -> Self {
        self.outputs.push((name, rank));
        self
    }

    pub(crate) fn model(&self) -> Model {
        let mut graph =
            GraphBuilder::new("graph", self.opset).input("x", self.dtype, self.x.clone());
        for (name, tensor) in &self.weights {
            graph = graph.initializer(*name, tensor);
        }
        for node in &self.nodes {
            graph = graph.node(node.clone());
        }
        for (name, rank) in &self.outputs {
            let dims = (0..*rank).map(|axis| Dim::Named(format!("{name}_{axis}")));
            graph = graph.output(*name, self.dtype, dims);
        }
        graph.finish().unwrap()
    }
}
