//! Why something was not done.

use std::fmt;

use crate::{Diagnostic, Place};

/// The result of anything that can be refused.
pub type Result<T> = std::result::Result<T, Refusal>;

/// One or more findings, at least one of them an error, that stopped the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub(crate) Vec<Diagnostic>);

impl Refusal {
    /// A refusal for several reasons at once; `None` when no finding is an error.
    pub fn from_errors_in(diagnostics: Vec<Diagnostic>) -> Option<Self> {
        diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity == crate::Severity::Error)
            .then_some(Self(diagnostics))
    }

    /// Every finding, in the order in which they were made.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.0
    }

    /// Every finding, owned.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.0
    }

    /// The first error: the one to show when there is room for one only.
    pub fn first_error(&self) -> &Diagnostic {
        self.0
            .iter()
            .find(|diagnostic| diagnostic.severity == crate::Severity::Error)
            .unwrap_or(&self.0[0])
    }

    /// Fills in what the findings do not yet say about where they are.
    #[must_use]
    pub fn within(self, place: &Place) -> Self {
        Self(self.0.into_iter().map(|diagnostic| diagnostic.within(place)).collect())
    }
}

impl From<Diagnostic> for Refusal {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first_error().fmt(f)?;
        match self.0.len() - 1 {
            0 => Ok(()),
            more => write!(f, " (and {more} more)"),
        }
    }
}

impl std::error::Error for Refusal {}
