//! Axes of size 1 that come and go one after the other come and go at once, or not at all.
//!
//! Needs: the axes are constants, counted from the front or with a known number of axes.

use veracity_onnx::{Node, NodeId, Patch};

use super::support::{Match, axes, instead, integer_weight, integers, passed_over};
use crate::{Class, Found, Pass, View};

/// Merges `Squeeze` and `Unsqueeze` nodes that follow each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeSqueezes;

impl Pass for MergeSqueezes {
    fn name(&self) -> &'static str {
        "merge-squeezes"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "merges Squeeze and Unsqueeze nodes that follow each other"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.graph().nodes() {
            if node.is("Squeeze") || node.is("Unsqueeze") {
                found.settle(id, with_the_one_before(view, id, node));
            }
        }
    }
}

/// What two nodes are together.
enum Both {
    Nothing,
    Squeeze(Option<Vec<usize>>),
    Unsqueeze(Vec<usize>),
}

fn with_the_one_before(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let (Some(middle), Some(value)) = (node.input(0), node.output(0)) else { return Ok(None) };
    let Some((inner_id, inner)) = view.graph().producer(middle) else { return Ok(None) };
    let Some(source) = inner.input(0).filter(|_| inner.is("Squeeze") || inner.is("Unsqueeze"))
    else {
        return Ok(None);
    };
    let Some(both) = merged(view, inner, node)? else { return Ok(None) };
    let reason = format!("axes of {source:?} come and go");
    let patch = passed_over(view, Patch::because(reason), inner_id, middle);
    match both {
        Both::Nothing => instead(view, patch.remove(id), value, source),
        Both::Squeeze(axes) => rewritten(view, patch, (id, node), ("Squeeze", source, axes)),
        Both::Unsqueeze(axes) => {
            rewritten(view, patch, (id, node), ("Unsqueeze", source, Some(axes)))
        }
    }
}

/// The outer node with other axes, as an attribute or as an input as the version has it.
fn rewritten(
    view: &View<'_>,
    patch: Patch,
    (id, node): (NodeId, &Node),
    (operator, source, axes): (&str, &str, Option<Vec<usize>>),
) -> Match {
    let value = node.output(0).unwrap_or_default();
    let mut changed = Node::new(operator, [source], [value]).named(node.name());
    for (key, text) in node.metadata() {
        changed = changed.with_metadata(key, text);
    }
    let Some(axes) = axes else { return Ok(Some(patch.change(id, changed))) };
    let axes: Vec<i64> = axes.iter().map(|axis| axis.cast_signed() as i64).collect();
    if view.opset() < 13 {
        return Ok(Some(patch.change(id, changed.ints("axes", axes))));
    }
    let name = view.fresh(&format!("{value}_axes"));
    let patch = patch.weight(&name, integer_weight(&axes)?);
    Ok(Some(patch.change(id, changed.with_input(1, name))))
}

/// The axes that a node names, counted from the front; `None` when it names none.
fn named(view: &View<'_>, node: &Node) -> Result<Option<Vec<usize>>, String> {
    let Some(listed) = integers(view, node, "axes", 1)? else { return Ok(None) };
    if listed.is_empty() {
        return Err("whether an empty list of axes means all of them is not agreed on".to_owned());
    }
    let given = node.input(0).and_then(|value| view.rank(value));
    // The axes of an `Unsqueeze` are those of what it gives.
    let rank = if node.is("Unsqueeze") { given.map(|rank| rank + listed.len()) } else { given };
    axes(&listed, rank).map(Some)
}

fn merged(view: &View<'_>, inner: &Node, outer: &Node) -> Result<Option<Both>, String> {
    let (first, second) = (named(view, inner)?, named(view, outer)?);
    Ok(match (inner.op_type(), first, outer.op_type(), second) {
        // Without axes all of size 1 go, whatever went before.
        ("Squeeze", _, "Squeeze", None) => Some(Both::Squeeze(None)),
        ("Squeeze", Some(first), "Squeeze", Some(second)) => {
            Some(Both::Squeeze(Some(united(&first, &second))))
        }
        ("Unsqueeze", Some(first), "Unsqueeze", Some(second)) => {
            Some(Both::Unsqueeze(united(&second, &first)))
        }
        ("Unsqueeze", Some(first), "Squeeze", Some(second)) => undone(&first, &second),
        ("Squeeze", Some(first), "Unsqueeze", Some(second)) if first == second => {
            Some(Both::Nothing)
        }
        _ => None,
    })
}

/// `outer`, and `inner` counted among the axes that are not in `outer`: all of them in one count.
fn united(outer: &[usize], inner: &[usize]) -> Vec<usize> {
    let last = outer.len() + inner.iter().max().map_or(0, |last| last + 1);
    let others: Vec<usize> = (0..last).filter(|axis| !outer.contains(axis)).collect();
    let mut all: Vec<usize> = inner.iter().filter_map(|&axis| others.get(axis)).copied().collect();
    all.extend(outer);
    all.sort_unstable();
    all
}

/// Axes that come, of which some go again; `None` when others go as well, which takes two nodes.
fn undone(come: &[usize], go: &[usize]) -> Option<Both> {
    // Counted without the axes that come and go.
    let counted = |axis: &usize| {
        let gone = come.iter().filter(|one| go.contains(one) && *one < axis).count();
        axis - gone
    };
    let stay: Vec<usize> = come.iter().filter(|one| !go.contains(one)).map(counted).collect();
    let lost: Vec<usize> = go.iter().filter(|one| !come.contains(one)).map(counted).collect();
    match (stay.is_empty(), lost.is_empty()) {
        (true, true) => Some(Both::Nothing),
        (false, true) => Some(Both::Unsqueeze(stay)),
        (true, false) => Some(Both::Squeeze(Some(lost))),
        (false, false) => None,
    }
}
