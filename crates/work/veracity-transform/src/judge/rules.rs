//! Says whether what came is what was there, as the class of a pass demands.

use veracity_compare::{MeasureOptions, measure};
use veracity_results::{Measurement, Tolerance};
use veracity_tensor::{DType, Tensor};

use super::values::{first_other_bits, unit_roundoff, widened};
use crate::Class;

/// Roundings of the largest value that two ways to compute the same may lie apart.
pub(super) const ROUNDINGS: f64 = 16.0;

/// How much farther from float64 what came may be than what was there.
const WORSE: f64 = 4.0;

/// How much farther apart the two may be than what one rounding of the inputs does.
const SENSITIVE: f64 = 8.0;

/// What decided, from the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    SameBits,
    Rounding,
    Float64,
    Perturbed,
    Limit,
}

impl Rule {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SameBits => "same bits",
            Self::Rounding => "rounding",
            Self::Float64 => "float64",
            Self::Perturbed => "perturbed",
            Self::Limit => "limit",
        }
    }
}

/// What was found about one pair of values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    Right,
    /// Too far apart for roundings; more must be known.
    Suspect,
    Wrong(String),
}

/// One pair of values, compared.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) outcome: Outcome,
    pub(super) rule: Rule,
    pub(super) max_abs: f64,
    pub(super) scale: f64,
}

/// What a pair is held to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) class: Class,
    /// Roundings of the largest value that are allowed.
    pub(super) roundings: f64,
    /// Most that an approximate pass may be off, relative to the largest value.
    pub(super) limit: f64,
    /// Whether the values are those of the model: what is not finite there must stay what it is.
    pub(super) is_real: bool,
}

/// Compares a pair.
pub(super) fn compare(before: &Tensor, after: &Tensor, demand: Demand) -> Row {
    let kind = |tensor: &Tensor| format!("{} {}", tensor.dtype(), tensor.shape());
    if (before.dtype(), before.shape()) != (after.dtype(), after.shape()) {
        let reason = format!("it was {} and is {}", kind(before), kind(after));
        let outcome = Outcome::Wrong(reason);
        return Row { outcome, rule: Rule::SameBits, max_abs: f64::INFINITY, scale: 0.0 };
    }
    let Some(first) = first_other_bits(before, after) else {
        return Row { outcome: Outcome::Right, rule: Rule::SameBits, max_abs: 0.0, scale: 0.0 };
    };
    let found = measured(before, after);
    let (max_abs, scale) = (found.max_abs, found.max_abs_reference);
    // Engines compute half precision in float32 and round where they hand a value over, which
    // depends on what stands beside it: the same nodes give other bits in other surroundings.
    let is_half = matches!(before.dtype(), DType::F16 | DType::BF16);
    let exact = (demand.class == Class::ExactBits && !is_half) || !before.dtype().is_float();
    if exact {
        let at = before.shape().index_from_flat(first);
        let outcome = Outcome::Wrong(format!("other bits at {at:?}, {}", apart(&found)));
        return Row { outcome, rule: Rule::SameBits, max_abs, scale };
    }
    let lost = not_finite_any_more(&found, demand.is_real);
    let (outcome, rule) = match demand.class {
        Class::ChangesComputation => (Outcome::Right, Rule::Limit),
        _ if lost > 0 => {
            let reason = format!("{lost} elements are NaN or infinite on one side only");
            (Outcome::Wrong(reason), Rule::Rounding)
        }
        Class::Approximate if max_abs <= demand.limit * scale => (Outcome::Right, Rule::Limit),
        Class::Approximate => {
            let most = demand.limit * scale;
            (Outcome::Wrong(format!("{}, of {most:.3e} allowed", apart(&found))), Rule::Limit)
        }
        _ if max_abs <= demand.roundings * unit_roundoff(before.dtype()) * scale => {
            (Outcome::Right, Rule::Rounding)
        }
        _ => (Outcome::Suspect, Rule::Rounding),
    };
    Row { outcome, rule, max_abs, scale }
}

/// Decides by the value in float64: what came may be a little farther from it than what was there.
pub(super) fn by_float64(row: &Row, before: &Tensor, after: &Tensor, exact: &Tensor) -> Outcome {
    if exact.shape() != before.shape() || exact.dtype() != DType::F64 {
        return Outcome::Suspect;
    }
    let was = measured(exact, &widened(before));
    let is = measured(exact, &widened(after));
    let floor = ROUNDINGS * unit_roundoff(before.dtype()) * row.scale;
    let allowed = (WORSE * was.max_abs).max(floor);
    if is.max_abs <= allowed {
        return Outcome::Right;
    }
    Outcome::Wrong(format!(
        "it is {:.3e} from the value in float64; before it was {:.3e}, and {allowed:.3e} is allowed",
        is.max_abs, was.max_abs
    ))
}

/// Decides by what one rounding of the inputs does to what was there.
pub(super) fn by_perturbation(row: &Row, before: &Tensor, moved: &Tensor) -> Outcome {
    let swing = swing(before, moved);
    if swing.is_nan() {
        return Outcome::Suspect;
    }
    if row.max_abs <= SENSITIVE * swing {
        return Outcome::Right;
    }
    Outcome::Wrong(format!(
        "it is off by {:.3e} where values reach {:.3e}; one rounding of the inputs moves them by \
         {swing:.3e}",
        row.max_abs, row.scale
    ))
}

/// How far two values of the same type and shape are apart; not a number for others.
pub(super) fn swing(before: &Tensor, moved: &Tensor) -> f64 {
    let same = (moved.dtype(), moved.shape()) == (before.dtype(), before.shape());
    if same { measured(before, moved).max_abs } else { f64::NAN }
}

fn measured(before: &Tensor, after: &Tensor) -> Measurement {
    let options = MeasureOptions::new(Tolerance::EXACT).with_threads(1);
    measure(&before.view(), &after.view(), &options).expect("dtype and shape are the same")
}

/// Elements that are not finite on one side only. Away from real values, one that was not finite
/// may become so: the other order of operations does not overflow.
fn not_finite_any_more(found: &Measurement, is_real: bool) -> u64 {
    let counts = &found.non_finite;
    if is_real {
        return counts.mismatching;
    }
    let after = counts.candidate_nan + counts.candidate_inf;
    after.saturating_sub(counts.reference_nan + counts.reference_inf).min(counts.mismatching)
}

fn apart(found: &Measurement) -> String {
    let (off, scale) = (found.max_abs, found.max_abs_reference);
    format!("up to {off:.3e} apart where values reach {scale:.3e}")
}
