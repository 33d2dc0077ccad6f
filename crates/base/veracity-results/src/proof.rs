//! What was proved about a bundle, by which reference, where, and how much of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use veracity_diag::Diagnostic;

use crate::{Adequacy, Coverage, ErrorOverTime, Measurement, Pipeline, Tolerance, Verdict};

/// Version of the JSON of a [`Proof`]. The major part changes when old readers break.
pub const PROOF_SCHEMA_VERSION: &str = "1.1";

/// The whole answer about one bundle: `proof.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// Version of this JSON; see [`PROOF_SCHEMA_VERSION`].
    pub schema_version: String,
    /// Version of Veracity that made it.
    pub veracity_version: String,
    /// What was checked, by hashes.
    pub subject: Subject,
    /// Where the values come from that it was checked against.
    pub reference: Reference,
    /// What ran it.
    pub environment: Environment,
    /// What counted as equal.
    pub policy: TolerancePolicy,
    /// The answer over everything: the worst of all nodes and of the roll-out.
    pub verdict: Verdict,
    /// Ports of nodes and of the roll-out by their verdict.
    pub coverage: Coverage,
    /// Each node alone, in the order in which they run.
    pub nodes: Vec<NodeProof>,
    /// The whole bundle over time.
    pub rollout: RolloutProof,
    /// What the inputs of the nodes were while they were checked.
    pub inputs: Vec<InputCoverage>,
    /// The bundle as it is shown; absent in proofs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Pipeline>,
    /// Every open assumption, once: those of the nodes and of the roll-out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<Diagnostic>,
    /// What tracing noticed while the values were recorded. Its errors stand against their nodes,
    /// and some of its warnings are assumptions of theirs; notes change no verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Diagnostic>,
    /// What to look at next, chosen by what was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
}

/// What was checked. A proof holds for these bytes and no others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subject {
    /// Name of the bundle.
    pub bundle: String,
    /// SHA-256 of the description without its block `veracity`: nodes, ports, wiring, settings.
    pub description_sha256: String,
    /// The models, in the order in which they run.
    pub models: Vec<ModelSubject>,
    /// SHA-256 of every other file that takes part: samples, initial values, external data.
    pub files: BTreeMap<String, String>,
}

/// The model of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelSubject {
    /// The node.
    pub node: String,
    /// `onnx`, `jit` or `pt2`.
    pub backend: String,
    /// The file in the bundle.
    pub path: String,
    /// SHA-256 of the file.
    pub sha256: String,
}

/// Where reference values come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The Python code computed them while it was traced.
    Python,
    /// A run of the bundle itself: agreement with it shows that runs repeat, and nothing about the
    /// Python code.
    Runtime,
    /// There are none.
    #[default]
    Nothing,
}

/// The values that a bundle was checked against.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reference {
    /// Where they come from.
    pub origin: Origin,
    /// What computed them: `torch 2.11.0`, `ort 1.24.2`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub made_with: String,
    /// Seed of the fresh inputs among them, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Where nodes begin in the Python code, `folder/file.py:12`, as far as it is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
}

/// What ran a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Environment {
    /// What ran each node.
    pub sessions: Vec<SessionRecord>,
    /// Threads inside of one operator.
    pub threads: usize,
    /// Operating system and processor family.
    pub system: String,
    /// Nodes that shared a session over time, joined by `+`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// SHA-256 of the map that inputs and outputs were reordered by, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<String>,
}

/// What ran a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionRecord {
    /// The node.
    pub node: String,
    /// Name of the engine.
    pub engine: String,
    /// Version of the library behind it.
    pub engine_version: String,
    /// What it ran on: `cpu`, `cuda:0`.
    pub device: String,
}

/// Where tolerances come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Somebody gave them, or took the defaults.
    #[default]
    Given,
    /// Derived for each port from dtype, reduction length and a run in float64.
    Auto,
    /// The defaults, finer for ports whose values are so small, or change so little, that the
    /// defaults would say nothing about them.
    Scaled,
}

/// What counts as equal. Integers and bools always have to be equal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TolerancePolicy {
    /// Where the tolerances come from.
    #[serde(default)]
    pub basis: Basis,
    /// For ports that have none of their own.
    pub default: Tolerance,
    /// For single ports, by `node/port`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: BTreeMap<String, Tolerance>,
    /// For runs of elements of single ports, by `node/port`, where elements of one tensor differ by
    /// orders of magnitude. The runs are in row-major order and begin anew when they end before the
    /// tensor does. The entry of the port in `ports` is the widest of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, Vec<TolerancePart>>,
    /// Whether NaN equals NaN. Equal infinities in the same places always pass.
    #[serde(default)]
    pub equal_nan: bool,
}

