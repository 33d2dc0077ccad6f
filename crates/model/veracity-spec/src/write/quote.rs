//! Text as a YAML scalar that every reader takes for the same text.

use crate::yaml::needs_quotes_as_text;

/// Writes text plainly if readers of YAML 1.1 and 1.2 agree that it is that text, else in quotes.
/// Anything beyond ASCII is escaped: LEAPP opens files in the encoding of the machine.
///
/// The result stands for the same text inside and outside of `[…]` and `{…}`.
pub(crate) fn scalar(text: &str) -> String {
    if text.chars().any(|c| !matches!(c, ' '..='~')) {
        double_quoted(text)
    } else if needs_quotes(text) {
        format!("'{}'", text.replace('\'', "''"))
    } else {
        text.to_owned()
    }
}

/// Errs on the side of quotes: parsers differ about `a:b`, `a -` and `x#` inside of lists.
fn needs_quotes(text: &str) -> bool {
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"_./+-() ".contains(&byte);
    let is_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    // A dash starts a list and a document; before a letter or digit it does neither.
    let starts_well = bytes.first().is_some_and(|&first| b"_./+(".contains(&first))
        || is_word(bytes.strip_prefix(b"-").unwrap_or(bytes).first());
    !starts_well
        || !bytes.iter().copied().all(harmless)
        || text.starts_with("...")
        || text.ends_with(' ')
        || text.contains(" -")
        || needs_quotes_as_text(text)
}

fn double_quoted(text: &str) -> String {
    use std::fmt::Write;

    let mut quoted = String::from("\"");
    for character in text.chars() {
        let code = u32::from(character);
        let written = match character {
            '"' | '\\' => write!(quoted, "\\{character}"),
            '\n' => write!(quoted, "\\n"),
            '\t' => write!(quoted, "\\t"),
            ' '..='~' => write!(quoted, "{character}"),
            _ if code <= 0xff => write!(quoted, "\\x{code:02X}"),
            _ if code <= 0xffff => write!(quoted, "\\u{code:04X}"),
            _ => write!(quoted, "\\U{code:08X}"),
        };
        written.expect("a String takes everything");
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_exactly_when_it_would_be_misread() {
        for (text, expected) in [
            ("joint_pos", "joint_pos"),
            ("state/joint/position", "state/joint/position"),
            ("Debian GNU/Linux 12", "Debian GNU/Linux 12"),
            ("2.11.0+cu130", "2.11.0+cu130"),
            ("a:b", "'a:b'"),
            ("-x", "-x"),
            ("13.0", "'13.0'"),
            ("on", "'on'"),
            ("", "''"),
            ("- x", "'- x'"),
            ("a: b", "'a: b'"),
            ("a #b", "'a #b'"),
            ("it's, ok", "'it''s, ok'"),
            ("*x", "'*x'"),
            (" x", "' x'"),
            ("...", "'...'"),
            ("größe", "\"gr\\xF6\\xDFe\""),
            ("a\nb", "\"a\\nb\""),
            ("Ω𝄞", "\"\\u03A9\\U0001D11E\""),
        ] {
            assert_eq!(scalar(text), expected, "{text:?}");
        }
    }
}
