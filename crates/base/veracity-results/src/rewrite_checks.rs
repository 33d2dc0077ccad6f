//! What checking the rewrites of a graph showed: each alone, and all together.

use serde::{Deserialize, Serialize};

use crate::{Coverage, RewriteLog, Verdict};

/// Version of the JSON of [`RewriteChecks`]. The major part changes when old readers break.
pub const REWRITE_CHECKS_SCHEMA_VERSION: &str = "1.0";

/// A log with what checking showed: the file beside a model that was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedLog {
    /// What was done.
    #[serde(flatten)]
    pub log: RewriteLog,
    /// What checking it showed; absent when nothing was checked, and in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<RewriteChecks>,
}

/// What checking the rewrites of a graph showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RewriteChecks {
    /// Version of this JSON; see [`REWRITE_CHECKS_SCHEMA_VERSION`].
    pub schema_version: String,
    /// What ran the models.
    pub engine: String,
    /// Its version.
    pub engine_version: String,
    /// What was checked: `local`, `pass`, `final` or `off`.
    pub validation: String,
    /// What made-up inputs were drawn from.
    pub seed: u64,
    /// The inputs of the whole model, by name.
    pub inputs: Vec<String>,
    /// The answer about the graph that came out. Proved only when everything that was kept was
    /// checked and found right.
    pub verdict: Verdict,
    /// The rewrites that were kept, by what is known about each.
    pub coverage: Coverage,
    /// Every rewrite that was checked alone, in the order in which it was made.
    pub rewrites: Vec<RewriteCheck>,
    /// The outputs of the whole model beside those of the original, after passes and at the end.
    pub cumulative: Vec<CumulativeCheck>,
    /// What else is worth knowing.
    pub notes: Vec<String>,
}

/// What checking one rewrite alone showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RewriteCheck {
    /// Number of the rewrite. One that was taken back frees its number.
    pub id: usize,
    /// The pass that proposed it.
    pub pass: String,
    /// What the pass promises.
    pub class: String,
    /// Its number within its pass.
    pub index: usize,
    /// Why the pass holds it to be right.
    pub why: String,
    /// What was found.
    pub verdict: Verdict,
    /// Whether it is in the graph that came out.
    pub kept: bool,
    /// What decided: `same bits`, `rounding`, `float64`, `perturbed`, `limit`, `structure` or
    /// `not run`.
    pub rule: String,
    /// Largest absolute error over all sets of inputs.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub max_abs: f64,
    /// Largest absolute value of what was there before, where that error is.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub scale: f64,
    /// The value that is off most.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// The set of inputs on which it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub worst_set: String,
    /// Sets of inputs that it was run on.
    pub sets: Vec<String>,
    /// Why it is not proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What else was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One output of the whole model beside that of the original.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CumulativeCheck {
    /// The pass after which it was compared; empty at the end.
    pub pass: String,
    /// Rewrites that were in the graph then.
    pub rewrites: usize,
    /// The set of inputs.
    pub set: String,
    /// The output.
    pub output: String,
    /// What was found.
    pub verdict: Verdict,
    /// What decided; as in [`RewriteCheck::rule`].
    pub rule: String,
    /// Largest absolute error.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub max_abs: f64,
    /// Largest absolute value of the original's output.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub scale: f64,
    /// Why it is not proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl RewriteChecks {
    /// The largest drift of the outputs after each pass that was compared, in order.
    pub fn drift(&self) -> Vec<(&str, f64)> {
        let mut found: Vec<(&str, f64)> = Vec::new();
        for check in &self.cumulative {
            match found.last_mut() {
                Some((pass, most)) if *pass == check.pass => *most = most.max(check.max_abs),
                _ => found.push((&check.pass, check.max_abs)),
            }
        }
        found
    }
}
