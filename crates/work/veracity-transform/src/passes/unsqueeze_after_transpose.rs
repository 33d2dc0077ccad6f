//! Axes of size 1 that come between two transpositions come after both, which then are one.
//!
//! A transposition of the other axes is the same with and without them. Attention that is given keys
//! without a batch is written like this. Needs: known axes, and nobody else who reads what is in
//! between.

use veracity_onnx::{Dim, Node, NodeId, Patch};

use super::support::{Match, axes, integer_weight, integers, read_once};
use super::transpose_to_reshape::order;
use super::witnesses::witnesses;
use crate::{Class, Found, Pass, View};

/// Merges transpositions with axes of size 1 that come in between.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnsqueezeAfterTranspose;

impl Pass for UnsqueezeAfterTranspose {
    fn name(&self) -> &'static str {
        "unsqueeze-after-transpose"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "merges two Transpose nodes between which axes of size 1 are added"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("Transpose") {
            found.settle(id, merged(view, id, node));
        }
    }
}

fn merged(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let Some((middle, value)) = node.input(0).zip(node.output(0)) else { return Ok(None) };
    let Some((grown_id, grown)) = view.graph().producer(middle) else { return Ok(None) };
    let Some(turned) = grown.input(0).filter(|_| grown.is("Unsqueeze") || grown.is("Reshape"))
    else {
        return Ok(None);
    };
    let Some((first_id, first)) = view.producer_of(turned, "Transpose") else { return Ok(None) };
    let Some(source) = first.input(0) else { return Ok(None) };
    let (Some(rank), Some(come)) = (view.rank(turned), new_axes(view, grown, middle, turned)?)
    else {
        return Ok(None);
    };
    read_once(view, middle)?;
    read_once(view, turned)?;
    let (first_order, second_order) = (order(first, rank)?, order(node, rank + come.len())?);
    // The second order without the axes that come, each counted as it stood before they came.
    let kept = second_order.iter().filter(|axis| !come.contains(axis));
    let counted = kept.map(|axis| axis - come.iter().filter(|other| *other < axis).count());
    let perm: Vec<i64> = counted.map(|axis| first_order[axis].cast_signed() as i64).collect();
    let places = second_order.iter().enumerate().filter(|(_, axis)| come.contains(axis));
    let places: Vec<i64> = places.map(|(place, _)| place.cast_signed() as i64).collect();
    let between = view.fresh(&format!("{value}_turned"));
    let turn = first.clone().with_output(0, &between).ints("perm", perm);
    let mut patch =
        Patch::because(format!("axes of {value:?} come after {source:?} is transposed"));
    let mut unsqueeze = Node::new("Unsqueeze", [&between], [value]).named(grown.name());
    for (key, text) in grown.metadata() {
        unsqueeze = unsqueeze.with_metadata(key, text);
    }
    if view.opset() < 13 {
        unsqueeze = unsqueeze.ints("axes", places);
    } else {
        let name = view.fresh(&format!("{value}_axes"));
        patch = patch.weight(&name, integer_weight(&places)?);
        unsqueeze = unsqueeze.with_input(1, name);
    }
    patch.context = grown.input(1).map_or_else(Vec::new, |told| witnesses(view, told));
    Ok(Some(patch.remove(first_id).change(grown_id, turn).change(id, unsqueeze)))
}

/// The axes of size 1 that a node adds, when it does nothing else.
fn new_axes(
    view: &View<'_>,
    node: &Node,
    value: &str,
    source: &str,
) -> Result<Option<Vec<usize>>, String> {
    if node.is("Unsqueeze") {
        let listed = integers(view, node, "axes", 1)?.unwrap_or_default();
        let rank = view.rank(source).map(|rank| rank + listed.len());
        return axes(&listed, rank).map(Some);
    }
    let (Some(before), Some(after)) = (view.dims(source), view.dims(value)) else {
        return Ok(None);
    };
    let mut left = before.iter().peekable();
    let mut come = Vec::new();
    for (axis, dim) in after.iter().enumerate() {
        if left.peek().is_some_and(|other| *other == dim && *dim != Dim::Unknown) {
            left.next();
        } else if *dim == Dim::Fixed(1) {
            come.push(axis);
        } else {
            return Ok(None);
        }
    }
    Ok((left.next().is_none() && !come.is_empty()).then_some(come))
}
