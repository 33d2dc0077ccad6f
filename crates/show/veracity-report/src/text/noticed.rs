//! What tracing noticed: a line each, the worst first. What a node gives as its reason was told with
//! the node.

use veracity_diag::{Diagnostic, Severity};
use veracity_results::Proof;

use super::page::{Page, TextOptions, Tone};

pub(super) fn write(proof: &Proof, options: &TextOptions, page: &mut Page<'_>) {
    let found = proof.untold_findings();
    for one in found.iter().take(options.most) {
        let tone = match one.severity {
            Severity::Error => Tone::Bad,
            Severity::Warning => Tone::Doubt,
            Severity::Note => Tone::Heading,
        };
        page.headed(&format!("{}:", head(one)), tone, &one.message);
    }
    page.more(found.len(), options.most, "that tracing noticed");
}

/// What the verdict rests on: a sentence each, its line, and what would settle it.
pub(super) fn write_assumptions(proof: &Proof, options: &TextOptions, page: &mut Page<'_>) {
    for one in proof.assumptions.iter().take(options.most) {
        page.headed(&format!("{}:", head_as(one, "assumption")), Tone::Doubt, &one.message);
        for hint in &one.hints {
            page.line(2, &format!("settled by: {hint}"));
        }
    }
    page.more(proof.assumptions.len(), options.most, "assumptions");
}

fn head(found: &Diagnostic) -> String {
    head_as(found, &found.severity.to_string())
}

fn head_as(found: &Diagnostic, kind: &str) -> String {
    let kind = format!("{kind}[{}]", found.code);
    let place = line_of(found);
    if place.is_empty() { kind } else { format!("{kind} at {place}") }
}

/// The line of code that a finding is about, or its node where no line is known.
pub(crate) fn line_of(found: &Diagnostic) -> String {
    match (&found.place.file, found.place.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.clone(),
        (None, _) => found.place.node.clone().unwrap_or_default(),
    }
}
