//! Asks whether two tensors differ by the order of the elements along one axis only.

use std::collections::HashMap;

use veracity_results::Tolerance;
use veracity_tensor::{Shape, Tensor, TensorView};

use crate::layout::agree;

/// Longest axis along which every pair of columns is compared. Along a longer one, columns are
/// found again only when their bytes are equal.
const MAX_SEARCHED: usize = 256;

/// How the columns of two tensors belong together. A column is everything at one position of the
/// axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Every column agrees with the one in its place.
    InPlace {
        /// Whether no other order fits as well. Columns that are alike can be swapped.
        unique: bool,
    },
    /// Every column agrees with one elsewhere: column `i` of the reference is column `take[i]` of the
    /// candidate.
    Permuted {
        /// Positions in the candidate.
        take: Vec<usize>,
        /// Whether no other order fits as well.
        unique: bool,
    },
    /// No order of the candidate's columns agrees. These of the reference have no partner, or none
    /// that is not needed elsewhere.
    Different {
        /// Positions in the reference.
        unmatched: Vec<usize>,
    },
}

/// Finds the order of the candidate's columns along `axis` that makes it agree with the reference:
/// equal columns first, then those within the tolerance. As few columns are moved as the search
/// happens to find. `None` when dtypes or shapes differ, or there is no such axis. NaN and
/// infinities agree with their equals: the question is where the values are.
pub fn match_columns(
    reference: &TensorView<'_>,
    candidate: &TensorView<'_>,
    axis: usize,
    tolerance: Tolerance,
) -> Option<Columns> {
    let dims = reference.shape().dims();
    let alike = reference.dtype() == candidate.dtype() && dims == candidate.shape().dims();
    let count = *dims.get(axis).filter(|_| alike)?;
    let (left, right) = (reference.to_tensor(), candidate.to_tensor());
    let columns = |tensor: &Tensor| -> Vec<Tensor> {
        let column = |position| column(&tensor.view(), axis, position).map(|view| view.to_tensor());
        (0..count).filter_map(column).collect()
    };
    let (left, right) = (columns(&left), columns(&right));
    let equal = matched(&equal_columns(&left, &right));
    // Equal columns elsewhere are no accident, even where those in place are near enough.
    if count > MAX_SEARCHED || !matches!(equal, Columns::Different { .. }) {
        return Some(equal);
    }
    let partners = |own: &Tensor| {
        let fits = |position: &usize| agree(&own.view(), &right[*position].view(), tolerance);
        (0..count).filter(fits).collect()
    };
    Some(matched(&left.iter().map(partners).collect::<Vec<_>>()))
}

/// What is at one position of an axis.
fn column<'t>(tensor: &TensorView<'t>, axis: usize, position: usize) -> Option<TensorView<'t>> {
    let shape = tensor.shape();
    let mut strides = shape.contiguous_strides();
    let stride = usize::try_from(strides.remove(axis)).ok()?;
    let mut dims = shape.dims().to_vec();
    dims.remove(axis);
    let offset = position * stride * tensor.dtype().size();
    let bytes = tensor.contiguous_bytes()?;
    TensorView::strided(tensor.dtype(), &Shape::new(dims)?, &strides, offset, bytes).ok()
}

/// For each column of the left the columns of the right that have the same bytes.
fn equal_columns(left: &[Tensor], right: &[Tensor]) -> Vec<Vec<usize>> {
    let mut positions: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (position, column) in right.iter().enumerate() {
        positions.entry(column.bytes()).or_default().push(position);
    }
    left.iter().map(|column| positions.get(column.bytes()).cloned().unwrap_or_default()).collect()
}

