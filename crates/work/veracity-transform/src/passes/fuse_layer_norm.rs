//! A layer normalization that is written out becomes `LayerNormalization`.
//!
//! Two forms are known: `(x - mean) / sqrt(mean((x - mean)^2) + epsilon) [* scale] [+ bias]`, and
//! the one of TensorFlow, `x * g + (bias - mean * g)` with `g = scale / sqrt(...)`. They are the same
//! in real numbers. `LayerNormalization` computes in float32, so that float64 is left alone; where
//! half precision is widened around the formula the casts stay where they are.

use veracity_onnx::{Node, NodeId, Patch};
use veracity_tensor::DType;

use super::normalization::{Block, Operand, Root, inverse_root, over_root, with_weights};
use crate::pattern::{Formula, either, needs_opset};
use crate::{Class, Found, Pass, View};

/// Makes `LayerNormalization` of what computes the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct FuseLayerNorm;

impl Pass for FuseLayerNorm {
    fn name(&self) -> &'static str {
        "fuse-layer-norm"
    }

    fn class(&self) -> Class {
        Class::ExactReal
    }

    fn about(&self) -> &'static str {
        "makes LayerNormalization of what computes the same"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.graph().nodes() {
            let outcome = match node.op_type() {
                "Div" | "Mul" if node.is(node.op_type()) => centred(view, id, node),
                "Add" if node.is("Add") => shifted(view, id, node),
                _ => continue,
            };
            found.settle(id, outcome);
        }
    }
}

/// A layer normalization, however it is written.
struct Norm<'g> {
    x: &'g str,
    /// The mean of `x`, and that of the squares.
    means: [&'g Node; 2],
    root: Root<'g>,
}

impl<'g> Norm<'g> {
    /// The normalization of which this is the root, when what is squared is `x - mean(x)`.
    fn of(formula: &mut Formula<'_, 'g>, root: Root<'g>) -> Option<Self> {
        let difference = formula.back(root.squared, "Sub")?;
        let x = difference.input(0)?;
        let mean = formula.back(difference.input(1)?, "ReduceMean")?;
        (mean.input(0)? == x).then_some(Self { x, means: [mean, root.mean], root })
    }

    fn check(&self, view: &View<'_>) -> Result<Block, String> {
        needs_opset(view, "LayerNormalization", 17)?;
        if !matches!(self.root.dtype, DType::F32 | DType::F16 | DType::BF16) {
            return Err(format!("LayerNormalization computes {} in float32", self.root.dtype));
        }
        Block::of(view, self.x, &self.means)
    }

    /// The node, with what scales and shifts it.
    fn fused(
        &self,
        formula: &Formula<'_, 'g>,
        block: &Block,
        (scale, bias): (Operand, Option<Operand>),
        value: &str,
    ) -> Result<Option<Patch>, String> {
        let (view, mut weights) = (formula.view(), Vec::new());
        #[expect(clippy::cast_possible_truncation, reason = "of float32 or narrower, see `check`")]
        let epsilon = self.root.epsilon as f32;
        let node = Node::new("LayerNormalization", [self.x], [value])
            .int("axis", block.axis)
            .float("epsilon", epsilon);
        let node = scale.attach(view, node, &mut weights);
        let node = match bias {
            Some(bias) => bias.attach(view, node, &mut weights),
            None => node,
        };
        let patch = formula.fused(node, format!("{value:?} is a layer normalization"))?;
        Ok(Some(with_weights(patch, weights)))
    }
}

/// `(x - mean) / root`, at the division, with the scale and bias that follow.
fn centred<'g>(view: &View<'g>, id: NodeId, node: &'g Node) -> Result<Option<Patch>, String> {
    let mut formula = Formula::at(view, id);
    let found = over_root(&mut formula, node)
        .and_then(|(_, root)| Norm::of(&mut formula, root))
        .zip(node.only_output());
    let Some((norm, mut value)) = found else { return Ok(None) };
    let block = norm.check(view)?;
    let mut follow = |value: &mut &'g str, op_type: &str| {
        formula.attempt(|formula| {
            let next = formula.on(value, op_type)?;
            let current = *value;
            let operand = either(next, |one, two| {
                block.operand(view, two).filter(|_| one == current && two != current)
            })?;
            *value = next.only_output()?;
            Some(operand)
        })
    };
    let scale = follow(&mut value, "Mul");
    let bias = follow(&mut value, "Add");
    let ones = || block.ones(&format!("{value}.scale"), norm.root.dtype);
    let scale = scale.or_else(ones).ok_or("no scale of this type can be made")?;
    norm.fused(&formula, &block, (scale, bias), value)
}

/// `x * g + (bias - mean * g)` with `g = scale / root`, at the sum.
fn shifted<'g>(view: &View<'g>, id: NodeId, node: &'g Node) -> Result<Option<Patch>, String> {
    let mut formula = Formula::at(view, id);
    let Some(parts) =
        either(node, |one, two| formula.attempt(|formula| shifted_parts(formula, one, two)))
    else {
        return Ok(None);
    };
    let (norm, scale, bias) = parts;
    let block = norm.check(view)?;
    let operand = |value: &str| {
        block.operand(view, value).ok_or_else(|| format!("{value:?} is not a scale of one block"))
    };
    let operands = (operand(scale)?, Some(operand(bias)?));
    let Some(value) = node.only_output() else { return Ok(None) };
    norm.fused(&formula, &block, operands, value)
}

/// The normalization, its scale and its bias.
fn shifted_parts<'g>(
    formula: &mut Formula<'_, 'g>,
    product: &str,
    rest: &str,
) -> Option<(Norm<'g>, &'g str, &'g str)> {
    let product = formula.back(product, "Mul")?;
    let rest = formula.back(rest, "Sub")?;
    let bias = rest.input(0)?;
    let centre = formula.back(rest.input(1)?, "Mul")?;
    either(product, |x, gain| {
        formula.attempt(|formula| {
            let weighted = formula.back(gain, "Mul")?;
            let (root, scale) = either(weighted, |root, scale| {
                formula.attempt(|formula| Some((inverse_root(formula, root)?, scale)))
            })?;
            let norm = Norm::of(formula, root)?;
            let mean = norm.means[0].only_output()?;
            let same = either(centre, |one, two| (one == mean && two == gain).then_some(()));
            same.filter(|()| norm.x == x).map(|()| (norm, scale, bias))
        })
    })
}
