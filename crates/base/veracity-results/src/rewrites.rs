//! What was done to a model, rewrite by rewrite: enough to tell it, to do it again and to undo it.
//!
//! Hashes are `sha256:` and 64 digits. Those of models are over the file with all weights inside, as
//! Veracity writes it. What only machines need, whole nodes and weights, is base64 of protobuf;
//! elements of large weights lie in a file beside the log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Version of the JSON of a [`RewriteLog`]. The major part changes when old readers break.
pub const REWRITES_SCHEMA_VERSION: &str = "1.0";

/// Everything that was done to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RewriteLog {
    /// Version of this JSON; see [`REWRITES_SCHEMA_VERSION`].
    pub schema_version: String,
    /// Version of Veracity that did it.
    pub tool_version: String,
    /// Hash of the original.
    pub original_sha256: String,
    /// Hash of the result. A result that names its log holds the hash of the log with this field
    /// empty.
    pub result_sha256: String,
    /// Signature of all passes in their order.
    pub signature: String,
    /// Whether nodes of the result say where they come from.
    pub provenance: bool,
    /// The passes, in the order in which they ran.
    pub passes: Vec<PassRecord>,
    /// Runs of all passes that found something.
    pub rounds: usize,
    /// Whether the last run found nothing more; otherwise a limit ended it.
    pub settled: bool,
    /// Nodes of the main graph before.
    pub nodes_before: usize,
    /// Nodes of the main graph after.
    pub nodes_after: usize,
    /// What was done, in this order.
    pub records: Vec<RewriteRecord>,
    /// What was taken back because it was judged wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedRewrite>,
    /// What was seen and left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declined: Vec<DeclinedMatch>,
    /// The nodes of the result by id, in the order of the file. Ids below `nodes_before` are
    /// positions in the original.
    pub order: Vec<u32>,
}

/// A pass that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PassRecord {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// What it promises: `exact-bits`, `exact-real`, `approximate` or `changes-computation`.
    pub class: String,
    /// What it was made with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, PassParameter>,
    /// Hash over name, version and parameters.
    pub signature: String,
}

/// A typed parameter of a pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "value", rename_all = "kebab-case")]
pub enum PassParameter {
    /// A number of things or bytes.
    Integer(i64),
    /// A real number.
    Number(f64),
    /// Yes or no.
    Switch(bool),
    /// A word.
    Word(String),
}

/// One rewrite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RewriteRecord {
    /// Its number, from 0, in the order in which they were made.
    pub id: usize,
    /// The pass.
    pub pass: String,
    /// Its version.
    pub version: u32,
    /// What it promises.
    pub class: String,
    /// Which run of all passes, from 0.
    pub round: usize,
    /// Its number within its pass, from 0.
    pub index: usize,
    /// Id of the node that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<u32>,
    /// Why it is right.
    pub reason: String,
    /// Nodes that went.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<NodeRecord>,
    /// Nodes that came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<NodeRecord>,
    /// Nodes that stayed and changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedNode>,
    /// Ids of nodes that stayed and show why it is right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<u32>,
    /// Ids of nodes that stayed and stand for what went: they give what is read instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standing: Vec<u32>,
    /// Ids of nodes that stayed and read another value since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rerouted: Vec<u32>,
    /// Values that are others now, or gone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Option<String>>,
    /// Values with what is read instead, as the pass asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<(String, String)>,
    /// Weights that came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<NewWeight>,
    /// Weights that went.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<WeightRecord>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeRecord {
    /// Its id, which no other node ever has.
    pub id: u32,
    /// Its name; often empty.
    pub name: String,
    /// The operator, `domain::Operator` outside of the default domain.
    pub op_type: String,
    /// What it takes; an input that is left out is `""`.
    pub inputs: Vec<String>,
    /// What it gives.
    pub outputs: Vec<String>,
    /// The whole node, for one that came.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub proto: String,
}

/// A node that stayed and changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedNode {
    /// Its id.
    pub id: u32,
    /// Its name before, or its first output where it has none.
    pub name: String,
    /// What it took before.
    pub inputs: Vec<String>,
    /// What it gave before.
    pub outputs: Vec<String>,
    /// What differs.
    pub fields: Vec<FieldChange>,
    /// The whole node, as it is afterwards.
    pub proto: String,
}

/// A field of a node that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldChange {
    /// `operator`, `name`, `inputs`, `outputs`, `attribute axis`, `metadata key`.
    pub field: String,
    /// Before, as text; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// After, as text; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A weight by its facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WeightRecord {
    /// Its name.
    pub name: String,
    /// Type of its elements.
    pub dtype: String,
    /// Sizes of its axes.
    pub dims: Vec<usize>,
    /// Hash of its elements as they are stored.
    pub sha256: String,
}

/// A weight that came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewWeight {
    /// What it is.
    #[serde(flatten)]
    pub weight: WeightRecord,
    /// Weights that the rewritten nodes read, so that it can come from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<WeightSource>,
    /// The whole weight; elements of a large one by their address.
    pub proto: String,
}

/// A weight that another one comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WeightSource {
    /// Its name.
    pub name: String,
    /// Hash of its elements as they are stored.
    pub sha256: String,
}

/// A rewrite that was judged wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RejectedRewrite {
    /// The pass.
    pub pass: String,
    /// The nodes that it was to take out or change, by name or first output.
    pub nodes: Vec<String>,
    /// What the pass said.
    pub reason: String,
    /// What the check said.
    pub problem: String,
}

/// A match that a pass left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeclinedMatch {
    /// The pass.
    pub pass: String,
    /// Id of the node, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Its name, or its first output where it has none.
    pub name: String,
    /// The precondition that does not hold.
    pub reason: String,
}
