//! Whether the numbers of a measurement can all be true at once.
//!
//! A proof that was edited by hand rarely holds together: an error that is larger than the largest, a
//! range that the reference never had, a mean above the root of the mean square.

use veracity_compare::{MeasureOptions, measure};
use veracity_results::Measurement;
use veracity_tensor::TensorView;

/// Room for numbers that were written as decimals and added up in another order.
const ROOM: f64 = 1e-6;

/// What cannot be true in a measurement.
pub(crate) fn implausible(measured: &Measurement) -> Option<&'static str> {
    let most = measured.max_abs * (1.0 + ROOM) + f64::MIN_POSITIVE;
    let odd = &measured.non_finite;
    let nan = odd.reference_nan.min(odd.candidate_nan);
    let infinite = odd.reference_inf.min(odd.candidate_inf);
    let special = odd.matching_nan + odd.matching_inf + odd.mismatching;
    let checks = [
        (measured.mean_abs <= measured.rms * (1.0 + ROOM) + f64::MIN_POSITIVE, "its mean error"),
        (rises(measured, most), "its percentiles"),
        (odd.matching_nan <= nan && odd.matching_inf <= infinite, "its NaN and infinities"),
        (measured.compared + special == measured.elements, "how many elements were compared"),
        (has_all_distances(measured), "its distances in units in the last place"),
        (measured.outside > 0 || is_enough(measured), "the tolerance that it needs"),
        (ranges_fit(measured, most), "its ranges"),
    ];
    checks.into_iter().find_map(|(holds, what)| (!holds).then_some(what))
}

fn rises(measured: &Measurement, most: f64) -> bool {
    let Some(percentiles) = &measured.percentiles else { return true };
    let values = percentiles.named().map(|(_, value)| value);
    values.is_sorted() && values.iter().all(|value| (0.0..=most).contains(value))
}

fn has_all_distances(measured: &Measurement) -> bool {
    let counted: u64 = measured.ulp_histogram.iter().sum();
    measured.ulp_histogram.is_empty() || counted == measured.compared
}

fn is_enough(measured: &Measurement) -> bool {
    measured.min_atol <= measured.tolerance.atol() * (1.0 + ROOM) + f64::MIN_POSITIVE
}

/// The ends of two tensors are no farther apart than their elements are.
fn ranges_fit(measured: &Measurement, most: f64) -> bool {
    let (Some(there), Some(here)) = (measured.reference_range, measured.candidate_range) else {
        return true;
    };
    let room = most + ROOM * measured.max_abs_reference;
    let size = measured.max_abs_reference * (1.0 + ROOM) + f64::MIN_POSITIVE;
    let is_within = measured.worst.as_ref().is_none_or(|worst| {
        !worst.reference.is_finite()
            || (worst.reference >= there.0 - ROOM * size
                && worst.reference <= there.1 + ROOM * size)
    });
    let near = (there.0 - here.0).abs() <= room && (there.1 - here.1).abs() <= room;
    let ordered = there.0 <= there.1 && here.0 <= here.1;
    let sized = there.0.abs() <= size && there.1.abs() <= size;
    ordered && sized && is_within && (near || measured.non_finite.mismatching > 0)
}

/// Whether a measurement can be one of this reference: it has its ends, and the worst element.
pub(crate) fn is_about(measured: &Measurement, reference: &TensorView<'_>) -> bool {
    let dims = reference.shape().dims();
    let lies_in_it = measured.worst.as_ref().is_none_or(|worst| {
        worst.index.len() == dims.len() && worst.index.iter().zip(dims).all(|(at, size)| at < size)
    });
    let own = measure(reference, reference, &MeasureOptions::new(measured.tolerance));
    lies_in_it && own.is_ok_and(|own| own.reference_range == measured.reference_range)
}
