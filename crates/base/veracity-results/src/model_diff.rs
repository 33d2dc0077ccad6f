//! How two models differ in their structure.

use serde::{Deserialize, Serialize};

use crate::{FieldChange, NodeRecord};

/// Version of the JSON of a [`ModelDiff`]. The major part changes when old readers break.
pub const MODEL_DIFF_SCHEMA_VERSION: &str = "1.0";

/// How two models differ in their structure. Ids of nodes are positions in their file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelDiff {
    /// Version of this JSON; see [`MODEL_DIFF_SCHEMA_VERSION`].
    pub schema_version: String,
    /// Nodes of the first model.
    pub nodes_before: usize,
    /// Nodes of the second model.
    pub nodes_after: usize,
    /// Nodes that are the same in both, values aside that only have another name.
    pub nodes_same: usize,
    /// Nodes of the first that the second does not have.
    pub removed: Vec<NodeRecord>,
    /// Nodes of the second that the first does not have.
    pub added: Vec<NodeRecord>,
    /// Nodes of both that differ.
    pub changed: Vec<NodeDifference>,
    /// Weights that the second does not have.
    pub weights_removed: Vec<WeightOutline>,
    /// Weights that the first does not have.
    pub weights_added: Vec<WeightOutline>,
    /// Weights of both that differ.
    pub weights_changed: Vec<WeightDifference>,
    /// Weights that have another name in the second model, with their first name.
    pub weights_renamed: Vec<(String, String)>,
    /// Inputs, outputs, operator versions, functions and keys of the model that differ.
    pub model: Vec<FieldChange>,
}

impl ModelDiff {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty()
            && self.added.is_empty()
            && self.changed.is_empty()
            && self.weights_removed.is_empty()
            && self.weights_added.is_empty()
            && self.weights_changed.is_empty()
            && self.weights_renamed.is_empty()
            && self.model.is_empty()
    }
}

/// A node of both models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeDifference {
    /// Its position in the first model.
    pub before: u32,
    /// Its position in the second model.
    pub after: u32,
    /// Its name in the first model, or its first output where it has none.
    pub name: String,
    /// The operator in the first model.
    pub op_type: String,
    /// What differs.
    pub fields: Vec<FieldChange>,
}

/// A weight by its facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WeightOutline {
    /// Its name.
    pub name: String,
    /// Type of its elements.
    pub dtype: String,
    /// Sizes of its axes.
    pub dims: Vec<usize>,
}

/// A weight of both models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WeightDifference {
    /// In the first model.
    pub before: WeightOutline,
    /// In the second model.
    pub after: WeightOutline,
    /// Largest difference of two elements, where the shapes are the same and elements are numbers;
    /// infinite where only one of two is a number.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::number::optional")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::number::Number>"))]
    pub max_abs: Option<f64>,
}
