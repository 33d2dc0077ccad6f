//! Shapes that are given one after the other: the last one counts.
//!
//! `Reshape`, `Flatten`, `Squeeze` and `Unsqueeze` leave the elements in their order, so any of them
//! followed by any other is one `Reshape`. Needs: the last shape is known, either because it stands
//! in the graph and takes nothing over from the one before (a 0 does), or because all axes of the
//! result but one are known. Two that `merge-squeezes` can merge are left to it.

use veracity_onnx::{Node, NodeId, Patch};

use super::support::{Match, integer_weight, passed_over, size};
use super::witnesses::witnesses;
use crate::{Class, Found, Pass, View};

/// Merges changes of shape that follow each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeReshapes;

const CHANGES: [&str; 4] = ["Reshape", "Flatten", "Squeeze", "Unsqueeze"];

impl Pass for MergeReshapes {
    fn name(&self) -> &'static str {
        "merge-reshapes"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "merges Reshape, Flatten, Squeeze and Unsqueeze nodes that follow each other"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.graph().nodes() {
            if CHANGES.iter().any(|op| node.is(op)) {
                found.settle(id, with_the_one_before(view, id, node));
            }
        }
    }
}

fn with_the_one_before(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let (Some(middle), Some(value)) = (node.input(0), node.output(0)) else { return Ok(None) };
    let Some((inner_id, inner)) = view.graph().producer(middle) else { return Ok(None) };
    if !CHANGES.iter().any(|op| inner.is(op)) || (squeezes(node) && squeezes(inner)) {
        return Ok(None);
    }
    let Some(source) = inner.input(0) else { return Ok(None) };
    if view.opset() < 5 {
        return Err("Reshape before opset 5 has its shape as an attribute".to_owned());
    }
    let reason = format!("the shape of {value:?} is given twice");
    let patch = passed_over(view, Patch::because(reason), inner_id, middle);
    if node.is("Reshape") && stands_alone(view, node) {
        return Ok(Some(patch.change(id, node.clone().with_input(0, source))));
    }
    let shape = result_shape(view, node, inner, value)?;
    let name = view.fresh(&format!("{value}_shape"));
    let mut reshape = Node::new("Reshape", [source, &name], [value]).named(node.name());
    for (key, text) in node.metadata() {
        reshape = reshape.with_metadata(key, text);
    }
    let mut patch = patch.weight(name, integer_weight(&shape)?).change(id, reshape);
    // A shape that is computed is known because of what computes it.
    for told in [node, inner].into_iter().filter_map(|node| node.input(1)) {
        patch.context.extend(witnesses(view, told));
    }
    patch.context.sort_unstable();
    patch.context.dedup();
    Ok(Some(patch))
}

fn squeezes(node: &Node) -> bool {
    node.is("Squeeze") || node.is("Unsqueeze")
}

/// Whether the shape that a `Reshape` is given takes nothing over from what it is given.
fn stands_alone(view: &View<'_>, node: &Node) -> bool {
    let Some(shape) = node.input(1) else { return false };
    if node.int_of("allowzero").unwrap_or(0) != 0 {
        return true;
    }
    let constant = view.constant(shape).and_then(veracity_onnx::Weight::ints);
    constant.is_some_and(|all| all.iter().all(|size| *size != 0))
}

/// The shape of the result, with at most one axis left to be found by its size.
fn result_shape(
    view: &View<'_>,
    node: &Node,
    inner: &Node,
    value: &str,
) -> Result<Vec<i64>, String> {
    if let Some(shape) = taken_over(view, node, inner) {
        return Ok(shape);
    }
    let Some(dims) = view.dims(value) else {
        return Err(format!("the shape of {value:?} is not known"));
    };
    let mut left = 0;
    let mut shape = Vec::with_capacity(dims.len());
    for dim in dims {
        match size(dim).map(i64::try_from) {
            Some(Ok(size)) if size > 0 => shape.push(size),
            Some(_) => return Err(format!("{value:?} may be empty")),
            None => {
                left += 1;
                shape.push(-1);
            }
        }
    }
    if left > 1 {
        return Err(format!("{left} axes of {value:?} are not known"));
    }
    Ok(shape)
}

/// Zeros in the shape of a `Reshape` after a `Reshape` stand for sizes of the shape before it, or
/// again for what that one takes over.
fn taken_over(view: &View<'_>, node: &Node, inner: &Node) -> Option<Vec<i64>> {
    if !node.is("Reshape") || !inner.is("Reshape") || inner.int_of("allowzero").unwrap_or(0) != 0 {
        return None;
    }
    let shape = view.constant(node.input(1)?)?.ints()?;
    let before = view.constant(inner.input(1)?)?.ints()?;
    let known = |(index, size): (usize, &i64)| match (size, before.get(index)) {
        (0, Some(-1) | None) => None,
        (0, Some(size)) | (size, _) => Some(*size),
    };
    shape.iter().enumerate().map(known).collect()
}
