//! `x * HardSigmoid(x)` and `x * Clip(x + 3, 0, 6) / 6` become `HardSwish`.
//!
//! The same in real numbers. Float64 is left alone: the sixth that `HardSwish` multiplies by is a
//! float32.

use veracity_onnx::{Node, NodeId, Patch};
use veracity_tensor::DType;

use crate::pattern::{Formula, either, is_rounded, needs_opset};
use crate::{Class, Found, Pass, View};

/// Makes `HardSwish` of what computes the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct FuseHardSwish;

impl Pass for FuseHardSwish {
    fn name(&self) -> &'static str {
        "fuse-hard-swish"
    }

    fn class(&self) -> Class {
        Class::ExactReal
    }

    fn about(&self) -> &'static str {
        "makes HardSwish of what computes the same"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("HardSigmoid") {
            found.settle(id, from_sigmoid(view, id, node));
        }
        for (id, node) in view.nodes_of("Clip") {
            found.settle(id, from_clip(view, id, node));
        }
    }
}

/// `x * HardSigmoid(x)`
fn from_sigmoid<'g>(view: &View<'g>, id: NodeId, node: &'g Node) -> Result<Option<Patch>, String> {
    let mut formula = Formula::at(view, id);
    let Some((x, sigmoid)) = node.input(0).zip(node.only_output()) else { return Ok(None) };
    let Some((_, value)) = formula.times(sigmoid, x, false) else { return Ok(None) };
    let slope = f64::from(node.float_of("alpha").unwrap_or(0.2));
    let offset = f64::from(node.float_of("beta").unwrap_or(0.5));
    if !is_rounded(slope, 1.0 / 6.0, DType::F32, 1.0) || !is_rounded(offset, 0.5, DType::F32, 1.0) {
        return Err(format!("HardSigmoid has the slope {slope} and the offset {offset}"));
    }
    let dtype = view.dtype(x).ok_or_else(|| format!("the type of {x:?} is unknown"))?;
    fused(&formula, x, value, dtype)
}

/// `x * Clip(x + 3, 0, 6) / 6`
fn from_clip<'g>(view: &View<'g>, id: NodeId, node: &'g Node) -> Result<Option<Patch>, String> {
    let mut formula = Formula::at(view, id);
    let Some(parts) = clip_parts(&mut formula, node) else { return Ok(None) };
    let Parts { x, bounds, shift, factor, value, dtype } = parts;
    let right = is_rounded(shift, 3.0, dtype, 1.0)
        && bounds[0].abs() <= 0.0
        && is_rounded(bounds[1], 6.0, dtype, 1.0)
        && is_rounded(factor, 1.0 / 6.0, dtype, 1.0);
    if !right {
        let [low, high] = bounds;
        return Err(format!("it is x * Clip(x + {shift}, {low}, {high}) * {factor}"));
    }
    fused(&formula, x, value, dtype)
}

struct Parts<'g> {
    x: &'g str,
    bounds: [f64; 2],
    shift: f64,
    factor: f64,
    value: &'g str,
    dtype: DType,
}

fn clip_parts<'g>(formula: &mut Formula<'_, 'g>, node: &'g Node) -> Option<Parts<'g>> {
    let view = formula.view();
    let bound = |index| view.constant(node.input(index)?)?.number();
    let bounds = [bound(1)?, bound(2)?];
    let sum = formula.back(node.input(0)?, "Add")?;
    let (x, shift, constant) =
        either(sum, |x, constant| Some((x, formula.number(constant, x)?, constant)))?;
    let dtype = view.constant(constant)?.dtype()?;
    let (factor, value) = formula.times(node.only_output()?, x, true)?;
    Some(Parts { x, bounds, shift, factor, value, dtype })
}

fn fused(
    formula: &Formula<'_, '_>,
    x: &str,
    value: &str,
    dtype: DType,
) -> Result<Option<Patch>, String> {
    if !matches!(dtype, DType::F32 | DType::F16 | DType::BF16) {
        return Err(format!("HardSwish of {dtype} is not known to be as exact"));
    }
    needs_opset(formula.view(), "HardSwish", 14)?;
    let node = Node::new("HardSwish", [x], [value]);
    formula.fused(node, format!("{value:?} is a hard swish")).map(Some)
}
