//! Verdicts over named tensors, with their coverage.

use serde::{Deserialize, Serialize};
use veracity_diag::Diagnostic;

use crate::{Measurement, Tolerance};

/// The answer for one tensor, or for many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every element was checked and is within tolerance, and nothing is left open.
    Proved,
    /// Everything that was compared is right, under assumptions that comparing cannot settle.
    Conditional,
    /// Something could not be compared. Never counted as proved.
    NotComparable,
    /// A checked element is outside of the tolerance.
    Disproved,
}

impl Verdict {
    /// Whether everything that was compared is right: proved, with assumptions or without.
    pub fn holds(self) -> bool {
        self <= Self::Conditional
    }

    /// The verdict as people read it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Conditional => "conditional",
            Self::NotComparable => "not comparable",
            Self::Disproved => "disproved",
        }
    }
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
    /// Tensors within tolerance whose verdict rests on assumptions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub conditional: usize,
    /// Tensors outside of it.
    pub disproved: usize,
    /// Tensors that could not be compared.
    pub not_comparable: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Coverage {
    /// Counts verdicts.
    pub fn of(verdicts: impl IntoIterator<Item = Verdict>) -> Self {
        let mut coverage = Self::default();
        for verdict in verdicts {
            match verdict {
                Verdict::Proved => coverage.proved += 1,
                Verdict::Conditional => coverage.conditional += 1,
                Verdict::NotComparable => coverage.not_comparable += 1,
                Verdict::Disproved => coverage.disproved += 1,
            }
        }
        coverage
    }

    /// How many there are.
    pub fn all(&self) -> usize {
        self.proved + self.conditional + self.disproved + self.not_comparable
    }
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
        let coverage = Coverage::of(rows.iter().map(|row| row.verdict));
        let verdict = rows.iter().map(|row| row.verdict).max().unwrap_or(Verdict::NotComparable);
        Self { schema_version: crate::SCHEMA_VERSION.to_owned(), verdict, coverage, rows }
    }
}
