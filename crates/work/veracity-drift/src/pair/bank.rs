//! The values of the reference, computed when they are needed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{ModelBytes, ModelFormat, ModelSource, OptimizationLevel, SessionOptions};
use veracity_onnx::Model;
use veracity_tensor::Tensor;

use super::{Inputs, Side, Source};

/// Values by the position of their pairing.
pub(super) type Held<'v> = BTreeMap<usize, Cow<'v, Tensor>>;

/// The reference, which computes its values again or keeps those that fit into memory.
pub(super) struct Bank<'a> {
    side: Side<'a>,
    inputs: &'a Inputs,
    kept: BTreeMap<String, Tensor>,
}

impl<'a> Bank<'a> {
    pub(super) fn new(side: Side<'a>, inputs: &'a Inputs) -> Self {
        Self { side, inputs, kept: BTreeMap::new() }
    }

    pub(super) fn model(&self) -> &'a Model {
        self.side.model
    }

    pub(super) fn inputs(&self) -> &'a Inputs {
        self.inputs
    }

    /// What was computed, to be used again.
    pub(super) fn keep(&mut self, values: BTreeMap<String, Tensor>) {
        self.kept.extend(values);
    }

    /// Values that nodes of the reference give; those that are no tensors are left out.
    pub(super) fn computed(&self, names: &[&str]) -> Result<BTreeMap<String, Tensor>> {
        let missing: BTreeSet<&str> =
            names.iter().copied().filter(|name| !self.kept.contains_key(*name)).collect();
        let missing: Vec<&str> = missing.into_iter().collect();
        let given = |name: &str| self.inputs.get(name);
        let found = evaluate(&self.side, self.side.model, &missing, &given)?;
        let found = missing.iter().zip(found);
        Ok(found.filter_map(|(name, value)| Some(((*name).to_owned(), value?))).collect())
    }

    /// The values of pairings.
    pub(super) fn values<'v>(
        &'v self,
        sources: impl Iterator<Item = (usize, &'v Source)> + Clone,
    ) -> Result<Held<'v>> {
        let names: Vec<&str> = sources
            .clone()
            .filter_map(|(_, source)| match source {
                Source::Value(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let computed = self.computed(&names)?;
        let mut held = Held::new();
        for (index, source) in sources {
            let value = match source {
                Source::Constant(_, tensor) => Some(Cow::Borrowed(tensor)),
                Source::Input(name) => self.inputs.get(name).map(Cow::Borrowed),
                Source::Value(name) => match self.kept.get(name) {
                    Some(tensor) => Some(Cow::Borrowed(tensor)),
                    None => computed.get(name).cloned().map(Cow::Owned),
                },
            };
            held.extend(value.map(|value| (index, value)));
        }
        Ok(held)
    }

    /// Runs another form of the reference.
    pub(super) fn evaluate<'v>(
        &'v self,
        model: &Model,
        names: &[&str],
        given: &dyn Fn(&str) -> Option<&'v Tensor>,
    ) -> Result<Vec<Option<Tensor>>> {
        let given = |name: &str| given(name).or_else(|| self.inputs.get(name));
        evaluate(&self.side, model, names, &given)
    }
}

/// Runs the part of a model that gives these values.
pub(super) fn evaluate<'v>(
    side: &Side<'_>,
    model: &Model,
    names: &[&str],
    given: &dyn Fn(&str) -> Option<&'v Tensor>,
) -> Result<Vec<Option<Tensor>>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let part = model.showing(names)?;
    let infos = part.inputs();
    let mut inputs: Vec<(&str, &Tensor)> = Vec::new();
    for info in &infos {
        let value = given(&info.name).ok_or_else(|| {
            let message = format!("there is no value for the input {:?} of the model", info.name);
            Diagnostic::error(codes::INPUT_MISSING, message)
        })?;
        inputs.push((&info.name, value));
    }
    let bytes = ModelBytes::Memory(Arc::from(part.to_bytes()?));
    let source = ModelSource { format: ModelFormat::Onnx, bytes };
    let options = SessionOptions { optimization: OptimizationLevel::None, ..side.session.clone() };
    let found = side.engine.evaluate(&source, &inputs, names, &options);
    found.map_err(|refusal| refusal.within(side.place))
}

/// Groups of positions whose bytes fit into memory together; one that does not fit alone is alone.
pub(super) fn chunks_of(
    positions: &[usize],
    bytes: impl Fn(usize) -> usize,
    limit: usize,
) -> Vec<Vec<usize>> {
    let mut chunks: Vec<Vec<usize>> = Vec::new();
    let mut held = 0_usize;
    for &position in positions {
        let size = bytes(position);
        match chunks.last_mut() {
            Some(last) if held.saturating_add(size) <= limit => {
                last.push(position);
                held += size;
            }
            _ => {
                chunks.push(vec![position]);
                held = size;
            }
        }
    }
    chunks
}
