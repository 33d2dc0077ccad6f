//! Op-by-op parity: what each operator brings in, and what adds up.

use serde::{Deserialize, Serialize};
use veracity_diag::Diagnostic;

use crate::{SessionRecord, Verdict};

/// Version of the JSON of a [`DriftReport`]. The major part changes when old readers break.
pub const DRIFT_SCHEMA_VERSION: &str = "1.0";

/// What comparing an export with the original, operator by operator, found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriftReport {
    /// Version of this JSON; see [`DRIFT_SCHEMA_VERSION`].
    pub schema_version: String,
    /// Name of the model.
    pub model: String,
    /// What ran the export.
    pub session: SessionRecord,
    /// The answer: by introduced error, over all rows.
    pub verdict: Verdict,
    /// The first operator that introduces more than its budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The first value whose accumulated error is above the absolute tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_origin: Option<String>,
    /// That tolerance.
    pub tolerance: f64,
    /// One row per value that was compared, in the order in which the export computes them.
    pub rows: Vec<DriftRow>,
    /// Values of the export that were not compared, with what they are part of.
    pub unmapped: Vec<Unmapped>,
    /// Why there is no answer, or less of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Diagnostic>,
}

/// One value of the export and the operator that gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriftRow {
    /// Name of the value, the same on both sides.
    pub name: String,
    /// The operator of the export.
    pub op_type: String,
    /// The module of the original, by its path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// The line of the original, `file:line`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Type of the elements.
    pub dtype: String,
    /// Sizes of the axes.
    pub shape: Vec<usize>,
    /// Largest `|reference|`.
    #[serde(with = "crate::number")]
    pub scale: f64,
    /// Error of the export run from its inputs.
    pub accumulated: ErrorFigures,
    /// Error of this operator run on reference inputs.
    pub introduced: ErrorFigures,
    /// Errors of both sides against float64, if that was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub float64: Option<AgainstFloat64>,
    /// Most that the operator may introduce.
    #[serde(with = "crate::number")]
    pub budget: f64,
    /// The answer, by introduced error.
    pub verdict: Verdict,
    /// Why the numbers do not decide: another shape or dtype, NaN in the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How far a value is from its reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorFigures {
    /// Largest absolute error.
    #[serde(with = "crate::number")]
    pub max_abs: f64,
    /// Mean absolute error.
    #[serde(with = "crate::number")]
    pub mean_abs: f64,
    /// NaN and infinities that the other side does not match.
    pub mismatching: u64,
}

/// Largest absolute errors against a run in float64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgainstFloat64 {
    /// Of the original.
    #[serde(with = "crate::number")]
    pub reference: f64,
    /// Of the export, run from its inputs.
    #[serde(with = "crate::number")]
    pub candidate: f64,
}

/// A value of the export that was not compared itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmapped {
    /// Name of the value.
    pub name: String,
    /// The operator that gives it.
    pub op_type: String,
    /// The compared value that it is computed for; its error shows there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// Why it was not compared, when it is not part of a compared value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
