//! Tables that are read by index, compared as a whole: inputs read few of their rows.

use veracity_diag::{Diagnostic, Place, codes};
use veracity_onnx::{Model, NodeFacts};
use veracity_tensor::Tensor;

use crate::budget::Budget;
use crate::convert::{alike, floats, narrower};
use crate::domain::{FARTHEST, chooses};

/// What is wrong with the table behind a value of the candidate, if both models read one there.
pub(crate) fn differing(
    reference: (&Model, &NodeFacts),
    candidate: (&Model, &NodeFacts),
    budget: Budget,
) -> Option<Diagnostic> {
    let table = |(model, node): (&Model, &NodeFacts)| -> Option<(String, Tensor)> {
        let is_read = ["Gather", "GatherElements", "GatherND"].contains(&node.op_type.as_str());
        let name = node.inputs.first().filter(|_| is_read)?;
        Some((name.clone(), model.constant(name)?))
    };
    let ((_, was), (name, is)) = (table(reference)?, table(candidate)?);
    let relative = budget.relative(narrower(was.dtype(), is.dtype()));
    let (was, is) = alike(&was, &is).filter(|(was, is)| was.shape() == is.shape())?;
    let position = match (floats(&was), floats(&is)) {
        (Some(was), Some(is)) => {
            let off = |(was, is): (&f64, &f64)| {
                let is_near = (was - is).abs() <= relative * was.abs();
                was.to_bits() != is.to_bits() && !is_near
            };
            was.iter().zip(&is).position(off)
        }
        _ => (was != is).then_some(0),
    }?;
    let index = was.shape().index_from_flat(position);
    let output = candidate.1.outputs.first().cloned().unwrap_or_default();
    let message = format!(
        "the table {name:?} that {output:?} is read from is not the reference's: the first element \
         that differs is at {index:?}"
    );
    Some(Diagnostic::error(codes::DRIFT_TABLE, message).at(Place::node(output)))
}

/// What is to be said about a number at which both models clip or compare, where it is another one
/// and the values that were seen do not show it.
pub(crate) fn other_limit(
    reference: (&Model, &NodeFacts),
    candidate: (&Model, &NodeFacts),
    budget: Budget,
) -> Option<Diagnostic> {
    let ((there, theirs), (here, ours)) = (reference, candidate);
    if theirs.op_type != ours.op_type || !chooses(&ours.op_type) {
        return None;
    }
    let number = |model: &Model, name: &String| {
        let held = model.constant(name).filter(|held| held.shape().elements() == 1)?;
        Some((held.dtype(), *floats(&held)?.first()?))
    };
    let pairs = theirs.inputs.iter().zip(&ours.inputs);
    let (was, is) = pairs
        .filter_map(|(theirs, ours)| Some((number(there, theirs)?, number(here, ours)?)))
        .map(|((one, was), (other, is))| (budget.relative(narrower(one, other)), was, is))
        .find(|(relative, was, is)| {
            let is_end = was.abs().min(is.abs()) >= FARTHEST && was.signum() == is.signum();
            let is_near = (was - is).abs() <= relative * was.abs().max(is.abs());
            !is_end && !is_near
        })
        .map(|(_, was, is)| (was, is))?;
    let output = ours.outputs.first().cloned().unwrap_or_default();
    let message = format!(
        "{output:?} ({}) goes by {is} where the reference goes by {was}, and no value that was seen \
         shows whether that matters",
        ours.op_type
    );
    Some(Diagnostic::error(codes::DRIFT_LIMIT, message).at(Place::node(output)))
}
