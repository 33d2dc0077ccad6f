//! One operator that is wrong, written down so that it can be run again anywhere.

use serde::{Deserialize, Serialize};

use crate::{Cause, SessionRecord};

/// Version of the JSON of a [`ReproRecord`]. The major part changes when old readers break.
pub const REPRO_SCHEMA_VERSION: &str = "1.0";

/// What a repro shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReproRecord {
    /// Version of this JSON; see [`REPRO_SCHEMA_VERSION`].
    pub schema_version: String,
    /// Name of the model that it was cut out of.
    pub model: String,
    /// What the expected value comes from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reference: String,
    /// Name of the value.
    pub value: String,
    /// The operator that gives it.
    pub op_type: String,
    /// The module of the original, by its path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// The line of the original, `file:line`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// What ran it.
    pub session: SessionRecord,
    /// Threads inside of one operator.
    pub threads: usize,
    /// How far the engine rewrote it: `none`, `basic` or `all`.
    pub optimization: String,
    /// Most that the operator may be off.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub budget: f64,
    /// How far it was off; infinite when it gave another shape or could not be run.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub error: f64,
    /// Why the numbers do not decide, if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What makes it wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

/// What running a repro again showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReproRun {
    /// Name of the value.
    pub value: String,
    /// What ran it this time.
    pub engine: String,
    /// Its version.
    pub engine_version: String,
    /// Whether the operator is wrong again.
    pub shows: bool,
    /// Whether it gives bit for bit what it gave when the repro was written.
    pub repeats: bool,
    /// How far it is off this time; infinite when it gives another shape.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub error: f64,
    /// Most that it may be off.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub budget: f64,
}
