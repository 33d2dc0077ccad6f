//! The measurement as its documentation defines it, one element at a time.
#![expect(
    clippy::cast_lossless,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "written for all dtypes at once"
)]
#![expect(clippy::float_cmp, reason = "what is exact is compared exactly")]

use half::{bf16, f16};
use veracity_results::{Measurement, NonFinite, Percentiles, Tolerance, ULP_BIN_COUNT, Worst};
use veracity_tensor::{DType, Shape, Tensor};

/// An element as float64, as an exact integer where it is one, and its place among all floats of
/// its dtype.
#[derive(Clone, Copy)]
struct Element {
    value: f64,
    exact: i128,
    rank: i128,
}

fn element(dtype: DType, bytes: &[u8]) -> Element {
    let ranked = |value: f64, bits: u64, size: u32| {
        let magnitude = i128::from(bits & (u64::MAX >> (65 - size)));
        let rank = if value.is_sign_negative() { -magnitude } else { magnitude };
        Element { value, exact: 0, rank }
    };
    macro_rules! integer {
        ($type:ty) => {{
            let value = <$type>::from_ne_bytes(bytes.try_into().unwrap());
            Element { value: value as f64, exact: i128::from(value), rank: 0 }
        }};
    }
    match dtype {
        DType::F16 => {
            let value = f16::from_ne_bytes(bytes.try_into().unwrap());
            ranked(value.to_f64(), value.to_bits().into(), 16)
        }
        DType::BF16 => {
            let value = bf16::from_ne_bytes(bytes.try_into().unwrap());
            ranked(value.to_f64(), value.to_bits().into(), 16)
        }
        DType::F32 => {
            let value = f32::from_ne_bytes(bytes.try_into().unwrap());
            ranked(value.into(), value.to_bits().into(), 32)
        }
        DType::F64 => {
            let value = f64::from_ne_bytes(bytes.try_into().unwrap());
            ranked(value, value.to_bits(), 64)
        }
        DType::I8 => integer!(i8),
        DType::I16 => integer!(i16),
        DType::I32 => integer!(i32),
        DType::I64 => integer!(i64),
        DType::U8 | DType::Bool => integer!(u8),
        DType::U16 => integer!(u16),
        DType::U32 => integer!(u32),
        DType::U64 => integer!(u64),
    }
}

struct NaivePair {
    index: usize,
    reference: f64,
    candidate: f64,
    error: f64,
    ulps: u64,
}

/// The measurement as its documentation defines it, one element at a time.
pub(super) fn naive(reference: &Tensor, candidate: &Tensor, tolerance: Tolerance) -> Measurement {
    let dtype = reference.dtype();
    let read = |tensor: &Tensor| -> Vec<Element> {
        tensor.bytes().chunks(dtype.size()).map(|bytes| element(dtype, bytes)).collect()
    };
    let (references, candidates) = (read(reference), read(candidate));
    let mut non_finite = NonFinite::default();
    let mut pairs = Vec::new();
    for (index, (left, right)) in references.iter().zip(&candidates).enumerate() {
        if left.value.is_finite() && right.value.is_finite() {
            let exact = (right.exact - left.exact).unsigned_abs() as f64;
            let error = if dtype.is_float() { (right.value - left.value).abs() } else { exact };
            let ulps = u64::try_from((right.rank - left.rank).unsigned_abs()).unwrap();
            let (reference, candidate) = (left.value, right.value);
            pairs.push(NaivePair { index, reference, candidate, error, ulps });
        } else {
            note_non_finite(&mut non_finite, left.value, right.value, index);
        }
    }
    summarise(reference.shape(), dtype, tolerance, &references, &candidates, non_finite, &pairs)
}

fn note_non_finite(counts: &mut NonFinite, left: f64, right: f64, index: usize) {
    counts.reference_nan += u64::from(left.is_nan());
    counts.candidate_nan += u64::from(right.is_nan());
    counts.reference_inf += u64::from(left.is_infinite());
    counts.candidate_inf += u64::from(right.is_infinite());
    if left.is_nan() && right.is_nan() {
        counts.matching_nan += 1;
    } else if left == right {
        counts.matching_inf += 1;
    } else {
        counts.mismatching += 1;
        counts.first_mismatch.get_or_insert(vec![index]);
    }
}

