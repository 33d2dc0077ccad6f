//! What a bundle says, checked and without positions.
//!
//! The same type is read from a file and handed to the writer. One that was read is known to be
//! consistent: names are unique, edges connect ports that exist and agree, every input has a
//! source. The positions are kept apart, in [`Places`](crate::Places).

mod port;
mod veracity_block;

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

pub use port::{AxisNames, MAX_BUNDLE_BYTES, MAX_PORT_BYTES, PortSpec};
pub use veracity_block::{FileRecord, VeracityBlock};

use crate::{BundlePath, Map, Md5Sum, Sha256Sum};

/// A whole bundle, as its YAML describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spec {
    /// Version of the format.
    pub version: FormatVersion,
    /// The nodes, in the order in which they run.
    pub nodes: Vec<Node>,
    /// Edges within a tick: from an earlier node to a later one.
    pub data_flow: Vec<Edge>,
    /// Edges into the next tick: from a node to itself or an earlier one.
    pub feedback_flow: Vec<Edge>,
    /// Inputs that the caller gives.
    pub pipeline_inputs: Vec<PortRef>,
    /// Outputs that the caller gets.
    pub pipeline_outputs: Vec<PortRef>,
    /// The safetensors file with the first values of feedback inputs, named `node/port`.
    pub initial_values: Option<BundlePath>,
    /// Settings of the pipeline as a whole.
    pub configs: Configs,
    /// What the bundle was made with, without the format version.
    pub system: Map,
    /// What Veracity adds to the format; others ignore it.
    pub veracity: Option<VeracityBlock>,
    /// Other keys of `pipeline`.
    pub pipeline_extra: Map,
    /// Other keys at the top.
    pub extra: Map,
}

impl Spec {
    /// The node of that name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The port that a reference names.
    pub fn port(&self, port: &PortRef, direction: Direction) -> Option<&PortSpec> {
        let ports = self.node(&port.node)?.ports(direction);
        ports.iter().find(|candidate| candidate.name == port.port)
    }

    /// Nodes that cannot be run because the bundle holds no model for them.
    pub fn nodes_without_model(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.model.is_none())
    }
}

/// Version of the bundle format, `leapp config version` in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FormatVersion {
    /// Counts layouts: a reader of one cannot read another.
    pub major: u32,
    /// Counts additions.
    pub minor: u32,
}

impl Default for FormatVersion {
    /// The version that is written: 1.3.
    fn default() -> Self {
        Self { major: 1, minor: 3 }
    }
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for FormatVersion {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        Ok(Self { major: major.parse()?, minor: minor.parse()? })
    }
}

impl Serialize for FormatVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One stage of the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Node {
    /// Unique among the nodes.
    pub name: String,
    /// In the order of the model's arguments.
    pub inputs: Vec<PortSpec>,
    /// In the order of the model's results.
    pub outputs: Vec<PortSpec>,
    /// The model; none for a node that was only described.
    pub model: Option<Model>,
    /// Other keys of `parameters`: `opset_version`, `torch_version`, `warp_segments`, …
    pub parameters: Map,
    /// Other keys of the node.
    pub extra: Map,
}

impl Node {
    /// Its inputs or its outputs.
    pub fn ports(&self, direction: Direction) -> &[PortSpec] {
        match direction {
            Direction::Input => &self.inputs,
            Direction::Output => &self.outputs,
        }
    }
}

/// The file that computes a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Model {
    /// What kind of file it is.
    pub backend: Backend,
    /// The file.
    pub path: BundlePath,
    /// SHA-256 of the file.
    pub sha256: Sha256Sum,
    /// MD5 of the file: part of the format, of no worth against forgery.
    pub md5: Md5Sum,
}

impl Model {
    /// A model that is yet to be written; the writer fills in the hashes.
    pub fn unhashed(backend: Backend, path: BundlePath) -> Self {
        Self { backend, path, sha256: Sha256Sum::ZERO, md5: Md5Sum::ZERO }
    }
}

/// Kind of a model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// `TorchScript`.
    Jit,
    /// ONNX.
    Onnx,
    /// An exported program of torch.
    Pt2,
}

impl Backend {
    /// Every backend.
    pub const ALL: [Self; 3] = [Self::Jit, Self::Onnx, Self::Pt2];

    /// The name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jit => "jit",
            Self::Onnx => "onnx",
            Self::Pt2 => "pt2",
        }
    }

    /// The backend of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.name() == name)
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which side of a node a port is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Into the node.
    Input,
    /// Out of the node.
    Output,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

/// A port by name, written `node/port`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortRef {
    /// The node.
    pub node: String,
    /// Its input or output.
    pub port: String,
}

impl PortRef {
    /// The port of that name.
    pub fn new(node: impl Into<String>, port: impl Into<String>) -> Self {
        Self { node: node.into(), port: port.into() }
    }
}

impl fmt::Display for PortRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.node, self.port)
    }
}

/// The text is not `node/port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAPortRef;

impl FromStr for PortRef {
    type Err = NotAPortRef;

    fn from_str(text: &str) -> Result<Self, NotAPortRef> {
        match text.split_once('/') {
            Some((node, port)) if !node.is_empty() && !port.is_empty() && !port.contains('/') => {
                Ok(Self::new(node, port))
            }
            _ => Err(NotAPortRef),
        }
    }
}

impl Serialize for PortRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A value that goes from an output to an input.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Edge {
    /// The output.
    pub source: PortRef,
    /// The input.
    pub target: PortRef,
}

/// Settings of the pipeline as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Configs {
    /// Steps per second that the pipeline was made for.
    pub frequency: Option<f64>,
    /// Other settings.
    pub extra: Map,
}

impl Configs {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.frequency.is_none() && self.extra.is_empty()
    }
}
