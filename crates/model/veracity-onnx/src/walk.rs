//! Every node and tensor of a model, wherever it hides.

use crate::generated::onnx::{
    AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto,
};

/// Every node and tensor of a model: of the graph, of the subgraphs in attributes, of the
/// model's own functions and of its training graphs.
#[derive(Default)]
pub(crate) struct Parts<'a> {
    /// Nodes.
    pub(crate) nodes: Vec<&'a NodeProto>,
    /// Initializers and tensors in attributes, the two halves of sparse ones included.
    pub(crate) tensors: Vec<&'a TensorProto>,
    /// Most subgraphs within each other; 0 for a flat graph.
    pub(crate) depth: usize,
    /// Graphs found but not yet looked into, with their depth. A list, not recursion: a model
    /// made in code may nest as deep as its maker likes.
    waiting: Vec<(&'a GraphProto, usize)>,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(model: &'a ModelProto) -> Self {
        let mut parts = Self::default();
        let training = model.training_info.iter();
        let graphs = training.flat_map(|info| [&info.algorithm, &info.initialization]);
        parts.waiting.extend(graphs.flatten().chain(&model.graph).map(|graph| (graph, 0)));
        for function in &model.functions {
            parts.nodes(&function.node, 0);
            parts.attributes(&function.attribute_proto, 0);
        }
        while let Some((graph, depth)) = parts.waiting.pop() {
            parts.depth = parts.depth.max(depth);
            parts.tensors.extend(&graph.initializer);
            parts.sparse(&graph.sparse_initializer);
            parts.nodes(&graph.node, depth);
        }
        parts
    }

    fn nodes(&mut self, nodes: &'a [NodeProto], depth: usize) {
        for node in nodes {
            self.nodes.push(node);
            self.attributes(&node.attribute, depth);
        }
    }

    fn attributes(&mut self, attributes: &'a [AttributeProto], depth: usize) {
        for attribute in attributes {
            self.tensors.extend(attribute.t.iter().chain(&attribute.tensors));
            self.sparse(attribute.sparse_tensor.as_slice());
            self.sparse(&attribute.sparse_tensors);
            let graphs = attribute.g.iter().chain(&attribute.graphs);
            self.waiting.extend(graphs.map(|graph| (graph, depth + 1)));
        }
    }

    fn sparse(&mut self, tensors: &'a [SparseTensorProto]) {
        let halves = tensors.iter().flat_map(|tensor| [&tensor.values, &tensor.indices]);
        self.tensors.extend(halves.flatten());
    }
}

/// The name of a domain; the default one has two spellings.
pub(crate) fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}