/// Gives every column a partner of its own, if that is possible.
fn matched(partners: &[Vec<usize>]) -> Columns {
    let mut owner: Vec<Option<usize>> = vec![None; partners.len()];
    // Columns that agree in place stay there unless that leaves another without a partner.
    for (position, allowed) in partners.iter().enumerate() {
        if allowed.contains(&position) {
            owner[position] = Some(position);
        }
    }
    let mut unmatched = Vec::new();
    for position in 0..partners.len() {
        if owner.contains(&Some(position)) {
            continue;
        }
        let mut seen = vec![false; partners.len()];
        if !place(position, partners, &mut owner, &mut seen) {
            unmatched.push(position);
        }
    }
    if !unmatched.is_empty() {
        return Columns::Different { unmatched };
    }
    let mut take = vec![0; partners.len()];
    for (position, column) in owner.iter().enumerate() {
        take[column.expect("every column has a partner")] = position;
    }
    let unique = is_unique(partners, &take);
    if take.is_sorted() { Columns::InPlace { unique } } else { Columns::Permuted { take, unique } }
}

/// Finds a partner for a column, moving others where needed.
fn place(
    column: usize,
    partners: &[Vec<usize>],
    owner: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    for &position in &partners[column] {
        if std::mem::replace(&mut seen[position], true) {
            continue;
        }
        let is_free = match owner[position] {
            None => true,
            Some(other) => place(other, partners, owner, seen),
        };
        if is_free {
            owner[position] = Some(column);
            return true;
        }
    }
    false
}

