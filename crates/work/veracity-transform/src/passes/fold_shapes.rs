//! Integers that follow from the sizes of tensors become constants.
//!
//! What `Shape` gives is known where sizes are numbers, and so is what is picked, cut and computed
//! out of it. Sizes that are only known by name stay computed; what does not depend on them is
//! folded all the same.

use veracity_onnx::{Node, NodeId, Patch, Weight};
use veracity_tensor::{DType, Shape, Tensor};

use super::witnesses::{reads_sizes, witnesses};
use crate::{Class, Found, Pass, View};

/// Holds integers that are known before the model runs as weights.
#[derive(Clone, Copy, Debug, Default)]
pub struct FoldShapes;

impl Pass for FoldShapes {
    fn name(&self) -> &'static str {
        "fold-shapes"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "holds what is computed from known sizes as weights"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.graph().nodes() {
            found.settle(id, folded(view, id, node));
        }
    }
}

fn folded(view: &View<'_>, id: NodeId, node: &Node) -> Result<Option<Patch>, String> {
    let Some(value) = node.only_output().filter(|_| !node.is("Constant")) else { return Ok(None) };
    let Some(weight) = view.fact(value).and_then(known) else {
        return if reads_sizes(node) {
            Err("not every size is a number".to_owned())
        } else {
            Ok(None)
        };
    };
    if view.graph().is_output(value) {
        return Err("it is an output of the model".to_owned());
    }
    // What it reads becomes a constant first, one step at a time, so that each step shows for
    // itself why it is right.
    let waits = |name: &String| {
        view.constant(name).is_none() && view.fact(name).and_then(crate::Fact::ints).is_some()
    };
    if !reads_sizes(node) && node.inputs().iter().any(waits) {
        return Ok(None);
    }
    let mut patch = Patch::because("it follows from known sizes").remove(id).weight(value, weight);
    if !reads_sizes(node) {
        for name in node.inputs() {
            patch.context.extend(witnesses(view, name));
        }
        patch.context.sort_unstable();
        patch.context.dedup();
    }
    Ok(Some(patch))
}

/// The integers as a constant, when all of them are numbers.
fn known(fact: &crate::Fact) -> Option<Weight> {
    let (elements, shape) = (fact.ints()?, Shape::new(fact.shape()?)?);
    let tensor = match fact.dtype? {
        DType::I64 => Tensor::from_slice(shape, &elements),
        DType::I32 => {
            let narrow: Result<Vec<i32>, _> = elements.into_iter().map(i32::try_from).collect();
            Tensor::from_slice(shape, &narrow.ok()?)
        }
        _ => return None,
    };
    tensor.ok().map(Weight::new)
}
