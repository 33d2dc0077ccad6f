//! The same operators in a wider type.

use veracity_results::CauseKind;
use veracity_tensor::DType;

use crate::causes::pairing::{Held, pair};
use crate::causes::slice::Slice;
use crate::causes::trial::{Outcome, Trial};
use crate::convert::cast;

/// Operators that compute in integers of few bits.
const INTEGERS: [&str; 6] = [
    "ConvInteger",
    "DynamicQuantizeLinear",
    "MatMulInteger",
    "QLinearConv",
    "QLinearMatMul",
    "com.microsoft::MatMulNBits",
];

/// Operators that give a stored weight its wider type.
const WIDENING: [&str; 2] = ["DequantizeLinear", "Cast"];

pub(crate) fn experiment(trial: &Trial<'_>) -> Outcome {
    let narrow = trial.slice.model.narrow_parts();
    if narrow.is_empty() {
        return Outcome::NotApplicable;
    }
    let narrow = narrow.join(", ");
    let wide = trial.slice.widened();
    let error = trial.error(&wide);
    let explained = |with: &str, error: f64| Outcome::Explained {
        kind: CauseKind::PrecisionLoss,
        detail: format!(
            "narrow numbers ({narrow}): off by {:.2e}; {with} by {error:.2e}",
            trial.own_error()
        ),
    };
    if trial.allowed(error) {
        return explained("in float32", error);
    }
    let Some((original, _)) = &trial.original else {
        return Outcome::RuledOut(format!("precision: in float32 it is off by {error:.2e}"));
    };
    let with_weights = trial.error(&with_original_weights(trial, &wide, original));
    if trial.allowed(with_weights) {
        return explained("in float32 with the original's weights", with_weights);
    }
    // What computes in integers has no wider form of its own.
    let operators = trial.slice.operators();
    let integers = operators.iter().any(|node| INTEGERS.contains(&node.op_type.as_str()));
    if integers && original.model.narrow_parts().is_empty() && trial.right(original) {
        return explained("with the original's operators", trial.error(original));
    }
    Outcome::RuledOut(format!("precision: in float32 it is off by {error:.2e}"))
}

/// Weights that were stored narrow have lost what widening cannot bring back.
fn with_original_weights(trial: &Trial<'_>, wide: &Slice, original: &Slice) -> Slice {
    let is_wide = trial.row.dtype == "float32";
    let nodes = wide.operators();
    let stored_narrow = |held: &Held| {
        let giver = nodes.iter().find(|node| node.outputs.contains(&held.export));
        let weight = trial.slice.constant(&held.export);
        if let Some(weight) = weight.filter(|weight| is_half(weight.dtype())) {
            // Another weight is another fault.
            let there = original.constant(&held.original);
            return there
                .is_some_and(|there| cast(&there, weight.dtype()).as_deref() == Some(&weight));
        }
        is_wide && giver.is_some_and(|node| WIDENING.contains(&node.op_type.as_str()))
    };
    let pairs = pair(wide, original, None);
    let stored = pairs.constants.iter().chain(&pairs.folded).filter(|held| stored_narrow(held));
    stored.fold(wide.clone(), |slice, held| match original.constant(&held.original) {
        Some(weight) => slice.with_constant(&held.export, &weight),
        None => slice,
    })
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}
