//! What tracing noticed.

use std::fmt::Write as _;

use veracity_diag::{Diagnostic, Severity};
use veracity_results::{NodeProof, Proof, Verdict};

use super::super::escape::escape;
use super::super::table::{Cell, Column, Row, table};
use super::super::words::class;
use crate::text::line_of;

/// What the verdict rests on, and what would settle it.
pub(super) fn assumptions(proof: &Proof) -> String {
    let rows: Vec<Row> = proof.assumptions.iter().map(|one| row(proof, one)).collect();
    let mut columns = columns();
    columns[5] = Column::text("what would settle it");
    table("assumptions-table", &columns, &rows)
}

fn columns() -> [Column; 6] {
    ["severity", "code", "node", "line", "what", "what to try"].map(Column::text)
}

/// Every finding that is no assumption, the worst first.
pub(super) fn noticed(proof: &Proof) -> String {
    let is_other = |found: &&Diagnostic| !proof.assumptions.contains(found);
    let mut found: Vec<&Diagnostic> = proof.findings.iter().filter(is_other).collect();
    found.sort_by_key(|one| std::cmp::Reverse(one.severity));
    let rows: Vec<Row> = found.into_iter().map(|one| row(proof, one)).collect();
    table("noticed-table", &columns(), &rows)
}

fn row(proof: &Proof, found: &Diagnostic) -> Row {
    let name = found.place.node.clone().unwrap_or_default();
    let node = match proof.nodes.iter().position(|node| node.node == name) {
        Some(index) => Cell::Link(super::nodes::id(index), name),
        None => Cell::Code(name),
    };
    let line = if found.place.file.is_some() { line_of(found) } else { String::new() };
    let cells = vec![
        Cell::Short(found.severity.to_string()),
        Cell::Code(found.code.to_string()),
        node,
        Cell::Code(line),
        Cell::Text(found.message.clone()),
        Cell::Text(found.hints.join("; ")),
    ];
    Row { id: None, verdict: Some(class(rank(found))), cells }
}

/// The verdict whose colour a finding has.
fn rank(found: &Diagnostic) -> Verdict {
    match found.severity {
        _ if found.is_assumption() => Verdict::Conditional,
        Severity::Error => Verdict::Disproved,
        Severity::Warning | Severity::Note => Verdict::NotComparable,
    }
}

/// The findings about a node that are none of its reasons, a paragraph each.
pub(super) fn of_node(proof: &Proof, node: &str) -> String {
    let mut html = String::new();
    let mut untold = proof.untold_findings();
    untold.retain(|found| found.place.node.as_deref() == Some(node));
    for found in untold {
        let _ = writeln!(
            html,
            "<p><span class=\"{}\">{} {}</span> {}: {}</p>",
            class(rank(found)),
            found.severity,
            found.code,
            escape(&line_of(found)),
            escape(&found.message),
        );
    }
    html
}

/// The assumptions of a node, a paragraph each.
pub(super) fn assumptions_of(node: &NodeProof) -> String {
    let mut html = String::new();
    for found in &node.assumptions {
        let _ = writeln!(
            html,
            "<p><span class=\"{}\">assumption {}</span> {}: {}</p>",
            class(Verdict::Conditional),
            found.code,
            escape(&line_of(found)),
            escape(&found.message),
        );
    }
    html
}
