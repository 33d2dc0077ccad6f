//! The operators between a value and the values at which a graph is cut.

use std::collections::{BTreeMap, BTreeSet};

use veracity_onnx::NodeFacts;

use crate::pairing::producers;

/// A graph, ready to be asked which operators a value's error is charged to.
pub(crate) struct Stretches<'n> {
    nodes: &'n [NodeFacts],
    producers: BTreeMap<&'n str, usize>,
    cuts: BTreeSet<&'n str>,
}

impl<'n> Stretches<'n> {
    pub(crate) fn new(nodes: &'n [NodeFacts], cuts: BTreeSet<&'n str>) -> Self {
        Self { nodes, producers: producers(nodes), cuts }
    }

    /// The nodes that compute a value from those at which the graph is cut, its own included.
    pub(crate) fn of(&self, last: usize) -> impl Iterator<Item = &'n NodeFacts> + use<'n> {
        let mut seen = BTreeSet::from([last]);
        let mut open = vec![last];
        while let Some(node) = open.pop() {
            let inputs = self.nodes[node].inputs.iter().map(String::as_str);
            for input in inputs.filter(|input| !self.cuts.contains(input)) {
                if let Some(&before) = self.producers.get(input)
                    && seen.insert(before)
                {
                    open.push(before);
                }
            }
        }
        let nodes = self.nodes;
        seen.into_iter().map(move |index| &nodes[index])
    }
}
