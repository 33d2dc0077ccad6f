//! Asks whether two tensors differ by the order of their axes only.

use veracity_results::Tolerance;
use veracity_tensor::{DType, Shape, TensorView};

use crate::accumulate::Accumulator;
use crate::pairs::TileReader;
use crate::plan::Plan;

/// Ranks that are searched: 6 axes have 720 orders, and no common layout has more.
const RANKS: std::ops::RangeInclusive<usize> = 2..=6;

/// An order of the candidate's axes that makes it agree with the reference: axis `i` of the
/// reference is axis `order[i]` of the candidate. The first in lexicographic order.
///
/// `None` when no order helps, when none is needed (the two agree as they are), when the dtypes
/// differ, and outside of rank 2 to 6. NaN and infinities agree with their equals here: the
/// question is where the values are, not whether they are good.
pub fn find_permutation(
    reference: &TensorView<'_>,
    candidate: &TensorView<'_>,
    tolerance: Tolerance,
) -> Option<Vec<usize>> {
    if !may_be_permuted(reference, candidate) {
        return None;
    }
    if reference.shape() == candidate.shape() && agree(reference, candidate, tolerance) {
        return None;
    }
    let owned;
    let bytes = if let Some(bytes) = candidate.contiguous_bytes() {
        bytes
    } else {
        owned = candidate.to_bytes();
        &owned
    };
    orders(reference.shape().dims(), candidate.shape().dims()).into_iter().find(|order| {
        permuted(candidate.dtype(), candidate.shape(), order, bytes)
            .is_some_and(|view| agree(reference, &view, tolerance))
    })
}

/// Whether dtype, rank and the sizes of the axes, in any order, are alike.
fn may_be_permuted(reference: &TensorView<'_>, candidate: &TensorView<'_>) -> bool {
    let sizes = |view: &TensorView<'_>| {
        let mut sizes = view.shape().dims().to_vec();
        sizes.sort_unstable();
        sizes
    };
    reference.dtype() == candidate.dtype()
        && RANKS.contains(&reference.shape().rank())
        && sizes(reference) == sizes(candidate)
}

/// Every order of the candidate's axes that gives the sizes of the reference, but the one that
/// changes nothing. Axes of size 1 keep their order among themselves: moving them past each
/// other moves no element.
fn orders(reference: &[usize], candidate: &[usize]) -> Vec<Vec<usize>> {
    let mut partial: Vec<Vec<usize>> = vec![Vec::new()];
    for &size in reference {
        let mut longer = Vec::new();
        for order in partial {
            let fits = |axis: &usize| candidate[*axis] == size && !order.contains(axis);
            let choices = if size == 1 { 1 } else { usize::MAX };
            for axis in (0..candidate.len()).filter(fits).take(choices) {
                longer.push([order.as_slice(), &[axis]].concat());
            }
        }
        partial = longer;
    }
    partial.retain(|order| !order.is_sorted());
    partial
}

/// The tensor in `bytes` with its axes in another order.
fn permuted<'a>(
    dtype: DType,
    shape: &Shape,
    order: &[usize],
    bytes: &'a [u8],
) -> Option<TensorView<'a>> {
    let strides = shape.contiguous_strides();
    let sizes: Vec<usize> = order.iter().map(|&axis| shape.dims()[axis]).collect();
    let strides: Vec<isize> = order.iter().map(|&axis| strides[axis]).collect();
    TensorView::strided(dtype, &Shape::new(sizes)?, &strides, 0, bytes).ok()
}

/// Whether every pair is within the tolerance; stops at the first tile that holds one that is not.
pub(crate) fn agree(
    reference: &TensorView<'_>,
    candidate: &TensorView<'_>,
    tolerance: Tolerance,
) -> bool {
    let elements = reference.shape().elements();
    let plan = Plan::new(elements, 1);
    let mut reader = TileReader::new(reference, candidate, plan.tile);
    let mut errors = vec![0.0; plan.tile];
    (0..elements).step_by(plan.tile).all(|first| {
        let tile = reader.tile(first, plan.tile.min(elements - first));
        let mut totals = Accumulator::new(tolerance);
        totals.add_tile(plan.set, tile.values, first, &mut errors);
        totals.outside == 0 && totals.non_finite.mismatching() == 0
    })
}

#[cfg(test)]
mod tests {
    use veracity_tensor::Tensor;

    use super::*;

