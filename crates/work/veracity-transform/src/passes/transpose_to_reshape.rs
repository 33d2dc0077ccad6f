//! A transposition that only moves axes of size 1 becomes a `Reshape`, where it stands beside another
//! change of shape that it can then be merged with.
//!
//! Elements stay in their order as long as the longer axes do, so that the bits are the same. Sizes
//! must be known, all but one: a size that may be 1 at one time and 2 at another cannot be told
//! apart from a longer axis.

use veracity_onnx::{Dim, Node, NodeId, Patch};

use super::support::{Match, integer_weight};
use crate::{Class, Found, Pass, View};

/// Operators that change shapes and keep elements in their order.
const RESHAPES: [&str; 4] = ["Reshape", "Flatten", "Squeeze", "Unsqueeze"];
/// Since when the shape of `Reshape` is an input.
const SHAPE_INPUT_SINCE: i64 = 5;

/// Makes transpositions that only move axes of size 1 changes of shape.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransposeToReshape;

impl Pass for TransposeToReshape {
    fn name(&self) -> &'static str {
        "transpose-to-reshape"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "makes a Transpose that only moves axes of size 1 a Reshape, beside another one"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("Transpose") {
            found.settle(id, reshaped(view, id, node));
        }
    }
}

fn reshaped(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let (Some(given), Some(value)) = (node.input(0), node.output(0)) else { return Ok(None) };
    if view.opset() < SHAPE_INPUT_SINCE || !stands_beside_another(view, given, value) {
        return Ok(None);
    }
    let Some(dims) = view.dims(given) else {
        return Err(format!("the sizes of {given:?} are not known"));
    };
    let order = order(node, dims.len())?;
    if !order.iter().filter(|&&axis| dims[axis] != Dim::Fixed(1)).is_sorted() {
        return Ok(None);
    }
    let sizes: Vec<&Dim> = order.iter().map(|&axis| &dims[axis]).collect();
    let name = view.fresh(&format!("{value}_shape"));
    let mut reshape = Node::new("Reshape", [given, &name], [value]).named(node.name());
    for (key, text) in node.metadata() {
        reshape = reshape.with_metadata(key, text);
    }
    let patch = Patch::because(format!("{value:?} has the elements of {given:?} in their order"));
    Ok(Some(patch.weight(name, integer_weight(&shape(&sizes)?)?).change(id, reshape)))
}

/// Whether a change of shape before or behind can be merged with it.
fn stands_beside_another(view: &View<'_>, given: &str, value: &str) -> bool {
    let changes = |node: &Node| RESHAPES.iter().any(|op| node.is(op));
    let before = view.graph().producer(given).is_some_and(|(_, node)| changes(node));
    let behind = view.only_reader(value).is_some_and(|(_, node)| changes(node));
    (before && view.graph().has_one_reader(given)) || behind
}

/// The axes of the input, in the order of the output.
pub(super) fn order(node: &Node, rank: usize) -> Result<Vec<usize>, String> {
    let Some(listed) = node.ints_of("perm") else { return Ok((0..rank).rev().collect()) };
    let order: Vec<usize> = super::support::axes(listed, Some(rank))?;
    if order.len() != rank {
        return Err(format!("its order {listed:?} does not fit {rank} axes"));
    }
    listed.iter().map(|&axis| super::support::axis(axis, Some(rank))).collect()
}

/// Sizes as `Reshape` takes them: one may be left to be found.
fn shape(sizes: &[&Dim]) -> Result<Vec<i64>, String> {
    let mut open = 0;
    let mut shape = Vec::with_capacity(sizes.len());
    for size in sizes {
        shape.push(match size {
            Dim::Fixed(0) => return Err("it may be empty".to_owned()),
            Dim::Fixed(size) => i64::try_from(*size).map_err(|error| error.to_string())?,
            Dim::Named(_) | Dim::Unknown => {
                open += 1;
                -1
            }
        });
    }
    if open > 1 { Err(format!("{open} of its sizes are not known")) } else { Ok(shape) }
}
