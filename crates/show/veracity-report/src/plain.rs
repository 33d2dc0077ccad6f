//! Text from files that are not trusted, made fit for a terminal; numbers made short.

use std::borrow::Cow;

/// Whether a character would move the cursor, colour the screen or turn the text around.
pub fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with whatever would act on the terminal written out.
pub fn printable(text: &str) -> Cow<'_, str> {
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

/// An error or a value in few columns: short numbers as they are, others with four digits, and with
/// an exponent where zeros would have to be counted.
pub fn number(value: f64) -> String {
    let plain = value.to_string();
    if plain.len() <= 8 {
        return plain;
    }
    let short = format!("{value:.3e}");
    let exponent = short.split_once('e').and_then(|(_, digits)| digits.parse::<i32>().ok());
    match exponent {
        Some(exponent @ -3..=3) => {
            let decimals = usize::try_from(3 - exponent).unwrap_or(0);
            let digits = format!("{value:.decimals$}");
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => short,
    }
}

/// A value that can be typed in again without losing anything.
pub fn exact(value: f64) -> String {
    let plain = value.to_string();
    if plain.len() <= 20 { plain } else { format!("{value:e}") }
}

/// A tolerance in three digits, rounded up: what passes with the value passes with this.
pub fn enough(value: f64) -> String {
    let digits = format!("{value:.2e}");
    let mut rounded: f64 = digits.parse().unwrap_or(value);
    if rounded < value {
        let exponent = digits.split_once('e').map_or("0", |(_, exponent)| exponent);
        let step: f64 = format!("1e{exponent}").parse().unwrap_or(0.0);
        rounded = format!("{:.2e}", rounded + 0.01 * step).parse().unwrap_or(value);
    }
    let plain = rounded.to_string();
    if plain.len() <= 8 { plain } else { format!("{rounded:e}") }
}

/// Two numbers with as many digits as it takes to tell them apart, and six at least.
pub fn apart(left: f64, right: f64) -> (String, String) {
    let shown = |value: f64, digits: usize| {
        if value.fract() == 0.0 {
            return exact(value);
        }
        exact(format!("{value:.digits$e}").parse().unwrap_or(value))
    };
    let pairs = (5..17).map(|digits| (shown(left, digits), shown(right, digits)));
    let mut distinct = pairs.skip_while(|(left, right)| left == right);
    distinct.next().unwrap_or_else(|| (exact(left), exact(right)))
}

/// A count with its noun.
pub fn count(amount: usize, noun: &str) -> String {
    if amount == 1 { format!("1 {noun}") } else { format!("{amount} {noun}s") }
}

/// A word that a shell reads as it stands.
pub fn word(text: &str) -> String {
    let is_plain =
        |character: char| character.is_alphanumeric() || "-_./:=,+@%".contains(character);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_words_as_they_stand() {
        for (text, shown) in [
            ("policy/action:atol=1e-05,rtol=0", "policy/action:atol=1e-05,rtol=0"),
            ("", "''"),
            ("two words", "'two words'"),
            ("it's; rm", "'it'\\''s; rm'"),
        ] {
            assert_eq!(word(text), shown);
        }
    }

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
        }
    }

    #[test]
    fn a_tolerance_that_is_shown_is_enough() {
        for (value, shown) in [
            (0.247_500_000_000_000_03, "0.248"),
            (0.020_251_8, "0.0203"),
            (4.0e-5, "0.00004"),
            (1.192_092_9e-7, "1.2e-7"),
            (9.999, "10"),
            (0.0, "0"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(enough(value), shown);
        }
        for step in 1..2000_i32 {
            let value = f64::from(step).powi(3) * 1.7e-9;
            let shown: f64 = enough(value).parse().unwrap();
            assert!((value..=1.011 * value).contains(&shown), "{value:e}: {shown:e}");
        }
    }

    #[test]
    fn numbers_side_by_side_can_be_told_apart() {
        for (left, right, shown) in [
            (0.346_663_951_873_779_3, 0.351_517_349_481_582_64, ("0.346664", "0.351517")),
            (1.0, 1.000_000_119_209_289_6, ("1", "1.0000001")),
            (16_777_217.0, 16_777_218.0, ("16777217", "16777218")),
            (1.0 / 3.0, f64::NAN, ("0.333333", "NaN")),
            (0.5, 0.5, ("0.5", "0.5")),
        ] {
            let (left, right) = apart(left, right);
            assert_eq!((left.as_str(), right.as_str()), shown);
        }
        let (left, right) = apart(0.1 + 0.2, 0.3);
        assert_ne!(left, right);
    }

    #[test]
    fn numbers_are_short() {
        for (value, short) in [
            (0.0, "0"),
            (-1.5, "-1.5"),
            (0.1 + 0.2, "0.3"),
            (-0.450_512_345, "-0.4505"),
            (9.999_96e-4, "0.001"),
            (9_999.96, "9999.96"),
            (12_345.678_9, "1.235e4"),
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
    }
}