    /// A tensor whose elements all differ.
    fn counting(shape: impl Into<Shape>) -> Tensor {
        let shape = shape.into();
        let mut tensor = Tensor::zeros(DType::F32, shape);
        let mut next = 0.0_f32;
        for value in tensor.as_mut_slice::<f32>().unwrap() {
            *value = next;
            next += 1.0;
        }
        tensor
    }

    fn transposed(tensor: &Tensor, order: &[usize]) -> Tensor {
        permuted(tensor.dtype(), tensor.shape(), order, tensor.bytes()).unwrap().to_tensor()
    }

    fn find(reference: &Tensor, candidate: &Tensor) -> Option<Vec<usize>> {
        find_permutation(&reference.view(), &candidate.view(), Tolerance::EXACT)
    }

    #[test]
    fn the_order_of_axes_is_found() {
        for (shape, order) in [
            (vec![3, 3], vec![1, 0]),
            (vec![2, 3], vec![1, 0]),
            (vec![1, 3], vec![1, 0]),
            (vec![2, 8, 5, 5], vec![0, 2, 3, 1]),
            (vec![2, 3, 4, 5, 3, 2], vec![5, 3, 1, 0, 2, 4]),
            (vec![40, 1, 60, 1], vec![2, 0, 1, 3]),
        ] {
            let candidate = counting(Shape::new(shape.clone()).unwrap());
            let reference = transposed(&candidate, &order);
            assert_eq!(find(&reference, &candidate), Some(order), "{shape:?}");
        }
    }

    #[test]
    fn layouts_that_are_mixed_up_are_found_in_both_directions() {
        for (what, shape, order, back) in [
            ("NCHW and NHWC", vec![2, 3, 5, 7], vec![0, 2, 3, 1], vec![0, 3, 1, 2]),
            ("NCHW and NHWC, square", vec![2, 4, 4, 4], vec![0, 2, 3, 1], vec![0, 3, 1, 2]),
            ("NCHW and CHWN", vec![2, 3, 5, 7], vec![1, 2, 3, 0], vec![3, 0, 1, 2]),
            ("BTC and BCT", vec![2, 9, 4], vec![0, 2, 1], vec![0, 2, 1]),
            ("a matrix and its transpose", vec![6, 4], vec![1, 0], vec![1, 0]),
        ] {
            let first = counting(Shape::new(shape).unwrap());
            let second = transposed(&first, &order);
            assert_eq!(find(&second, &first), Some(order), "{what}");
            assert_eq!(find(&first, &second), Some(back), "{what}, back");
        }
    }

    #[test]
    fn noise_and_other_sizes_are_no_layout() {
        let first = counting([2, 3, 4, 4]);
        let mut noise = transposed(&first, &[0, 2, 3, 1]);
        for (index, value) in noise.as_mut_slice::<f32>().unwrap().iter_mut().enumerate() {
            *value += if index % 2 == 0 { 0.25 } else { -0.25 };
        }
        assert_eq!(find(&noise, &first), None);
        let within = Tolerance::new(0.3, 0.0).unwrap();
        let found = find_permutation(&noise.view(), &first.view(), within);
        assert_eq!(found, Some(vec![0, 2, 3, 1]), "a tolerance that covers the noise");
        assert_eq!(find(&counting([2, 3, 4, 5]), &first), None);
        assert_eq!(find(&counting([2, 48]), &first), None);
    }

    #[test]
    fn what_no_order_explains_is_left_alone() {
        let square = counting([3, 3]);
        let mut wrong = transposed(&square, &[1, 0]);
        wrong.as_mut_slice::<f32>().unwrap()[8] += 1.0;
        for (what, reference, candidate) in [
            ("already equal", square.clone(), square.clone()),
            ("one value off", wrong, square.clone()),
            ("other sizes", counting([9, 1]), square.clone()),
            ("rank 1", counting([9]), counting([9])),
            ("empty", counting([0, 3]), counting([0, 3])),
            ("other dtype", square, Tensor::zeros(DType::F64, [3, 3].into())),
        ] {
            assert_eq!(find(&reference, &candidate), None, "{what}");
        }
    }

    #[test]
    fn a_strided_candidate_is_read_in_its_own_order() {
        let rows = counting([4, 6]);
        let view = permuted(DType::F32, rows.shape(), &[1, 0], rows.bytes()).unwrap();
        let found = find_permutation(&rows.view(), &view, Tolerance::EXACT);
        assert_eq!(found, Some(vec![1, 0]));
    }
}
