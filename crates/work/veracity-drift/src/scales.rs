//! How large values are around each element, where an operator cannot be run again on moved inputs.
//!
//! Along each axis an element lies in a slice: its channel, its row, its place. The smallest of the
//! largest values of these slices is what its terms are likely to be of. It is coarser than moving
//! inputs, and still leaves one huge channel or row to itself.

use veracity_tensor::TensorView;

use crate::noise::Moved;
use crate::tiles::numbers;

/// Slices of fewer elements say nothing about how large values are.
const FEW: usize = 8;

/// What elements may move by: a part of how large values are around them.
pub(crate) fn around(reference: &TensorView<'_>, relative: f64) -> Moved {
    let (dims, count) = (reference.shape().dims(), reference.shape().elements());
    let sizes: Vec<f64> = numbers(reference, 0, count)
        .into_iter()
        .map(|value| if value.is_finite() { value.abs() } else { 0.0 })
        .collect();
    let largest = sizes.iter().copied().fold(0.0, f64::max);
    let mut scales = vec![largest; count];
    let mut inner = count;
    for &dim in dims {
        inner /= dim.max(1);
        if dim == 0 || count / dim < FEW {
            continue;
        }
        let place = |position: usize| position / inner.max(1) % dim;
        let mut most = vec![0.0_f64; dim];
        for (position, &size) in sizes.iter().enumerate() {
            most[place(position)] = most[place(position)].max(size);
        }
        for (position, scale) in scales.iter_mut().enumerate() {
            *scale = scale.min(most[place(position)]);
        }
    }
    let mut moved = Moved::new(count);
    for (position, scale) in scales.into_iter().enumerate() {
        moved.raise(position, relative * scale);
    }
    moved
}

#[cfg(test)]
mod tests {
    use veracity_tensor::Tensor;

    use super::*;

    #[test]
    fn a_huge_channel_keeps_its_size_to_itself() {
        let mut values = vec![1.0_f32; 2 * 3 * 8];
        for sample in 0..2 {
            values[sample * 24 + 8..sample * 24 + 16].fill(1e8);
        }
        let tensor = Tensor::from_slice([2, 3, 8], &values).unwrap();
        let moved = around(&tensor.view(), 0.5);
        assert!((moved.at(0) - 0.5).abs() < 1e-9);
        assert!((moved.at(8) - 0.5e8).abs() < 1.0);
    }
}
