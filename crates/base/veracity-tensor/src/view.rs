//! A tensor that borrows its bytes, with strides if need be.

use veracity_diag::{Diagnostic, Result, codes};

use crate::{AlignedBytes, DType, Shape, Tensor};

/// Borrowed elements with a dtype and a shape. The memory may be strided, reversed or broadcast
/// (stride 0); every element is known to lie inside `bytes`.
#[derive(Clone, Debug)]
pub struct TensorView<'a> {
    dtype: DType,
    shape: Shape,
    /// Distance between neighbours along each axis in elements; `None` when row-major.
    strides: Option<Box<[isize]>>,
    /// Position of the first element in `bytes`.
    offset: usize,
    bytes: &'a [u8],
}

impl<'a> TensorView<'a> {
    /// Row-major elements. Refused when `bytes` do not fill the shape exactly.
    pub fn new(dtype: DType, shape: &Shape, bytes: &'a [u8]) -> Result<Self> {
        let wanted = shape.elements() * dtype.size();
        if wanted != bytes.len() {
            return Err(Diagnostic::error(
                codes::TENSOR_SIZE_MISMATCH,
                format!(
                    "{} bytes do not fill {dtype} of shape {shape}, which takes {wanted}",
                    bytes.len()
                ),
            )
            .into());
        }
        Ok(Self { dtype, shape: shape.clone(), strides: None, offset: 0, bytes })
    }

    /// Strided elements: `strides` count elements, `offset` is the byte position of the first
    /// one. Refused when an element would lie outside of `bytes`.
    pub fn strided(
        dtype: DType,
        shape: &Shape,
        strides: &[isize],
        offset: usize,
        bytes: &'a [u8],
    ) -> Result<Self> {
        if strides.len() != shape.rank()
            || !reaches_only(dtype, shape, strides, offset, bytes.len())
        {
            return Err(Diagnostic::error(
                codes::TENSOR_OUT_OF_BOUNDS,
                format!(
                    "strides {strides:?} of {dtype} with shape {shape} reach outside of {} bytes",
                    bytes.len()
                ),
            )
            .into());
        }
        let row_major = shape.elements() == 0 || is_row_major(shape, strides);
        if row_major {
            let len = shape.elements() * dtype.size();
            let start = if len == 0 { 0 } else { offset };
            return Self::new(dtype, shape, &bytes[start..start + len]);
        }
        Ok(Self { dtype, shape: shape.clone(), strides: Some(strides.into()), offset, bytes })
    }

    /// The whole of an owned tensor.
    pub(crate) fn of_tensor(tensor: &'a Tensor) -> Self {
        Self {
            dtype: tensor.dtype(),
            shape: tensor.shape().clone(),
            strides: None,
            offset: 0,
            bytes: tensor.bytes(),
        }
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Sizes of the axes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The bytes when they are row-major without gaps.
    pub fn contiguous_bytes(&self) -> Option<&'a [u8]> {
        self.strides.is_none().then_some(self.bytes)
    }

    /// Copies the elements from row-major position `first` on into `target`, row-major, as many
    /// as fit.
    ///
    /// # Panics
    /// When `target` asks for more elements than there are.
    pub fn copy_elements(&self, first: usize, target: &mut [u8]) {
        let size = self.dtype.size();
        let Some(strides) = &self.strides else {
            target.copy_from_slice(&self.bytes[first * size..first * size + target.len()]);
            return;
        };
        let mut index = self.shape.index_from_flat(first);
        for element in target.chunks_exact_mut(size) {
            let steps: isize = index.iter().zip(strides).map(|(&i, s)| i.cast_signed() * s).sum();
            let start = self.offset.wrapping_add_signed(steps * size.cast_signed());
            element.copy_from_slice(&self.bytes[start..start + size]);
            advance(&mut index, self.shape.dims());
        }
    }

    /// A row-major copy.
    pub fn to_tensor(&self) -> Tensor {
        let mut tensor = Tensor::zeros(self.dtype, self.shape.clone());
        self.copy_elements(0, tensor.bytes_mut());
        tensor
    }

    /// A row-major copy of the bytes.
    pub fn to_bytes(&self) -> AlignedBytes {
        let mut bytes = AlignedBytes::zeroed(self.shape.elements() * self.dtype.size());
        self.copy_elements(0, &mut bytes);
        bytes
    }
}

/// Moves `index` to the next element in row-major order.
fn advance(index: &mut [usize], dims: &[usize]) {
    for (slot, &dim) in index.iter_mut().zip(dims).rev() {
        *slot += 1;
        if *slot < dim {
            return;
        }
        *slot = 0;
    }
}

fn is_row_major(shape: &Shape, strides: &[isize]) -> bool {
    let expected = shape.contiguous_strides();
    // The stride of an axis of size 1 is never used.
    shape.dims().iter().zip(strides).zip(expected).all(|((&dim, &s), e)| dim == 1 || s == e)
}

/// Whether every element lies inside `len` bytes. All arithmetic is checked: strides come from
/// outside.
fn reaches_only(dtype: DType, shape: &Shape, strides: &[isize], offset: usize, len: usize) -> bool {
    if shape.elements() == 0 {
        return true;
    }
    let size = dtype.size().cast_signed();
    let reach = || -> Option<(isize, isize)> {
        let mut lowest = isize::try_from(offset).ok()?;
        let mut highest = lowest;
        for (&dim, &stride) in shape.dims().iter().zip(strides) {
            let span = isize::try_from(dim - 1).ok()?.checked_mul(stride)?.checked_mul(size)?;
            if span < 0 {
                lowest = lowest.checked_add(span)?;
            } else {
                highest = highest.checked_add(span)?;
            }
        }
        Some((lowest, highest.checked_add(size)?))
    };
    reach().is_some_and(|(lowest, end)| lowest >= 0 && end.cast_unsigned() <= len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iota(count: u8) -> Vec<u8> {
        (0..count).collect()
    }

    #[test]
    fn strides_say_which_elements_are_meant() {
        struct Case(&'static str, [usize; 2], [isize; 2], usize, &'static [u8]);
        for Case(what, shape, strides, offset, expected) in [
            Case("transposed", [3, 2], [1, 3], 0, &[0, 3, 1, 4, 2, 5]),
            Case("reversed rows", [2, 3], [-3, 1], 3, &[3, 4, 5, 0, 1, 2]),
            Case("broadcast", [2, 3], [0, 1], 0, &[0, 1, 2, 0, 1, 2]),
            Case("every other", [2, 2], [3, 2], 0, &[0, 2, 3, 5]),
        ] {
            let bytes = iota(6);
            let view =
                TensorView::strided(DType::U8, &shape.into(), &strides, offset, &bytes).unwrap();
            assert_eq!(view.to_tensor().bytes(), expected, "{what}");
        }
    }

    #[test]
    fn elements_outside_of_the_memory_are_refused() {
        let bytes = iota(6);
        for (strides, offset) in [([3, 2], 1), ([-3, 1], 0), ([isize::MAX, 1], 0), ([4, 1], 0)] {
            let view = TensorView::strided(DType::U8, &[2, 3].into(), &strides, offset, &bytes);
            let refusal = view.expect_err("reaches outside");
            assert_eq!(refusal.first_error().code, codes::TENSOR_OUT_OF_BOUNDS);
        }
    }

    #[test]
    fn unit_axes_do_not_make_a_view_strided() {
        let bytes = iota(3);
        let view = TensorView::strided(DType::U8, &[1, 3].into(), &[99, 1], 0, &bytes).unwrap();
        assert!(view.contiguous_bytes().is_some());
    }
}
