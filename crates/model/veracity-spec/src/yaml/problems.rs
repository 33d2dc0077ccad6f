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
    listed: Vec<Diagnostic>,
    dropped: usize,
    dropped_an_error: bool,
}

impl<'s> Problems<'s> {
    pub(crate) fn new(source: &'s Source) -> Self {
        Self { source, listed: Vec::new(), dropped: 0, dropped_an_error: false }
    }

    /// Whether further problems are only counted: work on a good message would be wasted.
    pub(crate) fn is_full(&self) -> bool {
        self.listed.len() >= MAX_PROBLEMS
    }

    /// Notes a problem at a stretch of the file.
    pub(crate) fn add(&mut self, span: Span, diagnostic: Diagnostic) {
        if self.is_full() {
            self.dropped += 1;
            self.dropped_an_error |= diagnostic.severity == Severity::Error;
        } else {
            let place = self.source.place(span);
            self.listed.push(diagnostic.within(&place));
        }
    }

    /// Notes a problem of the file as a whole.
    pub(crate) fn add_to_file(&mut self, diagnostic: Diagnostic) {
        self.listed.push(diagnostic.within(&self.source.file()));
    }

    /// A refusal when there was an error, else the warnings; in the order of the file.
    pub(crate) fn finish(mut self) -> Result<Vec<Diagnostic>> {
        self.listed.sort_by_key(|finding| (finding.place.line, finding.place.column));
        if self.dropped > 0 {
            let severity =
                if self.dropped_an_error { Diagnostic::error } else { Diagnostic::warning };
            let message = format!("{} more problems are not listed", self.dropped);
            self.add_to_file(severity(codes::YAML_TOO_MANY_PROBLEMS, message));
        }
        let mut reporter = Reporter::new();
        for finding in self.listed {
            reporter.report(finding);
        }
        reporter.finish()
    }
}
