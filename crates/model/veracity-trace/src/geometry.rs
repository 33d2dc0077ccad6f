//! Where a tensor lies in its storage, and how two tensors on one storage lie to each other.

use smallvec::SmallVec;

/// Extents of a tensor, outermost first.
pub type Sizes = SmallVec<[u64; 4]>;
/// Distances between neighbours along each extent, in elements.
pub type Strides = SmallVec<[i64; 4]>;

/// Tensors with gaps are compared element by element up to this many elements. Beyond that the
/// answer is the careful one.
const MOST_ELEMENTS: u64 = 1 << 16;

/// Where a tensor lies in its storage, in elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Position of its first element.
    pub offset: u64,
    /// Its extents.
    pub sizes: Sizes,
    /// As many as there are sizes.
    pub strides: Strides,
    /// How elements are read: the front's number for dtype, conjugation and negation. Offsets and
    /// strides of two geometries can be compared only when this is the same.
    pub element: u16,
}

impl Geometry {
    /// Whether the two surely share no element. False when that is not known.
    pub(crate) fn is_apart_from(&self, other: &Self) -> bool {
        if self.is_empty() || other.is_empty() {
            return true;
        }
        if self.element != other.element {
            return false;
        }
        let ((first, last), (other_first, other_last)) = (self.span(), other.span());
        if last < other_first || other_last < first {
            return true;
        }
        if self.is_dense() && other.is_dense() {
            return false;
        }
        match (self.positions(), other.positions()) {
            (Some(mine), Some(theirs)) => !shares_element(&mine, &theirs),
            _ => false,
        }
    }

    /// Whether every element of `other` surely is one of this. False when that is not known.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        if self.element != other.element {
            return false;
        }
        if other.is_empty() {
            return true;
        }
        if self.is_empty() {
            return false;
        }
        let ((first, last), (other_first, other_last)) = (self.span(), other.span());
        if other_first < first || last < other_last {
            return false;
        }
        if self.is_dense() {
            return true;
        }
        match (self.positions(), other.positions()) {
            (Some(mine), Some(theirs)) => {
                theirs.iter().all(|position| mine.binary_search(position).is_ok())
            }
            _ => false,
        }
    }

    /// Whether two of its elements may be the same memory.
    pub(crate) fn may_overlap_itself(&self) -> bool {
        let repeats =
            self.sizes.iter().zip(&self.strides).any(|(size, stride)| *size > 1 && *stride == 0);
        let mut reach = 0;
        repeats
            || self.by_stride().iter().any(|(stride, size)| {
                let reaches_back = *stride <= reach;
                reach += stride.saturating_mul(size - 1);
                reaches_back
            })
    }

    fn is_empty(&self) -> bool {
        self.sizes.contains(&0)
    }

    /// Extents that move through memory, with their strides.
    fn moving(&self) -> impl Iterator<Item = (i128, i128)> + '_ {
        let pairs = self.sizes.iter().zip(&self.strides);
        pairs
            .filter(|(size, stride)| **size > 1 && **stride != 0)
            .map(|(size, stride)| (i128::from(*size), i128::from(*stride)))
    }

    /// Smallest and largest position. Only for geometries with elements.
    fn span(&self) -> (i128, i128) {
        let offset = i128::from(self.offset);
        self.moving().fold((offset, offset), |(first, last), (size, stride)| {
            let reach = (size - 1).saturating_mul(stride);
            (first.saturating_add(reach.min(0)), last.saturating_add(reach.max(0)))
        })
    }

    /// Strides and sizes of the moving extents, from the smallest stride up.
    fn by_stride(&self) -> SmallVec<[(i128, i128); 4]> {
        let mut extents: SmallVec<[(i128, i128); 4]> =
            self.moving().map(|(size, stride)| (stride.abs(), size)).collect();
        extents.sort_unstable();
        extents
    }

    /// Whether every position between the smallest and the largest is an element.
    fn is_dense(&self) -> bool {
        let mut reach = 0;
        self.by_stride().iter().all(|(stride, size)| {
            let closes = *stride <= reach + 1;
            reach += stride.saturating_mul(size - 1);
            closes
        })
    }

    /// Every position, sorted; `None` when there are too many.
    fn positions(&self) -> Option<Vec<i128>> {
        let count = self.moving().try_fold(1_i128, |count, (size, _)| {
            count.checked_mul(size).filter(|count| *count <= i128::from(MOST_ELEMENTS))
        });
        count?;
        let mut positions = vec![i128::from(self.offset)];
        for (size, stride) in self.moving() {
            positions = positions
                .iter()
                .flat_map(|start| (0..size).map(move |step| start + step * stride))
                .collect();
        }
        positions.sort_unstable();
        Some(positions)
    }
}

