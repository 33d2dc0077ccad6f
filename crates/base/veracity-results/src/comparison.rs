//! Verdicts over named tensors, with their coverage.

use serde::{Deserialize, Serialize};
use veracity_diag::Diagnostic;

use crate::{Measurement, Tolerance};

/// The answer for one tensor, or for many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every element was checked and is within tolerance.
    Proved,
    /// Something could not be compared. Never counted as proved.
    NotComparable,
    /// A checked element is outside of the tolerance.
    Disproved,
}

/// The answer for one named tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRow {
    /// Name of the tensor, `node/port` in bundles.
    pub name: String,
    /// The answer.
    pub verdict: Verdict,
    /// The tolerance it was judged with.
    pub tolerance: Tolerance,
    /// What was measured, when the two could be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measurement: Option<Measurement>,
    /// Why it is not proved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Diagnostic>,
}

/// How much of what was asked for was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// Tensors within tolerance.
    pub proved: usize,
    /// Tensors outside of it.
    pub disproved: usize,
    /// Tensors that could not be compared.
    pub not_comparable: usize,
}

/// Many named tensors compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Version of this JSON; see [`crate::SCHEMA_VERSION`].
    pub schema_version: String,
    /// The answer over all rows.
    pub verdict: Verdict,
    /// How much was checked.
    pub coverage: Coverage,
    /// One row per tensor, worst first, then by name.
    pub rows: Vec<ComparisonRow>,
}

impl Comparison {
    /// Sums up rows. Nothing compared is not comparable: silence is no proof.
    pub fn from_rows(mut rows: Vec<ComparisonRow>) -> Self {
        rows.sort_by(|left, right| {
            let error = |row: &ComparisonRow| row.measurement.as_ref().map_or(0.0, |m| m.max_abs);
            (right.verdict.cmp(&left.verdict))
                .then_with(|| error(right).total_cmp(&error(left)))
                .then_with(|| left.name.cmp(&right.name))
        });
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        let coverage = Coverage {
            proved: count(Verdict::Proved),
            disproved: count(Verdict::Disproved),
            not_comparable: count(Verdict::NotComparable),
        };
        let verdict = rows.iter().map(|row| row.verdict).max().unwrap_or(Verdict::NotComparable);
        Self { schema_version: crate::SCHEMA_VERSION.to_owned(), verdict, coverage, rows }
    }
}
