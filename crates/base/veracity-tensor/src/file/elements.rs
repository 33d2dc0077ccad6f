//! From bytes in a file to the elements of a tensor.

use std::io::Read;

use veracity_diag::{Code, Result};

use super::disk::unreadable;
use crate::{DType, Shape, Tensor, TensorView};

/// Reads the row-major, little-endian elements of a tensor. The caller has checked that the file
/// is long enough.
pub(super) fn read(
    reader: &mut impl Read,
    dtype: DType,
    shape: Shape,
    malformed: Code,
) -> Result<Tensor> {
    let mut tensor = Tensor::zeros(dtype, shape);
    reader.read_exact(tensor.bytes_mut()).map_err(|error| unreadable(malformed, &error))?;
    if dtype == DType::Bool {
        // Not every byte is a bool; `from_bytes` is the one place that knows.
        return Tensor::from_bytes(dtype, tensor.shape().clone(), tensor.bytes());
    }
    Ok(tensor)
}

/// Turns every element from big to little endian.
pub(super) fn swap_bytes(tensor: &mut Tensor) {
    let size = tensor.dtype().size();
    for element in tensor.bytes_mut().chunks_exact_mut(size) {
        element.reverse();
    }
}

/// The row-major tensor whose column-major elements are in `tensor`.
pub(super) fn row_major_from_column_major(tensor: &Tensor) -> Result<Tensor> {
    let mut strides = Vec::with_capacity(tensor.shape().rank());
    let mut stride = 1_isize;
    for &dim in tensor.shape().dims() {
        strides.push(stride);
        // `Shape` promises that the product of the axes that are not empty fits.
        stride *= dim.max(1).cast_signed();
    }
    let view = TensorView::strided(tensor.dtype(), tensor.shape(), &strides, 0, tensor.bytes())?;
    Ok(view.to_tensor())
}
