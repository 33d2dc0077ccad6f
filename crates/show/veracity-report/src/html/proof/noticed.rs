//! What tracing noticed.

use std::fmt::Write as _;

use veracity_diag::{Diagnostic, Severity};
use veracity_results::{Proof, Verdict};

use super::super::escape::escape;
use super::super::table::{Cell, Column, Row, table};
use super::super::words::class;
use crate::text::line_of;

/// Every finding, the worst first.
pub(super) fn noticed(proof: &Proof) -> String {
    let mut found: Vec<&Diagnostic> = proof.findings.iter().collect();
    found.sort_by_key(|one| std::cmp::Reverse(one.severity));
    let rows: Vec<Row> = found.into_iter().map(|one| row(proof, one)).collect();
    let columns = ["severity", "code", "node", "line", "what", "what to try"].map(Column::text);
    table("noticed-table", &columns, &rows)
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
    Row { id: None, verdict: Some(class(rank(found.severity))), cells }
}

/// The verdict whose colour a finding has.
fn rank(severity: Severity) -> Verdict {
    match severity {
        Severity::Error => Verdict::Disproved,
        Severity::Warning => Verdict::NotComparable,
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
            class(rank(found.severity)),
            found.severity,
            found.code,
            escape(&line_of(found)),
            escape(&found.message),
        );
    }
    html
}
