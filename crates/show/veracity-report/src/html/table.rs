//! Tables that can be sorted, and filtered where there are controls.

use std::fmt::Write as _;

use super::escape::escape;

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
    /// Text.
    Text(String),
    /// Text in the letters of code.
    Code(String),
    /// The end of a path in the letters of code; the whole is shown beside it.
    Path(String),
    /// A number, and how it is shown.
    Number(f64, String),
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

/// A table. One without rows is nothing.
pub(super) fn table(id: &str, columns: &[Column], rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut html = format!("<div class=\"scroll\">\n<table id=\"{id}\">\n<thead><tr>");
    for column in columns {
        let class = if column.is_number { " class=\"number\"" } else { "" };
        let title = escape(column.title);
        let _ =
            write!(html, "<th scope=\"col\"{class}><button type=\"button\">{title}</button></th>");
    }
    html += "</tr></thead>\n<tbody>\n";
    for row in rows {
        write_row(&mut html, row);
    }
    html + "</tbody>\n</table>\n</div>\n"
}

/// Fields to filter a table with. Hidden until the script is there to read them.
pub(super) fn controls(table: &str, verdicts: &[(&str, &str)]) -> String {
    let mut html = format!(
        "<div class=\"controls\" data-table=\"{table}\" hidden>\n<label>Filter <input type=\"search\" \
         placeholder=\"name, operator, module, line\"></label>\n<label>Verdict <select>\n\
         <option value=\"\">all</option>\n"
    );
    for (value, label) in verdicts {
        let (value, label) = (escape(value), escape(label));
        let _ = writeln!(html, "<option value=\"{value}\">{label}</option>");
    }
    html + "</select></label>\n<output aria-live=\"polite\"></output>\n</div>\n"
}

fn write_row(html: &mut String, row: &Row) {
    html.push_str("<tr");
    if let Some(id) = &row.id {
        let _ = write!(html, " id=\"{}\"", escape(id));
    }
    if let Some(verdict) = row.verdict {
        let _ = write!(html, " data-verdict=\"{verdict}\"");
    }
    html.push('>');
    row.cells.iter().for_each(|cell| write_cell(html, cell));
    html.push_str("</tr>\n");
}

fn write_cell(html: &mut String, cell: &Cell) {
    let _ = match cell {
        Cell::Text(text) => write!(html, "<td>{}</td>", escape(text)),
        Cell::Code(text) | Cell::Path(text) if text.is_empty() => write!(html, "<td></td>"),
        Cell::Code(text) => write!(html, "<td><code>{}</code></td>", escape(text)),
        Cell::Path(text) => {
            let (whole, end) = (escape(text), escape(end(text)));
            write!(html, "<td title=\"{whole}\"><code>{end}</code></td>")
        }
        Cell::Number(key, text) => {
            let (key, text) = (script_number(*key), escape(text));
            write!(html, "<td class=\"number\" data-key=\"{key}\">{text}</td>")
        }
    };
}

/// The last two parts of a path.
fn end(path: &str) -> &str {
    let mut separators = path.rmatch_indices(['/', '\\']);
    separators.nth(1).map_or(path, |(at, _)| &path[at + 1..])
}

/// A number as the script reads it.
fn script_number(value: f64) -> String {
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
