//! What a log of rewrites says about a model, when it is asked.

use serde::{Deserialize, Serialize};

use crate::{DeclinedMatch, ModelDiff};

/// Whether a log explains a model, and what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditReport {
    /// Whether the rewrites of the log, done on the original, give this file byte for byte. Only
    /// with the original at hand can it be known; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<bool>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Nodes of the original.
    pub nodes_before: usize,
    /// Nodes of the model.
    pub nodes_after: usize,
    /// What each pass did, in the order in which they ran.
    pub passes: Vec<PassCount>,
    /// How the model differs from what the log explains, where it does and where both are at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexplained: Option<ModelDiff>,
}

/// What a pass did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PassCount {
    /// Its name.
    pub pass: String,
    /// What it promises.
    pub class: String,
    /// Rewrites.
    pub rewrites: usize,
    /// Nodes that went.
    pub removed: usize,
    /// Nodes that came.
    pub added: usize,
    /// Nodes that changed.
    pub changed: usize,
    /// Weights that came.
    pub weights_added: usize,
    /// Weights that went.
    pub weights_dropped: usize,
    /// Rewrites that were judged wrong and taken back.
    pub rejected: usize,
    /// Matches that were left alone.
    pub declined: usize,
}

/// The nodes that one rewrite touched, by name or first output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TouchedNodes {
    /// Number of the record.
    pub record: usize,
    /// The pass.
    pub pass: String,
    /// Nodes that went.
    pub removed: Vec<String>,
    /// Nodes that came.
    pub added: Vec<String>,
    /// Nodes that changed.
    pub changed: Vec<String>,
}

/// Where a value of the original is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MappedValue {
    /// Its name in the original.
    pub value: String,
    /// Its name in the result; absent when it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// Numbers of the records that moved it; the last one took it out when it is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<usize>,
}

/// Where a node or a weight of the result comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The node, by name or first output, or the weight.
    pub name: String,
    /// Nodes of the original that it comes from.
    pub from: Vec<String>,
    /// Numbers of the records that made or changed it.
    pub records: Vec<usize>,
    /// What the passes said, one for each record: `pass: reason`.
    pub reasons: Vec<String>,
    /// What passes left alone here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declined: Vec<DeclinedMatch>,
}
