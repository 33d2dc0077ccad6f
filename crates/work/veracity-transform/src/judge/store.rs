//! Values that the model really has, for each set of inputs.
//!
//! The original is loaded once and run for each set, with the values that are needed as outputs, when
//! the first of them is; for the first set it is run again, to see whether it agrees with itself. Values
//! keep their names through rewrites; those that a rewrite made come from the run that checked it.
//! Where all values together would take too much memory, only those that are needed are computed.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use veracity_onnx::{Dim, Graph};
use veracity_tensor::Tensor;

use super::inputs::Given;
use super::run::{Bench, Failure, Job, Values};
use super::values::same_bits;
use super::window::Side;
use crate::Facts;

/// Values for each set of inputs.
pub(crate) struct Store {
    sets: Vec<Held>,
    /// Sets that only the whole is run on: the original is asked for its answers, too.
    others: Vec<Held>,
    /// Whether all values together take too much memory.
    is_tight: bool,
    /// Outputs of the original that differ when it is run again, once that was tried.
    unstable: Option<BTreeSet<String>>,
}

struct Held {
    name: String,
    values: Values,
    /// What was asked for and cannot be had, with the reason.
    missing: HashSet<String>,
    problem: Option<String>,
    /// Whether all values of the original were asked for, and whether they came.
    filled: Option<bool>,
}

impl Store {
    pub(crate) fn new(graph: &Graph, given: &[Given], memory: usize) -> Self {
        let held = |given: &Given| Held {
            name: given.name.clone(),
            values: given_values(graph, given),
            missing: HashSet::new(),
            problem: None,
            filled: None,
        };
        let (local, others): (Vec<&Given>, Vec<&Given>) =
            given.iter().partition(|given| given.is_local);
        let sets: Vec<Held> = local.into_iter().map(held).collect();
        let others = others.into_iter().map(held).collect();
        let is_tight = size_of_all(graph).saturating_mul(sets.len()) > memory;
        Self { sets, others, is_tight, unstable: None }
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
    pub(crate) fn fetch(
        &mut self,
        bench: &mut Bench<'_>,
        original: &Graph,
        graph: &Graph,
        names: &BTreeSet<String>,
    ) {
        let is_open = |set: &Held| set.filled.is_none() && !set.lacking(names).is_empty();
        if !self.is_tight && self.sets.iter().any(is_open) {
            self.fill(bench, original, None);
        }
        for set in self.sets.iter_mut().filter(|set| !set.lacking(names).is_empty()) {
            if self.is_tight {
                // What is computed stays only as long as it is used.
                set.values.retain(|name, _| names.contains(name) || graph.is_input(name));
            }
            set.fetch(bench, graph, names);
        }
    }

    /// Runs the original for some values, or for all that constants do not settle, and for its
    /// outputs; for those once more, as what differs from itself cannot be blamed on a rewrite.
    /// Loaded once: an engine may draw the same random numbers whenever it starts.
    pub(crate) fn fill(
        &mut self,
        bench: &mut Bench<'_>,
        original: &Graph,
        names: Option<&BTreeSet<String>>,
    ) {
        let side = Side::whole(original);
        let declared: Vec<String> =
            original.declared_outputs().into_iter().map(|output| output.name).collect();
        let outputs: Vec<&str> =
            declared.iter().map(String::as_str).filter(|name| side.makes(name)).collect();
        let local = self.sets.iter().map(|set| set.wanted(&side, names, &outputs));
        let wanted: Vec<Vec<&str>> =
            local.chain(self.others.iter().map(|_| outputs.clone())).collect();
        let all = || self.sets.iter().chain(&self.others);
        let again = all().next().filter(|_| self.unstable.is_none());
        let mut runs: Vec<(&[&str], &Values)> =
            wanted.iter().zip(all()).map(|(wanted, set)| (&wanted[..], &set.values)).collect();
        runs.extend(again.map(|set| (&outputs[..], &set.values)));
        let mut found = bench.run_each(original, &side, &runs);
        let again = if found.len() > wanted.len() { found.pop() } else { None };
        for ((set, wanted), found) in
            self.sets.iter_mut().chain(&mut self.others).zip(&wanted).zip(found)
        {
            set.filled = Some(set.take(wanted, found));
        }
        if let (Some(Ok(again)), Some(first)) = (again, self.sets.iter().chain(&self.others).next())
        {
            let differs = outputs.iter().zip(&again).filter(|(name, again)| {
                first.values.get(**name).is_none_or(|once| !same_bits(once, again))
            });
            self.unstable = Some(differs.map(|(name, _)| (*name).to_owned()).collect());
        }
    }

    /// What the original answered to a set of inputs, when all of its values are known.
    pub(crate) fn answers(&self, set: &str, outputs: &[String]) -> Option<Vec<Arc<Tensor>>> {
        let mut all = self.sets.iter().chain(&self.others);
        let held = all.find(|held| held.name == set && held.filled == Some(true))?;
        outputs.iter().map(|name| held.values.get(name).cloned()).collect()
    }

    /// Outputs of the original that differ when it is run again, if that was tried.
    pub(crate) fn unstable(&self) -> Option<&BTreeSet<String>> {
        self.unstable.as_ref()
    }
}

impl Held {
    /// What the original is asked for: some of what it makes or all of it, and its outputs.
    fn wanted<'n>(
        &self,
        side: &'n Side,
        names: Option<&BTreeSet<String>>,
        outputs: &[&'n str],
    ) -> Vec<&'n str> {
        let mut all: BTreeSet<&str> = match names {
            Some(names) => side.made().filter(|name| names.contains(*name)).collect(),
            None => side.made_from(&self.values),
        };
        all.extend(outputs);
        all.into_iter().collect()
    }

    fn lacking<'n>(&self, names: &'n BTreeSet<String>) -> Vec<&'n str> {
        let lacks =
            |name: &&String| !self.values.contains_key(*name) && !self.missing.contains(*name);
        names.iter().filter(lacks).map(String::as_str).collect()
    }

    /// Computes what is lacking in the graph as it is now.
    fn fetch(&mut self, bench: &mut Bench<'_>, graph: &Graph, names: &BTreeSet<String>) {
        let lacking = self.lacking(names);
        if lacking.is_empty() {
            return;
        }
        let mut side = Side::whole(graph);
        side.keep_for(lacking.iter().copied());
        let job = Job { side: &side, wanted: &lacking, values: (0, &self.values) };
        let Some(found) = bench.run(graph, &[job]).pop() else { return };
        if !self.take(&lacking, found) {
            self.missing.extend(lacking.into_iter().map(str::to_owned));
        }
    }

    /// Keeps what came; whether something did.
    fn take(&mut self, wanted: &[&str], found: Result<Vec<Tensor>, Failure>) -> bool {
        match found {
            Ok(found) => {
                let named = wanted.iter().map(|name| (*name).to_owned());
                self.values.extend(named.zip(found.into_iter().map(Arc::new)));
                self.problem = None;
                true
            }
            Err(failure) => {
                self.problem = Some(failure.reason);
                false
            }
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
