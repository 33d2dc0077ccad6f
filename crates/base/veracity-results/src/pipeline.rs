//! A pipeline as it is shown: boxes with ports, and what connects them.
//!
//! Pictures and pages are made from this description and from nothing else, so that they agree.

use serde::{Deserialize, Serialize};

use crate::Verdict;

/// A pipeline, described for those who look at it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pipeline {
    /// What it is called.
    pub name: String,
    /// Ticks in a second, if it was made for a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<f64>,
    /// The nodes, in the order in which they run.
    pub nodes: Vec<PipelineNode>,
    /// What goes from node to node.
    pub edges: Vec<PipelineEdge>,
    /// Inputs that the caller gives.
    pub inputs: Vec<PortName>,
    /// Outputs that the caller gets.
    pub outputs: Vec<PortName>,
}

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PipelineNode {
    /// Unique among the nodes.
    pub name: String,
    /// Kind of its model file, such as `onnx`; none for a node without model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// What goes in, in the order of the model's arguments.
    pub inputs: Vec<PipelinePort>,
    /// What comes out, in the order of the model's results.
    pub outputs: Vec<PipelinePort>,
    /// What a proof says about it, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// An input or output of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PipelinePort {
    /// Unique on its side of the node.
    pub name: String,
    /// Type of the elements.
    pub dtype: String,
    /// Sizes of the axes.
    pub shape: Vec<u64>,
    /// What the values mean, such as `state/joint/position`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What they are measured in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// A port by the names of its node and of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortName {
    /// The node.
    pub node: String,
    /// Its input or output.
    pub port: String,
}

impl PortName {
    /// The port of that name.
    pub fn new(node: impl Into<String>, port: impl Into<String>) -> Self {
        Self { node: node.into(), port: port.into() }
    }
}

/// A value that goes from an output to an input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PipelineEdge {
    /// The output.
    pub source: PortName,
    /// The input.
    pub target: PortName,
    /// Ticks until it arrives: 0 within the tick, more for feedback.
    #[serde(default)]
    pub delay: u32,
}

impl PipelineEdge {
    /// Whether it arrives in a later tick.
    pub fn is_feedback(&self) -> bool {
        self.delay > 0
    }
}
