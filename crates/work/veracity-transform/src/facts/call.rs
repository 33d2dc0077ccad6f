//! A node with what is known about its inputs.

use veracity_onnx::{Dim, Graph, Node, Weight};
use veracity_tensor::DType;

use super::{Element, Fact, Facts, dims};

/// A node with what is known about its inputs.
pub(super) struct Call<'s> {
    pub(super) node: &'s Node,
    pub(super) opset: i64,
    graph: &'s Graph,
    facts: &'s Facts,
}

impl<'s> Call<'s> {
    pub(super) fn new(node: &'s Node, opset: i64, graph: &'s Graph, facts: &'s Facts) -> Self {
        Self { node, opset, graph, facts }
    }

    /// Whether an input is given at all.
    pub(super) fn has(&self, index: usize) -> bool {
        self.node.input(index).is_some()
    }

    pub(super) fn fact(&self, index: usize) -> Option<&'s Fact> {
        self.facts.get(self.node.input(index)?)
    }

    pub(super) fn dtype(&self, index: usize) -> Option<DType> {
        self.fact(index)?.dtype
    }

    pub(super) fn dims(&self, index: usize) -> Option<&'s [Dim]> {
        self.fact(index)?.dims.as_deref()
    }

    pub(super) fn owned_dims(&self, index: usize) -> Option<Vec<Dim>> {
        self.dims(index).map(<[Dim]>::to_vec)
    }

    pub(super) fn rank(&self, index: usize) -> Option<usize> {
        Some(self.dims(index)?.len())
    }

    pub(super) fn elements(&self, index: usize) -> Option<&'s [Element]> {
        self.fact(index)?.elements.as_deref()
    }

    pub(super) fn ints(&self, index: usize) -> Option<Vec<i64>> {
        self.fact(index)?.ints()
    }

    /// The one element of an integer input.
    pub(super) fn int(&self, index: usize) -> Option<i64> {
        let all = self.ints(index)?;
        all.first().copied().filter(|_| all.len() == 1)
    }

    pub(super) fn weight(&self, index: usize) -> Option<&'s Weight> {
        self.graph.weight(self.node.input(index)?)
    }

    /// An integer attribute with its default.
    pub(super) fn int_or(&self, attribute: &str, default: i64) -> i64 {
        self.node.int_of(attribute).unwrap_or(default)
    }

    /// A switch that is an integer attribute.
    pub(super) fn flag(&self, attribute: &str, default: bool) -> bool {
        self.int_or(attribute, i64::from(default)) != 0
    }

    /// A list that was an attribute before an operator version and is an input since; `None`
    /// when it is left out.
    pub(super) fn list(
        &self,
        attribute: &str,
        input: usize,
        input_since: i64,
    ) -> Result<Option<Vec<i64>>, NotKnown> {
        if self.opset < input_since {
            return Ok(self.node.ints_of(attribute).map(<[i64]>::to_vec));
        }
        if self.has(input) { self.ints(input).map(Some).ok_or(NotKnown) } else { Ok(None) }
    }

    /// An axis attribute, counted from the front of an input.
    pub(super) fn axis(&self, default: i64, rank: usize) -> Option<usize> {
        dims::axis(self.int_or("axis", default), rank)
    }

    /// The type of the first input that has a known one.
    pub(super) fn any_dtype(&self) -> Option<DType> {
        (0..self.node.inputs().len()).find_map(|index| self.dtype(index))
    }
}

/// Something is given, and what it is is not known before the model runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotKnown;

/// What a node with one output gives.
pub(super) fn one(dtype: Option<DType>, dims: Option<Vec<Dim>>) -> Vec<Fact> {
    vec![Fact::new(dtype, dims)]
}
