//! What a pass sees.

use std::cell::RefCell;
use std::collections::HashSet;

use veracity_onnx::{Dim, Graph, Node, NodeId, Weight};
use veracity_tensor::DType;

use crate::{Fact, Facts};

/// A graph with what is known about its values, for one sweep of one pass.
pub struct View<'g> {
    graph: &'g Graph,
    facts: &'g Facts,
    /// Names that were handed out in this sweep, so that two proposals do not meet.
    handed_out: RefCell<HashSet<String>>,
}

impl<'g> View<'g> {
    /// A view of a graph.
    pub fn new(graph: &'g Graph, facts: &'g Facts) -> Self {
        Self { graph, facts, handed_out: RefCell::default() }
    }

    /// The graph itself.
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// The nodes of the default domain with this operator, in running order.
    pub fn nodes_of(&self, op_type: &'static str) -> impl Iterator<Item = (NodeId, &'g Node)> {
        self.graph.nodes().filter(move |(_, node)| node.is(op_type))
    }

    /// The node that gives a value, when it is this operator.
    pub fn producer_of(&self, value: &str, op_type: &str) -> Option<(NodeId, &'g Node)> {
        self.graph.producer(value).filter(|(_, node)| node.is(op_type))
    }

    /// The one node that reads a value; `None` when there are others or when it is an output of
    /// the model.
    pub fn only_reader(&self, value: &str) -> Option<(NodeId, &'g Node)> {
        if !self.graph.has_one_reader(value) {
            return None;
        }
        let id = self.graph.readers(value).next()?;
        Some((id, self.graph.node(id)?))
    }

    /// A constant that nobody can replace from outside.
    pub fn constant(&self, value: &str) -> Option<&'g Weight> {
        self.graph.weight(value)
    }

    /// What is known about a value.
    pub fn fact(&self, value: &str) -> Option<&'g Fact> {
        self.facts.get(value)
    }

    /// Type of the elements.
    pub fn dtype(&self, value: &str) -> Option<DType> {
        self.fact(value)?.dtype
    }

    /// Sizes of the axes, known or named.
    pub fn dims(&self, value: &str) -> Option<&'g [Dim]> {
        self.fact(value)?.dims.as_deref()
    }

    /// Number of axes.
    pub fn rank(&self, value: &str) -> Option<usize> {
        Some(self.dims(value)?.len())
    }

    /// Sizes of the axes when all are known.
    pub fn shape(&self, value: &str) -> Option<Vec<usize>> {
        let sizes = self.dims(value)?.iter().map(|dim| match dim {
            Dim::Fixed(size) => Some(*size),
            Dim::Named(_) | Dim::Unknown => None,
        });
        sizes.collect()
    }

    /// Version of the default operators.
    pub fn opset(&self) -> i64 {
        self.graph.opset("").unwrap_or(0)
    }

    /// A name like `base` that nothing has, and that no other proposal of this sweep was given.
    pub fn fresh(&self, base: &str) -> String {
        let mut handed_out = self.handed_out.borrow_mut();
        let mut name = self.graph.free_name(base);
        let mut number = 1_usize;
        while !handed_out.insert(name.clone()) {
            name = self.graph.free_name(&format!("{base}_{number}"));
            number += 1;
        }
        name
    }
}
