//! Judges a measurement by a tolerance. A pure function: the tensors may be long gone.

use veracity_diag::{Diagnostic, codes};
use veracity_results::{Measurement, NonFinite, Tolerance, Worst};

/// Room for the roundings of a bound, relative to the numbers that made it.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// What a measurement says about a tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Every pair is within the tolerance, or there is none.
    Proved,
    /// A pair is not.
    Disproved,
    /// The measurement was taken with another tolerance and cannot tell: measure again.
    Undecided,
}

/// Judges a measurement by a tolerance. The rules for NaN, infinities and empty tensors are those
/// of the [crate].
///
/// With the tolerance that the measurement was taken with, the answer is always definite. With
/// another one it is definite where the recorded extremes decide it.
pub fn judge(measurement: &Measurement, tolerance: Tolerance, equal_nan: bool) -> Judgement {
    if non_finite_fails(&measurement.non_finite, equal_nan) {
        return Judgement::Disproved;
    }
    // A record that does not account for every element proves nothing.
    if measurement.compared.checked_add(not_compared(&measurement.non_finite))
        != Some(measurement.elements)
    {
        return Judgement::Undecided;
    }
    judge_numbers(measurement, tolerance)
}

/// Judges the pairs in which both sides are finite.
fn judge_numbers(measurement: &Measurement, tolerance: Tolerance) -> Judgement {
    if measurement.differing == 0 {
        return Judgement::Proved;
    }
    if tolerance == measurement.tolerance {
        let inside = measurement.outside == 0;
        return if inside { Judgement::Proved } else { Judgement::Disproved };
    }
    if surely_inside(measurement, tolerance) {
        Judgement::Proved
    } else if surely_outside(measurement, tolerance) {
        Judgement::Disproved
    } else {
        Judgement::Undecided
    }
}

/// Why a measurement is not proved: one finding for numbers outside of the tolerance, one for NaN
/// and infinities. Empty when [`judge`] says [`Judgement::Proved`].
pub fn reasons(
    measurement: &Measurement,
    tolerance: Tolerance,
    equal_nan: bool,
) -> Vec<Diagnostic> {
    match judge(measurement, tolerance, equal_nan) {
        Judgement::Proved => Vec::new(),
        Judgement::Undecided => vec![undecided_reason()],
        Judgement::Disproved => {
            let failing = non_finite_fails(&measurement.non_finite, equal_nan);
            let non_finite = failing.then(|| non_finite_reason(&measurement.non_finite));
            let numbers = judge_numbers(measurement, tolerance) == Judgement::Disproved;
            let outside = numbers.then(|| outside_reason(measurement, tolerance));
            non_finite.into_iter().chain(outside).collect()
        }
    }
}

fn non_finite_fails(non_finite: &NonFinite, equal_nan: bool) -> bool {
    non_finite.mismatching > 0 || (non_finite.matching_nan > 0 && !equal_nan)
}

fn not_compared(non_finite: &NonFinite) -> u64 {
    non_finite
        .matching_nan
        .saturating_add(non_finite.matching_inf)
        .saturating_add(non_finite.mismatching)
}

/// Whether every compared pair is inside, by what was recorded.
fn surely_inside(measured: &Measurement, tolerance: Tolerance) -> bool {
    let (atol, rtol) = (tolerance.atol(), tolerance.rtol());
    let counted = measured.tolerance;
    let wider = atol >= counted.atol() && rtol >= counted.rtol() && measured.outside == 0;
    let reaches_min_atol = atol >= measured.min_atol && rtol >= counted.rtol();
    // `max_rel` leaves out references that are 0, so it only speaks where there is none.
    let no_zero = measured.reference_range.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
    let relative = no_zero && measured.max_rel <= rtol * (1.0 - ROUNDING);
    measured.max_abs <= atol || wider || reaches_min_atol || relative
}

/// Whether some compared pair is outside, by what was recorded.
fn surely_outside(measured: &Measurement, tolerance: Tolerance) -> bool {
    let (atol, rtol) = (tolerance.atol(), tolerance.rtol());
    let counted = measured.tolerance;
    let narrower = atol <= counted.atol() && rtol <= counted.rtol() && measured.outside > 0;
    let beyond = |worst: &Worst| error_of(worst) > tolerance.bound(worst.reference);
    let worst = measured.worst.as_ref().is_some_and(beyond)
        || measured.max_abs > tolerance.bound(measured.max_abs_reference);
    // The pair that set `min_atol` fails, unless its bound is rounded up: leave room for that.
    let room = measured.max_abs * ROUNDING;
    let below_min_atol = rtol <= counted.rtol() && atol + room < measured.min_atol;
    let relative = atol == 0.0 && measured.max_rel * (1.0 - ROUNDING) > rtol;
    narrower || worst || below_min_atol || relative
}

fn error_of(worst: &Worst) -> f64 {
    (worst.candidate - worst.reference).abs()
}

fn undecided_reason() -> Diagnostic {
    Diagnostic::error(
        codes::COMPARE_UNDECIDED,
        "the measurement was taken with another tolerance and cannot decide this one",
    )
    .hint("measure again with this tolerance")
}

fn outside_reason(measured: &Measurement, tolerance: Tolerance) -> Diagnostic {
    let (atol, rtol) = (tolerance.atol(), tolerance.rtol());
    let place = measured.worst.as_ref().map_or_else(String::new, |worst| {
        let (reference, candidate) = (worst.reference, worst.candidate);
        let at = format!("at {:?} (reference {reference}, candidate {candidate})", worst.index);
        let share = error_of(worst) / tolerance.bound(reference);
        if error_of(worst).to_bits() == measured.max_abs.to_bits() {
            return format!(" {at}");
        }
        format!("; farthest outside, by {share:.3} times what is allowed, is the one {at}")
    });
    let count = if tolerance == measured.tolerance {
        format!("{} of {} values are outside of", measured.outside, measured.elements)
    } else {
        "values are outside of".to_owned()
    };
    Diagnostic::error(
        codes::COMPARE_OUTSIDE,
        format!(
            "{count} atol {atol} + rtol {rtol}; the largest error is {}{place}",
            measured.max_abs
        ),
    )
}

fn non_finite_reason(non_finite: &NonFinite) -> Diagnostic {
    if non_finite.mismatching == 0 {
        let nan = non_finite.matching_nan;
        return Diagnostic::error(
            codes::COMPARE_OUTSIDE,
            format!("both sides hold {nan} NaN in the same places"),
        )
        .hint("accept them as equal with `equal_nan`, if they are meant to be there");
    }
    let first = non_finite
        .first_mismatch
        .as_ref()
        .map_or_else(String::new, |index| format!(", the first at {index:?}"));
    Diagnostic::error(
        codes::COMPARE_OUTSIDE,
        format!(
            "{} NaN or infinite values have no equal on the other side{first}",
            non_finite.mismatching
        ),
    )
}

#[cfg(test)]
mod tests;
