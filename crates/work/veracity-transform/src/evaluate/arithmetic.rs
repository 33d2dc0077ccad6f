//! Arithmetic, element by element, rounded once.

use half::f16;
use veracity_tensor::{DType, Element, Tensor};

use super::operand::{held, shape};
use super::{Call, Computed};

/// `a + b` and its like of two elements; `None` where the result is not the same everywhere.
trait Arithmetic: Element {
    fn combined(self, other: Self, op: Op) -> Option<Self>;
    fn alone(self, op: Op) -> Option<Self>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Add,
    Sub,
    Mul,
    Div,
    /// The remainder with the sign of the divisor.
    Mod,
    /// The remainder with the sign of the dividend.
    Rem,
    Max,
    Min,
    Neg,
    Abs,
    Sqrt,
}

macro_rules! whole {
    ($($type:ty),*) => {$(
        #[allow(clippy::allow_attributes, unused_comparisons, reason = "shared with unsigned types")]
        impl Arithmetic for $type {
            fn combined(self, other: Self, op: Op) -> Option<Self> {
                Some(match op {
                    Op::Add => self.wrapping_add(other),
                    Op::Sub => self.wrapping_sub(other),
                    Op::Mul => self.wrapping_mul(other),
                    Op::Div => self.checked_div(other)?,
                    Op::Rem => self.checked_rem(other)?,
                    Op::Mod => {
                        let rest = self.checked_rem(other)?;
                        if rest != 0 && (rest < 0) != (other < 0) { rest + other } else { rest }
                    }
                    Op::Max => self.max(other),
                    Op::Min => self.min(other),
                    Op::Neg | Op::Abs | Op::Sqrt => return None,
                })
            }

            fn alone(self, op: Op) -> Option<Self> {
                match op {
                    Op::Neg => (0 as $type).checked_sub(self),
                    Op::Abs if self < 0 => (0 as $type).checked_sub(self),
                    Op::Abs => Some(self),
                    _ => None,
                }
            }
        }
    )*};
}

whole!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! real {
    ($($type:ty),*) => {$(
        impl Arithmetic for $type {
            fn combined(self, other: Self, op: Op) -> Option<Self> {
                let result = match op {
                    Op::Add => self + other,
                    Op::Sub => self - other,
                    Op::Mul => self * other,
                    Op::Div => self / other,
                    // Which of the zeros is larger is not fixed.
                    Op::Max | Op::Min if self.partial_cmp(&other).is_some_and(std::cmp::Ordering::is_eq)
                        && self.to_bits() != other.to_bits() => {
                        return None;
                    }
                    Op::Max if !self.is_nan() && !other.is_nan() => self.max(other),
                    Op::Min if !self.is_nan() && !other.is_nan() => self.min(other),
                    _ => return None,
                };
                (!result.is_nan()).then_some(result)
            }

            fn alone(self, op: Op) -> Option<Self> {
                let result = match op {
                    Op::Neg => -self,
                    Op::Abs => self.abs(),
                    Op::Sqrt => self.sqrt(),
                    _ => return None,
                };
                (!result.is_nan()).then_some(result)
            }
        }
    )*};
}

real!(f32, f64);

/// Through float32, whose precision is more than twice that of float16: rounding twice gives what
/// rounding once gives.
impl Arithmetic for f16 {
    fn combined(self, other: Self, op: Op) -> Option<Self> {
        self.to_f32().combined(other.to_f32(), op).map(Self::from_f32)
    }

    fn alone(self, op: Op) -> Option<Self> {
        self.to_f32().alone(op).map(Self::from_f32)
    }
}

pub(super) fn binary(call: &Call<'_>, dims: &[usize]) -> Computed {
    let op = match call.node.op_type() {
        "Add" => Op::Add,
        "Sub" => Op::Sub,
        "Mul" => Op::Mul,
        "Div" => Op::Div,
        "Mod" if call.flag("fmod") => Op::Rem,
        "Mod" => Op::Mod,
        "Max" => Op::Max,
        _ => Op::Min,
    };
    let (one, two) = (call.operand(0)?.stretched(dims)?, call.operand(1)?.stretched(dims)?);
    if one.dtype() != two.dtype() {
        return Err("the operands are of different types".to_owned());
    }
    macro_rules! run {
        ($type:ty) => {{
            let (one, two) = (one.as_slice::<$type>(), two.as_slice::<$type>());
            let pairs = one.unwrap_or_default().iter().zip(two.unwrap_or_default());
            filled(pairs.map(|(one, two)| one.combined(*two, op)).collect(), dims)
        }};
    }
    match one.dtype() {
        DType::F16 => run!(f16),
        DType::F32 => run!(f32),
        DType::F64 => run!(f64),
        DType::I8 => run!(i8),
        DType::I16 => run!(i16),
        DType::I32 => run!(i32),
        DType::I64 => run!(i64),
        DType::U8 => run!(u8),
        DType::U16 => run!(u16),
        DType::U32 => run!(u32),
        DType::U64 => run!(u64),
        other => Err(format!("arithmetic of {other} is not computed here")),
    }
}

pub(super) fn unary(call: &Call<'_>) -> Computed {
    let op = match call.node.op_type() {
        "Neg" => Op::Neg,
        "Abs" => Op::Abs,
        _ => Op::Sqrt,
    };
    let operand = call.operand(0)?;
    let tensor = operand.stretched(&operand.dims)?;
    macro_rules! run {
        ($type:ty) => {{
            let all = tensor.as_slice::<$type>().unwrap_or_default().iter();
            filled(all.map(|one| one.alone(op)).collect(), &operand.dims)
        }};
    }
    match operand.dtype {
        DType::F16 => run!(f16),
        DType::F32 => run!(f32),
        DType::F64 => run!(f64),
        DType::I8 => run!(i8),
        DType::I16 => run!(i16),
        DType::I32 => run!(i32),
        DType::I64 => run!(i64),
        other => Err(format!("arithmetic of {other} is not computed here")),
    }
}

fn filled<E: Element>(elements: Option<Vec<E>>, dims: &[usize]) -> Computed {
    let elements = elements
        .ok_or_else(|| "an element of the result is not the same in every engine".to_owned())?;
    held(Tensor::from_slice(shape(dims)?, &elements))
}
