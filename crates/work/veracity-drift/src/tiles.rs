//! The elements of two tensors as float64, a tile at a time, so that none is widened as a whole.

use veracity_tensor::{DType, Shape, Tensor, TensorView};

use crate::convert::{floats, integers};

const TILE: usize = 1 << 16;

/// Tiles of two tensors of one type and shape, each with the position of its first element.
pub(crate) fn tiles<'t>(
    left: &'t TensorView<'t>,
    right: &'t TensorView<'t>,
) -> impl Iterator<Item = (usize, Vec<f64>, Vec<f64>)> + 't {
    let elements = left.shape().elements();
    (0..elements).step_by(TILE).map(move |first| {
        let len = TILE.min(elements - first);
        (first, numbers(left, first, len), numbers(right, first, len))
    })
}

/// Some elements as float64; integers of 64 bits lose their last digits.
pub(crate) fn numbers(view: &TensorView<'_>, first: usize, len: usize) -> Vec<f64> {
    let mut tile = Tensor::zeros(view.dtype(), Shape::from([len]));
    view.copy_elements(first, tile.bytes_mut());
    if view.dtype().is_float() {
        return floats(&tile).unwrap_or_default();
    }
    match view.dtype() {
        DType::Bool => tile.bytes().iter().map(|&byte| f64::from(byte)).collect(),
        #[expect(clippy::cast_precision_loss, reason = "only whether they are equal matters")]
        DType::U64 => {
            tile.as_slice::<u64>().unwrap_or_default().iter().map(|&value| value as f64).collect()
        }
        #[expect(clippy::cast_precision_loss, reason = "only whether they are equal matters")]
        _ => integers(&tile).unwrap_or_default().into_iter().map(|value| value as f64).collect(),
    }
}
