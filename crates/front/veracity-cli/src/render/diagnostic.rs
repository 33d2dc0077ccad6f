//! One finding in full: what, where, the line it is about, what to try.

use std::fmt::Write as _;

use veracity::{Diagnostic, Place, Severity};

use super::style::{self, paint};
use super::text::{char_columns, printable, printable_char};

/// Least number of marked characters that a cut line keeps in sight.
const MIN_WINDOW: usize = 20;

/// A finding, as many lines as it takes, the last one with a line break. Source lines are cut to
/// `width`; words are not.
pub(crate) fn render(diagnostic: &Diagnostic, width: usize) -> String {
    let Diagnostic { code, severity, message, place, hints } = diagnostic;
    let color = match severity {
        Severity::Note => style::FAINT,
        Severity::Error => style::ERROR,
        Severity::Warning => style::WARNING,
    };
    let label = paint(color, &format!("{severity}[{code}]"));
    let mut text = format!("{label}: {}\n", paint(style::HEADING, &printable(message)));
    let gutter = place.line.map_or(1, |line| line.to_string().len());
    render_position(place, gutter, &mut text);
    render_snippet(place, gutter, width, &mut text);
    for (label, value) in notes(place, hints) {
        let _ = writeln!(text, "{:gutter$} {} {label}: {value}", "", paint(style::FRAME, "="));
    }
    text
}

fn render_position(place: &Place, gutter: usize, text: &mut String) {
    let Some(file) = &place.file else { return };
    let arrow = paint(style::FRAME, "-->");
    let _ = write!(text, "{:gutter$}{arrow} {}", "", printable(file));
    for number in [place.line, place.column].into_iter().map_while(|number| number) {
        let _ = write!(text, ":{number}");
    }
    text.push('\n');
}

/// The line with marks under the part that is meant. A long line is cut on both sides of it.
fn render_snippet(place: &Place, gutter: usize, width: usize, text: &mut String) {
    let (Some(snippet), Some(line)) = (&place.snippet, place.line) else { return };
    let room = width.saturating_sub(gutter + 4).max(MIN_WINDOW);
    let characters: Vec<char> = snippet.text.chars().map(printable_char).collect();
    let start = (snippet.start as usize).min(characters.len());
    let (first, end) = window(&characters, start, room);
    let shown: String = characters[first..end].iter().collect();
    let columns = |part: &[char]| part.iter().copied().map(char_columns).sum::<usize>();
    let marked_end = start.saturating_add(snippet.length as usize).clamp(start, end);
    let marks = columns(&characters[start..marked_end]).max(1);
    let (cut_before, cut_after) = (first > 0, end < characters.len());
    let before = if cut_before { "…" } else { "" };
    let after = if cut_after { "…" } else { "" };
    let padding = columns(&characters[first..start]) + usize::from(cut_before);
    let bar = paint(style::FRAME, "|");
    let number = paint(style::FRAME, &line.to_string());
    let marks = paint(style::ERROR, &"^".repeat(marks));
    let _ = writeln!(text, "{:gutter$} {bar}", "");
    let _ = writeln!(text, "{number} {bar} {before}{shown}{after}");
    let _ = writeln!(text, "{:gutter$} {bar} {:padding$}{marks}", "", "");
}

/// The characters that fit into `room` columns, as a range around `start`.
fn window(characters: &[char], start: usize, room: usize) -> (usize, usize) {
    let total: usize = characters.iter().copied().map(char_columns).sum();
    if total <= room {
        return (0, characters.len());
    }
    // A third of the room goes to what stands before; two columns to the marks of the cuts.
    let mut first = start;
    let mut used = 0;
    while first > 0 && used + char_columns(characters[first - 1]) <= room / 3 {
        first -= 1;
        used += char_columns(characters[first]);
    }
    let mut end = start;
    while end < characters.len() && used + char_columns(characters[end]) + 2 <= room {
        used += char_columns(characters[end]);
        end += 1;
    }
    (first, end)
}

