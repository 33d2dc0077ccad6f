//! Two transpositions in a row become one, or none.

use veracity_onnx::{Node, NodeId, Patch};

use super::support::{Match, instead, passed_over};
use crate::{Class, Found, Pass, View};

/// Merges transpositions that follow each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeTransposes;

impl Pass for MergeTransposes {
    fn name(&self) -> &'static str {
        "merge-transposes"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "merges Transpose nodes that follow each other"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("Transpose") {
            found.settle(id, with_the_one_before(view, id, node));
        }
    }
}

fn with_the_one_before(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let (Some(middle), Some(value)) = (node.input(0), node.output(0)) else { return Ok(None) };
    let Some((inner_id, inner)) = view.producer_of(middle, "Transpose") else { return Ok(None) };
    let Some(source) = inner.input(0) else { return Ok(None) };
    let both = merged(inner.ints_of("perm"), node.ints_of("perm"))?;
    let identity = both.as_ref().is_none_or(|all| all.iter().copied().eq(0..count(all)));
    let reason = format!("{value:?} is {source:?}, transposed twice");
    let patch = passed_over(view, Patch::because(reason), inner_id, middle);
    match both {
        Some(perm) if !identity => {
            Ok(Some(patch.change(id, node.clone().with_input(0, source).ints("perm", perm))))
        }
        _ => instead(view, patch.remove(id), value, source),
    }
}

/// Number of axes, as axes are counted.
fn count(axes: &[i64]) -> i64 {
    axes.len().cast_signed() as i64
}

/// What two permutations do together; `None` when both turn all axes around, however many.
fn merged(first: Option<&[i64]>, second: Option<&[i64]>) -> Result<Option<Vec<i64>>, String> {
    let turned = |other: &[i64]| -> Vec<i64> { (0..count(other)).rev().collect() };
    let (first, second) = match (first, second) {
        (None, None) => return Ok(None),
        (Some(first), None) => (first.to_vec(), turned(first)),
        (None, Some(second)) => (turned(second), second.to_vec()),
        (Some(first), Some(second)) => (first.to_vec(), second.to_vec()),
    };
    let at = |place: &i64| usize::try_from(*place).ok().and_then(|place| first.get(place)).copied();
    let both: Option<Vec<i64>> = second.iter().map(at).collect();
    both.filter(|both| both.len() == first.len())
        .map(Some)
        .ok_or_else(|| "the permutations do not fit each other".to_owned())
}
