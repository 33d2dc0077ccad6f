//! Weights of two models, by name and then by their elements.

use std::collections::BTreeMap;

use veracity_onnx::{Model, Weight};
use veracity_results::{WeightDifference, WeightOutline};
use veracity_tensor::{DType, Tensor};

/// How weights differ.
#[derive(Default)]
pub(super) struct Weights {
    pub(super) removed: Vec<WeightOutline>,
    pub(super) added: Vec<WeightOutline>,
    pub(super) changed: Vec<WeightDifference>,
    pub(super) renamed: Vec<(String, String)>,
}

pub(super) fn compare(before: &Model, after: &Model) -> Weights {
    let (before, after) = (before.main_weights(), after.main_weights());
    let index = |weights: &[(String, Weight)]| -> BTreeMap<String, usize> {
        weights.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect()
    };
    let (old, new) = (index(&before), index(&after));
    let mut found = Weights::default();
    for (name, weight) in &before {
        if let Some(other) = new.get(name).map(|&at| &after[at].1) {
            found.changed.extend(difference(name, weight, other));
        }
    }
    let lost: Vec<&(String, Weight)> =
        before.iter().filter(|(name, _)| !new.contains_key(name)).collect();
    let mut come: Vec<&(String, Weight)> =
        after.iter().filter(|(name, _)| !old.contains_key(name)).collect();
    for (name, weight) in lost {
        match come.iter().position(|(_, other)| same(weight, other)) {
            Some(at) => found.renamed.push((name.clone(), come.remove(at).0.clone())),
            None => found.removed.push(outline(name, weight)),
        }
    }
    found.added = come.into_iter().map(|(name, weight)| outline(name, weight)).collect();
    found
}

fn outline(name: &str, weight: &Weight) -> WeightOutline {
    WeightOutline { name: name.to_owned(), dtype: weight.type_name(), dims: weight.dims() }
}

/// Whether two weights have the same elements, however they are stored.
fn same(one: &Weight, two: &Weight) -> bool {
    if one.type_name() != two.type_name() || one.dims() != two.dims() {
        return false;
    }
    match (one.stored(), two.stored()) {
        (Some(one), Some(two)) => one.as_ptr() == two.as_ptr() || one == two,
        _ => match (one.tensor(), two.tensor()) {
            (Some(one), Some(two)) => one.bytes() == two.bytes(),
            _ => one.to_bytes() == two.to_bytes(),
        },
    }
}

fn difference(name: &str, before: &Weight, after: &Weight) -> Option<WeightDifference> {
    if same(before, after) {
        return None;
    }
    let comparable = before.dims() == after.dims();
    let max_abs = match (before.tensor(), after.tensor()) {
        (Some(one), Some(two)) if comparable => largest(&one, &two),
        _ => None,
    };
    let (before, after) = (outline(name, before), outline(name, after));
    Some(WeightDifference { before, after, max_abs })
}

/// Largest difference of two elements, computed in float64.
fn largest(one: &Tensor, two: &Tensor) -> Option<f64> {
    let (one, two) = (numbers(one)?, numbers(two)?);
    let apart = |(one, two): (&f64, &f64)| {
        if one.to_bits() == two.to_bits() || (one.is_nan() && two.is_nan()) {
            0.0
        } else if one.is_nan() || two.is_nan() {
            f64::INFINITY
        } else {
            (one - two).abs()
        }
    };
    Some(one.iter().zip(&two).map(apart).fold(0.0, f64::max))
}

#[expect(clippy::cast_precision_loss, reason = "a difference for people")]
fn numbers(tensor: &Tensor) -> Option<Vec<f64>> {
    macro_rules! all {
        ($type:ty, $convert:expr) => {
            tensor.as_slice::<$type>()?.iter().map($convert).collect()
        };
    }
    Some(match tensor.dtype() {
        DType::F16 => all!(half::f16, |one| one.to_f64()),
        DType::BF16 => all!(half::bf16, |one| one.to_f64()),
        DType::F32 => all!(f32, |one| f64::from(*one)),
        DType::F64 => all!(f64, |one| *one),
        DType::I8 => all!(i8, |one| f64::from(*one)),
        DType::I16 => all!(i16, |one| f64::from(*one)),
        DType::I32 => all!(i32, |one| f64::from(*one)),
        DType::I64 => all!(i64, |one| *one as f64),
        DType::U8 => all!(u8, |one| f64::from(*one)),
        DType::U16 => all!(u16, |one| f64::from(*one)),
        DType::U32 => all!(u32, |one| f64::from(*one)),
        DType::U64 => all!(u64, |one| *one as f64),
        DType::Bool => tensor.bytes().iter().map(|one| f64::from(*one)).collect(),
    })
}
