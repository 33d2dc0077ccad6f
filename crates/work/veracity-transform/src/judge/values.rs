//! Tensors as float64 and back, for making inputs and measuring.

use half::{bf16, f16};
use veracity_tensor::{DType, Shape, Tensor};

/// Elements after which random numbers repeat: a prime, so that no axis repeats with them. Drawing
/// every element of a large tensor would take longer than computing with it.
const PERIOD: usize = 16381;

/// A tensor of a float type whose elements are drawn, and repeat in a large one; `None` for other
/// types.
pub(super) fn drawn(dtype: DType, shape: &Shape, next: impl FnMut(usize) -> f64) -> Option<Tensor> {
    let elements = shape.elements();
    if elements <= PERIOD {
        return from_floats(dtype, shape, next);
    }
    let once = from_floats(dtype, &Shape::from([PERIOD]), next)?;
    let mut tensor = Tensor::zeros(dtype, shape.clone());
    for piece in tensor.bytes_mut().chunks_mut(once.bytes().len()) {
        piece.copy_from_slice(&once.bytes()[..piece.len()]);
    }
    Some(tensor)
}

/// A tensor of a float type, each element rounded once; `None` for other types.
pub(super) fn from_floats(
    dtype: DType,
    shape: &Shape,
    mut next: impl FnMut(usize) -> f64,
) -> Option<Tensor> {
    let mut tensor = Tensor::zeros(dtype, shape.clone());
    #[expect(clippy::cast_possible_truncation, reason = "rounding is the purpose")]
    match dtype {
        DType::F32 => fill(tensor.as_mut_slice::<f32>()?, |at| next(at) as f32),
        DType::F64 => fill(tensor.as_mut_slice::<f64>()?, next),
        DType::F16 => fill(tensor.as_mut_slice::<f16>()?, |at| f16::from_f64(next(at))),
        DType::BF16 => fill(tensor.as_mut_slice::<bf16>()?, |at| bf16::from_f64(next(at))),
        _ => return None,
    }
    Some(tensor)
}

fn fill<E>(elements: &mut [E], mut next: impl FnMut(usize) -> E) {
    for (at, element) in elements.iter_mut().enumerate() {
        *element = next(at);
    }
}

/// A tensor of a float type in float64; others as they are.
pub(super) fn widened(tensor: &Tensor) -> Tensor {
    let shape = tensor.shape();
    let wide = match tensor.dtype() {
        DType::F32 => tensor
            .as_slice::<f32>()
            .and_then(|all| from_floats(DType::F64, shape, |at| f64::from(all[at]))),
        DType::F16 => tensor
            .as_slice::<f16>()
            .and_then(|all| from_floats(DType::F64, shape, |at| all[at].to_f64())),
        DType::BF16 => tensor
            .as_slice::<bf16>()
            .and_then(|all| from_floats(DType::F64, shape, |at| all[at].to_f64())),
        _ => None,
    };
    wide.unwrap_or_else(|| tensor.clone())
}

/// A tensor whose elements are one unit in the last place off, up or down; zeros, NaN and
/// infinities stay. Integers stay.
pub(super) fn nudged(tensor: &Tensor, mut up: impl FnMut() -> bool) -> Tensor {
    let mut off = tensor.clone();
    let size = tensor.dtype().size();
    if !tensor.dtype().is_float() {
        return off;
    }
    let special = |bits: u64| {
        let exponent = match tensor.dtype() {
            DType::F16 => 0x7c00,
            DType::BF16 => 0x7f80,
            DType::F32 => 0x7f80_0000,
            _ => 0x7ff0_0000_0000_0000,
        };
        bits & exponent == exponent || bits & (exponent | (exponent >> 1)) == 0
    };
    for element in off.bytes_mut().chunks_exact_mut(size) {
        let mut whole = [0_u8; 8];
        whole[..size].copy_from_slice(element);
        let bits = u64::from_le_bytes(whole);
        if !special(bits) {
            let moved = if up() { bits + 1 } else { bits - 1 };
            element.copy_from_slice(&moved.to_le_bytes()[..size]);
        }
    }
    off
}

/// Where two tensors of the same type and shape differ first, bit by bit; any NaN equals any other.
pub(super) fn first_other_bits(one: &Tensor, two: &Tensor) -> Option<usize> {
    if one.bytes() == two.bytes() {
        return None;
    }
    let size = one.dtype().size();
    let is_nan = |element: &[u8]| match one.dtype() {
        DType::F16 => f16::from_le_bytes([element[0], element[1]]).is_nan(),
        DType::BF16 => bf16::from_le_bytes([element[0], element[1]]).is_nan(),
        DType::F32 => element.try_into().is_ok_and(|bytes| f32::from_le_bytes(bytes).is_nan()),
        DType::F64 => element.try_into().is_ok_and(|bytes| f64::from_le_bytes(bytes).is_nan()),
        _ => false,
    };
    let mut pairs = one.bytes().chunks_exact(size).zip(two.bytes().chunks_exact(size));
    pairs.position(|(one, two)| one != two && !(is_nan(one) && is_nan(two)))
}

/// Whether two tensors are the same, bit by bit; any NaN equals any other.
pub(super) fn same_bits(one: &Tensor, two: &Tensor) -> bool {
    (one.dtype(), one.shape()) == (two.dtype(), two.shape()) && first_other_bits(one, two).is_none()
}

/// Half of the distance between 1 and the next number: the largest relative error of one rounding.
pub(super) fn unit_roundoff(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2_f64.powi(-11),
        DType::BF16 => 2_f64.powi(-8),
        DType::F32 => 2_f64.powi(-24),
        DType::F64 => 2_f64.powi(-53),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(elements: &[f32]) -> Tensor {
        Tensor::from_slice([elements.len()], elements).unwrap()
    }

    #[test]
    fn bits_count_but_not_those_of_nan() {
        let nan = f32::from_bits(0x7fc0_0001);
        for (one, two, first) in [
            ([0.0, 1.0], [0.0, 1.0], None),
            ([0.0, 1.0], [-0.0, 1.0], Some(0)),
            ([1.0, f32::NAN], [1.0, nan], None),
            ([1.0, f32::INFINITY], [1.0, f32::NEG_INFINITY], Some(1)),
            ([1.0, f32::NAN], [1.0, 2.0], Some(1)),
        ] {
            assert_eq!(first_other_bits(&floats(&one), &floats(&two)), first, "{one:?} {two:?}");
        }
    }

    #[test]
    fn nudging_moves_numbers_by_one_unit() {
        let moved = nudged(&floats(&[1.0, -2.0, 0.0, f32::INFINITY, 1e-40]), || true);
        let expected = [1.0 + f32::EPSILON, -2.0 - 2.0 * f32::EPSILON, 0.0, f32::INFINITY, 1e-40];
        assert_eq!(moved.as_slice::<f32>().unwrap(), expected);
    }
}
