//! What each element of a wrong value may be off, for experiments on it.

use veracity_engine::{Engine, SessionOptions};
use veracity_results::DriftRow;
use veracity_tensor::{SharedTensor, Tensor};

use crate::causes::slice::Slice;
use crate::elements::Allowed;
use crate::noise::{Moved, nudged, with_moved_constants};
use crate::tiles::numbers;
use crate::values::{held, view};

/// Moves that are tried: experiments are about one operator, and a few are enough.
const MOVES: u64 = 4;
/// An error that points one way is held to this part of the budgets.
const ONE_WAY: f64 = 0.125;

/// Budgets of the elements; `None` where one budget holds for all.
pub(crate) fn room(
    row: &DriftRow,
    slice: &Slice,
    reference: &SharedTensor,
    found: &SharedTensor,
    (engine, session): (&dyn Engine, &SessionOptions),
) -> Option<Tensor> {
    let element = row.element.as_ref().filter(|_| row.scale > 0.0)?;
    let relative = row.budget / row.scale;
    let mut moved = Moved::new(reference.shape().elements());
    for seed in 0..MOVES {
        let again = shaken(slice, relative, seed).run(engine, session, reference.shape());
        if let Ok(again) = again {
            moved.add(&view(found).ok()?, &view(&again).ok()?);
        }
    }
    let allowed = Allowed { relative, limit: row.budget, moved: Some(&moved) };
    let share = if element.strain() > 1.0 { 1.0 } else { ONE_WAY };
    let values = numbers(&view(reference).ok()?, 0, reference.shape().elements());
    let budgets: Vec<f64> = values
        .iter()
        .enumerate()
        .map(|(position, &value)| share * allowed.of(reference.dtype(), position, value))
        .collect();
    Tensor::from_slice(reference.shape().clone(), &budgets).ok()
}

/// The same operators on moved inputs and constants.
fn shaken(slice: &Slice, relative: f64, seed: u64) -> Slice {
    let mut changed = slice.with_model(with_moved_constants(&slice.model, relative, seed));
    for (name, value) in &mut changed.values {
        if let Ok(was) = view(value) {
            *value = held(&nudged(&was.to_tensor(), relative, seed, name).view());
        }
    }
    changed
}

/// Whether a value is within the budgets of its elements.
pub(crate) fn is_within(reference: &SharedTensor, found: &SharedTensor, room: &Tensor) -> bool {
    let (Ok(reference), Ok(found)) = (view(reference), view(found)) else { return false };
    let count = room.shape().elements();
    if reference.shape() != room.shape() || found.shape() != room.shape() {
        return false;
    }
    let (was, is) = (numbers(&reference, 0, count), numbers(&found, 0, count));
    let budgets = numbers(&room.view(), 0, count);
    was.iter()
        .zip(&is)
        .zip(&budgets)
        .all(|((was, is), budget)| was.to_bits() == is.to_bits() || (was - is).abs() <= *budget)
}
