//! Sizes of a tensor's axes, known not to overflow.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most axes a shape may have. NumPy 2 and ONNX Runtime stop at 64 and 100; torch models use 8.
pub const MAX_RANK: usize = 64;

/// Sizes of a tensor's axes. Empty for a scalar. The element count is known to fit in memory
/// arithmetic: [`Shape::elements`] times 8 never exceeds `isize::MAX`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<usize>", into = "Vec<usize>")]
pub struct Shape(Box<[usize]>);

impl Shape {
    /// A shape of these sizes; `None` when it has too many axes or elements to be addressed.
    pub fn new(dims: impl Into<Vec<usize>>) -> Option<Self> {
        let dims: Vec<usize> = dims.into();
        // Axes of size 0 are left out: `[0, 2^62]` is empty, yet its other axes must stay sane
        // too, because strides are products of them.
        let elements = dims
            .iter()
            .filter(|&&dim| dim != 0)
            .try_fold(1_usize, |product, &dim| product.checked_mul(dim))?;
        let bytes = elements.checked_mul(8)?;
        (dims.len() <= MAX_RANK && isize::try_from(bytes).is_ok()).then(|| Self(dims.into()))
    }

    /// The shape of a scalar.
    pub fn scalar() -> Self {
        Self::default()
    }

    /// Sizes, outermost axis first.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Number of elements: 1 for a scalar, 0 when an axis has size 0.
    pub fn elements(&self) -> usize {
        self.0.iter().product()
    }

    /// Distances between neighbours along each axis of a row-major tensor, in elements.
    pub fn contiguous_strides(&self) -> Vec<isize> {
        let mut strides = vec![1; self.0.len()];
        for axis in (1..self.0.len()).rev() {
            strides[axis - 1] = strides[axis] * self.0[axis].max(1).cast_signed();
        }
        strides
    }

    /// The index along each axis of the element at row-major position `flat`.
    pub fn index_from_flat(&self, mut flat: usize) -> Vec<usize> {
        let mut index = vec![0; self.0.len()];
        for (slot, &dim) in index.iter_mut().zip(&self.0).rev() {
            (*slot, flat) = (flat % dim.max(1), flat / dim.max(1));
        }
        index
    }
}

impl TryFrom<Vec<usize>> for Shape {
    type Error = &'static str;

    fn try_from(dims: Vec<usize>) -> Result<Self, Self::Error> {
        Self::new(dims).ok_or("the shape has too many axes or elements")
    }
}

impl From<Shape> for Vec<usize> {
    fn from(shape: Shape) -> Self {
        shape.0.into_vec()
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    /// For shapes written in code.
    ///
    /// # Panics
    /// When the elements could not be addressed.
    fn from(dims: [usize; N]) -> Self {
        Self::new(dims).expect("a shape written in code is small")
    }
}

impl fmt::Display for Shape {
    /// `[1, 48]`, as bundles write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_that_cannot_be_addressed_are_refused() {
        assert!(Shape::new([usize::MAX, 2]).is_none());
        assert!(Shape::new([0, usize::MAX]).is_none());
        assert!(Shape::new(vec![1; MAX_RANK + 1]).is_none());
        assert!(Shape::new([0, 3]).is_some());
    }

    #[test]
    fn a_flat_position_names_one_element() {
        let shape = Shape::from([2, 3, 4]);
        assert_eq!(shape.index_from_flat(17), [1, 1, 1]);
        assert_eq!(shape.contiguous_strides(), [12, 4, 1]);
        assert!(Shape::scalar().index_from_flat(0).is_empty());
        assert_eq!(Shape::scalar().elements(), 1);
    }
}
