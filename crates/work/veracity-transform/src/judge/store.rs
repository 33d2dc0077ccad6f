//! Values that the model really has, for each set of inputs.
//!
//! The original is run once for each set, with all of its values as outputs, when the first of them
//! is needed. Values keep their names through rewrites; those that a rewrite made come from the run
//! that checked it. Where all values together would take too much memory, only those that are
//! needed are computed.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use veracity_onnx::{Dim, Graph};
use veracity_tensor::Tensor;

use super::inputs::Given;
use super::run::{Bench, Job, Values};
use super::window::Side;
use crate::Facts;

/// Values for each set of inputs.
pub(crate) struct Store {
    sets: Vec<Held>,
    /// Whether all values together take too much memory.
    is_tight: bool,
}

struct Held {
    name: String,
    values: Values,
    /// What was asked for and cannot be had, with the reason.
    missing: HashSet<String>,
    problem: Option<String>,
    is_filled: bool,
}

impl Store {
    pub(crate) fn new(graph: &Graph, given: &[Given], memory: usize) -> Self {
        let held = |given: &Given| Held {
            name: given.name.clone(),
            values: given_values(graph, given),
            missing: HashSet::new(),
            problem: None,
            is_filled: false,
        };
        let sets: Vec<Held> = given.iter().filter(|one| one.is_local).map(held).collect();
        let is_tight = size_of_all(graph).saturating_mul(sets.len()) > memory;
        Self { sets, is_tight }
    }

    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Whether values are only held while they are used.
    pub(crate) fn is_tight(&self) -> bool {
        self.is_tight
    }

    pub(crate) fn name(&self, set: usize) -> &str {
        &self.sets[set].name
    }

    pub(crate) fn values(&self, set: usize) -> &Values {
        &self.sets[set].values
    }

    /// Why values of a set cannot be had.
    pub(crate) fn problem(&self, set: usize) -> &str {
        self.sets[set].problem.as_deref().unwrap_or("the value is no tensor of a known type")
    }

    pub(crate) fn insert(&mut self, set: usize, name: String, tensor: Arc<Tensor>) {
        self.sets[set].missing.remove(&name);
        self.sets[set].values.insert(name, tensor);
    }

    /// Sees to it that values are there, as far as they can be had.
    pub(crate) fn fetch(&mut self, bench: &mut Bench<'_>, graph: &Graph, names: &BTreeSet<String>) {
        for set in &mut self.sets {
            set.fetch(bench, graph, names, self.is_tight);
        }
    }
}

impl Held {
    fn fetch(
        &mut self,
        bench: &mut Bench<'_>,
        graph: &Graph,
        names: &BTreeSet<String>,
        is_tight: bool,
    ) {
        let lacks =
            |name: &&String| !self.values.contains_key(*name) && !self.missing.contains(*name);
        let lacking: Vec<&str> = names.iter().filter(lacks).map(String::as_str).collect();
        if lacking.is_empty() {
            return;
        }
        if is_tight {
            // What is computed stays only as long as it is used.
            self.values.retain(|name, _| names.contains(name) || graph.is_input(name));
        } else if !self.is_filled {
            self.is_filled = true;
            let side = Side::whole(graph);
            let all: Vec<&str> = side.made().collect();
            if self.run(bench, graph, &side, &all) {
                self.missing.extend(lacking.into_iter().map(str::to_owned));
                self.missing.retain(|name| !self.values.contains_key(name));
                return;
            }
        }
        let mut side = Side::whole(graph);
        side.keep_for(lacking.iter().copied());
        if !self.run(bench, graph, &side, &lacking) {
            self.missing.extend(lacking.into_iter().map(str::to_owned));
        }
    }

    /// Whether it could be run.
    fn run(&mut self, bench: &mut Bench<'_>, graph: &Graph, side: &Side, wanted: &[&str]) -> bool {
        let job = Job { side, wanted, values: (0, &self.values) };
        match bench.run(graph, &[job]).pop() {
            Some(Ok(found)) => {
                let named = wanted.iter().map(|name| (*name).to_owned());
                self.values.extend(named.zip(found.into_iter().map(Arc::new)));
                self.problem = None;
                true
            }
            Some(Err(failure)) => {
                self.problem = Some(failure.reason);
                false
            }
            None => false,
        }
    }
}

/// Inputs, with the defaults of those that have one.
pub(super) fn given_values(graph: &Graph, given: &Given) -> Values {
    let defaults = graph.declared_inputs().into_iter().filter_map(|info| {
        let tensor = graph.default_of(&info.name)?.tensor()?;
        Some((info.name, Arc::new(tensor)))
    });
    let given = given.values.iter().map(|(name, value)| (name.clone(), Arc::new(value.clone())));
    defaults.chain(given).collect()
}

/// Bytes that all values take, as far as is known before they are computed.
fn size_of_all(graph: &Graph) -> usize {
    let facts = Facts::of(graph);
    let values = graph.nodes().flat_map(|(_, node)| node.outputs());
    let sizes = values.filter_map(|name| {
        let fact = facts.get(name)?;
        let elements = fact.dims.as_ref()?.iter().fold(1_usize, |product, dim| match dim {
            Dim::Fixed(size) => product.saturating_mul(*size),
            Dim::Named(_) | Dim::Unknown => product.saturating_mul(3),
        });
        Some(elements.saturating_mul(fact.dtype?.size()))
    });
    sizes.fold(0, usize::saturating_add)
}
