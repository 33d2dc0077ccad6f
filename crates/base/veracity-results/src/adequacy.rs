//! How much the samples of a node can see: small faults that were planted, and how many were found.

use serde::{Deserialize, Serialize};

/// What became of faults that were planted into copies of a node's program. A fault is found when
/// an output leaves its tolerance on one of the samples, recorded or fresh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Adequacy {
    /// Faults that were planted, without those in `no_fault`.
    pub planted: usize,
    /// Those that a sample finds.
    pub found: usize,
    /// Fresh inputs that were kept because they find faults that the others miss.
    #[serde(default)]
    pub drawn: usize,
    /// Those that no sample finds; long lists are cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<PlantedFault>,
    /// Changes that are no faults, because no input lets them reach an output: a weight of a unit
    /// that is always off, a factor of zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_fault: Vec<PlantedFault>,
}

/// A fault that was planted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlantedFault {
    /// What was changed: ``add` became `sub``.
    pub what: String,
    /// The line of the code, `folder/file.py:12`, where it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Why no sample shows it.
    pub reason: String,
}

impl Adequacy {
    /// The number as it stands beside a verdict: `finds 58 of 60 planted faults`.
    pub fn text(&self) -> String {
        format!("finds {} of {} planted faults", self.found, self.planted)
    }
}