/// Both are sorted.
fn shares_element(first: &[i128], second: &[i128]) -> bool {
    let (small, large) = if first.len() < second.len() { (first, second) } else { (second, first) };
    small.iter().any(|position| large.binary_search(position).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(offset: u64, extents: &[(u64, i64)]) -> Geometry {
        let sizes = extents.iter().map(|extent| extent.0).collect();
        let strides = extents.iter().map(|extent| extent.1).collect();
        Geometry { offset, sizes, strides, element: 0 }
    }

    #[test]
    fn containment_and_distance_are_those_of_the_sets_of_positions() {
        let whole = geometry(0, &[(4, 3), (3, 1)]);
        let cases = [
            ("a tensor and itself", whole.clone(), whole.clone(), true, false),
            ("a row", whole.clone(), geometry(3, &[(3, 1)]), true, false),
            ("a column", whole.clone(), geometry(1, &[(4, 3)]), true, false),
            ("the transpose", geometry(0, &[(3, 1), (4, 3)]), whole.clone(), true, false),
            ("two columns", geometry(0, &[(4, 3)]), geometry(1, &[(4, 3)]), false, true),
            ("rows that follow", geometry(0, &[(3, 1)]), geometry(3, &[(3, 1)]), false, true),
            ("a column and a row", geometry(1, &[(4, 3)]), geometry(3, &[(3, 1)]), false, false),
            (
                "every second of a column",
                geometry(1, &[(4, 3)]),
                geometry(1, &[(2, 6)]),
                true,
                false,
            ),
            (
                "an expanded row",
                geometry(3, &[(3, 1)]),
                geometry(3, &[(9, 0), (3, 1)]),
                true,
                false,
            ),
            ("nothing", whole.clone(), geometry(99, &[(0, 1)]), true, true),
            (
                "overlapping windows",
                geometry(0, &[(5, 1), (3, 1)]),
                geometry(0, &[(7, 1)]),
                true,
                false,
            ),
        ];
        for (name, outer, inner, contains, apart) in cases {
            assert_eq!(outer.contains(&inner), contains, "{name}: contains");
            assert_eq!(outer.is_apart_from(&inner), apart, "{name}: apart");
            assert_eq!(inner.is_apart_from(&outer), apart, "{name}: apart, the other way round");
        }
    }

    #[test]
    fn a_tensor_overlaps_itself_when_two_elements_are_one_place() {
        let cases = [
            ("rows", geometry(0, &[(4, 3), (3, 1)]), false),
            ("the transpose", geometry(0, &[(3, 1), (4, 3)]), false),
            ("a number", geometry(5, &[]), false),
            ("one row, repeated once", geometry(0, &[(1, 0), (3, 1)]), false),
            ("an expanded row", geometry(0, &[(2, 0), (3, 1)]), true),
            ("windows", geometry(0, &[(5, 1), (3, 1)]), true),
        ];
        for (name, tensor, expected) in cases {
            assert_eq!(tensor.may_overlap_itself(), expected, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_compared_is_taken_for_overlapping_and_not_contained() {
        let floats = geometry(0, &[(8, 1)]);
        let bytes = Geometry { element: 1, ..geometry(64, &[(8, 1)]) };
        assert!(!floats.contains(&bytes) && !floats.is_apart_from(&bytes));
        let (even, odd) = (geometry(0, &[(100_000, 2)]), geometry(1, &[(100_000, 2)]));
        assert!(!even.contains(&odd) && !even.is_apart_from(&odd));
    }
}
