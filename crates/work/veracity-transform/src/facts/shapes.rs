//! Operators that give the same elements another shape.

use veracity_onnx::Dim;

use super::call::{Call, one};
use super::make::asked_dims;
use super::{Element, Fact, dims};

/// Since when the axes of `Squeeze` and `Unsqueeze` are an input.
const AXES_INPUT_SINCE: i64 = 13;

/// The elements go through, row-major as before.
fn reshaped(call: &Call<'_>, sizes: Option<Vec<Dim>>) -> Vec<Fact> {
    let elements = call.fact(0).and_then(|fact| fact.elements.clone());
    vec![Fact { elements, ..Fact::new(call.dtype(0), sizes) }]
}

/// `Reshape`.
pub(super) fn reshape(call: &Call<'_>) -> Vec<Fact> {
    let sizes = match call.elements(1) {
        Some(asked) if call.rank(1) == Some(1) => Some(asked_shape(call, asked)),
        _ => asked_dims(call, 1),
    };
    reshaped(call, sizes)
}

fn asked_shape(call: &Call<'_>, asked: &[Element]) -> Vec<Dim> {
    let given = call.dims(0);
    let zero_is_zero = call.flag("allowzero", false);
    let copied =
        |axis: usize| given.and_then(|dims| dims.get(axis)).cloned().unwrap_or(Dim::Unknown);
    let mut sizes: Vec<Dim> = Vec::with_capacity(asked.len());
    for (axis, element) in asked.iter().enumerate() {
        sizes.push(match element {
            Element::Known(0) if !zero_is_zero => copied(axis),
            // A size of 0 means the size of the input, which is the same only where it is that one.
            Element::Named(_) if !zero_is_zero && copied(axis) != element.to_dim() => Dim::Unknown,
            other => other.to_dim(),
        });
    }
    let rest = asked.iter().position(|element| *element == Element::Known(-1));
    if let (Some(rest), Some(given)) = (rest, given) {
        let others: Vec<Dim> = sizes
            .iter()
            .enumerate()
            .filter(|(axis, _)| *axis != rest)
            .map(|(_, dim)| dim.clone())
            .collect();
        sizes[rest] = quotient(given, &others);
    }
    sizes
}

/// The size that is left when the others are taken out of all elements.
fn quotient(all: &[Dim], others: &[Dim]) -> Dim {
    let mut left: Vec<Dim> = all.to_vec();
    let mut others: Vec<Dim> = others.to_vec();
    // Names on both sides cancel: were they 0, the engine would refuse to divide.
    others.retain(|dim| {
        match left.iter().position(|one| one == dim && matches!(dim, Dim::Named(_))) {
            Some(twin) => {
                left.remove(twin);
                false
            }
            None => true,
        }
    });
    let Dim::Fixed(divisor) = dims::product(&others) else { return Dim::Unknown };
    match dims::product(&left) {
        Dim::Fixed(all) if divisor > 0 && all % divisor == 0 => Dim::Fixed(all / divisor),
        Dim::Named(name) if divisor == 1 => Dim::Named(name),
        _ => named_quotient(&left, divisor),
    }
}

/// One name and numbers, divided by just these numbers.
fn named_quotient(left: &[Dim], divisor: usize) -> Dim {
    let (names, numbers): (Vec<Dim>, Vec<Dim>) =
        left.iter().cloned().partition(|dim| matches!(dim, Dim::Named(_)));
    match (names.as_slice(), dims::product(&numbers)) {
        ([name], Dim::Fixed(numbers)) if numbers == divisor && divisor > 0 => name.clone(),
        _ => Dim::Unknown,
    }
}

/// `Expand`.
pub(super) fn expand(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || Some(dims::broadcast(call.dims(0)?, &asked_dims(call, 1)?));
    let sizes = sizes();
    // A single element stands everywhere; longer lists are rarely stretched.
    let elements = match (call.elements(0), sizes.as_deref().map(dims::product)) {
        (Some([only]), Some(Dim::Fixed(count))) if count <= super::MOST_ELEMENTS => {
            Some(vec![only.clone(); count])
        }
        (Some(all), Some(Dim::Fixed(count))) if all.len() == count => Some(all.to_vec()),
        _ => None,
    };
    vec![Fact { elements, ..Fact::new(call.dtype(0), sizes) }]
}

