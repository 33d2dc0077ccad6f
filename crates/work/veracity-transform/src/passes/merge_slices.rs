//! Two slices in a row become one.
//!
//! Needs: all bounds are constants. Slices of different axes simply stand beside each other. Two of
//! the same axis are composed when both go forward: with a known size in general, and without it
//! when both take every element and count from the front.

use veracity_onnx::{Node, NodeId, Patch};

use super::support::{Match, axis, integer_weight, integers, passed_over, size};
use crate::{Class, Found, Pass, View};

/// Merges slices that follow each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeSlices;

impl Pass for MergeSlices {
    fn name(&self) -> &'static str {
        "merge-slices"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "merges Slice nodes that follow each other"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("Slice") {
            found.settle(id, with_the_one_before(view, id, node));
        }
    }
}

/// What is taken of one axis, as ONNX writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    axis: usize,
    start: i64,
    end: i64,
    step: i64,
}

fn with_the_one_before(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let (Some(middle), Some(value)) = (node.input(0), node.output(0)) else { return Ok(None) };
    let Some((inner_id, inner)) = view.producer_of(middle, "Slice") else { return Ok(None) };
    let Some(source) = inner.input(0) else { return Ok(None) };
    let rank = view.rank(source).or_else(|| view.rank(middle));
    let first = cuts(view, inner, rank)?;
    let mut all = first.clone();
    for cut in cuts(view, node, rank)? {
        match all.iter_mut().find(|other| other.axis == cut.axis) {
            None => all.push(cut),
            Some(other) => {
                let dims = view.dims(source);
                let length = dims.and_then(|dims| dims.get(cut.axis)).and_then(size);
                *other = composed(*other, cut, length)?;
            }
        }
    }
    let reason = format!("{value:?} is a part of a part of {source:?}");
    let patch = passed_over(view, Patch::because(reason), inner_id, middle);
    rewritten(view, patch, (id, node), source, &all)
}

/// What a slice takes of each axis that it names.
fn cuts(view: &View<'_>, node: &Node, rank: Option<usize>) -> Result<Vec<Cut>, String> {
    let starts = integers(view, node, "starts", 1)?.ok_or("it has no starts")?;
    let ends = integers(view, node, "ends", 2)?.ok_or("it has no ends")?;
    let count = starts.len();
    let axes: Vec<usize> = match integers(view, node, "axes", 3)? {
        None => (0..count).collect(),
        Some(listed) => listed.iter().map(|&one| axis(one, rank)).collect::<Result<_, _>>()?,
    };
    let steps = integers(view, node, "steps", 4)?.unwrap_or_else(|| vec![1; count]);
    let distinct: std::collections::BTreeSet<&usize> = axes.iter().collect();
    if [ends.len(), axes.len(), steps.len(), distinct.len()].iter().any(|other| *other != count) {
        return Err("its bounds do not fit each other".to_owned());
    }
    let parts = axes.into_iter().zip(starts).zip(ends.into_iter().zip(steps));
    Ok(parts.map(|((axis, start), (end, step))| Cut { axis, start, end, step }).collect())
}

/// Two cuts of one axis as one.
fn composed(first: Cut, second: Cut, length: Option<usize>) -> Result<Cut, String> {
    if first.step <= 0 || second.step <= 0 {
        return Err("a slice goes backward".to_owned());
    }
    let Some(length) = length.and_then(|length| i64::try_from(length).ok()) else {
        let bounds = [first.start, first.end, second.start, second.end];
        if first.step != 1 || second.step != 1 || bounds.iter().any(|bound| *bound < 0) {
            return Err(format!("the size of axis {} is not known", first.axis));
        }
        let start = first.start.saturating_add(second.start);
        let end = first.start.saturating_add(second.end).min(first.end);
        return Ok(Cut { start, end, ..first });
    };
    let (start, end) = clamped(first, length);
    let kept = (end - start).max(0).saturating_add(first.step - 1) / first.step;
    let (inner_start, inner_end) = clamped(second, kept);
    let taken = (inner_end - inner_start).max(0).saturating_add(second.step - 1) / second.step;
    let step = first.step.saturating_mul(second.step);
    if taken == 0 {
        return Ok(Cut { start: 0, end: 0, step: 1, ..first });
    }
    let start = start + inner_start * first.step;
    // One past the last element that is taken; a step beyond the axis is never made.
    let end = start + (taken - 1).saturating_mul(step) + 1;
    Ok(Cut { start, end, step: step.min(length.max(1)), ..first })
}

/// First element and one past the last of a cut that goes forward.
fn clamped(cut: Cut, length: i64) -> (i64, i64) {
    let from_front = |bound: i64| if bound < 0 { bound.saturating_add(length) } else { bound };
    (from_front(cut.start).clamp(0, length), from_front(cut.end).clamp(0, length))
}

/// The outer node with other bounds, as attributes or as inputs as the version has it.
fn rewritten(
    view: &View<'_>,
    mut patch: Patch,
    (id, node): (NodeId, &Node),
    source: &str,
    cuts: &[Cut],
) -> Match {
    let value = node.output(0).unwrap_or_default();
    let list = |part: fn(&Cut) -> i64| -> Vec<i64> { cuts.iter().map(part).collect() };
    let mut parts = vec![
        ("starts", list(|cut| cut.start)),
        ("ends", list(|cut| cut.end)),
        ("axes", list(|cut| cut.axis.cast_signed() as i64)),
    ];
    let mut changed = node.clone().with_input(0, source);
    if view.opset() < 10 {
        for (name, numbers) in parts {
            changed = changed.ints(name, numbers);
        }
        return Ok(Some(patch.change(id, changed)));
    }
    parts.push(("steps", list(|cut| cut.step)));
    for (index, (part, numbers)) in parts.into_iter().enumerate() {
        let name = view.fresh(&format!("{value}_{part}"));
        patch = patch.weight(&name, integer_weight(&numbers)?);
        changed = changed.with_input(index + 1, name);
    }
    Ok(Some(patch.change(id, changed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(cut: Cut, from: &[i64]) -> Vec<i64> {
        let (start, end) = clamped(cut, from.len().cast_signed() as i64);
        let step = usize::try_from(cut.step).unwrap();
        let all = (start..end.max(start)).step_by(step);
        all.map(|index| from[usize::try_from(index).unwrap()]).collect()
    }

    #[test]
    fn a_part_of_a_part_is_what_both_take() {
        let bounds = [-9, -3, -1, 0, 1, 2, 4, 7, i64::MAX];
        let cuts = |step: i64| {
            let pairs = bounds.iter().flat_map(|&start| bounds.map(|end| (start, end)));
            pairs.map(move |(start, end)| Cut { axis: 0, start, end, step })
        };
        for length in 0..6_i64 {
            let axis: Vec<i64> = (0..length).collect();
            for (one, two) in [(1, 1), (2, 1), (1, 3), (3, 2), (i64::MAX, 2)] {
                for first in cuts(one) {
                    for second in cuts(two) {
                        let expected = taken(second, &taken(first, &axis));
                        let known = usize::try_from(length).ok();
                        let found = composed(first, second, known).unwrap();
                        assert_eq!(taken(found, &axis), expected, "{first:?} {second:?} {length}");
                        if let Ok(found) = composed(first, second, None) {
                            assert_eq!(taken(found, &axis), expected, "{first:?} {second:?}");
                        }
                    }
                }
            }
        }
    }
}
