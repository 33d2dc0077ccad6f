//! Counts two measurements together, as if the tensors had been one.

use veracity_results::{Measurement, NonFinite, Percentiles};

/// Adds `other` to `total`. Both were taken with the same tolerance.
///
/// What belongs to one tensor alone keeps its place there: `worst` and `first_mismatch` are positions
/// in the tensor that they were found in. Percentiles cannot be added; they are dropped.
pub fn merge(total: &mut Measurement, other: &Measurement) {
    debug_assert_eq!(total.tolerance, other.tolerance, "measurements of different questions");
    let compared = total.compared + other.compared;
    total.mean_abs = weighted(total.mean_abs, total.compared, other.mean_abs, other.compared);
    let squares =
        weighted(total.rms * total.rms, total.compared, other.rms * other.rms, other.compared);
    total.rms = squares.sqrt();
    if is_worse(other, total) || total.worst.is_none() {
        total.worst.clone_from(&other.worst);
    }
    total.elements += other.elements;
    total.compared = compared;
    total.differing += other.differing;
    total.outside += other.outside;
    total.max_abs = total.max_abs.max(other.max_abs);
    total.max_rel = total.max_rel.max(other.max_rel);
    total.max_abs_reference = total.max_abs_reference.max(other.max_abs_reference);
    total.min_atol = total.min_atol.max(other.min_atol);
    total.max_ulp = total.max_ulp.max(other.max_ulp);
    total.reference_range = union(total.reference_range, other.reference_range);
    total.candidate_range = union(total.candidate_range, other.candidate_range);
    total.percentiles = None::<Percentiles>;
    add_bins(&mut total.ulp_histogram, &other.ulp_histogram);
    add_non_finite(&mut total.non_finite, &other.non_finite);
}

/// Whether a measurement has the pair to look at first: the one that is farthest outside as a part of
/// its bound, and the larger error where none is.
fn is_worse(other: &Measurement, total: &Measurement) -> bool {
    let share = |one: &Measurement| {
        let worst = one.worst.as_ref().filter(|_| one.outside > 0)?;
        Some((worst.candidate - worst.reference).abs() / one.tolerance.bound(worst.reference))
    };
    match (share(other), share(total)) {
        (Some(other), Some(total)) => other > total,
        (other, total) if other.is_some() != total.is_some() => other.is_some(),
        _ => other.max_abs > total.max_abs,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a mean over 2^53 elements is rounded anyway")]
fn weighted(left: f64, left_count: u64, right: f64, right_count: u64) -> f64 {
    let count = left_count + right_count;
    if count == 0 {
        return 0.0;
    }
    left * (left_count as f64 / count as f64) + right * (right_count as f64 / count as f64)
}

fn union(left: Option<(f64, f64)>, right: Option<(f64, f64)>) -> Option<(f64, f64)> {
    match (left, right) {
        (Some((low, high)), Some((lower, higher))) => Some((low.min(lower), high.max(higher))),
        (one, other) => one.or(other),
    }
}

fn add_bins(total: &mut Vec<u64>, other: &[u64]) {
    if total.len() < other.len() {
        total.resize(other.len(), 0);
    }
    for (bin, count) in total.iter_mut().zip(other) {
        *bin += count;
    }
}

fn add_non_finite(total: &mut NonFinite, other: &NonFinite) {
    total.add_counts(other);
    if total.first_mismatch.is_none() {
        total.first_mismatch.clone_from(&other.first_mismatch);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use veracity_results::Tolerance;
    use veracity_tensor::Tensor;

    use super::*;
    use crate::{MeasureOptions, measure};

    fn measured(pairs: &[(f32, f32)]) -> Measurement {
        let side = |values: Vec<f32>| Tensor::from_slice([values.len()], &values).unwrap();
        let reference = side(pairs.iter().map(|pair| pair.0).collect());
        let candidate = side(pairs.iter().map(|pair| pair.1).collect());
        let options = MeasureOptions::new(Tolerance::new(0.1, 0.1).unwrap()).with_ulp_histogram();
        measure(&reference.view(), &candidate.view(), &options).unwrap()
    }

    proptest! {
        #[test]
        fn parts_counted_together_are_the_whole(
            pairs in prop::collection::vec(
                (
                    prop::sample::select(vec![0.0_f32, 1.0, -3.5, f32::NAN, f32::INFINITY]),
                    prop::sample::select(vec![0.0_f32, 1.25, -3.0, f32::NAN, f32::INFINITY]),
                ),
                0..40,
            ),
            cut in 0_usize..40,
        ) {
            let cut = cut.min(pairs.len());
            let mut total = measured(&pairs[..cut]);
            merge(&mut total, &measured(&pairs[cut..]));
            let mut whole = measured(&pairs);
            prop_assert!((total.mean_abs - whole.mean_abs).abs() < 1e-12);
            prop_assert!((total.rms - whole.rms).abs() < 1e-12);
            for one in [&mut total, &mut whole] {
                (one.mean_abs, one.rms, one.worst) = (0.0, 0.0, None);
                one.non_finite.first_mismatch = None;
            }
            prop_assert_eq!(total, whole);
        }
    }
}
