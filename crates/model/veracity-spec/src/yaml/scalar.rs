//! What unquoted text means: the YAML 1.1 rules that `PyYAML` follows.
//!
//! `PyYAML` writes the bundles and is what other runtimes read them with, so its reading is the
//! one that counts: `on` is true, `1e5` is text, `0x10` is 16. Dates and times
//! with a fraction (`1:30.5`) stay text here.

use super::{CoreTag, Scalar};

/// The meaning of a scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Atom {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    /// A whole number that does not fit.
    TooLarge,
    /// The text itself.
    Text,
}

impl Scalar {
    /// What the scalar means.
    pub(crate) fn atom(&self) -> Atom {
        match self.tag {
            Some(CoreTag::Str) => Atom::Text,
            None if !self.plain => Atom::Text,
            None => atom_from_text(&self.text),
            Some(tag) => match (tag, atom_from_text(&self.text)) {
                #[expect(clippy::cast_precision_loss, reason = "the tag asks for a float")]
                (CoreTag::Float, Atom::Int(value)) => Atom::Float(value as f64),
                (CoreTag::Null, Atom::Null)
                | (CoreTag::Bool, Atom::Bool(_))
                | (CoreTag::Int, Atom::Int(_) | Atom::TooLarge)
                | (CoreTag::Float, Atom::Float(_)) => atom_from_text(&self.text),
                _ => Atom::Text,
            },
        }
    }
}

/// What plain text means.
fn atom_from_text(text: &str) -> Atom {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Atom::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Atom::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Atom::Bool(false)
        }
        _ if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
            int_from(text).or_else(|| float_from(text)).unwrap_or(Atom::Text)
        }
        _ => Atom::Text,
    }
}

/// Whether text, written plainly, would be taken for something else by a reader of YAML 1.1 or 1.2.
pub(crate) fn needs_quotes_as_text(text: &str) -> bool {
    atom_from_text(text) != Atom::Text
        || matches!(text, "y" | "Y" | "n" | "N" | "=" | "<<")
        || is_yaml_1_2_number(text)
        || looks_like_digits(text)
        || looks_like_date(text)
}

/// `0x_` and its like: `PyYAML` takes them for numbers and then fails to read them.
fn looks_like_digits(text: &str) -> bool {
    let (_, body) = split_sign(text);
    body.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && body.contains('_')
        && body.bytes().all(|byte| byte.is_ascii_hexdigit() || b"xo_.+-".contains(&byte))
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

fn int_from(text: &str) -> Option<Atom> {
    let (negative, digits) = split_sign(text);
    if digits.contains(':') {
        return sexagesimal(digits, negative);
    }
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'b', ..] => (2, &digits[2..]),
        [b'0', b'x', ..] => (16, &digits[2..]),
        [b'0', _, ..] => (8, digits),
        [b'0'..=b'9', ..] => (10, digits),
        _ => return None,
    };
    let digits: String = digits.chars().filter(|&c| c != '_').collect();
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let Ok(value) = i128::from_str_radix(&digits, radix) else {
        return Some(Atom::TooLarge);
    };
    Some(Atom::Int(if negative { -value } else { value }))
}

/// `1:30` is 90: base 60, for times of day.
fn sexagesimal(digits: &str, negative: bool) -> Option<Atom> {
    if !digits.starts_with(|c: char| ('1'..='9').contains(&c)) {
        return None;
    }
    let mut value: i128 = 0;
    for (position, part) in digits.split(':').enumerate() {
        let part = if position == 0 { part.replace('_', "") } else { part.to_owned() };
        let digit: i128 = part.parse().ok().filter(|_| !part.starts_with(['+', '-']))?;
        if position > 0 && (part.len() > 2 || digit > 59) {
            return None;
        }
        value = value.checked_mul(60)?.checked_add(digit)?;
    }
    Some(Atom::Int(if negative { -value } else { value }))
}

