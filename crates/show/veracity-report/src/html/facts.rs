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
