//! Numbers and JSON as Python prints them, byte for byte.
//!
//! Files that a Python tool used to write stay comparable with `diff` only if a float is spelled the
//! same way: the shortest digits that read back, an exponent outside of 1e-4 to 1e16.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Digits that are kept: those of `%.12e`.
const KEPT_DIGITS: usize = 13;

/// A float as `repr` prints it.
pub(crate) fn repr(value: f64) -> String {
    if let Some(name) = name(value) {
        return name.to_owned();
    }
    let (sign, digits, exponent) = scientific(&format!("{value:e}"));
    match exponent {
        -4..0 => format!("{sign}0.{}{digits}", zeros(-exponent - 1)),
        0..16 => {
            let before = usize::try_from(exponent).unwrap_or_default() + 1;
            let padded = format!("{digits:0<before$}");
            let (whole, fraction) = padded.split_at(before);
            format!("{sign}{whole}.{}", if fraction.is_empty() { "0" } else { fraction })
        }
        _ => format!("{sign}{}", with_exponent(&digits, exponent)),
    }
}

/// A float as `%g` prints it: six digits, no zeros behind the last one.
pub(crate) fn general(value: f64) -> String {
    if let Some(name) = name(value) {
        return name.to_lowercase();
    }
    let (sign, digits, exponent) = scientific(&format!("{value:.5e}"));
    let shown = digits.trim_end_matches('0');
    let shown = if shown.is_empty() { "0" } else { shown };
    match exponent {
        -4..0 => format!("{sign}0.{}{shown}", zeros(-exponent - 1)),
        0..6 => {
            let before = usize::try_from(exponent).unwrap_or_default() + 1;
            let padded = format!("{shown:0<before$}");
            let (whole, fraction) = padded.split_at(before);
            let point = if fraction.is_empty() { "" } else { "." };
            format!("{sign}{whole}{point}{fraction}")
        }
        _ => format!("{sign}{}", with_exponent(shown, exponent)),
    }
}

/// A float as `%.3e` prints it.
pub(crate) fn exponential(value: f64) -> String {
    if let Some(name) = name(value) {
        return name.to_lowercase();
    }
    let (sign, digits, exponent) = scientific(&format!("{value:.3e}"));
    format!("{sign}{}", with_exponent(&digits, exponent))
}

/// A float with 13 significant digits, as printing it with `%.12e` and reading it again gives it.
pub(crate) fn rounded(value: f64) -> f64 {
    let text = format!("{value:.*e}", KEPT_DIGITS - 1);
    text.parse().unwrap_or(value)
}

/// JSON as `json.dumps(value, indent=2)` prints it, with a newline at the end. Keys stay in their
/// order.
pub(crate) fn json(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value, 0);
    text.push('\n');
    text
}

/// A float for JSON, which has no NaN and no infinities: those are text that Python's `float` and
/// JavaScript's `Number` read.
pub(crate) fn json_number(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None => Value::String(spelled(value).to_owned()),
    }
}

fn spelled(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

fn name(value: f64) -> Option<&'static str> {
    (!value.is_finite()).then(|| match spelled(value) {
        "NaN" => "nan",
        "Infinity" => "inf",
        _ => "-inf",
    })
}

/// Sign, digits without a point, and exponent of `-1.25e-7`.
fn scientific(text: &str) -> (&'static str, String, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", mantissa),
    };
    (sign, digits.replace('.', ""), exponent.parse().unwrap_or_default())
}

fn zeros(count: i32) -> String {
    "0".repeat(usize::try_from(count).unwrap_or_default())
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first}{point}{rest}e{sign}{:02}", exponent.abs())
}

fn write_value(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => text.push_str(&repr(float)),
            None => text.push_str(&number.to_string()),
        },
        Value::String(string) => write_string(text, string),
        Value::Array(items) => write_items(text, ['[', ']'], depth, items, |text, item| {
            write_value(text, item, depth + 1);
        }),
        Value::Object(entries) => write_items(text, ['{', '}'], depth, entries, |text, entry| {
            write_string(text, entry.0);
            text.push_str(": ");
            write_value(text, entry.1, depth + 1);
        }),
    }
}

fn write_items<T>(
    text: &mut String,
    [open, close]: [char; 2],
    depth: usize,
    items: impl IntoIterator<Item = T>,
    write: impl Fn(&mut String, T),
) {
    text.push(open);
    let mut is_empty = true;
    for item in items {
        text.push_str(if is_empty { "\n" } else { ",\n" });
        text.push_str(&"  ".repeat(depth + 1));
        write(text, item);
        is_empty = false;
    }
    if !is_empty {
        text.push('\n');
        text.push_str(&"  ".repeat(depth));
    }
    text.push(close);
}

/// Everything outside of printable ASCII is written as UTF-16 units.
fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            ' '..='~' => text.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn floats_are_spelled_as_python_spells_them() {
        for (value, repr_, general_, exponential_) in [
            (0.0, "0.0", "0", "0.000e+00"),
            (-0.0, "-0.0", "-0", "-0.000e+00"),
            (1.0, "1.0", "1", "1.000e+00"),
            (1e-4, "0.0001", "0.0001", "1.000e-04"),
            (1e-5, "1e-05", "1e-05", "1.000e-05"),
            (9.537e-06, "9.537e-06", "9.537e-06", "9.537e-06"),
            (123_456_789.123, "123456789.123", "1.23457e+08", "1.235e+08"),
            (999_999.5, "999999.5", "1e+06", "1.000e+06"),
            (1e15, "1000000000000000.0", "1e+15", "1.000e+15"),
            (1e16, "1e+16", "1e+16", "1.000e+16"),
            (5e-324, "5e-324", "4.94066e-324", "4.941e-324"),
            (-1.5, "-1.5", "-1.5", "-1.500e+00"),
            (f64::NAN, "nan", "nan", "nan"),
            (f64::NEG_INFINITY, "-inf", "-inf", "-inf"),
        ] {
            assert_eq!(repr(value), repr_);
            assert_eq!(general(value), general_);
            assert_eq!(exponential(value), exponential_);
        }
    }

    #[test]
    fn thirteen_digits_are_kept_and_ties_go_to_the_even_digit() {
        for (value, kept) in [
            (0.123_456_789_012_345_6, 0.123_456_789_012_3),
            (1_234_567_890_122.5, 1_234_567_890_122.0),
            (1_234_567_890_123.5, 1_234_567_890_124.0),
            (5e-324, 5e-324),
            (f64::INFINITY, f64::INFINITY),
        ] {
            assert_eq!(rounded(value).to_bits(), kept.to_bits(), "{value}");
        }
        assert!(rounded(f64::NAN).is_nan());
    }

    #[test]
    fn json_is_laid_out_as_python_lays_it_out() {
        let value = json!({"é\u{7f}": ["𝄞\n\"\\\u{1}", 1, 1.5, null, true], "a": [], "b": {}});
        let expected = "{\n  \"\\u00e9\\u007f\": [\n    \"\\ud834\\udd1e\\n\\\"\\\\\\u0001\",\n    1,\n    \
                        1.5,\n    null,\n    true\n  ],\n  \"a\": [],\n  \"b\": {}\n}\n";
        assert_eq!(json(&value), expected);
    }

    #[test]
    fn what_json_cannot_hold_is_text_that_other_languages_read() {
        assert_eq!(json_number(f64::NAN), json!("NaN"));
        assert_eq!(json_number(f64::INFINITY), json!("Infinity"));
        assert_eq!(json_number(f64::NEG_INFINITY), json!("-Infinity"));
        assert_eq!(json_number(1e-5), json!(1e-5));
    }
}
