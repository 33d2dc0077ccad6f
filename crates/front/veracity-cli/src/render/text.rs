//! Text from files that are not trusted, made fit for a terminal; numbers made short.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Whether a character would move the cursor, colour the screen or turn the text around.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with whatever would act on the terminal written out.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unsafe(character) {
            safe.extend(character.escape_unicode());
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

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

/// An error or a value in few columns: short numbers as they are, others with four digits.
pub(crate) fn number(value: f64) -> String {
    let plain = value.to_string();
    if plain.len() <= 8 { plain } else { format!("{value:.3e}") }
}

/// A value that can be typed in again without losing anything.
pub(crate) fn exact(value: f64) -> String {
    let plain = value.to_string();
    if plain.len() <= 20 { plain } else { format!("{value:e}") }
}

/// A count with its noun.
pub(crate) fn count(amount: usize, noun: &str) -> String {
    if amount == 1 { format!("1 {noun}") } else { format!("{amount} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_a_file_acts_on_the_terminal() {
        for (text, safe) in [
            ("plain näme 关节", "plain näme 关节"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\nb\r", "a\\u{a}b\\u{d}"),
            ("\u{202e}gnp.exe", "\\u{202e}gnp.exe"),
            ("\u{9b}31m", "\\u{9b}31m"),
        ] {
            assert_eq!(printable(text), safe);
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
    fn numbers_are_short() {
        for (value, short) in [
            (0.0, "0"),
            (-1.5, "-1.5"),
            (0.1 + 0.2, "3.000e-1"),
            (1e-7, "1.000e-7"),
            (123_456_789.0, "1.235e8"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(number(value), short);
        }
        for value in [0.5, 1e-300, 1.0 / 3.0, f64::MAX, 5e-324] {
            assert_eq!(exact(value).parse(), Ok(value));
            assert!(exact(value).len() <= 24, "{value}");
        }
        for (bytes, short) in
            [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB")]
        {
            assert_eq!(size(bytes), short);
        }
        assert_eq!(size(u64::MAX), "16777216.0 TiB");
    }
}
