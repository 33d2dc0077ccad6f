//! What changed between two proofs.

use serde::{Deserialize, Serialize};
use veracity_diag::Diagnostic;

use crate::Verdict;

/// What changed between two proofs of a bundle, or of two bundles that should be alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProofDifference {
    /// Version of this JSON; see [`crate::SCHEMA_VERSION`].
    pub schema_version: String,
    /// The answers over everything.
    pub verdict: Sides<Verdict>,
    /// Changes of what was checked: description, models, files.
    pub subject: Vec<Change>,
    /// Changes of what it was checked against.
    pub reference: Vec<Change>,
    /// Changes of what ran it: engines, versions, devices, threads, system, Veracity.
    pub environment: Vec<Change>,
    /// Changes of what counted as equal.
    pub policy: Vec<Change>,
    /// What tracing noticed for the later proof and had not noticed before, which is worse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noticed: Vec<Diagnostic>,
    /// Every port of both, in the order of the later proof; what is gone comes last.
    pub ports: Vec<PortDifference>,
}

impl ProofDifference {
    /// Ports that are worse, those that are gone included.
    pub fn worse(&self) -> impl Iterator<Item = &PortDifference> {
        self.ports.iter().filter(|port| port.judged.is_worse())
    }

    /// Whether anything is worse.
    pub fn is_worse(&self) -> bool {
        !self.noticed.is_empty() || self.worse().next().is_some()
    }

    /// Whether the two say the same about the same, apart from noise in the last digits.
    pub fn is_empty(&self) -> bool {
        let lists = [&self.subject, &self.reference, &self.environment, &self.policy];
        lists.iter().all(|list| list.is_empty())
            && self.noticed.is_empty()
            && self.ports.iter().all(|port| port.judged == Judged::Same)
    }
}

/// The same thing in two proofs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sides<T> {
    /// In the earlier one.
    pub before: T,
    /// In the later one.
    pub after: T,
}

/// Something that is not the same in both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// What it is: `model policy`, `threads`.
    pub what: String,
    /// The earlier value, if there was one.
    pub before: Option<String>,
    /// The later value, if there is one.
    pub after: Option<String>,
}

/// Which part of a proof a port belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// A node alone.
    Node,
    /// The whole bundle over time.
    Rollout,
}

/// Whether a port got better or worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Judged {
    /// Its verdict is better, or its errors are much smaller.
    Better,
    /// Neither better nor worse.
    Same,
    /// Its verdict is worse, its errors are much larger, or it is new and disproved.
    Worse,
    /// It is not in the earlier proof, and it is not disproved.
    New,
    /// It is not in the later proof: nothing is known about it any more.
    Gone,
}

impl Judged {
    /// Whether this should stop somebody.
    pub fn is_worse(self) -> bool {
        matches!(self, Self::Worse | Self::Gone)
    }
}

/// One port in two proofs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortDifference {
    /// `node/port`.
    pub port: String,
    /// Which part of the proofs it belongs to.
    pub section: Section,
    /// In the earlier proof, if it is there.
    pub before: Option<PortSide>,
    /// In the later proof, if it is there.
    pub after: Option<PortSide>,
    /// Whether it got better or worse.
    pub judged: Judged,
}

/// One port in one proof.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortSide {
    /// The answer.
    pub verdict: Verdict,
    /// How far it was off, if something was measured.
    pub errors: Option<Errors>,
}

/// How far a port was off, over all of its samples or ticks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Errors {
    /// Largest absolute error.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub max_abs: f64,
    /// Smallest absolute tolerance that would pass; infinite when none would.
    #[serde(with = "crate::number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::number::Number"))]
    pub min_atol: f64,
}
