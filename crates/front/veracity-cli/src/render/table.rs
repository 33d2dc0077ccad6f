//! Tables without borders that fit the width they are given.

use anstyle::Style;

use super::style;
use super::text::{clip, clip_middle, columns, printable, wrapped};

/// Space between two columns.
const GAP: usize = 2;

/// Columns that a flexible column keeps when space is short.
const MIN_FLEXIBLE: usize = 8;

/// One column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    title: &'static str,
    is_right: bool,
    cut: Cut,
}

/// What becomes of a column when space is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// It stays as it is.
    Never,
    /// It loses its end.
    End,
    /// It loses its middle.
    Middle,
}

impl Column {
    /// Text, which starts in the same place.
    pub(crate) const fn left(title: &'static str) -> Self {
        Self { title, is_right: false, cut: Cut::Never }
    }

    /// Numbers, which end in the same place.
    pub(crate) const fn right(title: &'static str) -> Self {
        Self { title, is_right: true, cut: Cut::Never }
    }

    /// May be cut when space is short.
    pub(crate) const fn flexible(mut self) -> Self {
        self.cut = Cut::End;
        self
    }

    /// Paths and names of ports, whose ends tell them apart: cut in the middle when space is short.
    pub(crate) const fn path(mut self) -> Self {
        self.cut = Cut::Middle;
        self
    }

    /// What stands above it.
    pub(crate) const fn title(&self) -> &'static str {
        self.title
    }

    /// Whether it holds numbers.
    pub(crate) const fn is_number(&self) -> bool {
        self.is_right
    }
}

/// One cell. Its text is made fit for a terminal.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a colour.
    pub(crate) fn styled(style: Style, text: &str) -> Self {
        Self { text: printable(text).into_owned(), style }
    }

    /// What it says.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Its colour.
    pub(crate) fn style(&self) -> Style {
        self.style
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(Style::new(), text.as_ref())
    }
}

/// Rows under titles.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

/// One row.
#[derive(Debug)]
pub(crate) enum Row {
    /// A cell for each column.
    Cells(Vec<Cell>),
    /// Text across all columns, about the row above.
    Note(String),
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row, one cell for each column.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        let cells = cells.into();
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push(Row::Cells(cells));
    }

    /// Adds text about the row above.
    pub(crate) fn note(&mut self, text: &str) {
        self.rows.push(Row::Note(printable(text).into_owned()));
    }

    /// Its columns.
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Its rows.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Columns that have a value, by number.
    pub(crate) fn shown_columns(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|&index| self.natural_width(index) > 0).collect()
    }

    /// The table, indented, with a line break at its end. Columns without a single value are left
    /// out. Flexible columns are cut until the table fits; if that is not enough, it does not fit.
    pub(crate) fn render(&self, indent: usize, width: usize) -> String {
        let widths = self.widths(width.saturating_sub(indent));
        let titles: Vec<Cell> =
            self.columns.iter().map(|column| Cell::styled(style::FAINT, column.title)).collect();
        let mut text = String::new();
        self.render_cells(&titles, &widths, indent, &mut text);
        for row in &self.rows {
            match row {
                Row::Cells(cells) => self.render_cells(cells, &widths, indent, &mut text),
                Row::Note(note) => text += &wrapped(&format!("{:indent$}  {note}", ""), width),
            }
        }
        text
    }

    fn render_cells(&self, cells: &[Cell], widths: &[usize], indent: usize, text: &mut String) {
        let mut line = " ".repeat(indent);
        let mut pending = 0;
        for ((cell, column), &width) in cells.iter().zip(&self.columns).zip(widths) {
            if width == 0 {
                continue;
            }
            let clipped = match column.cut {
                Cut::Middle => clip_middle(&cell.text, width),
                Cut::End | Cut::Never => clip(&cell.text, width),
            };
            let free = width - columns(&clipped);
            let (before, after) = if column.is_right { (free, 0) } else { (0, free) };
            line.push_str(&" ".repeat(pending + before));
            if !clipped.is_empty() {
                line.push_str(&style::paint(cell.style, &clipped));
            }
            pending = after + GAP;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }

    fn widths(&self, available: usize) -> Vec<usize> {
        let mut widths: Vec<usize> =
            (0..self.columns.len()).map(|index| self.natural_width(index).min(available)).collect();
        let used = |widths: &[usize]| {
            let shown = widths.iter().filter(|&&width| width > 0);
            shown.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
        };
        while used(&widths) > available {
            let flexible = self.columns.iter().zip(&mut widths);
            let widest = flexible
                .filter(|(column, width)| column.cut != Cut::Never && **width > MIN_FLEXIBLE)
                .map(|(_, width)| width)
                .max();
            match widest {
                Some(width) => *width -= 1,
                None => break,
            }
        }
        widths
    }

    /// The width that shows everything; 0 when there is nothing to show.
    fn natural_width(&self, index: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => cells.get(index),
            Row::Note(_) => None,
        });
        let widest = cells.map(|cell| columns(&cell.text)).max().unwrap_or(0);
        if widest == 0 { 0 } else { widest.max(columns(self.columns[index].title)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            Column::left("name").flexible(),
            Column::right("size"),
            Column::left("unused"),
            Column::left("elements").flexible(),
        ]);
        table.row(["obs", "4", "", "hip, knee, ankle, shoulder, elbow, wrist"].map(Cell::from));
        table.note("about obs");
        table.row(["关节位置", "1200", "", ""].map(Cell::from));
        table
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_table_lines_up() {
        insta::assert_snapshot!(plain(&table().render(2, 80)), @"
        name      size  elements
        obs          4  hip, knee, ankle, shoulder, elbow, wrist
          about obs
        关节位置  1200
        ");
    }

    #[test]
    fn a_table_is_cut_to_its_width() {
        let text = plain(&table().render(2, 40));
        assert!(text.lines().all(|line| columns(line) <= 40), "{text}");
        insta::assert_snapshot!(text, @"
        name      size  elements
        obs          4  hip, knee, ankle, sho…
          about obs
        关节位置  1200
        ");
    }
}
