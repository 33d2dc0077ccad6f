//! Operators that take elements out, put them together or repeat them.

use veracity_onnx::Dim;

use super::call::{Call, one};
use super::{Element, Fact, MOST_ELEMENTS, dims};

/// Since when `Slice` takes its ranges as inputs.
const SLICE_INPUT_SINCE: i64 = 10;
/// Since when `Split` takes its sizes as an input.
const SPLIT_INPUT_SINCE: i64 = 13;
/// Since when the last part of a `Split` may be smaller.
const SPLIT_UNEVEN_SINCE: i64 = 18;
/// Since when `Pad` takes its sizes as an input.
const PAD_INPUT_SINCE: i64 = 11;
/// Since when the repeats of `Tile` are one input.
const TILE_INPUT_SINCE: i64 = 6;

/// Which elements a slice takes along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) step: i64,
}

impl Range {
    /// The range within an axis of this size: where it begins and how many it takes.
    pub(crate) fn within(self, size: usize) -> Option<(usize, usize)> {
        let size = i64::try_from(size).ok()?;
        let counted = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
        let (start, end) = (counted(self.start), counted(self.end));
        let (start, end) = match self.step {
            0 => return None,
            1.. => (start.clamp(0, size), end.clamp(0, size)),
            _ => (start.clamp(0, (size - 1).max(0)), end.clamp(-1, size - 1)),
        };
        let way = i128::from(end) - i128::from(start);
        let step = i128::from(self.step);
        let steps = way / step + i128::from(way % step != 0);
        let count = if size == 0 || (way < 0) != (step < 0) { 0 } else { steps.max(0) };
        Some((usize::try_from(start).ok()?, usize::try_from(count).ok()?))
    }

    /// Whether it takes everything, however long the axis is.
    fn is_all(self) -> bool {
        self == Self { start: 0, end: i64::MAX, step: 1 }
    }
}

/// The axes that a slice is about, with their ranges.
pub(crate) fn ranges(
    rank: usize,
    starts: &[i64],
    ends: &[i64],
    axes: Option<Vec<i64>>,
    steps: Option<Vec<i64>>,
) -> Option<Vec<(usize, Range)>> {
    let count = starts.len();
    let axes = axes.unwrap_or_else(|| (0..).take(count).collect());
    let steps = steps.unwrap_or_else(|| vec![1; count]);
    if [ends.len(), axes.len(), steps.len()] != [count; 3] {
        return None;
    }
    dims::axes(&axes, rank)?;
    let range = |index: usize| {
        let range = Range { start: starts[index], end: ends[index], step: steps[index] };
        Some((dims::axis(axes[index], rank)?, range))
    };
    (0..count).map(range).collect()
}

/// `Slice`.
pub(super) fn slice(call: &Call<'_>) -> Vec<Fact> {
    let Some(given) = call.dims(0) else { return one(call.dtype(0), None) };
    let mut sizes = given.to_vec();
    let asked = || {
        let starts = call.list("starts", 1, SLICE_INPUT_SINCE).ok()??;
        let ends = call.list("ends", 2, SLICE_INPUT_SINCE).ok()??;
        let axes = call.list("axes", 3, SLICE_INPUT_SINCE).ok()?;
        let steps = call.list("steps", 4, SLICE_INPUT_SINCE).ok()?;
        ranges(given.len(), &starts, &ends, axes, steps)
    };
    let Some(asked) = asked() else {
        return one(call.dtype(0), Some(dims::unknown(given.len())));
    };
    for (axis, range) in &asked {
        sizes[*axis] = match &given[*axis] {
            Dim::Fixed(size) => {
                range.within(*size).map_or(Dim::Unknown, |(_, count)| Dim::Fixed(count))
            }
            other if range.is_all() => other.clone(),
            _ => Dim::Unknown,
        };
    }
    let elements = sliced(call, &asked);
    vec![Fact { elements, ..Fact::new(call.dtype(0), Some(sizes)) }]
}

fn sliced(call: &Call<'_>, asked: &[(usize, Range)]) -> Option<Vec<Element>> {
    let elements = call.elements(0).filter(|_| call.rank(0) == Some(1))?;
    let [(0, range)] = asked else { return asked.is_empty().then(|| elements.to_vec()) };
    let (start, count) = range.within(elements.len())?;
    let at = |index: usize| {
        let offset = i64::try_from(index).ok()?.checked_mul(range.step)?;
        elements.get(usize::try_from(i64::try_from(start).ok()? + offset).ok()?).cloned()
    };
    (0..count).map(at).collect()
}

/// `Gather`.
pub(super) fn gather(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let (given, indices) = (call.dims(0)?, call.dims(1)?);
        let axis = call.axis(0, given.len())?;
        Some([&given[..axis], indices, &given[axis + 1..]].concat())
    };
    let elements = || {
        let elements = call.elements(0).filter(|_| call.rank(0) == Some(1))?;
        let picked = call
            .ints(1)?
            .into_iter()
            .map(|index| Some(elements[dims::axis(index, elements.len())?].clone()));
        picked.collect()
    };
    vec![Fact { elements: elements(), ..Fact::new(call.dtype(0), sizes()) }]
}

