//! A proof as a page.

mod checks;
mod nodes;
mod noticed;
mod repeat;
mod spread;
mod time;

use std::fmt::Write as _;

use veracity_results::{Coverage, Origin, Proof, Verdict};

use super::escape::escape;
use super::graph::{Drawing, graph};
use super::shell::Shell;
use super::words::{banner, class};
use crate::plain::count;
use crate::text::{row_text, why_unknown};

/// Findings that are shown in full; the table has all of them.
const MOST_FINDINGS: usize = 20;

/// A proof as one HTML file, with a drawing of its bundle where there is one.
pub fn proof(proof: &Proof, drawing: Option<&Drawing>) -> String {
    page(proof, drawing).finish()
}

/// The same, to which something can be added.
pub(super) fn page(proof: &Proof, drawing: Option<&Drawing>) -> Shell {
    let mut page = Shell::new(&format!("Proof: {}", proof.subject.bundle), &head(proof));
    let place = |node: &str| proof.nodes.iter().position(|one| one.node == node).map(nodes::id);
    let drawn = drawing.map_or_else(String::new, |drawing| graph(drawing, place));
    page.section("pipeline", "Pipeline", &drawn);
    page.section("findings", "Not proved", &findings(proof));
    page.section("assumptions", "Assumptions", &noticed::assumptions(proof));
    page.section("noticed", "What tracing noticed", &noticed::noticed(proof));
    page.section("checks", "Ports", &checks::checks(proof));
    page.section("spread", "Spread of errors", &spread::spread(proof));
    page.section("time", "Error over time", &time::over_time(proof));
    page.section("nodes", "Nodes", &nodes::nodes(proof));
    page.section("inputs", "Inputs", &nodes::inputs(proof));
    page.section("repeat", "How to repeat", &repeat::repeat(proof));
    page
}

fn head(proof: &Proof) -> String {
    let mut html = banner(class(proof.verdict), &sentence(proof));
    if proof.reference.origin == Origin::Runtime {
        html += "<p>The recorded values are those of the bundle itself: this shows that runs repeat, \
                 and nothing about the Python code.</p>\n";
    }
    for advice in &proof.advice {
        let _ = writeln!(html, "<p>Advice: {}.</p>", escape(advice.trim_end_matches('.')));
    }
    html
}

/// The answer, and that tracing noticed something, as a sentence without a full stop.
fn sentence(proof: &Proof) -> String {
    match proof.other_warnings() {
        0 => verdict_line(proof),
        warnings => format!("{}; {}", verdict_line(proof), count(warnings, "warning")),
    }
}

/// The answer and how much it covers.
fn verdict_line(proof: &Proof) -> String {
    let Coverage { proved, conditional, disproved, not_comparable } = proof.coverage;
    let all = proof.coverage.all();
    let checks = count(all, "check");
    let against = match proof.reference.origin {
        Origin::Python => "what the Python code computed",
        Origin::Runtime => "an earlier run of the bundle",
        Origin::Nothing => "nothing",
    };
    let nodes = count(proof.nodes.len(), "node");
    let ticks = match proof.rollout.verdict {
        Some(_) => format!("and {} of the whole", count(proof.rollout.ticks, "tick")),
        None => "without a run of the whole over time".to_owned(),
    };
    let passes = match proof.passes_kept() {
        Some((kept, seen)) => format!(": {kept} of {seen} recorded passes were kept"),
        None => String::new(),
    };
    let rest = |amount: usize, what: &str| match amount {
        0 => String::new(),
        _ => format!(", {amount} {what}"),
    };
    match proof.verdict {
        Verdict::Proved => format!(
            "Proved: all {checks} of {nodes} {ticks} are within their tolerance of {against}, on the \
             inputs that were tried{passes}"
        ),
        Verdict::Conditional => format!(
            "Conditional: all {checks} of {nodes} {ticks} are within their tolerance of {against}, on \
             the inputs that were tried{passes}, under {}",
            count(proof.assumptions.len(), "assumption")
        ),
        Verdict::Disproved => format!(
            "Disproved: {disproved} of {checks} failed{}{}{}",
            rest(proved, "proved"),
            rest(conditional, "conditional"),
            rest(not_comparable, "not comparable")
        ),
        Verdict::NotComparable if all == 0 => "Not comparable: nothing was compared".to_owned(),
        Verdict::NotComparable => format!(
            "Not comparable: {not_comparable} of {checks} could not be made{}{}, and nothing is \
             known to be wrong",
            rest(proved, "proved"),
            rest(conditional, "conditional")
        ),
    }
}

/// What is wrong and what is not known, the worst first, as on the command line.
fn findings(proof: &Proof) -> String {
    let mut html = String::new();
    let mut rows: Vec<_> = proof.rows().into_iter().enumerate().collect();
    rows.retain(|(_, row)| !row.verdict.holds() || row.is_unstable());
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.verdict));
    for (index, row) in rows.iter().take(MOST_FINDINGS) {
        let text = match row.verdict {
            Verdict::Disproved => row_text(proof, row),
            _ => why_unknown(row),
        };
        let _ = writeln!(
            html,
            "<h3 class=\"{}\"><a href=\"#{}\">{}</a>{}</h3>\n<pre>{}</pre>",
            class(row.verdict),
            checks::id(*index),
            escape(row.name),
            if row.is_rollout() { " over time" } else { "" },
            lines(&text)
        );
    }
    if let Some(more @ 1..) = rows.len().checked_sub(MOST_FINDINGS) {
        let _ = writeln!(html, "<p>{more} more are in the table below.</p>");
    }
    html
}

/// Text of several lines.
fn lines(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().map(escape).collect();
    lines.join("\n")
}
