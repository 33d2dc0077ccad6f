//! An `If` whose condition is constant becomes the branch that it takes.
//!
//! Everything that the branch defines gets a new name; what it reads from around it stays.

use veracity_onnx::{Node, NodeId, Patch, Weight};
use veracity_tensor::DType;

use crate::{Class, Found, Pass, View};

/// Puts the branch that is taken in the place of an `If`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FoldIf;

impl Pass for FoldIf {
    fn name(&self) -> &'static str {
        "fold-if"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "puts the branch that is taken in the place of an If with a constant condition"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("If") {
            found.settle(id, taken(view, id, node));
        }
    }
}

fn taken(view: &View<'_>, id: NodeId, node: &Node) -> Result<Option<Patch>, String> {
    let constant = node.input(0).and_then(|name| view.constant(name));
    let condition = constant.and_then(truth).ok_or("the condition is not constant")?;
    let branch = view.graph().branch(node, condition, &mut |base| view.fresh(base))?;
    let mut patch = Patch::because(format!("the condition is always {condition}")).remove(id);
    for (name, weight) in branch.weights {
        patch = patch.weight(name, weight);
    }
    Ok(Some(branch.nodes.into_iter().fold(patch, Patch::insert)))
}

/// A constant as yes or no.
fn truth(weight: &Weight) -> Option<bool> {
    let tensor = weight.tensor().filter(|tensor| tensor.dtype() == DType::Bool)?;
    match tensor.bytes() {
        [byte] => Some(*byte != 0),
        _ => None,
    }
}