fn notes<'a>(place: &'a Place, hints: &'a [String]) -> Vec<(&'static str, String)> {
    let name = match (&place.node, &place.port) {
        (Some(node), Some(port)) => Some(("port", printable(&format!("{node}/{port}")).into())),
        (Some(node), None) => Some(("node", printable(node).into())),
        (None, Some(tensor)) => Some(("tensor", printable(tensor).into())),
        (None, None) => None,
    };
    let hints = hints.iter().map(|hint| ("hint", printable(hint).into()));
    name.into_iter().chain(hints).collect()
}

#[cfg(test)]
mod tests {
    use veracity::{Place, codes};

    use super::*;

    fn plain(diagnostic: &Diagnostic) -> String {
        anstream::adapter::strip_str(&render(diagnostic, 80)).to_string()
    }

    fn marked(text: &str, part: &str) -> Place {
        let start = text.split(part).next().unwrap().chars().count();
        let snippet = serde_json::json!({
            "text": text, "start": start, "length": part.chars().count(),
        });
        Place {
            snippet: Some(serde_json::from_value(snippet).unwrap()),
            ..Place::file("policy.yaml").with_position(12, u32::try_from(start).unwrap() + 1)
        }
    }

    #[test]
    fn a_finding_shows_the_line_it_is_about() {
        let place = marked("    dtype: flaot32", "flaot32").or(&Place::port("policy", "obs"));
        let found = Diagnostic::error(codes::DTYPE_UNKNOWN, "`flaot32` is no dtype")
            .at(place)
            .hint("did you mean `float32`?")
            .hint("dtypes are those of torch");
        insta::assert_snapshot!(plain(&found), @"
        error[VER0305]: `flaot32` is no dtype
          --> policy.yaml:12:12
           |
        12 |     dtype: flaot32
           |            ^^^^^^^
           = port: policy/obs
           = hint: did you mean `float32`?
           = hint: dtypes are those of torch
        ");
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let found = Diagnostic::warning(codes::HASH_MISSING, "`x` is not hashed");
        insta::assert_snapshot!(plain(&found), @"warning[VER0206]: `x` is not hashed");
        let tensor = Place { port: Some("x".into()), ..Place::file("a.npz") };
        insta::assert_snapshot!(plain(&found.at(tensor)), @"
        warning[VER0206]: `x` is not hashed
         --> a.npz
          = tensor: x
        ");
    }

    #[test]
    fn marks_stand_under_wide_characters() {
        let found = Diagnostic::error(codes::NODE_NAME_INVALID, "a name is not usable");
        insta::assert_snapshot!(plain(&found.at(marked("名前: 关节", "关节"))), @"
        error[VER0303]: a name is not usable
          --> policy.yaml:12:5
           |
        12 | 名前: 关节
           |       ^^^^
        ");
    }

    #[test]
    fn a_long_line_is_cut_around_the_marked_part() {
        let line = format!("shape: [{}oops, {}]", "1, ".repeat(200), "2, ".repeat(200));
        let found = Diagnostic::error(codes::SHAPE_INVALID, "`oops` is no size");
        let text = plain(&found.at(marked(&line, "oops")));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text, @"
        error[VER0306]: `oops` is no size
          --> policy.yaml:12:609
           |
        12 | …1, 1, 1, 1, 1, 1, 1, 1, oops, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, …
           |                          ^^^^
        ");
    }

    #[test]
    fn a_position_past_the_end_is_marked_once() {
        let mut place = marked("models:", "models:");
        if let Some(snippet) = &mut place.snippet {
            (snippet.start, snippet.length) = (u32::MAX, u32::MAX);
        }
        insta::assert_snapshot!(plain(&Diagnostic::error(codes::YAML_SYNTAX, "ends early").at(place)), @"
        error[VER0101]: ends early
          --> policy.yaml:12:1
           |
        12 | models:
           |        ^
        ");
    }

    #[test]
    fn text_from_files_cannot_act_on_the_terminal() {
        let found = Diagnostic::error(codes::YAML_SYNTAX, "bad \u{1b}[2J")
            .at(marked("a\u{1b}[2Jb\tc", "b"))
            .hint("\u{7}");
        let text = plain(&found);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
}
