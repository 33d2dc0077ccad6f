//! Lines that keep to a width.

use unicode_width::UnicodeWidthStr as _;

use crate::plain::printable;

/// What a piece of text says about itself. Nothing is understandable by its colour alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// What is disproved.
    Bad,
    /// What could not be compared.
    Doubt,
    /// What holds.
    Good,
    /// The name of a part.
    Heading,
}

/// How a proof is shown.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// Columns that a line may take; words that are longer stick out.
    pub width: usize,
    /// Gives text a colour; as it is by default.
    pub paint: fn(Tone, &str) -> String,
    /// Rows of one kind that are shown; the rest is counted.
    pub most: usize,
    /// Failing rows, of those that are shown, with everything that is known about them.
    pub detailed: usize,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { width: 100, paint: |_, text| text.to_owned(), most: 12, detailed: 3 }
    }
}

/// Text that grows line by line. Whatever is written is made fit for a terminal first.
pub(crate) struct Page<'o> {
    options: &'o TextOptions,
    text: String,
}

impl<'o> Page<'o> {
    pub(crate) fn new(options: &'o TextOptions) -> Self {
        Self { options, text: String::new() }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// One line, or as many as it takes.
    pub(crate) fn line(&mut self, indent: usize, text: &str) {
        self.write("", Tone::Heading, text, indent, indent + 2);
    }

    /// A line that starts with something painted.
    pub(crate) fn headed(&mut self, head: &str, tone: Tone, rest: &str) {
        self.write(head, tone, rest, 0, 4);
    }

    /// A line whose columns were made to fit.
    pub(crate) fn row(&mut self, text: &str) {
        self.text += printable(text).trim_end();
        self.text.push('\n');
    }

    /// What is said under a label.
    pub(crate) fn item(&mut self, label: &str, tone: Tone, text: &str) {
        self.headed(&format!("{label}:"), tone, text);
    }

    /// A fact of a block: a label in a column of its own.
    pub(crate) fn fact(&mut self, label: &str, text: &str) {
        self.write("", Tone::Heading, &format!("{label:<9} {text}"), 2, 12);
    }

    /// Says how many of `all` were not shown, if there are such.
    pub(crate) fn more(&mut self, all: usize, shown: usize, of_what: &str) {
        if all > shown {
            self.line(0, &format!("… and {} more {of_what}; all in proof.json", all - shown));
        }
    }

    /// A line that is never wrapped, for whoever reads it with a program.
    pub(crate) fn last(&mut self, parts: &[(Option<Tone>, String)]) {
        for (tone, part) in parts {
            let part = printable(part);
            match tone {
                Some(tone) => self.text += &(self.options.paint)(*tone, &part),
                None => self.text += &part,
            }
        }
        self.text.push('\n');
    }

    fn write(&mut self, head: &str, tone: Tone, rest: &str, indent: usize, hanging: usize) {
        let (head, rest) = (printable(head), printable(rest));
        self.text += &" ".repeat(indent);
        let mut column = indent + head.width();
        if !head.is_empty() {
            self.text += &(self.options.paint)(tone, &head);
        }
        let mut pending = if head.is_empty() { "" } else { " " };
        for word in words(&rest) {
            let is_full = column + pending.len() + word.trim_end().width() > self.options.width;
            if is_full && column > hanging {
                self.text.truncate(self.text.trim_end_matches(' ').len());
                self.text.push('\n');
                self.text += &" ".repeat(hanging);
                column = hanging;
                pending = "";
            }
            self.text += pending;
            self.text += word;
            column += pending.len() + word.width();
            pending = "";
        }
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.push('\n');
    }
}

/// Words with the spaces behind them, so that columns inside of a line stay as they are.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let word = rest.find(' ').unwrap_or(rest.len());
        let spaces = rest[word..].find(|c| c != ' ').unwrap_or(rest.len() - word);
        let (first, others) = rest.split_at(word + spaces);
        rest = others;
        Some(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: usize, write: impl Fn(&mut Page<'_>)) -> String {
        let options = TextOptions { width, ..TextOptions::default() };
        let mut page = Page::new(&options);
        write(&mut page);
        page.finish()
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let text = page(30, |page| {
            page.headed("advice:", Tone::Heading, "look at the inputs that nobody marked");
            page.fact("source", "float32[1, 12] from -1.5 to 2.25");
        });
        insta::assert_snapshot!(text, @"
        advice: look at the inputs
            that nobody marked
          source    float32[1, 12]
                    from -1.5 to 2.25
        ");
        assert!(text.lines().all(|line| line.len() <= 30), "{text}");
    }

    #[test]
    fn a_word_that_does_not_fit_sticks_out() {
        let text = page(10, |page| page.line(0, &format!("abc {} d", "x".repeat(20))));
        assert_eq!(text, format!("abc\n  {}\n  d\n", "x".repeat(20)));
    }

    #[test]
    fn nothing_that_is_written_acts_on_the_terminal() {
        let text = page(80, |page| {
            page.headed("\u{1b}[2J", Tone::Bad, "a\nb");
            page.last(&[(None, "c\rd".to_owned())]);
        });
        assert_eq!(text, "\\u{1b}[2J a\\u{a}b\nc\\u{d}d\n");
    }
}
