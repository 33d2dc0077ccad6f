//! What a pass promises about the numbers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a pass promises about the numbers, from the strictest to none at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The same bits, NaN, infinities and the sign of zero included.
    ExactBits,
    /// The same in real numbers; rounding may differ, within what float64 shows to be right.
    ExactReal,
    /// A little different on purpose; must be asked for by name.
    Approximate,
    /// Computes something else on purpose.
    ChangesComputation,
}

impl Class {
    /// The class of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::ExactBits, Self::ExactReal, Self::Approximate, Self::ChangesComputation];
        all.into_iter().find(|class| class.name() == name)
    }

    /// The name in logs and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ExactBits => "exact-bits",
            Self::ExactReal => "exact-real",
            Self::Approximate => "approximate",
            Self::ChangesComputation => "changes-computation",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
