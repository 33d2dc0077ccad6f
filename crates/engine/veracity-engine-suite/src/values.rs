//! Tensors written in code, and how they are compared.

use half::{bf16, f16};
use veracity_tensor::{DType, Element, Shape, Tensor};

/// A tensor of these elements.
pub(crate) fn tensor<E: Element>(shape: impl Into<Shape>, elements: &[E]) -> Tensor {
    Tensor::from_slice(shape, elements).expect("the elements of a case fill its shape")
}

/// A bool tensor.
pub(crate) fn bools(shape: impl Into<Shape>, elements: &[bool]) -> Tensor {
    let bytes: Vec<u8> = elements.iter().map(|&element| u8::from(element)).collect();
    Tensor::from_bytes(DType::Bool, shape.into(), &bytes).expect("the elements fill the shape")
}

/// A float32 tensor, rounded from what a case computed in float64.
#[expect(clippy::cast_possible_truncation, reason = "rounding is what it is for")]
pub(crate) fn rounded(shape: impl Into<Shape>, elements: &[f64]) -> Tensor {
    let elements: Vec<f32> = elements.iter().map(|&element| element as f32).collect();
    tensor(shape, &elements)
}

/// A float32 tensor of values between -1 and 1 without a pattern that an error could hide in.
/// Another `phase` gives other values.
pub(crate) fn wave(shape: impl Into<Shape>, phase: f32) -> Tensor {
    let shape = shape.into();
    let elements: Vec<f32> = (0_u16..)
        .map(|index| (f32::from(index) * 0.7 + phase).sin())
        .take(shape.elements())
        .collect();
    tensor(shape, &elements)
}

/// The elements of a floating-point tensor.
pub(crate) fn numbers(tensor: &Tensor) -> Vec<f64> {
    let floats = |values: &[f32]| values.iter().copied().map(f64::from).collect();
    None.or_else(|| tensor.as_slice::<f32>().map(floats))
        .or_else(|| tensor.as_slice::<f64>().map(<[f64]>::to_vec))
        .or_else(|| Some(tensor.as_slice::<f16>()?.iter().map(|value| value.to_f64()).collect()))
        .or_else(|| Some(tensor.as_slice::<bf16>()?.iter().map(|value| value.to_f64()).collect()))
        .expect("only floating-point tensors are compared as numbers")
}

/// How close an output must be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Closeness {
    /// The same bits.
    Bits,
    /// Floats within this of the expected value, absolute below 1 and relative above; NaN for NaN
    /// and infinity for the same infinity. Everything else exactly.
    Within(f64),
}

/// Says how the output differs, if it does.
pub(crate) fn compare(
    name: &str,
    expected: &Tensor,
    actual: &Tensor,
    closeness: Closeness,
) -> Result<(), String> {
    if expected.bytes() == actual.bytes() {
        return Ok(());
    }
    let differs = |what: String| Err(format!("output {name:?} {what}"));
    let (Closeness::Within(tolerance), true) = (closeness, expected.dtype().is_float()) else {
        return differs(format!("is {:?}, expected {:?}", actual.bytes(), expected.bytes()));
    };
    let pairs = numbers(expected).into_iter().zip(numbers(actual));
    match pairs.enumerate().find(|(_, (expected, actual))| !close(*expected, *actual, tolerance)) {
        None => Ok(()),
        Some((at, (expected, actual))) => {
            differs(format!("is {actual} at position {at}, expected {expected}"))
        }
    }
}

fn close(expected: f64, actual: f64, tolerance: f64) -> bool {
    if expected.is_finite() && actual.is_finite() {
        (expected - actual).abs() <= tolerance * expected.abs().max(1.0)
    } else {
        expected.total_cmp(&actual).is_eq() || (expected.is_nan() && actual.is_nan())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_close_is_close() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        for (expected, actual, is_close) in [
            (1.0, 1.0005, true),
            (1.0, 1.002, false),
            (1000.0, 1000.5, true),
            (0.0, 0.002, false),
            (nan, nan, true),
            (nan, -nan, true),
            (inf, inf, true),
            (inf, -inf, false),
            (inf, f64::MAX, false),
            (1.0, nan, false),
            (nan, 1.0, false),
        ] {
            assert_eq!(close(expected, actual, 1e-3), is_close, "{expected} and {actual}");
        }
    }

    #[test]
    fn a_difference_names_its_output_and_place() {
        let (one, two) = (tensor([2], &[1.0_f32, 1.0]), tensor([2], &[1.0_f32, 2.0]));
        let message = compare("y", &one, &two, Closeness::Within(0.1)).unwrap_err();
        assert_eq!(message, "output \"y\" is 2 at position 1, expected 1");
        assert!(compare("y", &one, &two, Closeness::Bits).is_err());
        assert!(compare("y", &one, &two, Closeness::Within(1.0)).is_ok());
    }
}