fn summarise(
    shape: &Shape,
    dtype: DType,
    tolerance: Tolerance,
    references: &[Element],
    candidates: &[Element],
    non_finite: NonFinite,
    pairs: &[NaivePair],
) -> Measurement {
    let largest = |of: &dyn Fn(&NaivePair) -> f64| pairs.iter().map(of).fold(0.0, f64::max);
    let mean = |of: &dyn Fn(&NaivePair) -> f64| match pairs.len() {
        0 => 0.0,
        count => pairs.iter().map(of).sum::<f64>() / count as f64,
    };
    let range = |elements: &[Element]| {
        let finite: Vec<f64> =
            elements.iter().map(|e| e.value).filter(|value| value.is_finite()).collect();
        let low = finite.iter().copied().reduce(f64::min)?;
        Some((low + 0.0, finite.iter().copied().reduce(f64::max)? + 0.0))
    };
    let max_abs = largest(&|pair| pair.error);
    let is_outside = |pair: &NaivePair| pair.error > tolerance.bound(pair.reference);
    let by_part = tolerance != Tolerance::EXACT && pairs.iter().any(is_outside);
    let mut worst: Option<(f64, &NaivePair)> = None;
    for pair in pairs.iter().filter(|pair| pair.error > 0.0) {
        let rank = if by_part { pair.error / tolerance.bound(pair.reference) } else { pair.error };
        if rank > worst.map_or(0.0, |(most, _)| most) {
            worst = Some((rank, pair));
        }
    }
    let excess = largest(&|pair| pair.error - tolerance.rtol() * pair.reference.abs());
    let bumped = tolerance.rtol() > 0.0 && excess > 0.0;
    let mut ulp_histogram = vec![0; if dtype.is_float() { ULP_BIN_COUNT } else { 0 }];
    if dtype.is_float() {
        for pair in pairs {
            ulp_histogram[64 - pair.ulps.leading_zeros() as usize] += 1;
        }
    }
    while ulp_histogram.last() == Some(&0) {
        ulp_histogram.pop();
    }
    let count = |of: &dyn Fn(&NaivePair) -> bool| pairs.iter().filter(|p| of(p)).count() as u64;
    Measurement {
        elements: shape.elements() as u64,
        compared: pairs.len() as u64,
        differing: count(&|pair| pair.error != 0.0),
        max_abs,
        mean_abs: mean(&|pair| pair.error),
        rms: mean(&|pair| pair.error * pair.error).sqrt(),
        max_rel: largest(&|pair| match pair.reference.abs() {
            0.0 => 0.0,
            magnitude => pair.error / magnitude,
        }),
        max_abs_reference: largest(&|pair| pair.reference.abs()),
        reference_range: range(references),
        candidate_range: range(candidates),
        worst: worst.map(|(_, pair)| Worst {
            index: shape.index_from_flat(pair.index),
            reference: pair.reference,
            candidate: pair.candidate,
        }),
        non_finite,
        tolerance,
        outside: count(&|pair| pair.error > tolerance.bound(pair.reference)),
        min_atol: if bumped { excess.next_up() } else { excess },
        ulp_histogram,
        max_ulp: pairs.iter().map(|pair| pair.ulps).max().unwrap_or(0),
        percentiles: naive_percentiles(pairs.iter().map(|pair| pair.error).collect()),
    }
}

pub(super) fn naive_percentiles(mut errors: Vec<f64>) -> Option<Percentiles> {
    errors.sort_by(f64::total_cmp);
    let last = errors.len().checked_sub(1)?;
    let at = |fraction: f64| {
        let position = fraction * last as f64;
        let (low, part) = (errors[position.floor() as usize], position.fract());
        let high = errors[position.ceil() as usize];
        match part {
            0.0 => low,
            _ if low.to_bits() == high.to_bits() || high.is_infinite() => high,
            part if part < 0.5 => low + (high - low) * part,
            part => high - (high - low) * (1.0 - part),
        }
    };
    let [p50, p75, p90, p99, p995] = [0.5, 0.75, 0.9, 0.99, 0.995].map(at);
    Some(Percentiles { p50, p75, p90, p99, p995 })
}