/// `GatherElements`.
pub(super) fn gather_elements(call: &Call<'_>) -> Vec<Fact> {
    one(call.dtype(0), call.owned_dims(1))
}

/// `GatherND`.
pub(super) fn gather_nd(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let (given, indices) = (call.dims(0)?, call.dims(1)?);
        let shared = usize::try_from(call.int_or("batch_dims", 0)).ok()?;
        let (depth, outer) = indices.split_last()?;
        let rest = given.get(shared.checked_add(dims::size(depth)?)?..)?;
        Some([outer, rest].concat())
    };
    one(call.dtype(0), sizes())
}

/// `Concat`.
pub(super) fn concat(call: &Call<'_>) -> Vec<Fact> {
    let inputs = 0..call.node.inputs().len();
    let sizes = || {
        let all: Vec<&[Dim]> =
            inputs.clone().map(|index| call.dims(index)).collect::<Option<_>>()?;
        let rank = all.first()?.len();
        let axis = call.axis(1, rank)?;
        if all.iter().any(|dims| dims.len() != rank) {
            return None;
        }
        let size = |at: usize| {
            let along = all.iter().map(|dims| &dims[at]);
            if at == axis {
                dims::sum(along)
            } else {
                along.fold(Dim::Unknown, |one, two| dims::same(&one, two))
            }
        };
        Some((0..rank).map(size).collect::<Vec<_>>())
    };
    let sizes = sizes();
    let elements = || {
        sizes.as_ref().filter(|sizes| sizes.len() == 1)?;
        let all: Vec<&[Element]> =
            inputs.map(|index| call.elements(index)).collect::<Option<_>>()?;
        Some(all.concat()).filter(|all| all.len() <= MOST_ELEMENTS)
    };
    let elements = elements();
    vec![Fact { elements, ..Fact::new(call.any_dtype(), sizes) }]
}

/// `Split`.
pub(super) fn split(call: &Call<'_>) -> Vec<Fact> {
    let parts = call.node.outputs().len();
    let dtype = call.dtype(0);
    let Some(given) = call.dims(0) else { return vec![Fact::new(dtype, None); parts] };
    let Some(axis) = call.axis(0, given.len()) else { return Vec::new() };
    let sizes = part_sizes(call, &given[axis], parts);
    (0..parts)
        .map(|part| {
            let mut dims = given.to_vec();
            dims[axis] = sizes.as_ref().map_or(Dim::Unknown, |sizes| Dim::Fixed(sizes[part]));
            Fact::new(dtype, Some(dims))
        })
        .collect()
}

fn part_sizes(call: &Call<'_>, along: &Dim, parts: usize) -> Option<Vec<usize>> {
    if let Some(sizes) = call.list("split", 1, SPLIT_INPUT_SINCE).ok()? {
        let sizes = sizes.into_iter().map(|size| usize::try_from(size).ok());
        return sizes.collect::<Option<Vec<usize>>>().filter(|sizes| sizes.len() == parts);
    }
    even_parts(dims::size(along)?, parts, call.opset >= SPLIT_UNEVEN_SINCE)
}

/// Sizes of equal parts, of which the last may be smaller where that is allowed.
pub(crate) fn even_parts(size: usize, parts: usize, uneven: bool) -> Option<Vec<usize>> {
    let each = size.div_ceil(parts.max(1));
    let last = size.checked_sub(each.checked_mul(parts.checked_sub(1)?)?)?;
    if last != each && !uneven {
        return None;
    }
    let mut sizes = vec![each; parts - 1];
    sizes.push(last);
    Some(sizes)
}

/// `Tile`.
pub(super) fn tile(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let given = call.dims(0).filter(|_| call.opset >= TILE_INPUT_SINCE)?;
        let Some(repeats) = call.ints(1).filter(|all| all.len() == given.len()) else {
            return Some(dims::unknown(given.len()));
        };
        let tiled = given.iter().zip(&repeats).map(|(dim, &repeat)| {
            usize::try_from(repeat).map_or(Dim::Unknown, |repeat| dims::times(dim, repeat))
        });
        Some(tiled.collect())
    };
    one(call.dtype(0), sizes())
}

/// `Pad`.
pub(super) fn pad(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let given = call.dims(0)?;
        let unknown = || Some(dims::unknown(given.len()));
        let Ok(Some(pads)) = call.list("pads", 1, PAD_INPUT_SINCE) else { return unknown() };
        let axes = match (call.has(3), call.ints(3)) {
            (false, _) => (0..given.len()).collect(),
            (true, Some(axes)) => {
                let found: Option<Vec<usize>> =
                    axes.iter().map(|&axis| dims::axis(axis, given.len())).collect();
                found?
            }
            (true, None) => return unknown(),
        };
        if pads.len() != 2 * axes.len() {
            return unknown();
        }
        let mut sizes = given.to_vec();
        for (index, &axis) in axes.iter().enumerate() {
            let more = pads[index].checked_add(pads[index + axes.len()])?;
            // Cutting at one side and padding at the other keeps the size, too.
            sizes[axis] = dims::plus(&sizes[axis], more);
        }
        Some(sizes)
    };
    one(call.dtype(0), sizes())
}
