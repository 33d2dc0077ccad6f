//! What is known about the values of a graph before it runs.

use std::collections::HashMap;

use veracity_onnx::{Dim, Graph, ValueInfo};
use veracity_tensor::DType;

/// What is known about one value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fact {
    /// Type of the elements.
    pub dtype: Option<DType>,
    /// Sizes of the axes; `None` when not even their number is known.
    pub dims: Option<Vec<Dim>>,
}

/// What is known about all values. Only what follows from the graph is here: a declaration of the
/// file about a value in between counts as known, as engines hold it to be true.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    known: HashMap<String, Fact>,
}

impl Facts {
    /// What the graph declares and what follows from it.
    pub fn of(graph: &Graph) -> Self {
        let mut facts = Self::default();
        let declared = graph.declared_values().into_iter().chain(graph.declared_outputs());
        for info in declared.chain(graph.declared_inputs()) {
            let ValueInfo { name, dtype, dims, .. } = info;
            facts.known.insert(name, Fact { dtype, dims });
        }
        facts.update(graph);
        facts
    }

    /// Takes in what a patch brought: values that nothing is known about yet.
    pub fn update(&mut self, graph: &Graph) {
        for (name, weight) in graph.weights() {
            if !self.known.contains_key(name) {
                let dims = weight.dims().into_iter().map(Dim::Fixed).collect();
                self.known
                    .insert(name.to_owned(), Fact { dtype: weight.dtype(), dims: Some(dims) });
            }
        }
    }

    /// What is known about a value.
    pub fn get(&self, name: &str) -> Option<&Fact> {
        self.known.get(name)
    }
}
