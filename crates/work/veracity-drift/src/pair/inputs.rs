//! The same numbers for both models.

use veracity_diag::{Diagnostic, Refusal, Reporter, Result, codes, nearest};
use veracity_onnx::{Model, ValueInfo};
use veracity_tensor::Tensor;

use super::{Inputs, cast};

/// Inputs of both models, each in its own types.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) reference: Inputs,
    pub(super) candidate: Inputs,
    pub(super) notes: Vec<String>,
}

/// Gives both models the same numbers. Where the candidate takes a narrower type, the numbers are
/// rounded to it for both, so that they differ in nothing.
pub(super) fn for_both(reference: &Model, candidate: &Model, inputs: &Inputs) -> Result<Given> {
    let (reference, candidate) = (reference.inputs(), candidate.inputs());
    let mut reporter = Reporter::new();
    let mut given = Given { reference: Inputs::new(), candidate: Inputs::new(), notes: Vec::new() };
    for info in &candidate {
        if let Some(value) = reporter.absorb(in_type(info, &reference, inputs)) {
            given.candidate.insert(info.name.clone(), value);
        }
    }
    for info in &reference {
        let shared = given.candidate.get(&info.name).or_else(|| inputs.get(&info.name));
        let taken = shared.ok_or_else(|| missing(info)).and_then(|value| taken(info, value));
        if let Some(value) = reporter.absorb(taken) {
            given.reference.insert(info.name.clone(), value);
        }
        given.notes.extend(note(info, &candidate));
    }
    reporter.finish()?;
    Ok(given)
}

/// An input of the candidate.
fn in_type(info: &ValueInfo, reference: &[ValueInfo], inputs: &Inputs) -> Result<Tensor> {
    if !reference.iter().any(|there| there.name == info.name) {
        let message = format!("the reference has no input {:?}", info.name);
        let found = Diagnostic::error(codes::PAIR_INPUTS_DIFFER, message);
        let names = reference.iter().map(|there| there.name.as_str());
        return Err(match nearest(&info.name, names.clone()) {
            Some(meant) => found.hint(format!("did you mean {meant:?}?")).into(),
            None => found.hint(format!("it has {}", names.collect::<Vec<_>>().join(", "))).into(),
        });
    }
    let value = inputs.get(&info.name).ok_or_else(|| missing(info))?;
    taken(info, value)
}

/// A value as an input takes it.
fn taken(info: &ValueInfo, value: &Tensor) -> Result<Tensor> {
    let dims = value.shape().dims();
    let fits = info.dims.as_ref().is_none_or(|declared| {
        declared.len() == dims.len() && declared.iter().zip(dims).all(|(dim, &is)| dim.admits(is))
    });
    let differs = || -> Refusal {
        let (name, is, shape) = (&info.name, value.dtype(), value.shape());
        let message = format!("input {name:?} is {is} {shape}, one of the models takes {info}");
        Diagnostic::error(codes::PAIR_INPUTS_DIFFER, message).into()
    };
    let cast = info.dtype.and_then(|dtype| cast(value, dtype)).filter(|_| fits);
    cast.map(std::borrow::Cow::into_owned).ok_or_else(differs)
}

fn missing(info: &ValueInfo) -> Refusal {
    let message = format!("input {:?}, {info}, was not given", info.name);
    Diagnostic::error(codes::INPUT_MISSING, message).into()
}

/// What is worth knowing about an input of the reference.
fn note(info: &ValueInfo, candidate: &[ValueInfo]) -> Option<String> {
    let name = &info.name;
    match candidate.iter().find(|here| here.name == *name) {
        None => Some(format!("input {name:?} is one of the reference only")),
        Some(here) if here.dtype != info.dtype => {
            let (here, there) = (here.type_name, info.type_name);
            Some(format!("input {name:?} is {here} beside {there}: both get the same numbers"))
        }
        Some(_) => None,
    }
}
