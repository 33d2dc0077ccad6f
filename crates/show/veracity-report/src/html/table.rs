//! Tables that can be sorted, and filtered where there are controls.

use std::fmt::Write as _;

use veracity_results::Verdict;

use super::escape::escape;
use super::words::class;
use crate::drift::verdict;

/// The head of a column.
pub(super) struct Column {
    /// What it says.
    pub(super) title: &'static str,
    /// Whether it holds numbers, which are sorted as such, the largest first.
    pub(super) is_number: bool,
}

impl Column {
    pub(super) const fn text(title: &'static str) -> Self {
        Self { title, is_number: false }
    }

    pub(super) const fn number(title: &'static str) -> Self {
        Self { title, is_number: true }
    }
}

/// One cell.
pub(super) enum Cell {
    /// Words that are broken into lines.
    Text(String),
    /// The verdict in words, in its colour.
    State(String),
    /// Text that is not broken into lines.
    Short(String),
    /// Text in the letters of code.
    Code(String),
    /// A row of the page that says more, by its id, in the letters of code.
    Link(String, String),
    /// The end of a path in the letters of code; the whole is shown beside it.
    Path(String),
    /// A number, and how it is shown.
    Number(f64, String),
}

impl Cell {
    /// Whether there is anything to read.
    fn says(&self) -> bool {
        match self {
            Self::Text(text)
            | Self::State(text)
            | Self::Short(text)
            | Self::Code(text)
            | Self::Link(_, text)
            | Self::Path(text)
            | Self::Number(_, text) => !text.is_empty(),
        }
    }
}

/// One row.
pub(super) struct Row {
    /// Where links lead to, if they do; without spaces.
    pub(super) id: Option<String>,
    /// A word of ours that it can be filtered by and is coloured by.
    pub(super) verdict: Option<&'static str>,
    /// As many as there are columns.
    pub(super) cells: Vec<Cell>,
}

/// A table. One without rows is nothing; a column in which nothing stands is left out.
pub(super) fn table(id: &str, columns: &[Column], rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let says = |at: usize| rows.iter().any(|row| row.cells.get(at).is_some_and(Cell::says));
    let shown: Vec<bool> = (0..columns.len()).map(says).collect();
    let mut html = format!("<div class=\"scroll\">\n<table id=\"{id}\">\n<thead><tr>");
    for (column, _) in columns.iter().zip(&shown).filter(|(_, shown)| **shown) {
        let class = if column.is_number { " class=\"number\"" } else { "" };
        let title = escape(column.title);
        let _ =
            write!(html, "<th scope=\"col\"{class}><button type=\"button\">{title}</button></th>");
    }
    html += "</tr></thead>\n<tbody>\n";
    for row in rows {
        write_row(&mut html, row, &shown);
    }
    html + "</tbody>\n</table>\n</div>\n"
}

/// Fields to filter a table with: by words, of which `words` gives examples, and by verdict. Hidden
/// until the script is there to read them.
pub(super) fn controls(table: &str, words: &str) -> String {
    bar(table, words, &verdicts())
}

/// A field to filter a table with by words.
pub(super) fn search(table: &str, words: &str) -> String {
    bar(table, words, "")
}

/// Fields to filter a list with, and to put it in order: by what is known of each entry under a name,
/// which stands beside the words for it.
pub(super) fn list_controls(list: &str, words: &str, orders: &[(&str, &str)]) -> String {
    let mut html = verdicts() + "<label>Order <select class=\"order\">\n";
    for (name, label) in orders {
        let _ = writeln!(html, "<option value=\"{name}\">{label}</option>");
    }
    bar(list, words, &(html + "</select></label>\n"))
}

fn bar(target: &str, words: &str, more: &str) -> String {
    format!(
        "<div class=\"controls\" data-table=\"{target}\" hidden>\n<label>Filter <input type=\"search\" \
         placeholder=\"{}\"></label>\n{more}<output aria-live=\"polite\"></output>\n</div>\n",
        escape(words)
    )
}

fn verdicts() -> String {
    let mut html =
        String::from("<label>Verdict <select class=\"which\">\n<option value=\"\">all</option>\n");
    for each in [Verdict::Proved, Verdict::Conditional, Verdict::Disproved, Verdict::NotComparable]
    {
        let (value, label) = (class(each), verdict(each));
        let _ = writeln!(html, "<option value=\"{value}\">{label}</option>");
    }
    html + "</select></label>\n"
}

fn write_row(html: &mut String, row: &Row, shown: &[bool]) {
    html.push_str("<tr");
    if let Some(id) = &row.id {
        let _ = write!(html, " id=\"{}\"", escape(id));
    }
    if let Some(verdict) = row.verdict {
        let _ = write!(html, " data-verdict=\"{verdict}\"");
    }
    html.push('>');
    for (cell, _) in row.cells.iter().zip(shown).filter(|(_, shown)| **shown) {
        write_cell(html, cell);
    }
    html.push_str("</tr>\n");
}

fn write_cell(html: &mut String, cell: &Cell) {
    let _ = match cell {
        Cell::Text(text) => write!(html, "<td class=\"words\">{}</td>", escape(text)),
        Cell::State(text) => write!(html, "<td class=\"state short\">{}</td>", escape(text)),
        Cell::Short(text) => write!(html, "<td class=\"short\">{}</td>", escape(text)),
        Cell::Link(target, text) => {
            // Long names are broken between node and port.
            let (target, text) = (escape(target), escape(text).replace('/', "/<wbr>"));
            write!(html, "<td><a href=\"#{target}\"><code>{text}</code></a></td>")
        }
        Cell::Code(text) | Cell::Path(text) if text.is_empty() => write!(html, "<td></td>"),
        Cell::Code(text) => write!(html, "<td><code>{}</code></td>", escape(text)),
        Cell::Path(text) => {
            let (whole, end) = (escape(text), escape(end(text)));
            write!(html, "<td title=\"{whole}\"><code>{end}</code></td>")
        }
        Cell::Number(key, text) => {
            let (key, text) = (script_number(*key), escape(text));
            let quiet = if text == "0" { " quiet" } else { "" };
            write!(html, "<td class=\"number{quiet}\" data-key=\"{key}\">{text}</td>")
        }
    };
}

/// The last two parts of a path.
pub(super) fn end(path: &str) -> &str {
    let mut separators = path.rmatch_indices(['/', '\\']);
    separators.nth(1).map_or(path, |(at, _)| &path[at + 1..])
}

/// A number as the script reads it.
pub(super) fn script_number(value: f64) -> String {
    if value.is_finite() {
        format!("{value:e}")
    } else if value.is_nan() {
        "NaN".to_owned()
    } else if value > 0.0 {
        "Infinity".to_owned()
    } else {
        "-Infinity".to_owned()
    }
}
