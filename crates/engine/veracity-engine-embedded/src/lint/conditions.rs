//! What makes a node acceptable beyond its attributes and dtypes taken one by one.

use tract_onnx::pb::{AttributeProto, NodeProto};
use veracity_tensor::DType;

use super::value::{self, Value};
use crate::dtype::dtype_from_onnx;

/// A node with what is known about its inputs; left-out inputs are `None`.
pub(super) struct Use<'a> {
    pub(super) node: &'a NodeProto,
    pub(super) inputs: &'a [Option<Value>],
}

/// Judges a node that is fine otherwise.
pub(super) type Condition = fn(&Use<'_>) -> Outcome;

impl Use<'_> {
    fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.node.attribute.iter().find(|attribute| attribute.name == name)
    }

    fn input(&self, index: usize) -> Option<&Value> {
        self.inputs.get(index)?.as_ref()
    }

    fn dtype(&self, index: usize) -> Option<DType> {
        self.input(index).and_then(Value::dtype)
    }
}

/// Nothing, or the reason for a refusal.
type Outcome = Result<(), String>;

fn refuse_unless(fine: bool, reason: &str) -> Outcome {
    if fine { Ok(()) } else { Err(reason.to_owned()) }
}

/// Negative paddings, which cut, make tract panic; others are only known when they are constant.
pub(super) fn pads_add(context: &Use<'_>) -> Outcome {
    let adds = match context.input(1) {
        Some(Value::Constant(pads)) => pads.iter().all(|&pad| pad >= 0),
        _ => false,
    };
    refuse_unless(adds, "its paddings are not constants of at least 0")
}

/// The remainder of floats has one meaning only.
pub(super) fn float_remainder_is_fmod(context: &Use<'_>) -> Outcome {
    let fmod = context.attribute("fmod").is_some_and(|attribute| attribute.i == 1);
    let float = context.dtype(0).is_some_and(DType::is_float);
    refuse_unless(fmod || !float, "floats need the attribute `fmod`")
}

/// tract turns a value times itself into a square, and computes that in floats: integers come out
/// wrong or not at all. Two inputs of other names may turn out to be the same value, so a product of
/// integers needs a constant.
pub(super) fn product_is_no_square(context: &Use<'_>) -> Outcome {
    let constant = |index| matches!(context.input(index), Some(Value::Constant(_)));
    let float = context.dtype(0).is_some_and(DType::is_float);
    refuse_unless(float || constant(0) || constant(1), "it multiplies integers that both vary")
}

/// The constants that tract takes when none are given are rounded to five digits.
pub(super) fn selu_is_explicit(context: &Use<'_>) -> Outcome {
    let given = ["alpha", "gamma"].iter().all(|name| context.attribute(name).is_some());
    refuse_unless(given, "its constants are not given")
}

/// An exponent is of the base's dtype or an integer; others change the dtype of the result.
pub(super) fn exponent_fits(context: &Use<'_>) -> Outcome {
    let exponent = context.dtype(1);
    let integer = matches!(exponent, Some(DType::I32 | DType::I64));
    let fits = exponent == context.dtype(0) || integer && context.input(1) != Some(&Value::Sizes);
    refuse_unless(fits, "its exponent is neither of the dtype of its base nor an integer")
}

/// Sequences of different lengths are not told apart.
pub(super) fn sequences_are_whole(context: &Use<'_>) -> Outcome {
    refuse_unless(context.input(4).is_none(), "sequence lengths are not supported")
}

/// Without its states an LSTM takes a batch of one only.
pub(super) fn lstm_is_fed(context: &Use<'_>) -> Outcome {
    sequences_are_whole(context)?;
    let fed = context.input(5).is_some() && context.input(6).is_some();
    refuse_unless(fed, "it has no initial states")
}

/// What a constant needs so that its dtype is certain: without a value tract fills with float64,
/// the format with float32.
pub(super) fn fill_is_given(context: &Use<'_>) -> Outcome {
    refuse_unless(context.attribute("value").is_some(), "it does not say which value to fill with")
}

/// What `Cast` gives.
///
/// To int64 it gives [`Value::Sizes`], and on the way the elements become 32-bit integers: what
/// may not fit into those is refused.
pub(super) fn cast_result(context: &Use<'_>) -> Result<Value, String> {
    use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U64};
    let to = context.attribute("to").and_then(|to| dtype_from_onnx(i32::try_from(to.i).ok()?));
    let (Some(from), Some(to)) = (context.dtype(0), to) else {
        return Err("its dtypes are not known".to_owned());
    };
    let exact = match (from, to) {
        _ if context.input(0) == Some(&Value::Sizes) => to != BF16,
        (Bool | I8 | I16 | I32 | U8 | U16, I64) => true,
        (_, I64 | BF16) | (F32 | F64, U64) | (BF16, _) => false,
        (F16, to) => matches!(to, F16 | F32 | F64),
        (from, F16) => matches!(from, F32 | F64),
        _ => true,
    };
    if !exact {
        return Err(format!("a cast from {from} to {to} is not exact"));
    }
    Ok(if to == I64 { Value::Sizes } else { Value::Plain(to) })
}

/// What `Constant` and `ConstantOfShape` give.
pub(super) fn constant_result(context: &Use<'_>) -> Result<Value, String> {
    let [attribute] = &*context.node.attribute else {
        return Err("it does not have exactly one value".to_owned());
    };
    let repeated = context.node.op_type == "ConstantOfShape";
    let value = match (&*attribute.name, &attribute.t) {
        ("value", Some(tensor)) => value::of_tensor(tensor)?,
        ("value_int", _) => Value::of_integers(&[attribute.i]),
        ("value_ints", _) => Value::of_integers(&attribute.ints),
        ("value_float" | "value_floats", _) => Value::Plain(DType::F32),
        _ => return Err("it has no value".to_owned()),
    };
    // A shape may be computed, so the number of elements is not known.
    Ok(match value.dtype() {
        Some(dtype) if repeated => Value::Plain(dtype),
        _ => value,
    })
}
