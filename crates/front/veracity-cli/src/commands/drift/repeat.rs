//! What to type in to compare again.

use veracity::report::plain::word;

/// Options that say where and how to answer, not what to compare.
const ANSWERS: [&str; 6] =
    ["--baseline", "--format", "--html", "--report-base", "--repro", "--save"];

/// The command that was typed in, without the files of answers.
pub(super) fn command(typed: impl Iterator<Item = String>) -> String {
    let mut command = String::from("veracity");
    let mut typed = typed;
    while let Some(one) = typed.next() {
        if ANSWERS.contains(&one.as_str()) {
            typed.next();
        } else if !ANSWERS.iter().any(|name| one.starts_with(&format!("{name}="))) {
            command.push(' ');
            command += &word(&one);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compared_stays_and_where_answers_go_does_not() {
        for (typed, shown) in [
            (vec!["drift", "a.onnx", "b.onnx", "--html", "x.html"], "veracity drift a.onnx b.onnx"),
            (
                vec!["drift", "a b.onnx", "--save=x.json", "--level", "all"],
                "veracity drift 'a b.onnx' --level all",
            ),
        ] {
            assert_eq!(command(typed.into_iter().map(str::to_owned)), shown);
        }
    }
}