fn float_from(text: &str) -> Option<Atom> {
    let (negative, body) = split_sign(text);
    let value = match body {
        ".inf" | ".Inf" | ".INF" => f64::INFINITY,
        ".nan" | ".NaN" | ".NAN" if body.len() == text.len() => f64::NAN,
        _ => {
            let (whole, fraction) = body.split_once('.')?;
            let (fraction, exponent) = match fraction.find(['e', 'E']) {
                Some(at) => (&fraction[..at], Some(&fraction[at + 1..])),
                None => (fraction, None),
            };
            let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit() || c == '_');
            let whole_fits = match whole.as_bytes().first() {
                Some(first) => first.is_ascii_digit() && digits(whole),
                // Without a whole part there is no sign, and a digit must follow the point.
                None => {
                    body.len() == text.len() && fraction.starts_with(|c: char| c.is_ascii_digit())
                }
            };
            let exponent_fits = exponent.is_none_or(|exponent| {
                exponent.strip_prefix(['+', '-']).is_some_and(|digits| {
                    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
                })
            });
            if !whole_fits || !digits(fraction) || !exponent_fits {
                return None;
            }
            body.replace('_', "").parse().ok()?
        }
    };
    Some(Atom::Float(if negative { -value } else { value }))
}

/// Numbers of the YAML 1.2 core schema that 1.1 takes for text, such as `1e5` and `0o17`.
fn is_yaml_1_2_number(text: &str) -> bool {
    let (_, body) = split_sign(text);
    let octal = text.strip_prefix("0o").is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte))
    });
    octal
        || (body.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && body.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
            && body.parse::<f64>().is_ok())
}

/// `2024-01-31`, alone or with a time: a date for YAML 1.1. Errs on the side of quoting.
fn looks_like_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let digits = |part: Option<&str>| {
        part.is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    text.len() >= 8
        && text.as_bytes()[..4].iter().all(u8::is_ascii_digit)
        && digits(parts.next())
        && digits(parts.next())
        && parts.next().is_some_and(|day| day.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_means_what_pyyaml_says() {
        for (text, expected) in [
            ("", Atom::Null),
            ("~", Atom::Null),
            ("NULL", Atom::Null),
            ("True", Atom::Bool(true)),
            ("off", Atom::Bool(false)),
            ("0", Atom::Int(0)),
            ("-12", Atom::Int(-12)),
            ("+1_000", Atom::Int(1000)),
            ("0x1F", Atom::Int(31)),
            ("0b101", Atom::Int(5)),
            ("017", Atom::Int(15)),
            ("0_", Atom::Int(0)),
            ("1:30", Atom::Int(90)),
            ("99999999999999999999999999999999999999999", Atom::TooLarge),
            ("1.", Atom::Float(1.0)),
            (".5", Atom::Float(0.5)),
            ("1.0e-05", Atom::Float(1e-5)),
            ("-.inf", Atom::Float(f64::NEG_INFINITY)),
        ] {
            assert_eq!(atom_from_text(text), expected, "{text:?}");
        }
        assert!(matches!(atom_from_text(".nan"), Atom::Float(value) if value.is_nan()));
    }

    #[test]
    fn near_misses_stay_text() {
        for text in [
            "1e5",
            "1.0e5",
            "0o17",
            "08",
            "0xg",
            "-",
            "+",
            ".",
            "-.5",
            "1.2.3",
            "2.11.0+cu130",
            "0.7.2",
            "tRue",
            "nullx",
            "1:60",
            "01:30",
            "-.nan",
            "1.e",
            "e5",
            "_1",
            "=",
            "1-2",
        ] {
            assert_eq!(atom_from_text(text), Atom::Text, "{text:?}");
        }
    }

    #[test]
    fn text_that_any_reader_would_misread_needs_quotes() {
        for text in ["1e5", "0o17", "y", "N", "on", "13.0", "1.", "2024-01-31", "<<", "=", "~", ""]
        {
            assert!(needs_quotes_as_text(text), "{text:?}");
        }
        for text in ["2.11.0+cu130", "0.7.2", "x", "yy", "inf", "nan", "joint_1", "3.11.7", "1-2"] {
            assert!(!needs_quotes_as_text(text), "{text:?}");
        }
    }

    #[test]
    fn tags_overrule_the_look() {
        let atom =
            |text: &str, tag| Scalar { text: text.into(), plain: true, tag: Some(tag) }.atom();
        assert_eq!(atom("12", CoreTag::Str), Atom::Text);
        assert_eq!(atom("12", CoreTag::Float), Atom::Float(12.0));
        assert_eq!(atom("12", CoreTag::Int), Atom::Int(12));
        assert_eq!(atom("x", CoreTag::Int), Atom::Text);
        assert_eq!(Scalar { text: "12".into(), plain: false, tag: None }.atom(), Atom::Text);
    }
}
