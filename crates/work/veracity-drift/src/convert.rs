//! Brings two tensors of different types to one, without losing anything of either.

use std::borrow::Cow;

use half::{bf16, f16};
use veracity_tensor::{DType, Element, Tensor};

use crate::budget::epsilon;

/// Both tensors in one type that holds either exactly, as they are if they have one. `None` where
/// there is no such type: a float beside an integer, or 64 bits without sign beside others.
pub(crate) fn alike<'t>(
    left: &'t Tensor,
    right: &'t Tensor,
) -> Option<(Cow<'t, Tensor>, Cow<'t, Tensor>)> {
    let common = match (left.dtype(), right.dtype()) {
        (left, right) if left == right => left,
        (left, right) if left.is_float() && right.is_float() => DType::F64,
        (left, right) if is_integer(left) && is_integer(right) => DType::I64,
        _ => return None,
    };
    Some((cast(left, common)?, cast(right, common)?))
}

/// A tensor in another type of its kind; floats are rounded to the nearest. `None` for another
/// kind, and where an integer does not fit.
pub(crate) fn cast(tensor: &Tensor, to: DType) -> Option<Cow<'_, Tensor>> {
    let from = tensor.dtype();
    if from == to {
        return Some(Cow::Borrowed(tensor));
    }
    let made = if from.is_float() && to.is_float() {
        narrowed(tensor, &floats(tensor)?, to)
    } else if is_integer(from) && is_integer(to) {
        integers_in(tensor, &integers(tensor)?, to)
    } else {
        None
    };
    made.map(Cow::Owned)
}

/// The one of two types that holds fewer digits; integers hold all of theirs.
pub(crate) fn narrower(left: DType, right: DType) -> DType {
    if epsilon(left) >= epsilon(right) { left } else { right }
}

/// The elements of a tensor of floats.
pub(crate) fn floats(tensor: &Tensor) -> Option<Vec<f64>> {
    fn wide<E: Element + Into<f64>>(tensor: &Tensor) -> Option<Vec<f64>> {
        Some(tensor.as_slice::<E>()?.iter().map(|&value| value.into()).collect())
    }
    match tensor.dtype() {
        DType::F64 => wide::<f64>(tensor),
        DType::F32 => wide::<f32>(tensor),
        DType::F16 => wide::<f16>(tensor),
        DType::BF16 => wide::<bf16>(tensor),
        _ => None,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding is what is asked for")]
fn narrowed(tensor: &Tensor, values: &[f64], to: DType) -> Option<Tensor> {
    fn filled<E: Element>(tensor: &Tensor, values: impl Iterator<Item = E>) -> Option<Tensor> {
        Tensor::from_slice(tensor.shape().clone(), &values.collect::<Vec<E>>()).ok()
    }
    let values = values.iter().copied();
    match to {
        DType::F64 => filled(tensor, values),
        DType::F32 => filled(tensor, values.map(|value| value as f32)),
        DType::F16 => filled(tensor, values.map(f16::from_f64)),
        DType::BF16 => filled(tensor, values.map(bf16::from_f64)),
        _ => None,
    }
}

fn is_integer(dtype: DType) -> bool {
    !dtype.is_float() && dtype != DType::Bool
}

pub(crate) fn integers(tensor: &Tensor) -> Option<Vec<i64>> {
    fn wide<E: Element + TryInto<i64>>(tensor: &Tensor) -> Option<Vec<i64>> {
        tensor.as_slice::<E>()?.iter().map(|&value| value.try_into().ok()).collect()
    }
    match tensor.dtype() {
        DType::I8 => wide::<i8>(tensor),
        DType::I16 => wide::<i16>(tensor),
        DType::I32 => wide::<i32>(tensor),
        DType::I64 => wide::<i64>(tensor),
        DType::U8 => wide::<u8>(tensor),
        DType::U16 => wide::<u16>(tensor),
        DType::U32 => wide::<u32>(tensor),
        DType::U64 => wide::<u64>(tensor),
        _ => None,
    }
}

fn integers_in(tensor: &Tensor, values: &[i64], to: DType) -> Option<Tensor> {
    fn filled<E: Element + TryFrom<i64>>(tensor: &Tensor, values: &[i64]) -> Option<Tensor> {
        let values: Option<Vec<E>> = values.iter().map(|&value| value.try_into().ok()).collect();
        Tensor::from_slice(tensor.shape().clone(), &values?).ok()
    }
    match to {
        DType::I8 => filled::<i8>(tensor, values),
        DType::I16 => filled::<i16>(tensor, values),
        DType::I32 => filled::<i32>(tensor, values),
        DType::I64 => filled::<i64>(tensor, values),
        DType::U8 => filled::<u8>(tensor, values),
        DType::U16 => filled::<u16>(tensor, values),
        DType::U32 => filled::<u32>(tensor, values),
        DType::U64 => filled::<u64>(tensor, values),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_meet_in_float64_and_integers_in_int64() {
        let half = Tensor::from_slice([1], &[f16::from_f32(0.1)]).unwrap();
        let single = Tensor::from_slice([1], &[0.1_f32]).unwrap();
        let (left, right) = alike(&half, &single).unwrap();
        assert_eq!((left.dtype(), right.dtype()), (DType::F64, DType::F64));
        assert_eq!(right.as_slice::<f64>().unwrap(), [f64::from(0.1_f32)]);
        let (small, large) = (Tensor::from_slice([1], &[3_i8]), Tensor::from_slice([1], &[3_u32]));
        let (small, large) = (small.unwrap(), large.unwrap());
        assert_eq!(alike(&small, &large).unwrap().0.as_slice::<i64>(), Some(&[3][..]));
        assert!(alike(&small, &single).is_none(), "an integer is no float");
        let huge = Tensor::from_slice([1], &[u64::MAX]).unwrap();
        assert!(alike(&small, &huge).is_none(), "it fits into no type with a sign");
        assert!(alike(&huge, &huge).is_some());
    }

    #[test]
    fn floats_are_rounded_and_integers_are_not() {
        let wide = Tensor::from_slice([2], &[1.000_1_f64, 1e6]).unwrap();
        let narrow = cast(&wide, DType::F16).unwrap();
        assert_eq!(narrow.as_slice::<f16>().unwrap(), [f16::ONE, f16::INFINITY]);
        let integers = Tensor::from_slice([1], &[300_i64]).unwrap();
        assert!(cast(&integers, DType::U8).is_none());
        assert_eq!(cast(&integers, DType::I16).unwrap().as_slice::<i16>(), Some(&[300][..]));
    }

    #[test]
    fn the_narrower_type_has_fewer_digits() {
        assert_eq!(narrower(DType::F32, DType::F16), DType::F16);
        assert_eq!(narrower(DType::BF16, DType::F16), DType::BF16);
        assert_eq!(narrower(DType::I64, DType::I32), DType::I64);
    }
}
