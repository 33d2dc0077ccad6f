//! Operators that make tensors: from nothing, from sizes, or from where others are not zero.

use veracity_onnx::Dim;
use veracity_tensor::DType;

use super::call::{Call, one};
use super::{Element, Fact, MOST_ELEMENTS, arithmetic, dims};

/// Since when `Shape` may give some axes only.
const SHAPE_RANGE_SINCE: i64 = 15;

/// `Constant`.
pub(super) fn constant(call: &Call<'_>) -> Vec<Fact> {
    let Some(weight) = call.node.constant() else { return Vec::new() };
    let mut fact = Fact::of_weight(&weight);
    if weight.elements() <= MOST_ELEMENTS {
        let all = weight.ints();
        fact.elements = all.map(|all| all.into_iter().map(Element::Known).collect());
    }
    vec![fact]
}

/// `Shape`.
pub(super) fn shape(call: &Call<'_>) -> Vec<Fact> {
    let Some(sizes) = call.dims(0) else {
        return one(Some(DType::I64), Some(dims::unknown(1)));
    };
    let asked = |name: &str| call.node.int_of(name).filter(|_| call.opset >= SHAPE_RANGE_SINCE);
    let rank = sizes.len().cast_signed() as i64;
    let clamped = |at: i64| (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank);
    let start = clamped(asked("start").unwrap_or(0));
    let end = clamped(asked("end").unwrap_or(rank)).max(start);
    let range = usize::try_from(start).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
    list(sizes[range].iter().map(Element::from).collect())
}

/// `Size`.
pub(super) fn size(call: &Call<'_>) -> Vec<Fact> {
    let count = call.dims(0).map(|sizes| Element::from(&dims::product(sizes)));
    let elements = count.map(|count| vec![count]);
    vec![Fact { elements, ..Fact::new(Some(DType::I64), Some(Vec::new())) }]
}

fn list(elements: Vec<Element>) -> Vec<Fact> {
    let sizes = Some(vec![Dim::Fixed(elements.len())]);
    vec![Fact { elements: Some(elements), ..Fact::new(Some(DType::I64), sizes) }]
}

/// The sizes that an input asks for.
pub(super) fn asked_dims(call: &Call<'_>, input: usize) -> Option<Vec<Dim>> {
    if let Some(elements) = call.elements(input).filter(|_| call.rank(input) == Some(1)) {
        return Some(elements.iter().map(Element::to_dim).collect());
    }
    match call.dims(input)? {
        [Dim::Fixed(rank)] if *rank <= MOST_ELEMENTS => Some(dims::unknown(*rank)),
        _ => None,
    }
}

/// `ConstantOfShape`.
pub(super) fn constant_of_shape(call: &Call<'_>) -> Vec<Fact> {
    let value = call.node.tensor_of("value");
    let dtype = value.as_ref().map_or(Some(DType::F32), veracity_onnx::Weight::dtype);
    let sizes = asked_dims(call, 0);
    let element = value.and_then(|value| value.ints()?.first().copied());
    let count = sizes.as_deref().and_then(|sizes| dims::size(&dims::product(sizes)));
    let elements = match (element, count) {
        (Some(element), Some(count)) if count <= MOST_ELEMENTS => {
            Some(vec![Element::Known(element); count])
        }
        _ => None,
    };
    vec![Fact { elements, ..Fact::new(dtype, sizes) }]
}

/// `Range`, of integers.
pub(super) fn range(call: &Call<'_>) -> Vec<Fact> {
    let limits = || Some((call.int(0)?, call.int(1)?, call.int(2)?));
    let numbers = limits().and_then(|(start, limit, delta)| numbers(start, limit, delta));
    let Some((count, start, delta)) = numbers else {
        return one(call.any_dtype(), Some(dims::unknown(1)));
    };
    let at = |index: usize| start.checked_add(delta.checked_mul(i64::try_from(index).ok()?)?);
    let elements = (count <= MOST_ELEMENTS).then(|| {
        (0..count).map(|index| at(index).map_or(Element::Unknown, Element::Known)).collect()
    });
    vec![Fact { elements, ..Fact::new(call.any_dtype(), Some(vec![Dim::Fixed(count)])) }]
}

fn numbers(start: i64, limit: i64, delta: i64) -> Option<(usize, i64, i64)> {
    let way = i128::from(limit) - i128::from(start);
    let step = i128::from(delta);
    if step == 0 {
        return None;
    }
    let steps = way / step + i128::from(way % step != 0 && (way < 0) == (step < 0));
    Some((usize::try_from(steps.max(0)).ok()?, start, delta))
}

/// `OneHot`.
pub(super) fn one_hot(call: &Call<'_>) -> Vec<Fact> {
    let sizes = || {
        let mut sizes = call.owned_dims(0)?;
        let axis = call.axis(-1, sizes.len() + 1)?;
        let depth = call.int(1).and_then(|depth| usize::try_from(depth).ok());
        sizes.insert(axis, depth.map_or(Dim::Unknown, Dim::Fixed));
        Some(sizes)
    };
    one(call.dtype(2), sizes())
}

/// `NonZero`: how many there are is not known before.
pub(super) fn non_zero(call: &Call<'_>) -> Vec<Fact> {
    let rank = call.rank(0).map_or(Dim::Unknown, Dim::Fixed);
    one(Some(DType::I64), Some(vec![rank, Dim::Unknown]))
}

/// `EyeLike`.
pub(super) fn eye_like(call: &Call<'_>) -> Vec<Fact> {
    one(asked_dtype(call, call.dtype(0)), call.owned_dims(0))
}

/// `RandomNormal` and `RandomUniform`.
pub(super) fn random(call: &Call<'_>) -> Vec<Fact> {
    let sizes = call
        .node
        .ints_of("shape")
        .map(|sizes| sizes.iter().map(|&size| Element::Known(size).to_dim()).collect());
    one(asked_dtype(call, Some(DType::F32)), sizes)
}

/// `RandomNormalLike` and `RandomUniformLike`.
pub(super) fn random_like(call: &Call<'_>) -> Vec<Fact> {
    one(asked_dtype(call, call.dtype(0)), call.owned_dims(0))
}

fn asked_dtype(call: &Call<'_>, default: Option<DType>) -> Option<DType> {
    if call.node.int_of("dtype").is_some() { call.node.dtype_of("dtype") } else { default }
}

/// The product of the elements of an input, as a list of one or a scalar.
pub(super) fn product_of(call: &Call<'_>, input: usize) -> Option<Vec<Element>> {
    call.elements(input).map(|elements| vec![arithmetic::product(elements)])
}
