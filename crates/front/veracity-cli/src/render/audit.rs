//! What a log says about a model, for a terminal and for a page.

use super::document::Document;
use super::style::{self, paint};
use super::table::{Column, Table};
use super::text::printable;
use crate::commands::audit::Answers;

/// The answers, in the order of the questions.
pub(crate) fn document(name: &str, answers: &Answers) -> Document {
    let report = &answers.report;
    let verdict = match report.explained {
        Some(true) => paint(style::GOOD, "explained byte for byte by its log"),
        Some(false) => paint(style::ERROR, "not what its log is about"),
        None => paint(style::GOOD, "the model that its log is about"),
    };
    let (before, after) = (report.nodes_before, report.nodes_after);
    let name = printable(name);
    let mut document = Document::new(name.as_ref());
    document.line(format!("{name}: {verdict}; {before} nodes became {after}"));
    for problem in &report.problems {
        document.line(format!("  {}", printable(problem)));
    }
    document.table(passes(answers), 0);
    for line in told(answers) {
        document.line(printable(&line));
    }
    document
}

fn passes(answers: &Answers) -> Table {
    let mut table = Table::new([
        Column::left("pass"),
        Column::left("class"),
        Column::right("rewrites"),
        Column::right("removed"),
        Column::right("added"),
        Column::right("changed"),
        Column::right("left alone"),
    ]);
    for pass in &answers.report.passes {
        if pass.rewrites + pass.declined + pass.rejected == 0 {
            continue;
        }
        let number = |count: usize| count.to_string().into();
        table.row([
            pass.pass.as_str().into(),
            pass.class.as_str().into(),
            number(pass.rewrites),
            number(pass.removed),
            number(pass.added),
            number(pass.changed),
            number(pass.declined),
        ]);
    }
    table
}

/// The answers to single questions, a line each.
fn told(answers: &Answers) -> Vec<String> {
    let mut lines = Vec::new();
    for touched in answers.touched.iter().flatten() {
        let parts = [("-", &touched.removed), ("+", &touched.added), ("~", &touched.changed)];
        let parts: Vec<String> = parts
            .iter()
            .flat_map(|(sign, names)| names.iter().map(move |name| format!("{sign}{name}")))
            .collect();
        lines.push(format!("rewrite {}: {}", touched.record, parts.join(" ")));
    }
    if let Some(node) = &answers.node {
        lines.push(format!("{} comes from {}", node.name, node.from.join(", ")));
        lines.extend(node.reasons.iter().map(|reason| format!("  {reason}")));
    }
    if let Some(value) = &answers.value {
        let records: Vec<String> = value.records.iter().map(ToString::to_string).collect();
        let by = if records.is_empty() {
            String::new()
        } else {
            format!(" (rewrites {})", records.join(", "))
        };
        lines.push(match &value.now {
            Some(now) => format!("{} is {now} now{by}", value.value),
            None => format!("{} is gone{by}", value.value),
        });
    }
    if let Some(declined) = &answers.why_not {
        if declined.is_empty() {
            lines.push("no pass saw a match there".to_owned());
        }
        lines.extend(declined.iter().map(|one| format!("{}: {}", one.pass, one.reason)));
    }
    lines
}
