//! `Cast` where every engine gives the same bits.

use half::{bf16, f16};
use veracity_tensor::{DType, Tensor};

use super::operand::{held, shape};
use super::{Call, Computed};

/// Integers up to this are float32 exactly.
const EXACT_IN_F32: i128 = 1 << 24;

/// An element on its way from one type to another.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Real(f64),
}

pub(super) fn cast(call: &Call<'_>, to: Option<DType>) -> Computed {
    let operand = call.operand(0)?;
    let to = to.ok_or_else(|| "the type asked for is not one of ours".to_owned())?;
    if operand.dtype == to {
        return Ok(vec![call.weight(0)?.clone()]);
    }
    let tensor = operand.stretched(&operand.dims)?;
    let mut bytes = Vec::with_capacity(operand.elements() * to.size());
    for number in numbers(&tensor) {
        push(&mut bytes, number, operand.dtype, to)?;
    }
    held(Tensor::from_bytes(to, shape(&operand.dims)?, &bytes))
}

fn numbers(tensor: &Tensor) -> Vec<Number> {
    fn all<E: veracity_tensor::Element>(tensor: &Tensor, to: impl Fn(E) -> Number) -> Vec<Number> {
        tensor.as_slice::<E>().unwrap_or_default().iter().map(|&one| to(one)).collect()
    }
    match tensor.dtype() {
        DType::F16 => all(tensor, |one: f16| Number::Real(one.to_f64())),
        DType::BF16 => all(tensor, |one: bf16| Number::Real(one.to_f64())),
        DType::F32 => all(tensor, |one: f32| Number::Real(one.into())),
        DType::F64 => all(tensor, Number::Real),
        DType::I8 => all(tensor, |one: i8| Number::Whole(one.into())),
        DType::I16 => all(tensor, |one: i16| Number::Whole(one.into())),
        DType::I32 => all(tensor, |one: i32| Number::Whole(one.into())),
        DType::I64 => all(tensor, |one: i64| Number::Whole(one.into())),
        DType::U8 => all(tensor, |one: u8| Number::Whole(one.into())),
        DType::U16 => all(tensor, |one: u16| Number::Whole(one.into())),
        DType::U32 => all(tensor, |one: u32| Number::Whole(one.into())),
        DType::U64 => all(tensor, |one: u64| Number::Whole(one.into())),
        DType::Bool => tensor.bytes().iter().map(|&one| Number::Whole(one.into())).collect(),
    }
}

fn push(bytes: &mut Vec<u8>, number: Number, from: DType, to: DType) -> Result<(), String> {
    match to {
        DType::Bool => bytes.push(u8::from(match number {
            Number::Whole(whole) => whole != 0,
            Number::Real(real) if real.is_nan() => return Err(not_fixed("NaN", to)),
            Number::Real(real) => real.abs() > 0.0,
        })),
        DType::F32 | DType::F64 | DType::F16 | DType::BF16 => push_real(bytes, number, from, to)?,
        _ => push_whole(bytes, whole(number, to)?, to),
    }
    Ok(())
}

/// Rounded once. The narrow types are reached through float32 by some engines, so that only what
/// float32 holds is the same everywhere.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "rounding is the purpose"
)]
fn push_real(bytes: &mut Vec<u8>, number: Number, from: DType, to: DType) -> Result<(), String> {
    let narrow = matches!(to, DType::F16 | DType::BF16);
    let real = match number {
        Number::Real(real) if real.is_nan() => return Err(not_fixed("NaN", to)),
        Number::Real(_) if narrow && from == DType::F64 => return Err(not_fixed("float64", to)),
        Number::Whole(whole) if narrow && whole.abs() > EXACT_IN_F32 => {
            return Err(not_fixed("a large integer", to));
        }
        Number::Whole(whole) if to == DType::F32 => f64::from(whole as f32),
        Number::Whole(whole) => whole as f64,
        Number::Real(real) => real,
    };
    match to {
        DType::F16 => bytes.extend(f16::from_f64(real).to_le_bytes()),
        DType::BF16 => bytes.extend(bf16::from_f64(real).to_le_bytes()),
        DType::F32 => bytes.extend((real as f32).to_le_bytes()),
        _ => bytes.extend(real.to_le_bytes()),
    }
    Ok(())
}

/// An integer, of the fraction nothing. What does not fit is not the same everywhere.
#[expect(clippy::cast_possible_truncation, reason = "checked to be within 64 bits")]
fn whole(number: Number, to: DType) -> Result<i128, String> {
    let (low, high) = limits(to);
    match number {
        Number::Whole(whole) => Ok(whole),
        Number::Real(real)
            if real.abs() < 1e19 && (low..=high).contains(&(real.trunc() as i128)) =>
        {
            Ok(real.trunc() as i128)
        }
        Number::Real(_) => Err(not_fixed("a number that does not fit", to)),
    }
}

fn limits(dtype: DType) -> (i128, i128) {
    let bits = 8 * dtype.size();
    match dtype {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => (0, (1 << bits) - 1),
        _ => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    }
}

/// The lowest bits: integers that do not fit wrap around.
fn push_whole(bytes: &mut Vec<u8>, whole: i128, to: DType) {
    bytes.extend(&whole.to_le_bytes()[..to.size()]);
}

fn not_fixed(what: &str, to: DType) -> String {
    format!("what {what} becomes as {to} is not the same in every engine")
}
