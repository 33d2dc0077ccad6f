//! What got worse since a baseline.

use veracity::Diagnostic;

use super::document::Document;
use super::style::{self, paint};

/// Everything that is worse, and how much that is.
pub(crate) fn document(worse: &[Diagnostic]) -> Document {
    let mut document = Document::below("Since the baseline");
    for found in worse {
        document.finding(found);
    }
    document.line(match worse.len() {
        0 => paint(style::GOOD, "nothing is worse than in the baseline"),
        worse => paint(style::ERROR, &format!("{worse} worse than in the baseline")),
    });
    document
}

/// A report with what got worse below it, in the same form.
pub(crate) fn below(
    report: String,
    since: Option<Document>,
    form: impl Fn(&Document) -> String,
) -> String {
    match since {
        Some(since) => format!("{report}\n{}", form(&since)),
        None => report,
    }
}
