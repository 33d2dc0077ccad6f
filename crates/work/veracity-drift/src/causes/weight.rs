//! The original's weights in the place of the export's.
//!
//! Weights are found by their position in the slice, by their name in the original, and by their
//! shape: they may have been renamed, transposed, or folded into others on the way.

use std::borrow::Cow;

use veracity_results::CauseKind;
use veracity_tensor::{Shape, SharedTensor, Tensor, TensorView};

use crate::causes::attribute::stands_for_attribute;
use crate::causes::fold::folded_batch_norm;
use crate::causes::pairing::Held;
use crate::causes::slice::Slice;
use crate::causes::trial::{Outcome, Trial, compared};
use crate::convert::cast;
use crate::values::view;

/// Most runs for one row; what is found is found in the first few.
const MOST_TRIALS: usize = 32;

/// A weight of the export, with what the original may have in its place.
struct Weight {
    name: String,
    options: Vec<Tensor>,
}

pub(crate) fn experiment(trial: &Trial<'_>) -> Outcome {
    let weights = weights(trial);
    let tried = weights.iter().flat_map(|weight| {
        let named = |option| (weight.name.as_str(), option);
        weight.options.iter().map(named)
    });
    for (name, option) in tried.take(MOST_TRIALS) {
        if trial.right(&trial.slice.with_constant(name, option)) {
            return explained(describe(trial, name, option));
        }
    }
    let differing: Vec<&Weight> =
        weights.iter().filter(|weight| !weight.options.is_empty()).collect();
    if differing.len() > 1 {
        let all = differing.iter().fold(trial.slice.clone(), |slice, weight| {
            slice.with_constant(&weight.name, &weight.options[0])
        });
        if trial.right(&all) {
            let each = differing.iter().map(|one| describe(trial, &one.name, &one.options[0]));
            return explained(each.collect::<Vec<_>>().join("; "));
        }
    }
    match (weights.len(), differing.len()) {
        (0, _) => Outcome::NotApplicable,
        (count, 0) => Outcome::RuledOut(format!(
            "weights: the original has no others in its place for {count}"
        )),
        (_, others) => Outcome::RuledOut(format!(
            "weights: with the original's in the place of {others} it is still off by more than \
             allowed"
        )),
    }
}

fn explained(detail: String) -> Outcome {
    Outcome::Explained { kind: CauseKind::WeightBitMismatch, detail }
}

/// Weights of the export: constants first, then what is computed from constants.
fn weights(trial: &Trial<'_>) -> Vec<Weight> {
    let (constants, folded): (&[Held], &[Held]) = match &trial.original {
        Some((_, pairs)) => (&pairs.constants, &pairs.folded),
        None => (&[], &[]),
    };
    let mut weights = Vec::new();
    for name in trial.slice.constants() {
        let Some(found) = trial.slice.constant(&name) else { continue };
        if !found.dtype().is_float() || !is_weight(trial, &name, &found) {
            continue;
        }
        let paired = constants.iter().chain(folded).find(|held| held.export == name);
        weights.push(Weight { options: options(trial, &name, &found, paired), name });
    }
    let computed = folded.iter().filter(|held| trial.slice.constant(&held.export).is_none());
    for held in computed {
        let option =
            trial.original.as_ref().and_then(|(original, _)| original.constant(&held.original));
        weights.push(Weight { name: held.export.clone(), options: option.into_iter().collect() });
    }
    weights
}

/// Whether a constant is a weight wherever it is read.
fn is_weight(trial: &Trial<'_>, name: &str, found: &Tensor) -> bool {
    let known = trial.named.contains_key(name);
    trial.slice.operators().iter().all(|node| {
        let reads = node.inputs.iter().enumerate().filter(|(_, input)| *input == name);
        reads
            .into_iter()
            .all(|(position, _)| !stands_for_attribute(&node.op_type, position, found, known))
    })
}

/// What the original may have in the place of a constant; nothing when it has the same bits.
fn options(trial: &Trial<'_>, name: &str, found: &Tensor, paired: Option<&Held>) -> Vec<Tensor> {
    let mut sources: Vec<Tensor> = Vec::new();
    if let Some((original, _)) = &trial.original {
        sources.extend(paired.and_then(|held| {
            original.constant(&held.original).or_else(|| computed(trial, original, held, found))
        }));
        sources.extend(original.constant(name));
        if paired.is_none() {
            sources.extend(original.constants().iter().filter_map(|name| original.constant(name)));
        }
        sources.extend(folded_batch_norm(original));
    }
    // Last: a weight that something was folded into keeps its name.
    sources.extend(trial.named.get(name).and_then(tensor_of));
    let rounded = |source: Tensor| cast(&source, found.dtype()).map(Cow::into_owned);
    let sources: Vec<Tensor> = sources.into_iter().filter_map(rounded).collect();
    if sources.contains(found) {
        return Vec::new();
    }
    let mut options: Vec<Tensor> = Vec::new();
    for source in sources {
        let turned = transposed(&source);
        for option in [Some(source), turned].into_iter().flatten() {
            if option.shape() == found.shape() && option != *found && !options.contains(&option) {
                options.push(option);
            }
        }
    }
    options
}

/// What the original computes from constants where the export holds the result.
fn computed(trial: &Trial<'_>, original: &Slice, held: &Held, like: &Tensor) -> Option<Tensor> {
    let part = original.before(&held.original)?;
    let value = part.run(trial.engine, trial.session, like.shape()).ok()?;
    tensor_of(&value)
}

fn tensor_of(value: &SharedTensor) -> Option<Tensor> {
    view(value).ok().map(|value| value.to_tensor())
}

/// A matrix with its axes exchanged.
fn transposed(tensor: &Tensor) -> Option<Tensor> {
    let &[rows, columns] = tensor.shape().dims() else { return None };
    let shape = Shape::new([columns, rows])?;
    let strides = [1, columns.cast_signed()];
    let view = TensorView::strided(tensor.dtype(), &shape, &strides, 0, tensor.bytes());
    view.ok().map(|view| view.to_tensor())
}

fn describe(trial: &Trial<'_>, name: &str, option: &Tensor) -> String {
    let Some(found) = trial.slice.constant(name) else {
        return format!("`{name}`, which the export computes from constants, is another one");
    };
    if transposed(option).is_some_and(|turned| turned == found) {
        return format!("`{name}` is the original's, transposed");
    }
    match compared(option, &found) {
        Some(measured) => {
            let count = measured.differing + measured.non_finite.mismatching;
            let of = measured.elements;
            let most =
                if measured.non_finite.mismatching > 0 { f64::INFINITY } else { measured.max_abs };
            format!(
                "`{name}` differs from the original in {count} of {of} elements, by up to {most:.2e}"
            )
        }
        None => format!("`{name}` is another one than the original's"),
    }
}
