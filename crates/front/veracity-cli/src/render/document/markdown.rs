//! Answers as Markdown: the one place of this tool that makes it.

use std::fmt::Write as _;

use anstream::adapter::strip_str;
use veracity::Diagnostic;
use veracity::report::markdown::{prose, table};

use super::super::table::{Row, Table};
use super::{Document, Part};

impl Document {
    /// The answer for a page of Markdown. Nothing is cut: pages have no width.
    pub(crate) fn markdown(&self) -> String {
        let parts = self.parts.iter().filter_map(part).collect::<Vec<_>>();
        parts.join("\n")
    }
}

fn part(part: &Part) -> Option<String> {
    Some(match part {
        Part::Title(title) => format!("# {}\n", prose(title)),
        Part::Section(title) | Part::Heading(title) => format!("## {}\n", prose(title)),
        Part::Line(line) => {
            let line = strip_str(line).to_string();
            format!("{}\n", prose(line.trim()))
        }
        Part::Table(shown, _) => rows(shown)?,
        Part::Finding(found) => finding(found),
        Part::Gap => return None,
    })
}

fn rows(shown: &Table) -> Option<String> {
    let columns = shown.shown_columns();
    let heads: Vec<(&str, bool)> = columns
        .iter()
        .map(|&index| (shown.columns()[index].title(), shown.columns()[index].is_number()))
        .collect();
    let (mut cells, mut notes, mut last) = (Vec::new(), String::new(), String::new());
    for row in shown.rows() {
        match row {
            Row::Cells(row) => {
                let row: Vec<String> =
                    columns.iter().map(|&index| prose(row[index].text()).into()).collect();
                last = row.first().cloned().unwrap_or_default();
                cells.push(row);
            }
            Row::Note(note) => {
                let _ = writeln!(notes, "- {last}: {}", prose(note));
            }
        }
    }
    let gap = if notes.is_empty() { "" } else { "\n" };
    (!cells.is_empty()).then(|| format!("{}{gap}{notes}", table(&heads, &cells)))
}

fn finding(found: &Diagnostic) -> String {
    let mut text = format!("- {}\n", prose(&found.to_string()));
    for hint in &found.hints {
        let _ = writeln!(text, "  - hint: {}", prose(hint));
    }
    text
}
