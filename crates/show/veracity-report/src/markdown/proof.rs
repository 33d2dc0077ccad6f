//! A proof as Markdown: the answer, every port worst first, how far it reaches.

use std::cmp::Reverse;
use std::fmt::Write as _;

use veracity_diag::Diagnostic;
use veracity_results::{
    Coverage, Measurement, Origin, Part, PortProof, Proof, ProofRow, Tolerance, Verdict,
};

use super::{code, prose, table};
use crate::drift::verdict;
use crate::plain::{count, exact, number};
use crate::text::{line_of, why_unknown};

/// Rows of the table; the worst come first.
const MOST_ROWS: usize = 50;

/// A proof as Markdown.
pub fn proof(proof: &Proof) -> String {
    let Coverage { proved, conditional, disproved, not_comparable } = proof.coverage;
    let mut text = format!("# Proof: {}\n\n", prose(&proof.subject.bundle));
    let some = |amount: usize, noun: &str| match amount {
        0 => String::new(),
        amount => format!(", {}", count(amount, noun)),
    };
    let doubts =
        some(proof.assumptions.len(), "assumption") + &some(proof.other_warnings(), "warning");
    let conditional = match conditional {
        0 => String::new(),
        amount => format!(", {amount} conditional"),
    };
    let _ = writeln!(
        text,
        "**{}**: {proved} proved{conditional}, {disproved} disproved, {not_comparable} not \
         comparable{doubts}\n",
        verdict(proof.verdict)
    );
    text += &rows(proof);
    text += &over_time(proof);
    text += &recording(proof);
    if proof.reference.origin == Origin::Runtime {
        text += "- the recorded values are those of the bundle itself: this shows that runs repeat, \
                 and nothing about the Python code\n";
    }
    for advice in &proof.advice {
        let _ = writeln!(text, "- advice: {}", prose(advice));
    }
    for session in &proof.environment.sessions {
        let engine = format!("{} {} ({})", session.engine, session.engine_version, session.device);
        let _ = writeln!(text, "- {} ran on {}", code(&session.node), prose(&engine));
    }
    text
}

/// Passes that were not kept, and what tracing noticed.
fn recording(proof: &Proof) -> String {
    let mut text = String::new();
    for node in &proof.nodes {
        if let Some((kept, seen)) = node.passes_kept() {
            let _ = writeln!(
                text,
                "- {}: {kept} of {seen} recorded passes were kept",
                code(&node.node)
            );
        }
    }
    for found in &proof.assumptions {
        let _ = writeln!(text, "- assumption {}", said(found));
        for hint in &found.hints {
            let _ = writeln!(text, "  - settled by: {}", prose(hint));
        }
    }
    for found in proof.untold_findings() {
        let _ = writeln!(text, "- {} {}", found.severity, said(found));
    }
    text
}

/// Code, line and message of a finding.
fn said(found: &Diagnostic) -> String {
    let place = match line_of(found) {
        place if place.is_empty() => place,
        place => format!(" at {}", code(&place)),
    };
    format!("{}{place}: {}", found.code, prose(&found.message))
}

fn rows(proof: &Proof) -> String {
    let mut rows = proof.rows();
    if rows.is_empty() {
        return "Nothing was compared.\n\n".to_owned();
    }
    rows.sort_by_key(|row| Reverse((row.verdict, error_bits(row))));
    let heads = [
        ("port", false),
        ("where", false),
        ("verdict", false),
        ("largest error", true),
        ("outside", true),
        ("tolerance", false),
        ("why", false),
    ];
    let cells: Vec<Vec<String>> = rows.iter().take(MOST_ROWS).map(cells).collect();
    let more = match rows.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!("\n… and {more} more\n"),
    };
    format!("{}{more}\n", table(&heads, &cells))
}

fn cells(row: &ProofRow<'_>) -> Vec<String> {
    let measured = measured(row);
    let outside: u64 = measured.iter().map(|found| found.outside).sum();
    let elements: u64 = measured.iter().map(|found| found.elements).sum();
    let (error, outside) = if measured.is_empty() {
        (String::new(), String::new())
    } else {
        (number(f64::from_bits(error_bits(row))), format!("{outside} of {elements}"))
    };
    let why = if row.verdict == Verdict::Proved && !row.is_unstable() {
        String::new()
    } else if row.verdict == Verdict::Disproved {
        row.reasons().first().map_or_else(String::new, |reason| prose(&reason.message).into())
    } else {
        prose(&why_unknown(row)).into()
    };
    let place = if row.is_rollout() { "over time" } else { "alone" };
    let judged = tolerance(row).map_or_else(String::new, |tolerance| {
        format!("atol {}, rtol {}", exact(tolerance.atol()), exact(tolerance.rtol()))
    });
    let verdict = verdict(row.verdict).to_owned();
    vec![code(row.name), place.to_owned(), verdict, error, outside, judged, why]
}

fn measured<'p>(row: &ProofRow<'p>) -> Vec<&'p Measurement> {
    let samples = |port: &'p PortProof| {
        port.samples.iter().filter_map(|sample| sample.measurement.as_ref()).collect()
    };
    match row.part {
        Part::Port(_, port) => samples(port),
        Part::RolloutPort(_, port) => vec![&port.measurement],
        Part::Node(_) | Part::Rollout(_) => Vec::new(),
    }
}

/// The largest error, whose bits are ordered as it is not negative.
fn error_bits(row: &ProofRow<'_>) -> u64 {
    measured(row).iter().map(|found| found.max_abs).fold(0.0, f64::max).to_bits()
}

fn tolerance(row: &ProofRow<'_>) -> Option<Tolerance> {
    match row.part {
        Part::Port(_, port) => Some(port.tolerance),
        Part::RolloutPort(_, port) => Some(port.tolerance),
        Part::Node(_) | Part::Rollout(_) => None,
    }
}

fn over_time(proof: &Proof) -> String {
    let rollout = &proof.rollout;
    let mut text = match rollout.verdict {
        None => "- not run over time".to_owned(),
        Some(found) => format!("- over time: {}, {}", verdict(found), count(rollout.ticks, "tick")),
    };
    if let Some(first) = &rollout.first_divergence {
        let _ =
            write!(text, "; leaves the episode at tick {} in {}", first.tick, code(&first.port));
    }
    for reason in &rollout.reasons {
        let _ = write!(text, "; {}", prose(&reason.message));
    }
    text + "\n"
}
