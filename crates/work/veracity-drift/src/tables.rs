//! Tables that are read by index, compared as a whole: inputs read few of their rows.

use veracity_diag::{Diagnostic, Place, codes};
use veracity_onnx::{Model, NodeFacts};
use veracity_tensor::Tensor;

use crate::budget::Budget;
use crate::convert::{alike, floats, narrower};

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
                was.to_bits() != is.to_bits() && !((was - is).abs() <= relative * was.abs())
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