/// The tolerance of some elements that lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TolerancePart {
    /// How many elements it is for.
    pub elements: usize,
    /// What counts as equal there.
    pub tolerance: Tolerance,
}

impl TolerancePolicy {
    /// One tolerance for every port.
    pub fn new(default: Tolerance) -> Self {
        Self {
            basis: Basis::Given,
            default,
            ports: BTreeMap::new(),
            parts: BTreeMap::new(),
            equal_nan: false,
        }
    }

    /// The tolerances of runs of elements of a port, where it has some.
    pub fn parts_of(&self, port: &str) -> &[TolerancePart] {
        self.parts.get(port).map_or(&[], Vec::as_slice)
    }

    /// The tolerance of a port of floats.
    pub fn of(&self, port: &str) -> Tolerance {
        self.ports.get(port).copied().unwrap_or(self.default)
    }
}

/// One node alone: every sample through its model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeProof {
    /// The node.
    pub node: String,
    /// The answer over all ports, or why there is none.
    pub verdict: Verdict,
    /// Recorded samples that were tried.
    pub samples: usize,
    /// Passes that were seen while recording, of which `samples` were kept; absent when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<usize>,
    /// Fresh inputs that were tried.
    pub fresh: usize,
    /// Further fresh inputs that were tried while exporting and not kept: all of them agreed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tried: usize,
    /// How many planted faults its samples find; absent when nobody planted any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adequacy: Option<Adequacy>,
    /// Its outputs, in the order of the model.
    pub ports: Vec<PortProof>,
    /// What concerns the node as a whole: why it was not run, how many outputs it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Diagnostic>,
    /// What the verdict rests on and comparing cannot settle: a sentence, its line, and as hints
    /// what would settle it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<Diagnostic>,
    /// Why there are no fresh inputs, or fewer than were wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_note: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// One output of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortProof {
    /// `node/port`.
    pub port: String,
    /// The answer over all samples.
    pub verdict: Verdict,
    /// The tolerance that it was judged by.
    pub tolerance: Tolerance,
    /// Whether the model gave different values for the same inputs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstable: bool,
    /// One for each sample; beyond the first of them, one for many.
    pub samples: Vec<SampleProof>,
}

/// One output on one sample, or on several that are counted together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleProof {
    /// `sample 0`, `fresh 3`, `samples 32 to 99`.
    pub label: String,
    /// The answer.
    pub verdict: Verdict,
    /// Dtype and shape of the reference, `float32[1, 12]`.
    pub reference: String,
    /// Dtype and shape of what the model gave; empty when it gave nothing.
    pub candidate: String,
    /// What was measured, when the two could be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measurement: Option<Measurement>,
    /// Why it is not proved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Diagnostic>,
}

/// What a port is in a roll-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// An output of the bundle.
    Output,
    /// An input that the step before feeds.
    Feedback,
    /// An input that an earlier node feeds.
    Edge,
    /// An output that only other nodes see.
    Inner,
}

/// The recorded passes as an episode through the whole bundle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RolloutProof {
    /// Whether it was run, and what came out; `None` when it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Ticks of the recorded episode.
    pub ticks: usize,
    /// Steps that were run, those of repetitions included.
    pub steps: usize,
    /// How often the state was reset on the way.
    pub resets: usize,
    /// What was compared at every tick.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<RolloutPort>,
    /// Where the bundle first left the recorded episode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_divergence: Option<Divergence>,
    /// Why it was not run, or stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Diagnostic>,
}

/// One port over all ticks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RolloutPort {
    /// `node/port`.
    pub port: String,
    /// What it is there.
    pub role: Role,
    /// The output whose tolerance holds for it: itself, or the one that feeds it.
    pub source: String,
    /// The answer.
    pub verdict: Verdict,
    /// The tolerance that it was judged by.
    pub tolerance: Tolerance,
    /// What was measured over all ticks, counted together.
    pub measurement: Measurement,
    /// The first tick outside of the tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_divergence: Option<usize>,
    /// The error against time; empty in proofs of earlier versions.
    #[serde(default, skip_serializing_if = "ErrorOverTime::is_empty")]
    pub over_time: ErrorOverTime,
}

/// Where a bundle left the recorded episode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Divergence {
    /// The tick, counted from 0.
    pub tick: usize,
    /// `node/port`: of several at that tick the one that runs first.
    pub port: String,
    /// What the port is.
    pub role: Role,
}

/// What an input of a node was while it was checked. What lies outside was not tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InputCoverage {
    /// `node/port`.
    pub port: String,
    /// How many different values of it were tried.
    pub samples: usize,
    /// Whether it was the same on every sample: nothing is known about other values.
    pub constant: bool,
    /// Smallest and largest finite element that was tried.
    pub range: Option<(f64, f64)>,
}
