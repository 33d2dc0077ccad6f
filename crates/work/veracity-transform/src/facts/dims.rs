//! Arithmetic with sizes that are numbers, names or unknown.

use veracity_onnx::Dim;

/// Sizes when all are numbers.
pub(super) fn sizes(dims: &[Dim]) -> Option<Vec<usize>> {
    dims.iter().map(size).collect()
}

/// The size, when it is a number.
pub(super) fn size(dim: &Dim) -> Option<usize> {
    match dim {
        Dim::Fixed(size) => Some(*size),
        Dim::Named(_) | Dim::Unknown => None,
    }
}

/// Axes of any size.
pub(super) fn unknown(rank: usize) -> Vec<Dim> {
    vec![Dim::Unknown; rank]
}

/// The size of an axis that operands are stretched to. The operands are taken to fit.
pub(super) fn stretched(one: &Dim, two: &Dim) -> Dim {
    match (one, two) {
        (Dim::Fixed(1), other) | (other, Dim::Fixed(1)) => other.clone(),
        (Dim::Fixed(size), _) | (_, Dim::Fixed(size)) => Dim::Fixed(*size),
        (Dim::Named(name), Dim::Named(other)) if name == other => one.clone(),
        _ => Dim::Unknown,
    }
}

/// Sizes that operands are stretched to, as NumPy does.
pub(super) fn broadcast(one: &[Dim], two: &[Dim]) -> Vec<Dim> {
    let rank = one.len().max(two.len());
    let padded = |dims: &[Dim]| {
        let missing = std::iter::repeat_n(Dim::Fixed(1), rank - dims.len());
        missing.chain(dims.iter().cloned()).collect::<Vec<_>>()
    };
    padded(one).iter().zip(&padded(two)).map(|(one, two)| stretched(one, two)).collect()
}

/// One size that two descriptions of the same axis agree on.
pub(super) fn same(one: &Dim, two: &Dim) -> Dim {
    match (one, two) {
        (Dim::Unknown, _) | (Dim::Named(_), Dim::Fixed(_)) => two.clone(),
        _ => one.clone(),
    }
}

/// Number of elements.
pub(super) fn product(dims: &[Dim]) -> Dim {
    if dims.contains(&Dim::Fixed(0)) {
        return Dim::Fixed(0);
    }
    let mut others = dims.iter().filter(|dim| **dim != Dim::Fixed(1));
    match (others.next(), others.next()) {
        (None, _) => Dim::Fixed(1),
        (Some(only), None) => only.clone(),
        _ => sizes(dims)
            .and_then(|all| all.iter().try_fold(1_usize, |product, &one| product.checked_mul(one)))
            .map_or(Dim::Unknown, Dim::Fixed),
    }
}

/// Sum of sizes along an axis.
pub(super) fn sum<'d>(dims: impl IntoIterator<Item = &'d Dim>) -> Dim {
    let mut others: Vec<&Dim> = dims.into_iter().filter(|dim| **dim != Dim::Fixed(0)).collect();
    match (others.pop(), others.is_empty()) {
        (None, _) => Dim::Fixed(0),
        (Some(only), true) => only.clone(),
        (Some(last), false) => others
            .into_iter()
            .chain([last])
            .try_fold(0_usize, |sum, dim| sum.checked_add(size(dim)?))
            .map_or(Dim::Unknown, Dim::Fixed),
    }
}

/// The size with a number added, which may be negative.
pub(super) fn plus(dim: &Dim, more: i64) -> Dim {
    if more == 0 {
        return dim.clone();
    }
    let sum = size(dim).and_then(|size| i64::try_from(size).ok()?.checked_add(more));
    sum.and_then(|sum| usize::try_from(sum).ok()).map_or(Dim::Unknown, Dim::Fixed)
}

/// The size, so many times.
pub(super) fn times(dim: &Dim, factor: usize) -> Dim {
    match (dim, factor) {
        (_, 0) => Dim::Fixed(0),
        (dim, 1) => dim.clone(),
        (Dim::Fixed(size), _) => size.checked_mul(factor).map_or(Dim::Unknown, Dim::Fixed),
        _ => Dim::Unknown,
    }
}

/// An axis counted from the front; `None` when there is no such axis.
pub(crate) fn axis(axis: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let from_front = if axis < 0 { axis.checked_add(rank)? } else { axis };
    (0..rank).contains(&from_front).then_some(from_front)?.try_into().ok()
}

/// Axes counted from the front; `None` when one is not there or named twice.
pub(super) fn axes(given: &[i64], rank: usize) -> Option<Vec<usize>> {
    let mut found: Vec<usize> = given.iter().map(|&one| axis(one, rank)).collect::<Option<_>>()?;
    found.sort_unstable();
    let count = found.len();
    found.dedup();
    (found.len() == count).then_some(found)
}
