//! Operators that bring axes down to one element, or scale along them.

use veracity_onnx::Dim;
use veracity_tensor::DType;

use super::call::Call;
use super::make::product_of;
use super::{Fact, dims};

/// Since when the axes of `ReduceSum` are an input.
const SUM_AXES_INPUT_SINCE: i64 = 13;
/// Since when the axes of the other reductions are an input.
const AXES_INPUT_SINCE: i64 = 18;
/// Since when `k` of `TopK` is an input.
const TOP_K_INPUT_SINCE: i64 = 10;

/// `ReduceMean` and its like.
pub(super) fn reduce(call: &Call<'_>, op: &str) -> Vec<Fact> {
    let since = if op == "ReduceSum" { SUM_AXES_INPUT_SINCE } else { AXES_INPUT_SINCE };
    let keep = call.flag("keepdims", true);
    let sizes = || {
        let given = call.dims(0)?;
        match call.list("axes", 1, since) {
            // Which axes go is not known: only their number is the same when they stay as 1.
            Err(_) => keep.then(|| dims::unknown(given.len())),
            Ok(axes) => {
                let axes = axes.unwrap_or_default();
                if axes.is_empty() && call.flag("noop_with_empty_axes", false) {
                    return Some(given.to_vec());
                }
                let all = axes.is_empty();
                let gone = dims::axes(&axes, given.len())?;
                Some(without(given, |axis| all || gone.contains(&axis), keep))
            }
        }
    };
    let sizes = sizes();
    let whole = op == "ReduceProd"
        && call.rank(0) == Some(1)
        && sizes.as_deref().map(dims::product) == Some(Dim::Fixed(1));
    let integers = matches!(call.dtype(0), Some(DType::I64));
    let elements = if whole && integers { product_of(call, 0) } else { None };
    vec![Fact { elements, ..Fact::new(call.dtype(0), sizes) }]
}

/// Sizes after some axes went, or stay with size 1.
fn without(given: &[Dim], goes: impl Fn(usize) -> bool, keep: bool) -> Vec<Dim> {
    let mut left = Vec::with_capacity(given.len());
    for (axis, dim) in given.iter().enumerate() {
        match (goes(axis), keep) {
            (false, _) => left.push(dim.clone()),
            (true, true) => left.push(Dim::Fixed(1)),
            (true, false) => {}
        }
    }
    left
}

/// `ArgMax` and `ArgMin`.
pub(super) fn index_of(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let given = call.dims(0)?;
        let gone = call.axis(0, given.len())?;
        Some(without(given, |axis| axis == gone, call.flag("keepdims", true)))
    };
    vec![Fact::new(Some(DType::I64), sizes())]
}

/// `TopK`: the values and where they stood.
pub(super) fn top_k(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let mut sizes = call.owned_dims(0)?;
        let axis = call.axis(-1, sizes.len())?;
        let count =
            if call.opset < TOP_K_INPUT_SINCE { call.node.int_of("k") } else { call.int(1) };
        let count = count.and_then(|count| usize::try_from(count).ok());
        sizes[axis] = count.map_or(Dim::Unknown, Dim::Fixed);
        Some(sizes)
    };
    let sizes = sizes();
    vec![Fact::new(call.dtype(0), sizes.clone()), Fact::new(Some(DType::I64), sizes)]
}

/// `BatchNormalization`: what it gives besides the values is only there in training.
pub(super) fn batch_norm(call: &Call<'_>) -> Vec<Fact> {
    vec![Fact::new(call.dtype(0), call.owned_dims(0))]
}

/// `LayerNormalization`: the values, their means, and one over their deviations.
pub(super) fn layer_norm(call: &Call<'_>) -> Vec<Fact> {
    let inner = || {
        let given = call.dims(0)?;
        let first = call.axis(-1, given.len())?;
        Some(without(given, |axis| axis >= first, true))
    };
    let inner = Fact::new(None, inner());
    vec![Fact::new(call.dtype(0), call.owned_dims(0)), inner.clone(), inner]
}
