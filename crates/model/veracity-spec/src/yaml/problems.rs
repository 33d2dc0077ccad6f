//! Collects what is wrong with one file.

use veracity_diag::{Diagnostic, Reporter, Result, Severity, codes};

use super::source::{Source, Span};

/// Most problems that are listed. Beyond that nobody reads on, and a hostile file would decide how
/// much memory the list takes.
const MAX_PROBLEMS: usize = 200;

/// Everything wrong with one file, each with its place in it.
#[derive(Debug)]
pub(crate) struct Problems<'s> {
    source: &'s Source,
    reporter: Reporter,
    dropped: usize,
    dropped_an_error: bool,
}

impl<'s> Problems<'s> {
    pub(crate) fn new(source: &'s Source) -> Self {
        Self { source, reporter: Reporter::new(), dropped: 0, dropped_an_error: false }
    }

    /// Notes a problem at a stretch of the file.
    pub(crate) fn add(&mut self, span: Span, diagnostic: Diagnostic) {
        if self.reporter.diagnostics().len() < MAX_PROBLEMS {
            let place = self.source.place(span);
            self.reporter.report(diagnostic.within(&place));
        } else {
            self.dropped += 1;
            self.dropped_an_error |= diagnostic.severity == Severity::Error;
        }
    }

    /// Notes a problem of the file as a whole.
    pub(crate) fn add_to_file(&mut self, diagnostic: Diagnostic) {
        self.reporter.report(diagnostic.within(&self.source.file()));
    }

    /// A refusal when there was an error, else the warnings.
    pub(crate) fn finish(mut self) -> Result<Vec<Diagnostic>> {
        if self.dropped > 0 {
            let message = format!("{} more problems are not listed", self.dropped);
            self.add_to_file(if self.dropped_an_error {
                Diagnostic::error(codes::YAML_TOO_MANY_PROBLEMS, message)
            } else {
                Diagnostic::warning(codes::YAML_TOO_MANY_PROBLEMS, message)
            });
        }
        self.reporter.finish()
    }
}
