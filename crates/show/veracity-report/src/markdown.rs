//! Markdown, for comments on changes and for wikis: text that is not meant as markup stays text.

mod proof;

use std::borrow::Cow;
use std::fmt::Write as _;

pub use proof::proof;

use crate::plain::printable;

/// Text that is not meant as markup and stays inside of a cell of a table.
pub fn prose(text: &str) -> Cow<'_, str> {
    let text = cell(text);
    if !text.contains(['<', '&', '[']) {
        return text;
    }
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '[' => safe.push_str("\\["),
            _ => safe.push(character),
        }
    }
    Cow::Owned(safe)
}

/// Text in the letters of code; nothing for none.
pub fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", cell(text)) }
}

/// Text that stays inside of a cell, and of a code span, of a table.
pub fn cell(text: &str) -> Cow<'_, str> {
    let text = printable(text);
    if !text.contains(['|', '`']) {
        return text;
    }
    Cow::Owned(text.replace('|', "\\|").replace('`', "'"))
}

/// A table. Heads are titles with whether their column holds numbers; cells are Markdown already.
pub fn table(heads: &[(&str, bool)], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let rule = |is_number: bool| if is_number { "---:" } else { "---" };
    let mut text = line(heads.iter().map(|(title, _)| *title).collect());
    let rules: Vec<&str> = heads.iter().map(|(_, is_number)| rule(*is_number)).collect();
    let _ = writeln!(text, "|{}|", rules.join("|"));
    text.extend(rows.iter().map(|row| line(row.iter().map(String::as_str).collect())));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        for (text, safe) in [
            ("layer1.0", "layer1.0"),
            ("a|b`c", "a\\|b'c"),
            ("<b> & [link](x)", "&lt;b> &amp; \\[link](x)"),
            ("a\nb", "a\\u{a}b"),
        ] {
            assert_eq!(prose(text), safe);
        }
        assert_eq!(code("a|b`c"), "`a\\|b'c`");
        assert_eq!(code(""), "");
    }

    #[test]
    fn a_table_has_heads_and_rules() {
        let rows = [vec!["x".to_owned(), "1".to_owned()]];
        let text = table(&[("name", false), ("size", true)], &rows);
        assert_eq!(text, "| name | size |\n|---|---:|\n| x | 1 |\n");
    }
}
