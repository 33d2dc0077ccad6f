//! The text of a file, and how a position in it becomes a [`Place`].

use veracity_diag::{Diagnostic, Place, Result, Snippet, codes};

use super::MAX_FILE_BYTES;

/// A stretch of text. Everything counts characters; the line and column count from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) index: u32,
    pub(crate) length: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// How many characters lie between two entries of the offset table.
const STRIDE: usize = 256;

/// Longest line that a snippet shows in full, in characters.
const MAX_SNIPPET: usize = 120;

/// How much of a longer line is shown before the marked part.
const SNIPPET_LEAD: usize = 40;

/// The text of a file under the name that the user gave it.
#[derive(Debug)]
pub(crate) struct Source {
    name: String,
    text: String,
    /// Byte offset of every [`STRIDE`]th character: makes a snippet cheap however long the file.
    offsets: Vec<usize>,
}

impl Source {
    /// Takes the text of a file. A byte order mark is dropped: editors do not count it.
    pub(crate) fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let offsets = text.char_indices().step_by(STRIDE).map(|(offset, _)| offset).collect();
        Self { name: name.into(), text, offsets }
    }

    /// Takes the bytes of a file, which must be UTF-8.
    pub(crate) fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self> {
        String::from_utf8(bytes).map(|text| Self::new(name, text)).map_err(|error| {
            let offset = error.utf8_error().valid_up_to();
            let valid = String::from_utf8_lossy(&error.as_bytes()[..offset]).into_owned();
            let prefix = Self::new(name, valid);
            Diagnostic::error(
                codes::YAML_NOT_UTF8,
                format!("the file is not UTF-8 text (first bad byte at offset {offset})"),
            )
            .at(prefix.place(prefix.end()))
            .hint("bundles are written in UTF-8; was the file truncated or saved by an editor?")
            .into()
        })
    }

    /// Takes the bytes of a file, unless they are more than a description may take.
    pub(crate) fn within_limits(name: &str, bytes: Vec<u8>) -> Result<Self> {
        if bytes.len() as u64 > MAX_FILE_BYTES {
            let message = format!("the file is larger than {MAX_FILE_BYTES} bytes");
            let diagnostic = Diagnostic::error(codes::FILE_TOO_LARGE, message);
            return Err(diagnostic.at(Place::file(name)).into());
        }
        Self::from_bytes(name, bytes)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The file, without a position.
    pub(crate) fn file(&self) -> Place {
        Place::file(self.name.clone())
    }

    /// The place of a stretch of text, with a snippet of its line.
    pub(crate) fn place(&self, span: Span) -> Place {
        let mut place = self.file().with_position(span.line, span.column);
        place.snippet = Some(self.snippet(span));
        place
    }

    /// Where the text ends.
    fn end(&self) -> Span {
        let line_start = self.text.rfind(['\n', '\r']).map_or(0, |offset| offset + 1);
        // `\r\n` is one line break.
        let breaks = self.text.matches(['\n', '\r']).count() - self.text.matches("\r\n").count();
        let to_u32 = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Span {
            index: to_u32(self.text.chars().count()),
            length: 0,
            line: to_u32(breaks).saturating_add(1),
            column: to_u32(self.text[line_start..].chars().count()).saturating_add(1),
        }
    }

    fn snippet(&self, span: Span) -> Snippet {
        let (before, after) = self.text.split_at(self.offset(span.index as usize));
        let on_line = |character: &char| !matches!(character, '\n' | '\r');
        let mut lead: Vec<char> =
            before.chars().rev().take_while(on_line).take(MAX_SNIPPET + 1).collect();
        let mut rest: Vec<char> = after.chars().take_while(on_line).take(MAX_SNIPPET + 1).collect();
        if lead.len() + rest.len() > MAX_SNIPPET {
            clip(&mut lead, SNIPPET_LEAD);
            clip(&mut rest, MAX_SNIPPET - SNIPPET_LEAD);
        }
        let marked = (span.length as usize).min(rest.len()).max(1);
        Snippet {
            start: u32::try_from(lead.len()).unwrap_or(0),
            length: u32::try_from(marked).unwrap_or(1),
            // Terminals obey control characters; a snippet only shows them.
            text: lead
                .iter()
                .rev()
                .chain(&rest)
                .map(|&c| if c.is_control() { ' ' } else { c })
                .collect(),
        }
    }

    /// Byte offset of the character at `index`, or the end.
    fn offset(&self, index: usize) -> usize {
        let Some(&start) = self.offsets.get(index / STRIDE) else {
            return self.text.len();
        };
        self.text[start..]
            .char_indices()
            .nth(index % STRIDE)
            .map_or(self.text.len(), |(offset, _)| start + offset)
    }
}

/// Shortens a list of characters and marks the cut.
fn clip(characters: &mut Vec<char>, length: usize) {
    if characters.len() > length {
        characters.truncate(length - 1);
        characters.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(index: u32, line: u32, column: u32, length: u32) -> Span {
        Span { index, length, line, column }
    }

    #[test]
    fn a_snippet_is_the_line_with_the_part_marked() {
        let source = Source::new("f", "größe: 1\r\nname: Ωx\n");
        let snippet = source.place(span(16, 2, 7, 2)).snippet.unwrap();
        assert_eq!(snippet, Snippet { text: "name: Ωx".into(), start: 6, length: 2 });
    }

    #[test]
    fn a_long_line_is_clipped_around_the_part() {
        let text = format!("{}HERE{}", "é".repeat(5000), "z".repeat(5000));
        let snippet = Source::new("f", text).place(span(5000, 1, 5001, 4)).snippet.unwrap();
        assert_eq!(snippet.text.chars().count(), MAX_SNIPPET);
        let marked: String = snippet.text.chars().skip(snippet.start as usize).take(4).collect();
        assert_eq!((marked.as_str(), snippet.length), ("HERE", 4));
        assert!(snippet.text.starts_with('…') && snippet.text.ends_with('…'));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let snippet = Source::new("f", "a\u{1b}[31m\tb").place(span(0, 1, 1, 1)).snippet.unwrap();
        assert_eq!(snippet.text, "a [31m b");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused_with_their_offset() {
        let refusal = Source::from_bytes("f", b"a: \xc3\xa9\r\nb: \xff\n".to_vec()).unwrap_err();
        let finding = refusal.first_error();
        assert_eq!(finding.code, codes::YAML_NOT_UTF8);
        assert!(finding.message.contains("offset 10"), "{}", finding.message);
        assert_eq!((finding.place.line, finding.place.column), (Some(2), Some(4)));
    }
}
