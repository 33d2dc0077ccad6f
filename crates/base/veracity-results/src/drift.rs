//! Op-by-op parity: what each operator brings in, and what adds up.

use serde::{Deserialize, Serialize};
use veracity_diag::Diagnostic;

use crate::{SessionRecord, Verdict};

/// Version of the JSON of a [`DriftReport`]. The major part changes when old readers break.
pub const DRIFT_SCHEMA_VERSION: &str = "1.0";

/// What comparing an export with the original, operator by operator, found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriftReport {
    /// Version of this JSON; see [`DRIFT_SCHEMA_VERSION`].
    pub schema_version: String,
    /// Name of the model.
    pub model: String,
    /// What the export is held against: `torch 2.11.0`, or `a.onnx on ort 1.31.1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reference: String,
    /// What was looked at: `export`, or `b.onnx, optimised at level extended`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub candidate: String,
    /// What to type in to do it again; empty where it was no command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// What ran the export.
    pub session: SessionRecord,
    /// What the graph takes and gives, and how the original is built.
    #[serde(default, skip_serializing_if = "GraphRecord::is_empty")]
    pub graph: GraphRecord,
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
    /// What became of each tensor of the original's program, where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<ProgramValue>,
    /// What is worth knowing and changes no verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why there is no answer, or less of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Diagnostic>,
}

/// What a graph takes and gives, and how the original is built. Everything may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GraphRecord {
    /// Version of the operators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opset: Option<i64>,
    /// Names of its inputs, without weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Names of its outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Paths of the original's modules that have no modules inside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<String>,
}

impl GraphRecord {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One value of the export and the operator that gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriftRow {
    /// Name of the value, the same on both sides.
    pub name: String,
    /// The operator of the export.
    pub op_type: String,
    /// Name of the operator's node in the export.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
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
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub scale: f64,
    /// Error of the export run from its inputs.
    pub accumulated: ErrorFigures,
    /// Error of this operator run on reference inputs.
    pub introduced: ErrorFigures,
    /// Errors of both sides against float64, if that was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub float64: Option<AgainstFloat64>,
    /// Most that the operator may introduce, at its largest values.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub budget: f64,
    /// The element that takes the most of its own budget; `None` where all are equal, and where one
    /// budget holds for all elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<DriftElement>,
    /// How far errors point one way: their median, each as a part of its element's budget. Roundings
    /// go both ways.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bias: f64,
    /// The answer, by introduced error.
    pub verdict: Verdict,
    /// Why the numbers do not decide: another shape or dtype, NaN in the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What makes it wrong, shown by experiment; only for rows that are disproved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// What it was compared with, where that is not the value of the same name and type:
    /// `float32`, or `float32 input "x"`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reference: String,
}

/// One element of a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriftElement {
    /// Position along each axis.
    pub index: Vec<usize>,
    /// The reference there.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub reference: f64,
    /// What the operator gives there.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub candidate: f64,
    /// Most that it may be off.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub budget: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

/// What makes an operator wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    /// The kind of fault.
    pub kind: CauseKind,
    /// What was seen: the tensor, the attribute, the permutation.
    pub detail: String,
    /// What was tried and did not explain it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ruled_out: Vec<String>,
}

/// Kinds of faults, by what makes them vanish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// With the original's weight in its place the operator is right.
    WeightBitMismatch,
    /// With the original's attribute in its place the operator is right.
    AttributeMismatch,
    /// The operator is another one than the original has.
    OperatorMismatch,
    /// In a wider type the operator is right.
    PrecisionLoss,
    /// The values are right and stand in another order of axes.
    LayoutMismatch,
    /// Without the engine's optimisation the operator is right.
    Fusion,
    /// Two runs, or runs with other numbers of threads, differ.
    Nondeterminism,
    /// Another engine and float64 agree with the original: the kernel is wrong.
    OpImplementation,
    /// None of the experiments explains it.
    Unknown,
}

/// What became of one tensor of the original's program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramValue {
    /// Its name.
    pub name: String,
    /// What torch was asked for: `aten.conv2d.default`.
    pub target: String,
    /// The verdict of its row, or that it has none.
    pub status: ProgramStatus,
    /// The compared values that it went into.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub into: Vec<String>,
    /// Why it was not mapped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// How a tensor of the original's program was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProgramStatus {
    /// Its row is proved.
    Proved,
    /// Its row is disproved.
    Disproved,
    /// Its row is not comparable.
    NotComparable,
    /// It has no row and went into values that have one.
    Folded,
    /// Nothing that was compared depends on it.
    NotMapped,
}

/// How far a value is from its reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorFigures {
    /// Largest absolute error.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub max_abs: f64,
    /// Mean absolute error.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub mean_abs: f64,
    /// NaN and infinities that the other side does not match.
    pub mismatching: u64,
}

/// Largest absolute errors against a run in float64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgainstFloat64 {
    /// Of the original.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub reference: f64,
    /// Of the export, run from its inputs.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub candidate: f64,
}

/// A value of the export that was not compared itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
