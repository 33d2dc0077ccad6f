//! Division by a constant as multiplication by its reciprocal.

use veracity_onnx::{Node, NodeId, Patch, Weight};
use veracity_tensor::DType;

use super::support::{Match, float_constant};
use crate::View;

/// A division by a constant as a multiplication; when `exactly`, by powers of two alone. Refused when
/// a divisor or its reciprocal is not a normal number. Integers are no match: they divide otherwise.
pub(super) fn multiplied(view: &View<'_>, id: NodeId, node: &Node, exactly: bool) -> Match {
    let (Some(given), Some(name), Some(value)) = (node.input(0), node.input(1), node.output(0))
    else {
        return Ok(None);
    };
    let Some((weight, dtype)) = float_constant(view, name) else { return Ok(None) };
    if view.opset() < 7 {
        return Err("arithmetic before opset 7 has its own rules of broadcasting".to_owned());
    }
    let divisors = weight.floats().ok_or("the elements of the divisor cannot be read")?;
    let factors: Vec<f64> =
        divisors.iter().map(|one| reciprocal(dtype, *one, exactly)).collect::<Result<_, _>>()?;
    let factors = Weight::from_floats(dtype, &weight.dims(), &factors);
    let factors = factors.ok_or("the divisor is too large")?;
    let factor_name = view.fresh(&format!("{name}_reciprocal"));
    let reason = if exactly {
        format!("{name:?} holds powers of two")
    } else {
        format!("{name:?} is constant")
    };
    let multiply = Node::new("Mul", [given, &factor_name], [value]).named(node.name());
    Ok(Some(Patch::because(reason).weight(factor_name, factors).change(id, multiply)))
}

/// The reciprocal, refused when it, or what it comes from, is not a normal number.
fn reciprocal(dtype: DType, divisor: f64, exactly: bool) -> Result<f64, String> {
    let (smallest, largest) = match dtype {
        DType::F16 => (half::f16::MIN_POSITIVE.to_f64(), half::f16::MAX.to_f64()),
        DType::BF16 => (half::bf16::MIN_POSITIVE.to_f64(), half::bf16::MAX.to_f64()),
        DType::F32 => (f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)),
        _ => (f64::MIN_POSITIVE, f64::MAX),
    };
    let normal = |number: f64| (smallest..=largest).contains(&number.abs());
    if divisor == 0.0 {
        return Err("it divides by 0".to_owned());
    }
    let mantissa = divisor.to_bits() & ((1 << 52) - 1);
    if exactly && mantissa != 0 {
        return Err(format!("{divisor} is not a power of two"));
    }
    if normal(divisor) && normal(1.0 / divisor) {
        Ok(1.0 / divisor)
    } else {
        Err(format!("{divisor} or its reciprocal is not a normal number"))
    }
}
