//! A change of shape behind a transposition, which only adds or takes away axes of size 1, is left
//! to the change of shape before it.
//!
//! `Reshape`, `Transpose` and `Reshape` become `Reshape` and `Transpose`: attention is written with
//! such threes. The longer axes keep their sizes and their order; where axes of size 1 stand among
//! them changes nothing about the order of elements.

use veracity_onnx::{Node, NodeId, Patch};

use super::support::{Match, integer_weight};
use super::transpose_to_reshape::order;
use super::witnesses::witnesses;
use crate::{Class, Found, Pass, View};

/// Operators that change shapes and keep elements in their order.
const RESHAPES: [&str; 4] = ["Reshape", "Flatten", "Squeeze", "Unsqueeze"];
/// Since when the shape of `Reshape` is an input.
const SHAPE_INPUT_SINCE: i64 = 5;

/// Lets a change of shape before a transposition do the work of one behind it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReshapeBeforeTranspose;

impl Pass for ReshapeBeforeTranspose {
    fn name(&self) -> &'static str {
        "reshape-before-transpose"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "merges Reshape nodes around a Transpose when the second only adds or drops axes of size 1"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("Transpose") {
            found.settle(id, merged(view, id, node));
        }
    }
}

fn changes_shape(node: &Node) -> bool {
    RESHAPES.iter().any(|op| node.is(op))
}

fn merged(view: &View<'_>, id: NodeId, transpose: &Node) -> Match {
    let (Some(given), Some(turned)) = (transpose.input(0), transpose.output(0)) else {
        return Ok(None);
    };
    let before = view.graph().producer(given).filter(|(_, node)| changes_shape(node));
    let behind = view.only_reader(turned).filter(|(_, node)| changes_shape(node));
    let (Some((first, before)), Some((last, behind))) = (before, behind) else { return Ok(None) };
    if behind.input(0) != Some(turned) || view.opset() < SHAPE_INPUT_SINCE {
        return Ok(None);
    }
    let (Some(source), Some(value)) = (before.input(0), behind.output(0)) else { return Ok(None) };
    if !view.graph().has_one_reader(given) {
        return Err(format!("{given:?} has other readers"));
    }
    let known = |name: &str| {
        view.shape(name).ok_or_else(|| format!("not every size of {name:?} is a number"))
    };
    let (inner, result) = (known(given)?, known(value)?);
    if inner.contains(&0) {
        return Err("it may be empty".to_owned());
    }
    let order = order(transpose, inner.len())?;
    let long: Vec<usize> = order.into_iter().filter(|&axis| inner[axis] != 1).collect();
    if !long.iter().map(|&axis| inner[axis]).eq(result.iter().copied().filter(|&size| size != 1)) {
        return Ok(None);
    }
    let (shape, perm) = rearranged(&inner, &long, &result);
    let (name, between) =
        (view.fresh(&format!("{value}_shape")), view.fresh(&format!("{value}_in")));
    let reshape = Node::new("Reshape", [source, &name], [&between]).named(before.name());
    let turn =
        Node::new("Transpose", [&between], [value]).named(transpose.name()).ints("perm", perm);
    let patch = Patch::because(format!("only axes of size 1 tell {value:?} from {turned:?}"))
        .remove(first)
        .remove(id)
        .remove(last)
        .weight(name, integer_weight(&shape)?);
    let mut patch = patch.insert(with_notes(reshape, before)).insert(with_notes(turn, transpose));
    for told in [before, behind].into_iter().filter_map(|node| node.input(1)) {
        patch.context.extend(witnesses(view, told));
    }
    patch.context.sort_unstable();
    patch.context.dedup();
    Ok(Some(patch))
}

/// The shape to be transposed and the order in which: the axes of size 1 of the result first, then
/// the longer ones as they stood.
fn rearranged(inner: &[usize], long: &[usize], result: &[usize]) -> (Vec<i64>, Vec<i64>) {
    let units = result.iter().filter(|&&size| size == 1).count();
    let mut sorted = long.to_vec();
    sorted.sort_unstable();
    let place = |axis: &usize| units + sorted.iter().filter(|other| *other < axis).count();
    let (mut unit, mut longer) = (0.., long.iter().map(place));
    let mut next = |size: &usize| if *size == 1 { unit.next() } else { longer.next() };
    let perm = result.iter().filter_map(&mut next).map(|axis: usize| axis.cast_signed() as i64);
    let perm: Vec<i64> = perm.collect();
    let sizes = sorted.iter().map(|&axis| inner[axis].cast_signed() as i64);
    (std::iter::repeat_n(1, units).chain(sizes).collect(), perm)
}

fn with_notes(mut node: Node, from: &Node) -> Node {
    for (key, text) in from.metadata() {
        node = node.with_metadata(key, text);
    }
    node
}
