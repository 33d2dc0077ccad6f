//! Comparisons, logic and choice.

use half::{bf16, f16};
use veracity_onnx::Weight;
use veracity_tensor::{DType, Tensor};

use super::operand::{held, shape};
use super::{Call, Computed};

fn bools(bytes: &[u8], dims: &[usize]) -> Computed {
    held(Tensor::from_bytes(DType::Bool, shape(dims)?, bytes))
}

pub(super) fn compare(call: &Call<'_>, dims: &[usize]) -> Computed {
    let (one, two) = (call.operand(0)?.stretched(dims)?, call.operand(1)?.stretched(dims)?);
    if one.dtype() != two.dtype() {
        return Err("the operands are of different types".to_owned());
    }
    let op = call.node.op_type();
    macro_rules! run {
        ($type:ty) => {{
            let (one, two) = (one.as_slice::<$type>(), two.as_slice::<$type>());
            let pairs = one.unwrap_or_default().iter().zip(two.unwrap_or_default());
            pairs.map(|(one, two)| u8::from(holds(op, one.partial_cmp(two)))).collect::<Vec<u8>>()
        }};
    }
    let result = match one.dtype() {
        DType::F16 => run!(f16),
        DType::BF16 => run!(bf16),
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
        DType::Bool => {
            let pairs = one.bytes().iter().zip(two.bytes());
            pairs.map(|(one, two)| u8::from(holds(op, one.partial_cmp(two)))).collect()
        }
    };
    bools(&result, dims)
}

/// Whether a comparison holds; nothing holds for NaN.
fn holds(op: &str, order: Option<std::cmp::Ordering>) -> bool {
    order.is_some_and(|order| match op {
        "Equal" => order.is_eq(),
        "Less" => order.is_lt(),
        "LessOrEqual" => order.is_le(),
        "Greater" => order.is_gt(),
        _ => order.is_ge(),
    })
}

pub(super) fn combine(call: &Call<'_>, dims: &[usize]) -> Computed {
    let (one, two) = (call.operand(0)?.stretched(dims)?, call.operand(1)?.stretched(dims)?);
    if (one.dtype(), two.dtype()) != (DType::Bool, DType::Bool) {
        return Err("the operands are not bools".to_owned());
    }
    let op = call.node.op_type();
    let pairs = one.bytes().iter().zip(two.bytes());
    let result: Vec<u8> = pairs
        .map(|(one, two)| match op {
            "And" => one & two,
            "Or" => one | two,
            _ => one ^ two,
        })
        .collect();
    bools(&result, dims)
}

pub(super) fn not(call: &Call<'_>) -> Computed {
    let operand = call.operand(0)?;
    if operand.dtype != DType::Bool {
        return Err("the operand is not of bools".to_owned());
    }
    let result: Vec<u8> = operand.bytes().iter().map(|one| u8::from(*one == 0)).collect();
    bools(&result, &operand.dims)
}

pub(super) fn choose(call: &Call<'_>, dims: &[usize]) -> Computed {
    let flags = call.operand(0)?.stretched(dims)?;
    let (one, two) = (call.operand(1)?.stretched(dims)?, call.operand(2)?.stretched(dims)?);
    if one.dtype() != two.dtype() || flags.dtype() != DType::Bool {
        return Err("the operands do not fit together".to_owned());
    }
    let width = one.dtype().size();
    let mut result = two;
    let slots = result.bytes_mut().chunks_exact_mut(width).zip(one.bytes().chunks_exact(width));
    for ((to, from), flag) in slots.zip(flags.bytes()) {
        if *flag != 0 {
            to.copy_from_slice(from);
        }
    }
    if result.dtype().is_float() && result.bytes().chunks_exact(width).any(is_negative_zero) {
        return Err("some engines give 0.0 where -0.0 is chosen".to_owned());
    }
    Ok(vec![Weight::new(result)])
}

/// Whether an element of a float type is -0.0: the sign alone, which stands last.
fn is_negative_zero(element: &[u8]) -> bool {
    matches!(element, [rest @ .., 0x80] if rest.iter().all(|&byte| byte == 0))
}
