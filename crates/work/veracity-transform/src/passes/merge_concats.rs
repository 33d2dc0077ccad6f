//! What is put together in two steps is put together at once, and what is taken apart and put
//! together again is what it was.
//!
//! Needs: the same axis. The inner result has no other reader: putting it together twice would cost
//! more than it saves.

use veracity_onnx::{Node, NodeId, Patch};

use super::support::{Match, axis, instead, read_once};
use crate::{Class, Found, Pass, View};

/// Merges `Concat` nodes along one axis, and drops a `Split` that is undone.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeConcats;

impl Pass for MergeConcats {
    fn name(&self) -> &'static str {
        "merge-concats"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "merges Concat nodes along one axis and drops a Split that is undone"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("Concat") {
            match split_before(view, node) {
                Some(split) => found.settle(id, put_back(view, id, node, split)),
                None => found.settle(id, at_once(view, id, node)),
            }
        }
    }
}

/// The `Split` whose parts a `Concat` puts together, all of them and in order.
fn split_before<'g>(view: &View<'g>, node: &Node) -> Option<(NodeId, &'g Node)> {
    let (id, split) = view.producer_of(node.input(0)?, "Split")?;
    let whole = split.outputs() == node.inputs() && !split.outputs().iter().any(String::is_empty);
    whole.then_some((id, split))
}

fn put_back(view: &View<'_>, id: NodeId, node: &Node, (split_id, split): (NodeId, &Node)) -> Match {
    let (Some(source), Some(value)) = (split.input(0), node.output(0)) else { return Ok(None) };
    let along = split.int_of("axis").unwrap_or(0);
    same_axis(view, node, Some(along))?;
    let mut patch =
        Patch::because(format!("{value:?} is {source:?}, taken apart and put together"));
    patch = patch.remove(id);
    let needed = |part: &String| !view.graph().has_one_reader(part);
    patch = if split.outputs().iter().any(needed) {
        patch.context(split_id)
    } else {
        patch.remove(split_id)
    };
    instead(view, patch, value, source)
}

/// Takes the inputs of inner nodes in place of what they give.
fn at_once(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let mut inputs = Vec::new();
    let mut inner_ids = Vec::new();
    let mut declined = None;
    for name in node.inputs() {
        let inner = view.producer_of(name, "Concat");
        let fits = |inner: &Node| {
            same_axis(view, node, inner.int_of("axis")).and_then(|()| read_once(view, name))
        };
        match inner.map(|(inner_id, inner)| (inner_id, inner, fits(inner))) {
            Some((inner_id, inner, Ok(()))) => {
                inputs.extend_from_slice(inner.inputs());
                inner_ids.push(inner_id);
            }
            Some((_, _, Err(why))) => {
                declined = Some(why);
                inputs.push(name.clone());
            }
            None => inputs.push(name.clone()),
        }
    }
    inner_ids.sort_unstable();
    inner_ids.dedup();
    if inner_ids.is_empty() {
        return declined.map_or(Ok(None), Err);
    }
    let mut patch = Patch::because("what is put together in steps is put together at once");
    for inner in inner_ids {
        patch = patch.remove(inner);
    }
    let mut changed = node.clone();
    for (index, name) in inputs.into_iter().enumerate() {
        changed = changed.with_input(index, name);
    }
    Ok(Some(patch.change(id, changed)))
}

/// Refuses another axis than that of the `Concat`.
fn same_axis(view: &View<'_>, node: &Node, other: Option<i64>) -> Result<(), String> {
    // Before opset 4 the axis could be left out.
    let (own, other) = (node.int_of("axis").unwrap_or(1), other.unwrap_or(1));
    if own == other {
        return Ok(());
    }
    let named = node.inputs().iter().chain(node.outputs());
    let rank = named.into_iter().find_map(|name| view.rank(name));
    let same = (own < 0) != (other < 0) && axis(own, rank)? == axis(other, rank)?;
    if same { Ok(()) } else { Err(format!("it is put together along axis {own}, not {other}")) }
}
