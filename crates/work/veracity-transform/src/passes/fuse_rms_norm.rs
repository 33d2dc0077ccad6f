//! `x / sqrt(mean(x * x) + epsilon) * scale` becomes `RMSNormalization`.
//!
//! The same in real numbers. The operator computes in float32, so that float64 is left alone.

use veracity_onnx::{Node, NodeId, Patch};
use veracity_tensor::DType;

use super::normalization::{Block, over_root, with_weights};
use crate::pattern::{Formula, either, needs_opset};
use crate::{Class, Found, Pass, View};

/// Makes `RMSNormalization` of what computes the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct FuseRmsNorm;

impl Pass for FuseRmsNorm {
    fn name(&self) -> &'static str {
        "fuse-rms-norm"
    }

    fn class(&self) -> Class {
        Class::ExactReal
    }

    fn about(&self) -> &'static str {
        "makes RMSNormalization of what computes the same"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for op_type in ["Div", "Mul"] {
            for (id, node) in view.nodes_of(op_type) {
                found.settle(id, normalized(view, id, node));
            }
        }
    }
}

fn normalized<'g>(view: &View<'g>, id: NodeId, node: &'g Node) -> Result<Option<Patch>, String> {
    let mut formula = Formula::at(view, id);
    let parts = over_root(&mut formula, node).zip(node.only_output());
    let Some(((x, root), plain)) = parts else { return Ok(None) };
    needs_opset(view, "RMSNormalization", 23)?;
    if !matches!(root.dtype, DType::F32 | DType::F16 | DType::BF16) {
        return Err(format!("RMSNormalization computes {} in float32", root.dtype));
    }
    let block = Block::of(view, x, &[root.mean])?;
    let scaled = formula.attempt(|formula| {
        let next = formula.on(plain, "Mul")?;
        let operand = either(next, |one, two| {
            block.operand(view, two).filter(|_| one == plain && two != plain)
        })?;
        Some((operand, next.only_output()?))
    });
    let ones = || Some((block.ones(&format!("{plain}.scale"), root.dtype)?, plain));
    let (scale, value) = scaled.or_else(ones).ok_or("no scale of this type can be made")?;
    #[expect(clippy::cast_possible_truncation, reason = "float32 or narrower, as checked above")]
    let epsilon = root.epsilon as f32;
    let fused = Node::new("RMSNormalization", [x], [value])
        .int("axis", block.axis)
        .float("epsilon", epsilon);
    let mut weights = Vec::new();
    let fused = scale.attach(view, fused, &mut weights);
    let patch = formula.fused(fused, format!("{value:?} is x over its root mean square"))?;
    Ok(Some(with_weights(patch, weights)))
}
