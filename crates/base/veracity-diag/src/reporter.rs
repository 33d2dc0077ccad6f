//! Collects findings while work goes on.

use crate::{Diagnostic, Refusal, Result, Severity};

/// Collects findings, so that one run can report every problem of a file.
#[derive(Debug, Default)]
pub struct Reporter {
    diagnostics: Vec<Diagnostic>,
}

impl Reporter {
    /// An empty reporter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes one finding.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Notes everything that stopped a piece of work, and says so by `None`.
    pub fn absorb<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|refusal| self.diagnostics.extend(refusal.into_diagnostics())).ok()
    }

    /// What was noted so far.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Whether an error was noted.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Ends the work: a refusal when an error was noted, else the warnings.
    pub fn finish(self) -> Result<Vec<Diagnostic>> {
        if self.has_errors() { Err(Refusal(self.diagnostics)) } else { Ok(self.diagnostics) }
    }
}