/// `Transpose`.
pub(super) fn transpose(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let given = call.dims(0)?;
        match call.node.ints_of("perm") {
            None => Some(given.iter().rev().cloned().collect()),
            Some(order) if order.len() == given.len() => {
                dims::axes(order, given.len())?;
                order
                    .iter()
                    .map(|&axis| Some(given[dims::axis(axis, given.len())?].clone()))
                    .collect()
            }
            Some(_) => None,
        }
    };
    let sizes = sizes();
    let elements = call.elements(0).filter(|_| call.rank(0).is_some_and(|rank| rank < 2));
    vec![Fact { elements: elements.map(<[Element]>::to_vec), ..Fact::new(call.dtype(0), sizes) }]
}

/// `Squeeze`.
pub(super) fn squeeze(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let given = call.dims(0)?;
        let gone = if let Some(axes) = call.list("axes", 1, AXES_INPUT_SINCE).ok()? {
            dims::axes(&axes, given.len())?
        } else {
            // Without axes every axis of size 1 goes: then all sizes must be known.
            let sizes = dims::sizes(given)?;
            (0..sizes.len()).filter(|&axis| sizes[axis] == 1).collect()
        };
        let kept = given.iter().enumerate().filter(|(axis, _)| !gone.contains(axis));
        Some(kept.map(|(_, dim)| dim.clone()).collect())
    };
    reshaped(call, sizes())
}

/// `Unsqueeze`.
pub(super) fn unsqueeze(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let given = call.dims(0)?;
        let axes = call.list("axes", 1, AXES_INPUT_SINCE).ok()??;
        let rank = given.len() + axes.len();
        let new = dims::axes(&axes, rank)?;
        let mut old = given.iter().cloned();
        let at = |axis: usize| if new.contains(&axis) { Some(Dim::Fixed(1)) } else { old.next() };
        (0..rank).map(at).collect()
    };
    reshaped(call, sizes())
}

/// `Flatten`.
pub(super) fn flatten(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let given = call.dims(0)?;
        let rank = given.len();
        let asked = call.int_or("axis", 1);
        let from_front =
            if asked < 0 { asked.checked_add(i64::try_from(rank).ok()?)? } else { asked };
        let (before, after) = given.split_at_checked(usize::try_from(from_front).ok()?)?;
        Some(vec![dims::product(before), dims::product(after)])
    };
    reshaped(call, sizes().or_else(|| Some(dims::unknown(2))))
}

/// `DepthToSpace`.
pub(super) fn depth_to_space(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let block = block(call)?;
        let [batch, depth, height, width] = call.dims(0)? else { return None };
        let depth = divided(depth, block * block);
        Some(vec![batch.clone(), depth, dims::times(height, block), dims::times(width, block)])
    };
    one(call.dtype(0), sizes())
}

/// `SpaceToDepth`.
pub(super) fn space_to_depth(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let block = block(call)?;
        let [batch, depth, height, width] = call.dims(0)? else { return None };
        let depth = dims::times(depth, block * block);
        Some(vec![batch.clone(), depth, divided(height, block), divided(width, block)])
    };
    one(call.dtype(0), sizes())
}

fn block(call: &Call<'_>) -> Option<usize> {
    let block = usize::try_from(call.node.int_of("blocksize")?).ok()?;
    (1..=1 << 16).contains(&block).then_some(block)
}

fn divided(dim: &Dim, divisor: usize) -> Dim {
    match dim {
        Dim::Fixed(size) if size % divisor == 0 => Dim::Fixed(size / divisor),
        other if divisor == 1 => other.clone(),
        _ => Dim::Unknown,
    }
}
