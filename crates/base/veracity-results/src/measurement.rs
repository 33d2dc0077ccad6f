//! How far a candidate tensor is from its reference. Holds no opinion.

use serde::{Deserialize, Serialize};
use veracity_diag::{Diagnostic, Result, codes};

/// Absolute and relative tolerance: a pair is inside when
/// `|candidate - reference| <= atol + rtol * |reference|`. Both are finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "RawTolerance")]
pub struct Tolerance {
    atol: f64,
    rtol: f64,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RawTolerance {
    atol: f64,
    rtol: f64,
}

impl TryFrom<RawTolerance> for Tolerance {
    type Error = String;

    fn try_from(raw: RawTolerance) -> std::result::Result<Self, String> {
        Self::new(raw.atol, raw.rtol).map_err(|refusal| refusal.to_string())
    }
}

impl Tolerance {
    /// Nothing but equality passes.
    pub const EXACT: Self = Self { atol: 0.0, rtol: 0.0 };

    /// A tolerance; refused when a part is negative, infinite or not a number.
    pub fn new(atol: f64, rtol: f64) -> Result<Self> {
        for (name, value) in [("atol", atol), ("rtol", rtol)] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Diagnostic::error(
                    codes::TOLERANCE_INVALID,
                    format!("{name} must be finite and at least 0, got {value}"),
                )
                .into());
            }
        }
        Ok(Self { atol, rtol })
    }

    /// The absolute part.
    pub fn atol(self) -> f64 {
        self.atol
    }

    /// The relative part.
    pub fn rtol(self) -> f64 {
        self.rtol
    }

    /// Largest absolute error allowed at this reference value.
    pub fn bound(self, reference: f64) -> f64 {
        self.atol + self.rtol * reference.abs()
    }
}

/// Bins of the ULP histogram: bin 0 counts equal pairs, bin `k` distances in `[2^(k-1), 2^k)`.
/// 64-bit types need the last one.
pub const ULP_BIN_COUNT: usize = 65;

/// What a bin of the ULP histogram counts, for people.
pub fn ulp_bin_label(bin: usize) -> String {
    match bin {
        0 => "0".into(),
        1 => "1".into(),
        _ => format!("2^{}..2^{bin}", bin - 1),
    }
}

/// What was measured on one pair of tensors of the same dtype and shape.
///
/// A pair of elements is *compared* when both are finite. All errors below are over compared
/// pairs, computed in float64 (64-bit integers exactly). Pairs that are not compared are counted
/// in [`NonFinite`]. Equal infinities and pairs of NaN are `matching`; they make no error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measurement {
    /// Elements of each tensor.
    pub elements: u64,
    /// Pairs in which both sides are finite.
    pub compared: u64,
    /// Compared pairs that are not equal. `-0` equals `0`.
    pub differing: u64,
    /// Largest absolute error; 0 when nothing was compared.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub max_abs: f64,
    /// Mean absolute error over compared pairs.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub mean_abs: f64,
    /// Root of the mean squared error over compared pairs.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub rms: f64,
    /// Largest `|error| / |reference|` over compared pairs whose reference is not 0.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub max_rel: f64,
    /// Largest `|reference|` over compared pairs.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub max_abs_reference: f64,
    /// Smallest and largest finite reference, if there is one.
    pub reference_range: Option<(f64, f64)>,
    /// Smallest and largest finite candidate, if there is one.
    pub candidate_range: Option<(f64, f64)>,
    /// The pair to look at first: of those outside of the tolerance the one with the largest error as a
    /// part of its bound; where all are inside, the one with the largest error. The first of
    /// several in row-major order; `None` when no compared pair differs.
    pub worst: Option<Worst>,
    /// NaN and infinities of both sides.
    pub non_finite: NonFinite,
    /// The tolerance that `outside` and `min_atol` were counted with.
    pub tolerance: Tolerance,
    /// Compared pairs with an error above the tolerance.
    pub outside: u64,
    /// Smallest `atol` that would pass every compared pair at the tolerance's `rtol`, within one
    /// unit in the last place.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub min_atol: f64,
    /// Distances in units in the last place of the dtype, by power of two; empty unless asked
    /// for, and for integers and bools. Trailing empty bins are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ulp_histogram: Vec<u64>,
    /// Largest distance in units in the last place; 0 for integers and bools.
    pub max_ulp: u64,
    /// Exact percentiles of the absolute error; `None` unless asked for, or when nothing was
    /// compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentiles: Option<Percentiles>,
}

/// One pair of elements, for the reader to go and look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worst {
    /// Position along each axis.
    pub index: Vec<usize>,
    /// The reference there.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub reference: f64,
    /// The candidate there.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub candidate: f64,
}

/// NaN and infinities of both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NonFinite {
    /// NaN elements of the reference.
    pub reference_nan: u64,
    /// Infinite elements of the reference.
    pub reference_inf: u64,
    /// NaN elements of the candidate.
    pub candidate_nan: u64,
    /// Infinite elements of the candidate.
    pub candidate_inf: u64,
    /// Pairs in which both are NaN.
    pub matching_nan: u64,
    /// Pairs of infinities with the same sign.
    pub matching_inf: u64,
    /// Pairs with a NaN or infinity on a side that the other side does not match.
    pub mismatching: u64,
    /// Row-major position of the first mismatching pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_mismatch: Option<Vec<usize>>,
}

/// Exact percentiles of the absolute error over compared pairs, with linear interpolation between
/// neighbours as NumPy does by default.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Percentiles {
    /// Half of the pairs have at most this error.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub p50: f64,
    /// Three quarters have at most this error.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub p75: f64,
    /// 90 in 100 have at most this error.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub p90: f64,
    /// 99 in 100 have at most this error.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub p99: f64,
    /// 995 in 1000 have at most this error.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub p995: f64,
}

impl NonFinite {
    /// Adds the counts of another tensor; where the first mismatch is stays the caller's business.
    pub fn add_counts(&mut self, other: &Self) {
        self.reference_nan += other.reference_nan;
        self.reference_inf += other.reference_inf;
        self.candidate_nan += other.candidate_nan;
        self.candidate_inf += other.candidate_inf;
        self.matching_nan += other.matching_nan;
        self.matching_inf += other.matching_inf;
        self.mismatching += other.mismatching;
    }
}

impl Percentiles {
    /// Each with its name, for people.
    pub fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("p50", self.p50),
            ("p75", self.p75),
            ("p90", self.p90),
            ("p99", self.p99),
            ("p99.5", self.p995),
        ]
    }
}
