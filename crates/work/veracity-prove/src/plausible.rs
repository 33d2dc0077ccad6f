//! Whether the numbers of a measurement can all be true at once, give the verdict that is told, and be
//! about the values that they are said to be about.
//!
//! A proof that was edited by hand rarely holds together: an error that is larger than the largest, a
//! range that the reference never had, a mean above the root of the mean square.

use veracity_compare::{Judgement, MeasureOptions, judge, measure, merge};
use veracity_results::{Measurement, Tolerance, TolerancePart, Verdict, Worst};
use veracity_tensor::{DType, Shape, TensorView};

use crate::rejudge::within_parts;

/// Room for numbers that were written as decimals and added up in another order.
const ROOM: f64 = 1e-6;

/// A measurement with what it was judged by, and the verdict that is told.
pub(crate) struct Judged<'p> {
    pub(crate) measured: &'p Measurement,
    pub(crate) dtype: DType,
    pub(crate) tolerance: Tolerance,
    pub(crate) parts: &'p [TolerancePart],
    pub(crate) equal_nan: bool,
    pub(crate) verdict: Verdict,
}

/// Refuses a measurement that cannot be what it says, or does not give the verdict that is told.
pub(crate) fn check_measured(judged: &Judged<'_>) -> Result<(), String> {
    let Judged { measured, dtype, tolerance, parts, equal_nan, verdict } = *judged;
    // What was measured by another tolerance and judged again says nothing about single elements.
    if measured.tolerance != tolerance && !within_parts(measured, parts, equal_nan) {
        return Err("it was measured by another tolerance".to_owned());
    }
    let made = match judge(measured, tolerance, equal_nan) {
        Judgement::Proved => Verdict::Proved,
        Judgement::Disproved => Verdict::Disproved,
        Judgement::Undecided => Verdict::NotComparable,
    };
    if made != verdict {
        return Err(format!(
            "it is told to be {}, and its numbers say {}",
            verdict.word(),
            made.word()
        ));
    }
    match implausible(measured, dtype, tolerance) {
        Some(what) if verdict.holds() => {
            Err(format!("its numbers contradict each other: {what} cannot be"))
        }
        _ => Ok(()),
    }
}

/// What cannot be true in a measurement that holds by this tolerance.
fn implausible(measured: &Measurement, dtype: DType, tolerance: Tolerance) -> Option<&'static str> {
    let most = above(measured.max_abs);
    let odd = &measured.non_finite;
    let nan = odd.reference_nan.min(odd.candidate_nan);
    let infinite = odd.reference_inf.min(odd.candidate_inf);
    let special = odd.matching_nan + odd.matching_inf + odd.mismatching;
    let counts = measured.outside <= measured.differing && measured.differing <= measured.compared;
    let worst = measured.worst.as_ref();
    let checks = [
        (counts, "how many elements differ"),
        (measured.max_abs >= 0.0 && is_nothing_or_all(measured), "its largest error"),
        // The worst element lies anywhere within the tolerance of the largest value, and no further.
        (
            measured.max_abs <= above(tolerance.bound(measured.max_abs_reference)),
            "its largest error",
        ),
        (measured.mean_abs <= above(measured.rms), "its mean error"),
        (measured.rms <= most, "the root of its mean square"),
        (rises(measured, most), "its percentiles"),
        (odd.matching_nan <= nan && odd.matching_inf <= infinite, "its NaN and infinities"),
        (measured.compared + special == measured.elements, "how many elements were compared"),
        (has_all_distances(measured), "its distances in units in the last place"),
        (measured.outside > 0 || is_enough(measured), "the tolerance that it needs"),
        (worst.is_none_or(|worst| is_worst(worst, measured)), "its worst element"),
        (worst.is_none_or(|worst| is_as_far(worst, measured, dtype)), "its largest distance"),
        (ranges_fit(measured, most), "its ranges"),
    ];
    checks.into_iter().find_map(|(holds, what)| (!holds).then_some(what))
}

fn above(number: f64) -> f64 {
    number * (1.0 + ROOM) + f64::MIN_POSITIVE
}

/// Elements that differ have an error by every count, and those that do not have none.
fn is_nothing_or_all(measured: &Measurement) -> bool {
    let none = measured.max_abs == 0.0 && measured.max_ulp == 0;
    let no_part = measured.max_rel == 0.0 && measured.worst.is_none();
    (measured.differing == 0) == none && (measured.differing > 0 || no_part)
}

