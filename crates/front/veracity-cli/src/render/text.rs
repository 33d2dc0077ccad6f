//! Text that keeps to columns. What makes text and numbers fit to be shown is shared with reports.

use std::borrow::Cow;

use anstream::adapter::strip_str;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use veracity::report::plain::is_unsafe;
pub(crate) use veracity::report::plain::{count, exact, number, printable};

/// Columns by which the rest of a long line is moved in.
const HANGING: usize = 4;

/// The character, or a stand-in of one column where it would act on the terminal. For places in
/// which columns must be kept.
pub(crate) fn printable_char(character: char) -> char {
    match character {
        '\t' => ' ',
        _ if is_unsafe(character) => '\u{fffd}',
        _ => character,
    }
}

/// Columns that text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Columns that a character takes.
pub(crate) fn char_columns(character: char) -> usize {
    character.width().unwrap_or(0)
}

/// The text cut to `limit` columns, with a mark where something was left out.
pub(crate) fn clip(text: &str, limit: usize) -> Cow<'_, str> {
    if columns(text) <= limit {
        return Cow::Borrowed(text);
    }
    let mut clipped = String::new();
    let mut used = 0;
    for character in text.chars() {
        used += char_columns(character);
        if used >= limit {
            break;
        }
        clipped.push(character);
    }
    clipped.push('…');
    Cow::Owned(clipped)
}

/// The text cut to `limit` columns in its middle, with a mark where something was left out. Its end
/// gets more room than its beginning: that is what paths differ in.
pub(crate) fn clip_middle(text: &str, limit: usize) -> Cow<'_, str> {
    if columns(text) <= limit {
        return Cow::Borrowed(text);
    }
    let room = limit.saturating_sub(1);
    let fitting = |characters: &mut dyn Iterator<Item = char>, room: usize| -> Vec<char> {
        let mut used = 0;
        let fits = |character: &char| {
            used += char_columns(*character);
            used <= room
        };
        characters.take_while(fits).collect()
    };
    let start: String = fitting(&mut text.chars(), room / 3).into_iter().collect();
    let end = fitting(&mut text.chars().rev(), room - columns(&start));
    Cow::Owned(format!("{start}…{}", end.into_iter().rev().collect::<String>()))
}

/// The line, broken between words where it is too long. A word that is longer than a line, such as a
/// path, sticks out: it is there to be copied.
pub(crate) fn wrapped(line: &str, width: usize) -> String {
    let shown = |text: &str| columns(&strip_str(text).to_string());
    if shown(line) <= width {
        return format!("{line}\n");
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let hanging = " ".repeat(indent + HANGING);
    let mut text = " ".repeat(indent);
    let mut used = indent;
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let wide = shown(word);
        let is_first = used == indent;
        if !is_first && used + 1 + wide > width {
            text.push('\n');
            text += &hanging;
            used = hanging.len();
        } else if !is_first {
            text.push(' ');
            used += 1;
        }
        text += word;
        used += wide;
    }
    text + "\n"
}

/// A size for people.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::super::style;
    use super::*;

    #[test]
    fn nothing_from_a_file_acts_on_the_terminal() {
        for text in ["\u{1b}[31mred", "a\nb\r", "\u{202e}gnp.exe", "\u{9b}31m"] {
            assert!(!text.chars().map(printable_char).any(is_unsafe), "{text:?}");
        }
    }

    #[test]
    fn clipped_text_never_takes_more_columns_than_it_may() {
        for (text, limit, clipped) in [
            ("short", 5, "short"),
            ("longer", 5, "long…"),
            ("关节位置", 8, "关节位置"),
            ("关节位置", 7, "关节位…"),
            ("关节位置", 6, "关节…"),
            ("", 3, ""),
        ] {
            assert_eq!(clip(text, limit), clipped);
            assert!(columns(&clip(text, limit)) <= limit);
        }
    }

    #[test]
    fn paths_lose_their_middle() {
        for (text, limit, clipped) in [
            ("models/policy.onnx", 18, "models/policy.onnx"),
            ("models/policy.onnx", 12, "mod…icy.onnx"),
            ("关节/位置", 7, "关…位置"),
            ("ab", 1, "…"),
        ] {
            assert_eq!(clip_middle(text, limit), clipped);
            assert!(columns(&clip_middle(text, limit)) <= limit);
        }
    }

    #[test]
    fn long_lines_are_broken_between_words_and_colours_take_no_columns() {
        let path = "x".repeat(30);
        for (line, expected) in [
            ("a short line", "a short line\n".to_owned()),
            ("one two three four five", "one two three four\n    five\n".to_owned()),
            ("  one two three four five", "  one two three four\n      five\n".to_owned()),
            (&format!("in {path} now"), format!("in\n    {path}\n    now\n")),
        ] {
            assert_eq!(wrapped(line, 20), expected);
        }
        let painted = format!("{} two three four", style::paint(style::GOOD, "one"));
        assert_eq!(wrapped(&painted, 20).matches('\n').count(), 1);
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, short) in
            [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB")]
        {
            assert_eq!(size(bytes), short);
        }
        assert_eq!(size(u64::MAX), "16777216.0 TiB");
    }
}
