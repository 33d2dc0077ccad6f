//! Answers as a piece of a page, for `veracity view`.

use std::fmt::Write as _;

use anstream::adapter::strip_str;
use anstyle::Style;
use veracity::report::html::escape;

use super::super::style;
use super::super::table::{Row, Table};
use super::{Document, Part};

impl Document {
    /// The answer as HTML, without its title.
    pub(crate) fn html(&self) -> String {
        self.parts.iter().map(part).collect()
    }
}

fn part(part: &Part) -> String {
    match part {
        Part::Title(_) | Part::Section(_) | Part::Gap => String::new(),
        Part::Heading(title) => format!("<h3>{}</h3>\n", escape(title)),
        Part::Line(line) => format!("<p>{}</p>\n", escape(strip_str(line).to_string().trim())),
        Part::Table(table, _) => rows(table),
        Part::Finding(found) => {
            let words = std::iter::once(found.to_string()).chain(found.hints.iter().cloned());
            format!("<p>{}</p>\n", escape(&words.collect::<Vec<_>>().join("; ")))
        }
    }
}

fn rows(table: &Table) -> String {
    let columns = table.shown_columns();
    let kind = |index: usize| {
        if table.columns()[index].is_number() { " class=\"number\"" } else { "" }
    };
    let mut html = "<table>\n<thead><tr>".to_owned();
    for &index in &columns {
        let title = escape(table.columns()[index].title());
        let _ = write!(html, "<th{}>{title}</th>", kind(index));
    }
    html += "</tr></thead>\n<tbody>\n";
    for row in table.rows() {
        html += "<tr>";
        match row {
            Row::Cells(cells) => {
                for &index in &columns {
                    let cell = &cells[index];
                    let class = class(cell.style()).unwrap_or(kind(index));
                    let _ = write!(html, "<td{class}>{}</td>", escape(cell.text()));
                }
            }
            Row::Note(note) => {
                let _ = write!(html, "<td colspan=\"{}\">{}</td>", columns.len(), escape(note));
            }
        }
        html += "</tr>\n";
    }
    html + "</tbody>\n</table>\n"
}

/// What a colour means.
fn class(color: Style) -> Option<&'static str> {
    match color {
        style::ERROR => Some(" class=\"bad\""),
        style::WARNING => Some(" class=\"doubt\""),
        style::GOOD => Some(" class=\"good\""),
        _ => None,
    }
}
