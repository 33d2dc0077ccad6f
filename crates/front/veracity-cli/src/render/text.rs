//! Text that keeps to columns. What makes text and numbers fit to be shown is shared with reports.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use veracity::report::plain::is_unsafe;
pub(crate) use veracity::report::plain::{count, exact, number, printable};

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
    fn sizes_are_short() {
        for (bytes, short) in
            [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB")]
        {
            assert_eq!(size(bytes), short);
        }
        assert_eq!(size(u64::MAX), "16777216.0 TiB");
    }
}
