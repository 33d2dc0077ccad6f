//! An answer before it is known who reads it: a terminal, a page of Markdown, a browser.
//!
//! Everything that a command says about its own findings goes through here, so that no form says less
//! than another. Reports that have their own forms are made elsewhere.

mod html;
mod markdown;

use std::fmt::Write as _;

use veracity::Diagnostic;

use super::diagnostic;
use super::style::{self, paint};
use super::table::Table;
use super::text::wrapped;

/// An answer that grows part by part.
#[derive(Debug, Default)]
pub(crate) struct Document {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Title(String),
    /// A heading where the title is that of something else.
    Section(String),
    Heading(String),
    /// Text in a line of its own, with colours.
    Line(String),
    Table(Table, usize),
    Finding(Diagnostic),
    Gap,
}

impl Document {
    /// An answer with a title, for readers who do not see the command.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { parts: vec![Part::Title(title.into())] }
    }

    /// An answer below another one, which has the title.
    pub(crate) fn below(title: impl Into<String>) -> Self {
        Self { parts: vec![Part::Section(title.into())] }
    }

    /// The name of what follows.
    pub(crate) fn heading(&mut self, title: impl Into<String>) {
        self.parts.push(Part::Heading(title.into()));
    }

    /// A line, which may be painted. Its text is fit for a terminal.
    pub(crate) fn line(&mut self, text: impl Into<String>) {
        self.parts.push(Part::Line(text.into()));
    }

    /// A table, moved in by so many columns.
    pub(crate) fn table(&mut self, table: Table, indent: usize) {
        self.parts.push(Part::Table(table, indent));
    }

    /// A finding in full.
    pub(crate) fn finding(&mut self, found: &Diagnostic) {
        self.parts.push(Part::Finding(found.clone()));
    }

    /// An empty line, where there are lines.
    pub(crate) fn gap(&mut self) {
        self.parts.push(Part::Gap);
    }

    /// The answer for a terminal of so many columns.
    pub(crate) fn text(&self, width: usize) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                // The command stands right above.
                Part::Title(_) | Part::Section(_) => {}
                Part::Heading(title) => {
                    let _ = writeln!(text, "\n{}", paint(style::HEADING, title));
                }
                Part::Line(line) => text += &wrapped(line, width),
                Part::Table(table, indent) => text += &table.render(*indent, width),
                Part::Finding(found) => text += &diagnostic::render(found, width),
                Part::Gap => text.push('\n'),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use veracity::codes;

    use super::super::table::{Cell, Column};
    use super::*;

    fn document() -> Document {
        let mut document = Document::new("Bundle <a|b>");
        document.line(paint(style::GOOD, "sound: 3 files"));
        document.heading("files");
        let mut table = Table::new([Column::left("file"), Column::right("size")]);
        table.row([Cell::styled(style::ERROR, "a|<b>"), Cell::from("4")]);
        table.note("worst at [0]");
        document.table(table, 2);
        document.gap();
        let found = Diagnostic::error(codes::YAML_SYNTAX, "ends <early>").hint("close it");
        document.finding(&found);
        document
    }

    #[test]
    fn every_form_says_the_same() {
        let text = strip_str(&document().text(80)).to_string();
        insta::assert_snapshot!(text, @"
        sound: 3 files

        files
          file   size
          a|<b>     4
            worst at [0]

        error[VER0101]: ends <early>
          = hint: close it
        ");
        insta::assert_snapshot!(document().markdown(), @r"
        # Bundle &lt;a\|b>

        sound: 3 files

        ## files

        | file | size |
        |---|---:|
        | a\|&lt;b> | 4 |

        - a\|&lt;b>: worst at \[0]

        - error\[VER0101]: ends &lt;early>
          - hint: close it
        ");
        insta::assert_snapshot!(document().html(), @r#"
        <p>sound: 3 files</p>
        <h3>files</h3>
        <table>
        <thead><tr><th>file</th><th class="number">size</th></tr></thead>
        <tbody>
        <tr><td class="bad">a|&lt;b&gt;</td><td class="number">4</td></tr>
        <tr><td colspan="2">worst at [0]</td></tr>
        </tbody>
        </table>
        <p>error[VER0101]: ends &lt;early&gt;; close it</p>
        "#);
    }
}
