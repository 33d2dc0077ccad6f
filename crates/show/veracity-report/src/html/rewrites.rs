//! A transformation as a page: what was done to a model, rewrite by rewrite, and what is known of each.

mod list;
mod repeat;
mod tables;
mod window;

use std::fmt::Write as _;

use veracity_results::{NodeRecord, Proof, RewriteChecks, RewriteLog, Verdict};

use super::escape::escape;
use super::graph::Drawing;
use super::shell::Shell;
use super::words::{banner, class};
use crate::drift::verdict;
use crate::plain::count;
use crate::rewrites::words::answer;

/// What was done to one model.
#[derive(Clone, Copy, Debug)]
pub struct Rewritten<'r> {
    /// What the model is called.
    pub name: &'r str,
    /// What was done.
    pub log: &'r RewriteLog,
    /// What checking it showed, if it was checked.
    pub checks: Option<&'r RewriteChecks>,
    /// Pictures of what was replaced by what.
    pub windows: &'r Windows,
}

/// Pictures of rewrites. Those of the same shape share one.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    /// The pictures.
    pub shapes: Vec<Drawing>,
    /// One for each rewrite.
    pub rewrites: Vec<Window>,
}

/// What a rewrite replaced by what: nodes that went and came, and both forms of those that changed.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The nodes before.
    pub before: Vec<NodeRecord>,
    /// The nodes after.
    pub after: Vec<NodeRecord>,
    /// The pictures of both, by number, where there is one.
    pub shapes: (Option<usize>, Option<usize>),
}

/// A transformation as one HTML file.
pub fn rewrites(of: &Rewritten<'_>) -> String {
    let (class, sentence) = answered(of);
    let head = banner(class, &sentence) + &notes(of);
    let mut page = Shell::new(&format!("Transformation: {}", of.name), &head);
    for (id, title, content) in parts(of, "") {
        page.section(id, title, &content);
    }
    page.finish()
}

/// A bundle whose models were changed: the proof of the new one, then what was done to each model.
pub fn rewritten_bundle(
    proof: &Proof,
    drawing: Option<&Drawing>,
    nodes: &[Rewritten<'_>],
) -> String {
    let mut page = super::proof::page(proof, drawing);
    for (index, node) in nodes.iter().enumerate() {
        let prefix = format!("model-{}-", index + 1);
        let (class, sentence) = answered(node);
        let mut html = format!("<p class=\"{class}\">{}.</p>\n{}", escape(&sentence), notes(node));
        for (_, title, content) in parts(node, &prefix) {
            if !content.is_empty() {
                let _ = write!(html, "<h3>{}</h3>\n{content}", escape(title));
            }
        }
        page.section(&format!("{prefix}changes"), &format!("Changes of {}", node.name), &html);
    }
    page.finish()
}

/// The sections. Ids inside of them begin with `prefix`.
fn parts(of: &Rewritten<'_>, prefix: &str) -> [(&'static str, &'static str, String); 6] {
    [
        ("passes", "Passes", tables::passes(of, prefix)),
        ("rewrites", "Rewrites", list::list(of, prefix)),
        ("taken-back", "Taken back", tables::taken_back(of, prefix)),
        ("outputs", "Outputs", tables::outputs(of, prefix)),
        ("declined", "Left alone", tables::declined(of, prefix)),
        ("repeat", "How to repeat", repeat::repeat(of)),
    ]
}

/// The answer and how much it covers, as a class and a sentence without a full stop.
fn answered(of: &Rewritten<'_>) -> (&'static str, String) {
    let Rewritten { log, checks, .. } = of;
    let change = answer(log, *checks);
    if log.records.is_empty() && log.rejected.is_empty() {
        return ("proved", format!("Unchanged: {change}"));
    }
    let rewrites = count(log.records.len(), "rewrite");
    let Some(checks) = checks else {
        let sentence = format!("Not checked: nothing is known about {rewrites}; {change}");
        return (class(Verdict::NotComparable), sentence);
    };
    let coverage = checks.coverage;
    let mut sentence =
        format!("{}: {} of {rewrites} proved", verdict(checks.verdict), coverage.proved);
    for (amount, what) in [
        (coverage.disproved, "disproved"),
        (coverage.not_comparable, "not comparable"),
        (log.rejected.len(), "taken back"),
    ] {
        if amount > 0 {
            let _ = write!(sentence, ", {amount} {what}");
        }
    }
    (class(checks.verdict), format!("{sentence}, on the inputs that were tried; {change}"))
}

fn notes(of: &Rewritten<'_>) -> String {
    let limit = (!of.log.settled).then_some("a limit ended it: another run would find more");
    let notes = of.checks.into_iter().flat_map(|checks| checks.notes.iter().map(String::as_str));
    let lines = limit.into_iter().chain(notes).fold(String::new(), |mut lines, note| {
        let _ = writeln!(lines, "<li>{}</li>", escape(note));
        lines
    });
    if lines.is_empty() { lines } else { format!("<ul>\n{lines}</ul>\n") }
}
