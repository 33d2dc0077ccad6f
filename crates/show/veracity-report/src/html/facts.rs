//! Facts with their names, and commands to type in.

use std::fmt::Write as _;

use super::escape::escape;

/// Facts with their names; those that say nothing are left out.
pub(super) fn facts(facts: &[(&str, String)]) -> String {
    let mut html = String::from("<dl>\n");
    for (label, text) in facts.iter().filter(|(_, text)| !text.is_empty()) {
        let _ = writeln!(html, "<dt>{}</dt><dd>{}</dd>", escape(label), escape(text));
    }
    html + "</dl>\n"
}

/// Commands, a line each.
pub(super) fn commands(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| escape(line)).collect();
    format!("<pre><code>{}</code></pre>\n", lines.join("\n"))
}

/// A word that a shell reads as it stands.
pub(super) fn word(text: &str) -> String {
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
}
