//! Judges runs of elements of one tensor by tolerances of their own.
//!
//! A tensor that holds torques of 1e-7 beside positions of 1e3 has no one tolerance: what leaves room
//! for the rounding of the positions says nothing about the torques.

use veracity_compare::{MeasureOptions, measure};
use veracity_diag::{Diagnostic, Result, codes};
use veracity_results::{Measurement, Tolerance, TolerancePart, Worst};
use veracity_tensor::{Shape, TensorView};

/// Elements that are outside of the tolerance of their run.
#[derive(Debug)]
pub(crate) struct Outside {
    count: u64,
    /// The one that is farthest outside, in multiples of what is allowed there.
    worst: Worst,
    tolerance: Tolerance,
}

impl Outside {
    /// Puts what was found into the measurement of the whole tensor.
    pub(crate) fn write_into(&self, measurement: &mut Measurement) {
        measurement.outside = measurement.outside.max(self.count);
        measurement.worst = Some(self.worst.clone());
    }

    pub(crate) fn reason(&self, elements: u64) -> Diagnostic {
        let Worst { index, reference, candidate } = &self.worst;
        let (atol, rtol) = (self.tolerance.atol(), self.tolerance.rtol());
        let message = format!(
            "{} of {elements} values are outside of the tolerance of their elements, the worst at \
             {index:?} (reference {reference}, candidate {candidate}) of atol {atol} + rtol {rtol}",
            self.count
        );
        Diagnostic::error(codes::COMPARE_OUTSIDE, message)
    }
}

/// Measures each run of elements by its tolerance; the runs begin anew when they end before the
/// tensor does. `None` when all elements are inside.
pub(crate) fn measure_parts(
    reference: &TensorView<'_>,
    candidate: &TensorView<'_>,
    parts: &[TolerancePart],
) -> Result<Option<Outside>> {
    let (left, right) = (reference.to_tensor(), candidate.to_tensor());
    let (size, total) = (reference.dtype().size(), reference.shape().elements());
    let mut found: Option<Outside> = None;
    let mut farthest = 1.0;
    let mut start = 0;
    for part in parts.iter().filter(|part| part.elements > 0).cycle() {
        if start >= total {
            break;
        }
        let end = total.min(start + part.elements);
        let shape = Shape::new([end - start]).expect("a part is smaller than the whole");
        let bytes = start * size..end * size;
        let measured = measure(
            &TensorView::new(reference.dtype(), &shape, &left.bytes()[bytes.clone()])?,
            &TensorView::new(candidate.dtype(), &shape, &right.bytes()[bytes])?,
            &MeasureOptions::new(part.tolerance).with_threads(1),
        )?;
        if let (true, Some(worst)) = (measured.outside > 0, measured.worst) {
            let count = measured.outside + found.as_ref().map_or(0, |found| found.count);
            let ratio =
                measured.max_abs / part.tolerance.bound(worst.reference).max(f64::MIN_POSITIVE);
            let index = unravelled(start + worst.index[0], reference.shape().dims());
            match &mut found {
                Some(found) if ratio <= farthest => found.count = count,
                _ => {
                    farthest = ratio;
                    let worst = Worst { index, ..worst };
                    found = Some(Outside { count, worst, tolerance: part.tolerance });
                }
            }
        }
        start = end;
    }
    Ok(found)
}

/// The position along each axis of an element in row-major order.
fn unravelled(mut element: usize, dims: &[usize]) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for (place, size) in index.iter_mut().zip(dims).rev() {
        *place = element % size;
        element /= size;
    }
    index
}

#[cfg(test)]
mod tests {
    use veracity_tensor::Tensor;

    use super::*;

    fn part(elements: usize, atol: f64) -> TolerancePart {
        TolerancePart { elements, tolerance: Tolerance::new(atol, 1e-3).unwrap() }
    }

    fn count(reference: [f32; 4], candidate: [f32; 4], parts: &[TolerancePart]) -> u64 {
        let [reference, candidate] =
            [reference, candidate].map(|values| Tensor::from_slice([2, 2], &values).unwrap());
        let found = measure_parts(&reference.view(), &candidate.view(), parts).unwrap();
        found.map_or(0, |found| found.count)
    }

    #[test]
    fn each_run_is_judged_by_its_own_tolerance() {
        let reference = [1e-7, 1e3, -2e-7, 0.0];
        let small_and_large = [part(1, 1e-10), part(1, 1e-3)];
        for (candidate, outside) in [
            (reference, 0),
            ([1e-7, 1000.5, -2e-7, 5e-4], 0),
            ([-1e-7, 1e3, 2e-7, 0.0], 2),
            ([0.0, 1e3, -2e-7, 0.0], 1),
            ([1e-7, 1002.0, -2e-7, 0.0], 1),
        ] {
            assert_eq!(count(reference, candidate, &small_and_large), outside, "{candidate:?}");
        }
    }

    #[test]
    fn the_worst_element_is_named_where_it_lies_in_the_tensor() {
        let reference = Tensor::from_slice([2, 2], &[1e-7_f32, 1e3, 1e-7, 1e3]).unwrap();
        let candidate = Tensor::from_slice([2, 2], &[1e-7_f32, 1000.5, -1e-7, 1e3]).unwrap();
        let parts = [part(1, 1e-10), part(1, 1e-3)];
        let found = measure_parts(&reference.view(), &candidate.view(), &parts).unwrap().unwrap();
        assert_eq!(found.worst.index, [1, 0]);
        assert!(found.reason(4).message.starts_with("1 of 4 values are outside"));
    }
}