fn rises(measured: &Measurement, most: f64) -> bool {
    let Some(percentiles) = &measured.percentiles else { return true };
    let values = percentiles.named().map(|(_, value)| value);
    values.is_sorted() && values.iter().all(|value| (0.0..=most).contains(value))
}

/// Every pair has its distance, and the largest of them is in the last bin.
fn has_all_distances(measured: &Measurement) -> bool {
    let bins = &measured.ulp_histogram;
    let counted: u64 = bins.iter().sum();
    let last = u64::BITS - measured.max_ulp.leading_zeros();
    bins.is_empty() || (counted == measured.compared && bins.len() == last as usize + 1)
}

fn is_enough(measured: &Measurement) -> bool {
    measured.min_atol <= above(measured.tolerance.atol())
}

/// The worst element has the largest error, and none has a larger one as a part of its value.
fn is_worst(worst: &Worst, measured: &Measurement) -> bool {
    let error = (worst.candidate - worst.reference).abs();
    let part = if worst.reference == 0.0 { 0.0 } else { error / worst.reference.abs() };
    !error.is_finite()
        || ((error - measured.max_abs).abs() <= ROOM * measured.max_abs
            && part <= above(measured.max_rel))
}

/// The ends of two tensors are no farther apart than their elements are.
fn ranges_fit(measured: &Measurement, most: f64) -> bool {
    let (Some(there), Some(here)) = (measured.reference_range, measured.candidate_range) else {
        return true;
    };
    let room = most + ROOM * measured.max_abs_reference;
    let near = (there.0 - here.0).abs() <= room && (there.1 - here.1).abs() <= room;
    let ordered = there.0 <= there.1 && here.0 <= here.1;
    ordered && (near || measured.non_finite.mismatching > 0)
}

/// Whether a measurement can be one of these values: it has their number, their ends, their NaN and
/// infinities. What was not recorded says nothing against it.
pub(crate) fn is_about<'s>(
    measured: &Measurement,
    references: impl IntoIterator<Item = TensorView<'s>>,
) -> bool {
    let options = MeasureOptions::new(measured.tolerance).with_threads(1);
    let mut total: Option<Measurement> = None;
    for one in references {
        let Ok(own) = measure(&one, &one, &options) else { return false };
        match &mut total {
            Some(total) => merge(total, &own),
            None => total = Some(own),
        }
    }
    total.is_none_or(|own| {
        own.elements == measured.elements
            && own.compared == measured.compared
            && own.non_finite == measured.non_finite
            && own.reference_range == measured.reference_range
            && own.max_abs_reference.total_cmp(&measured.max_abs_reference).is_eq()
    })
}

/// Whether a tensor has this value at this place.
pub(crate) fn has(tensor: &TensorView<'_>, index: &[usize], value: f64) -> bool {
    element(tensor, index) == Some(value)
}

/// One element as a float64. Measuring it against itself gives it.
fn element(tensor: &TensorView<'_>, index: &[usize]) -> Option<f64> {
    let dims = tensor.shape().dims();
    let lies_in_it =
        index.len() == dims.len() && index.iter().zip(dims).all(|(at, size)| at < size);
    if !lies_in_it {
        return None;
    }
    let place = index.iter().zip(dims).fold(0, |place, (at, size)| place * size + at);
    let mut bytes = vec![0; tensor.dtype().size()];
    tensor.copy_elements(place, &mut bytes);
    let one = TensorView::new(tensor.dtype(), &Shape::new([1])?, &bytes).ok()?.to_tensor();
    let own = measure(&one.view(), &one.view(), &MeasureOptions::new(Tolerance::EXACT)).ok()?;
    own.reference_range.map(|(value, _)| value)
}

/// Whether the largest distance in units in the last place is at least that of the worst element.
/// Units are largest at the larger of the two numbers, so that no more than this is sure.
fn is_as_far(worst: &Worst, measured: &Measurement, dtype: DType) -> bool {
    let (digits, smallest_exponent) = match dtype {
        DType::F16 => (10.0, -14.0),
        DType::BF16 => (7.0, -126.0),
        DType::F32 => (23.0, -126.0),
        DType::F64 => (52.0, -1022.0),
        _ => return true, // Integers have no such distance.
    };
    let size = worst.reference.abs().max(worst.candidate.abs());
    let exponent = size.log2().floor().max(smallest_exponent);
    let least = (worst.candidate - worst.reference).abs() / (exponent - digits).exp2();
    #[expect(clippy::cast_precision_loss, reason = "there is room for it")]
    let most = measured.max_ulp as f64;
    !least.is_finite() || least.floor() <= above(most)
}
