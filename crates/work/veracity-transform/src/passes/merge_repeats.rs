//! What does nothing when it is done again is done once; what undoes itself is not done at all.
//!
//! Exact for every bit: rounding what is rounded, or taking the magnitude of a magnitude, changes
//! nothing, and negating twice gives NaN its sign back.

use veracity_onnx::{Node, NodeId, Patch};

use super::support::{Match, instead, passed_over};
use crate::{Class, Found, Pass, View};

/// Merges repeated rounding, magnitudes and signs, and drops negations of negations.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeRepeats;

const IDEMPOTENT: [&str; 6] = ["Abs", "Ceil", "Floor", "Round", "Sign", "Relu"];
const INVOLUTIONS: [&str; 2] = ["Neg", "Not"];

impl Pass for MergeRepeats {
    fn name(&self) -> &'static str {
        "merge-repeats"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "merges repeated Abs, Ceil, Floor, Round, Sign and Relu, and drops Neg of Neg and Not of Not"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.graph().nodes() {
            found.settle(id, repeated(view, id, node));
        }
    }
}

fn repeated(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let (Some(middle), Some(value)) = (node.input(0), node.output(0)) else { return Ok(None) };
    let Some((inner_id, inner)) = view.graph().producer(middle) else { return Ok(None) };
    let again = |all: &[&str]| all.iter().any(|op| node.is(op) && inner.is(op));
    if again(&IDEMPOTENT) {
        let patch = Patch::because(format!("{} of {0} changes nothing", node.op_type()));
        return instead(view, patch.remove(id).context(inner_id), value, middle);
    }
    match inner.input(0) {
        Some(source) if again(&INVOLUTIONS) => {
            let patch = Patch::because(format!("{} of {0} is nothing", node.op_type()));
            let patch = passed_over(view, patch.remove(id), inner_id, middle);
            instead(view, patch, value, source)
        }
        _ => Ok(None),
    }
}
