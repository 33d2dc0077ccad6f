//! Operators that work element by element.

use veracity_onnx::Dim;
use veracity_tensor::DType;

use super::call::{Call, one};
use super::{Fact, arithmetic, dims};

/// Since when operands are stretched as NumPy does; before, attributes said how.
const BROADCAST_SINCE: i64 = 7;
/// The same, for operators with any number of operands.
const VARIADIC_BROADCAST_SINCE: i64 = 8;

/// Sizes that all inputs from `first` on are stretched to.
fn all_stretched(call: &Call<'_>, inputs: impl IntoIterator<Item = usize>) -> Option<Vec<Dim>> {
    let mut stretched = Vec::new();
    for index in inputs {
        stretched = dims::broadcast(&stretched, call.dims(index)?);
    }
    Some(stretched)
}

/// The first input again, as far as type and sizes go.
pub(super) fn like_first(call: &Call<'_>) -> Vec<Fact> {
    one(call.dtype(0), call.owned_dims(0))
}

/// The sizes of the first input with another type.
pub(super) fn first_as(call: &Call<'_>, dtype: DType) -> Vec<Fact> {
    one(Some(dtype), call.owned_dims(0))
}

/// The first input, elements included.
pub(super) fn same(call: &Call<'_>) -> Vec<Fact> {
    call.fact(0).cloned().into_iter().collect()
}

/// Two operands and a result of their type.
pub(super) fn binary(call: &Call<'_>, op: &str) -> Vec<Fact> {
    if call.opset < BROADCAST_SINCE {
        return one(call.any_dtype(), None);
    }
    let plain = op != "Mod" || !call.flag("fmod", false);
    let elements = if plain { arithmetic::binary(call, op) } else { None };
    vec![Fact { elements, ..Fact::new(call.any_dtype(), all_stretched(call, [0, 1])) }]
}

/// `Pow` and shifts: the type is that of the first operand.
pub(super) fn binary_like_first(call: &Call<'_>) -> Vec<Fact> {
    let sizes = if call.opset < BROADCAST_SINCE { None } else { all_stretched(call, [0, 1]) };
    one(call.dtype(0), sizes)
}

/// Comparisons and logic.
pub(super) fn predicate(call: &Call<'_>, op: &str) -> Vec<Fact> {
    if call.opset < BROADCAST_SINCE {
        return one(Some(DType::Bool), None);
    }
    let elements = if op == "Equal" { arithmetic::binary(call, op) } else { None };
    vec![Fact { elements, ..Fact::new(Some(DType::Bool), all_stretched(call, [0, 1])) }]
}

/// Any number of operands.
pub(super) fn variadic(call: &Call<'_>, op: &str) -> Vec<Fact> {
    let count = call.node.inputs().len();
    if count == 0 || (count > 1 && call.opset < VARIADIC_BROADCAST_SINCE) {
        return one(call.any_dtype(), None);
    }
    let elements = if count == 2 { arithmetic::binary(call, op) } else { None };
    vec![Fact { elements, ..Fact::new(call.any_dtype(), all_stretched(call, 0..count)) }]
}

/// `Where`.
pub(super) fn choice(call: &Call<'_>) -> Vec<Fact> {
    let dtype = call.dtype(1).or_else(|| call.dtype(2));
    let elements = match dtype {
        Some(DType::I64 | DType::I32) => arithmetic::chosen(call),
        _ => None,
    };
    vec![Fact { elements, ..Fact::new(dtype, all_stretched(call, [0, 1, 2])) }]
}

/// `Cast`.
pub(super) fn cast(call: &Call<'_>) -> Vec<Fact> {
    cast_to(call, call.node.dtype_of("to"))
}

/// `CastLike`.
pub(super) fn cast_like(call: &Call<'_>) -> Vec<Fact> {
    cast_to(call, call.dtype(1))
}

fn cast_to(call: &Call<'_>, to: Option<DType>) -> Vec<Fact> {
    let elements = to.and_then(|to| arithmetic::cast(call, to));
    vec![Fact { elements, ..Fact::new(to, call.owned_dims(0)) }]
}

/// `Dropout`: the values, and which of them were kept.
pub(super) fn dropout(call: &Call<'_>) -> Vec<Fact> {
    let mask = (call.opset >= 10).then_some(DType::Bool);
    let sizes = call.owned_dims(0);
    vec![Fact::new(call.dtype(0), sizes.clone()), Fact::new(mask, sizes)]
}

/// `QuantizeLinear`: the type is that of the zero point, or asked for, or uint8.
pub(super) fn quantize(call: &Call<'_>) -> Vec<Fact> {
    let asked = call.node.int_of("output_dtype").is_some_and(|code| code != 0);
    let dtype = if call.has(2) {
        call.dtype(2)
    } else if asked {
        call.node.dtype_of("output_dtype")
    } else {
        Some(DType::U8)
    };
    one(dtype, call.owned_dims(0))
}

/// `DequantizeLinear`: the type is that of the scale, before anything else could be asked for.
pub(super) fn dequantize(call: &Call<'_>) -> Vec<Fact> {
    let asked = call.node.int_of("output_dtype").is_some_and(|code| code != 0);
    let dtype = if asked { call.node.dtype_of("output_dtype") } else { call.dtype(1) };
    one(dtype, call.owned_dims(0))
}
