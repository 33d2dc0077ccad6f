//! Puts nodes into an order in which they can run.
//!
//! The format demands such an order and most engines do not: some tools append nodes at the end of
//! the list. Whoever looks at parts of a graph needs it.

use std::collections::{BinaryHeap, HashMap, HashSet};

use crate::Model;
use crate::capture::collect_reads;
use crate::generated::onnx::{GraphProto, NodeProto};

impl Model {
    /// The model with the nodes of its main graph in an order in which they can run, which is the
    /// order of the file as far as possible. A graph with a cycle stays as it is: an engine refuses
    /// it.
    #[must_use]
    pub fn in_order(self) -> Self {
        match order(self.graph()) {
            Some(order) if !order.is_sorted() => {
                let place = self.place();
                let mut sorted = self.changed(|graph| {
                    let mut nodes: Vec<Option<NodeProto>> =
                        graph.node.drain(..).map(Some).collect();
                    graph.node = order.iter().filter_map(|&index| nodes[index].take()).collect();
                });
                sorted.set_place(&place);
                sorted
            }
            _ => self,
        }
    }
}

/// Positions of the nodes in the order in which they can run; of those that can, the first of the
/// file first.
fn order(graph: &GraphProto) -> Option<Vec<usize>> {
    let outputs = graph.node.iter().enumerate().flat_map(|(index, node)| {
        node.output.iter().filter(|name| !name.is_empty()).map(move |name| (name.as_str(), index))
    });
    let producers: HashMap<&str, usize> = outputs.collect();
    let mut waiting = vec![0_usize; graph.node.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); graph.node.len()];
    for (index, node) in graph.node.iter().enumerate() {
        let mut reads = HashSet::new();
        collect_reads(node, &mut reads);
        let before: HashSet<usize> =
            reads.iter().filter_map(|name| producers.get(name.as_str()).copied()).collect();
        // A body may define a name that its own node gives outside.
        for producer in before.into_iter().filter(|&producer| producer != index) {
            waiting[index] += 1;
            readers[producer].push(index);
        }
    }
    let ready = (0..graph.node.len()).filter(|&index| waiting[index] == 0);
    let mut ready: BinaryHeap<std::cmp::Reverse<usize>> = ready.map(std::cmp::Reverse).collect();
    let mut order = Vec::with_capacity(graph.node.len());
    while let Some(std::cmp::Reverse(index)) = ready.pop() {
        order.push(index);
        for &reader in &readers[index] {
            waiting[reader] -= 1;
            if waiting[reader] == 0 {
                ready.push(std::cmp::Reverse(reader));
            }
        }
    }
    (order.len() == graph.node.len()).then_some(order)
}

#[cfg(test)]
mod tests {
    use crate::{GraphBuilder, Model, Node};

    fn kinds(model: &Model) -> Vec<String> {
        model.nodes().into_iter().map(|node| node.op_type).collect()
    }

    fn model(nodes: &[(&str, &str, &str)]) -> Model {
        let graph = GraphBuilder::new("g", 20);
        let node =
            |(kind, input, output): &(&str, &str, &str)| Node::new(*kind, [*input], [*output]);
        nodes.iter().map(node).fold(graph, GraphBuilder::node).finish().unwrap()
    }

    #[test]
    fn nodes_come_after_what_they_read() {
        let mixed =
            model(&[("Neg", "b", "c"), ("Relu", "a", "b"), ("Abs", "x", "a"), ("Exp", "x", "e")]);
        assert_eq!(kinds(&mixed.in_order()), ["Abs", "Relu", "Neg", "Exp"]);
        let fine = [("Exp", "x", "e"), ("Abs", "x", "a"), ("Relu", "a", "b")];
        assert_eq!(kinds(&model(&fine).in_order()), ["Exp", "Abs", "Relu"], "nothing moves");
    }

    #[test]
    fn a_cycle_stays_as_it_is() {
        let cycle = model(&[("Neg", "b", "a"), ("Relu", "a", "b")]);
        assert_eq!(kinds(&cycle.in_order()), ["Neg", "Relu"]);
    }

    #[test]
    fn bodies_count_as_readers() {
        let body = GraphBuilder::new("body", 20).node(Node::new("Neg", ["a"], ["o"]));
        let model = GraphBuilder::new("g", 20)
            .node(Node::new("If", ["flag"], ["y"]).graph("then_branch", body))
            .node(Node::new("Relu", ["x"], ["a"]))
            .finish()
            .unwrap();
        assert_eq!(kinds(&model.in_order()), ["Relu", "If"]);
    }
}
