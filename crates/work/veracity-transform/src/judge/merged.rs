//! Sides of windows that are put together in one model, each with names of its own.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use veracity_diag::Result;
use veracity_engine::{ModelBytes, ModelFormat, ModelSource};
use veracity_onnx::{Graph, Node};
use veracity_tensor::Tensor;

use super::constants::Constants;
use super::run::{Failure, Values};
use super::values::widened;
use super::window::Side;

/// Constants above this many bytes are handed in: writing them into a model copies them thrice.
const HANDED_IN: usize = 1 << 16;

/// Jobs that are put together in one model.
#[derive(Default)]
pub(super) struct Merged<'w> {
    window: veracity_onnx::Window,
    inputs: BTreeMap<String, HandedIn>,
    /// Constants that are in already.
    known: HashSet<&'w str>,
}

/// A value that the model is given.
struct HandedIn {
    tensor: Arc<Tensor>,
    /// The set that it is of and its name there; a constant is of none.
    from: Option<(usize, String)>,
}

impl<'w> Merged<'w> {
    /// Adds a side, under a number of its own, that is asked for some of what it makes of a set of
    /// values.
    pub(super) fn add(
        &mut self,
        number: usize,
        side: &'w Side,
        wanted: &[&str],
        (set, values): (usize, &Values),
        constants: &mut Constants,
    ) -> std::result::Result<(), Failure> {
        let mut names: HashMap<String, String> = HashMap::new();
        for (name, weight) in &side.weights {
            let inside = format!("constant/{name}");
            names.insert(name.clone(), inside.clone());
            if !self.known.insert(name) {
                continue;
            }
            match weight.dtype() {
                Some(_) if weight.size() > HANDED_IN => {
                    let tensor = constants.tensor(weight).ok_or_else(|| no_elements(name))?;
                    self.hand_in(inside, HandedIn { tensor, from: None });
                }
                _ => self.window.weights.push((inside, weight.clone())),
            }
        }
        for name in side.made() {
            names.insert(name.to_owned(), made_name(number, name));
        }
        let reads = side.nodes.iter().flat_map(Node::reads);
        for name in reads.filter(|name| !names.contains_key(name)).collect::<Vec<_>>() {
            if let Some(value) = values.get(&name) {
                let inside = format!("given {set}/{name}");
                if !self.inputs.contains_key(&inside) {
                    let from = Some((set, name.clone()));
                    let handed = HandedIn { tensor: value.clone(), from };
                    self.hand_in(inside.clone(), handed);
                }
                names.insert(name, inside);
            }
        }
        let nodes = side.nodes.iter().map(|node| node.bare().renamed(&names));
        self.window.nodes.extend(nodes);
        let wanted = wanted.iter().map(|name| made_name(number, name));
        self.window.outputs.extend(wanted);
        Ok(())
    }

    /// The model.
    pub(super) fn source(&self, of: &Graph) -> Result<ModelSource> {
        let bytes = self.window.to_model(of)?.to_bytes()?;
        let bytes = ModelBytes::Memory(Arc::from(bytes));
        Ok(ModelSource { format: ModelFormat::Onnx, bytes })
    }

    /// Names of everything that is asked for, job by job.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &str> {
        self.window.outputs.iter().map(String::as_str)
    }

    /// What is handed in.
    pub(super) fn inputs(&self) -> Vec<(&str, &Tensor)> {
        let named = self.inputs.iter();
        named.map(|(inside, handed)| (inside.as_str(), handed.tensor.as_ref())).collect()
    }

    /// The same when sets of values are others; `None` when a value is not there.
    pub(super) fn inputs_of<'v>(
        &'v self,
        values_of: impl Fn(usize) -> Option<&'v Values>,
    ) -> Option<Vec<(&'v str, &'v Tensor)>> {
        let other = |(inside, handed): (&'v String, &'v HandedIn)| {
            let tensor = match &handed.from {
                Some((set, name)) => values_of(*set)?.get(name)?,
                None => &handed.tensor,
            };
            Some((inside.as_str(), tensor.as_ref()))
        };
        self.inputs.iter().map(other).collect()
    }

    fn hand_in(&mut self, name: String, handed: HandedIn) {
        let dims = handed.tensor.shape().dims().to_vec();
        self.window.inputs.push((name.clone(), handed.tensor.dtype(), dims));
        self.inputs.insert(name, handed);
    }

    /// Makes it a model that computes in float64.
    pub(super) fn widen(&mut self) -> std::result::Result<(), Failure> {
        let wide = self.window.widened();
        self.window = wide.ok_or_else(|| no_elements("a constant"))?;
        for handed in self.inputs.values_mut() {
            handed.tensor = Arc::new(widened(&handed.tensor));
        }
        Ok(())
    }
}

/// What a value that a job makes is called in the model.
pub(super) fn made_name(number: usize, name: &str) -> String {
    format!("{number}/{name}")
}

fn no_elements(name: &str) -> Failure {
    Failure { reason: format!("the elements of {name:?} are not at hand"), is_lacking: true }
}