/// Whether no other assignment fits: there is another exactly if columns can pass their partners
/// around in a circle.
fn is_unique(partners: &[Vec<usize>], take: &[usize]) -> bool {
    let mut owner = vec![0; take.len()];
    for (column, &position) in take.iter().enumerate() {
        owner[position] = column;
    }
    // Columns that could take over no partner but from columns known to be in no circle.
    let mut waiting: Vec<usize> =
        partners.iter().map(|allowed| allowed.len().saturating_sub(1)).collect();
    let mut settled: Vec<usize> = (0..take.len()).filter(|&column| waiting[column] == 0).collect();
    let mut takers: Vec<Vec<usize>> = vec![Vec::new(); take.len()];
    for (column, allowed) in partners.iter().enumerate() {
        for &position in allowed.iter().filter(|&&position| position != take[column]) {
            takers[owner[position]].push(column);
        }
    }
    let mut next = 0;
    while let Some(&column) = settled.get(next) {
        next += 1;
        for &taker in &takers[column] {
            waiting[taker] -= 1;
            if waiting[taker] == 0 {
                settled.push(taker);
            }
        }
    }
    settled.len() == take.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use veracity_tensor::DType;

    use super::*;

    fn rows<const N: usize>(rows: &[[f32; N]]) -> Tensor {
        Tensor::from_slice([rows.len(), N], &rows.concat()).unwrap()
    }

    fn find(left: &Tensor, right: &Tensor, atol: f64) -> Option<Columns> {
        let tolerance = Tolerance::new(atol, 0.0).unwrap();
        match_columns(&left.view(), &right.view(), 1, tolerance)
    }

    #[test]
    fn columns_are_found_in_place_elsewhere_or_nowhere() {
        let left = rows(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        for (right, atol, expected) in [
            (rows(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), 0.0, Columns::InPlace { unique: true }),
            (
                rows(&[[3.0, 1.0, 2.0], [6.0, 4.0, 5.0]]),
                0.0,
                Columns::Permuted { take: vec![1, 2, 0], unique: true },
            ),
            (
                rows(&[[2.01, 1.0, 3.0], [5.0, 4.01, 6.0]]),
                0.1,
                Columns::Permuted { take: vec![1, 0, 2], unique: true },
            ),
            (
                rows(&[[2.01, 1.0, 3.0], [5.0, 4.01, 6.0]]),
                0.0,
                Columns::Different { unmatched: vec![0, 1] },
            ),
            // The first row alone would fit: all rows must.
            (
                rows(&[[2.0, 1.0, 3.0], [4.0, 5.0, 6.0]]),
                0.0,
                Columns::Different { unmatched: vec![0, 1] },
            ),
            // Every order is within the tolerance; the one with equal columns is given.
            (
                rows(&[[2.0, 1.0, 3.0], [5.0, 4.0, 6.0]]),
                9.0,
                Columns::Permuted { take: vec![1, 0, 2], unique: true },
            ),
        ] {
            assert_eq!(find(&left, &right, atol), Some(expected), "{atol}");
        }
    }

    #[test]
    fn an_order_that_values_do_not_decide_is_said_to_be_one_of_several() {
        let left = rows(&[[0.0, 0.0, 1.0]]);
        assert_eq!(find(&left, &left, 0.0), Some(Columns::InPlace { unique: false }));
        let right = rows(&[[1.0, 0.0, 0.0]]);
        let Some(Columns::Permuted { take, unique: false }) = find(&left, &right, 0.0) else {
            panic!("two orders fit")
        };
        assert!(take[2] == 0, "{take:?}");
    }

    #[test]
    fn columns_pass_their_places_on_when_another_needs_them() {
        // The first column fits two places, the second only one of them.
        let left = rows(&[[1.0, 1.4]]);
        let right = rows(&[[1.3, 0.6]]);
        let expected = Columns::Permuted { take: vec![1, 0], unique: true };
        assert_eq!(find(&rows(&[[1.0, 1.7]]), &right, 0.45), Some(expected));
        assert_eq!(find(&left, &right, 0.05), Some(Columns::Different { unmatched: vec![0, 1] }));
    }

    #[test]
    fn other_shapes_and_dtypes_have_no_columns_to_match() {
        let left = rows(&[[1.0, 2.0]]);
        for right in [rows(&[[1.0, 2.0, 3.0]]), Tensor::zeros(DType::F64, [1, 2].into())] {
            assert_eq!(find(&left, &right, 0.0), None);
        }
        assert_eq!(match_columns(&left.view(), &left.view(), 2, Tolerance::EXACT), None);
    }

    #[test]
    fn nan_is_found_again() {
        let left = rows(&[[f32::NAN, 1.0], [2.0, f32::INFINITY]]);
        let right = rows(&[[1.0, f32::NAN], [f32::INFINITY, 2.0]]);
        let expected = Columns::Permuted { take: vec![1, 0], unique: true };
        assert_eq!(find(&left, &right, 0.0), Some(expected.clone()));
        assert_eq!(find(&left, &right, 0.1), Some(expected));
    }

    #[test]
    fn an_axis_in_the_middle_is_moved_as_a_whole() {
        let left = Tensor::from_slice([2, 2, 2], &[1_i64, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        let right = Tensor::from_slice([2, 2, 2], &[3_i64, 4, 1, 2, 7, 8, 5, 6]).unwrap();
        let found = match_columns(&left.view(), &right.view(), 1, Tolerance::EXACT);
        assert_eq!(found, Some(Columns::Permuted { take: vec![1, 0], unique: true }));
    }

    #[test]
    fn long_axes_are_matched_by_their_bytes() {
        let count = MAX_SEARCHED + 44;
        let values: Vec<i32> = (0..300).collect();
        let left = Tensor::from_slice([1, count], &values).unwrap();
        let turned: Vec<i32> = values.iter().rev().copied().collect();
        let right = Tensor::from_slice([1, count], &turned).unwrap();
        let Some(Columns::Permuted { take, unique: true }) = find(&left, &right, 0.0) else {
            panic!("reversed")
        };
        assert_eq!(take, (0..count).rev().collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn a_random_order_is_found_and_is_right(
            values in prop::collection::vec(-3_i32..4, 1..9),
            order in Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let count = values.len();
            let order: Vec<usize> = order.into_iter().filter(|&from| from < count).collect();
            let left = Tensor::from_slice([1, count], &values).unwrap();
            let moved: Vec<i32> = order.iter().map(|&from| values[from]).collect();
            let right = Tensor::from_slice([1, count], &moved).unwrap();
            let (take, unique) = match find(&left, &right, 0.0).unwrap() {
                Columns::InPlace { unique } => ((0..count).collect(), unique),
                Columns::Permuted { take, unique } => (take, unique),
                Columns::Different { .. } => panic!("there is an order"),
            };
            prop_assert!((0..count).all(|column| values[column] == moved[take[column]]));
            let mut distinct = values.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(unique, distinct.len() == count);
        }
    }
}
