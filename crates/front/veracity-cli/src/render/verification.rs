//! What verifying a bundle found, and how much it looked at.

use veracity::{Severity, Verification};

use super::document::Document;
use super::style::{self, paint};
use super::text::{count, printable};

/// Every problem in full, then one line that sums up.
pub(crate) fn write(verification: &Verification, refused: bool, document: &mut Document) {
    for found in &verification.diagnostics {
        document.finding(found);
        document.gap();
    }
    let (color, word) = if refused { (style::ERROR, "refused") } else { (style::GOOD, "sound") };
    let parts: Vec<String> =
        problems(verification).into_iter().chain(coverage(verification)).collect();
    document.line(format!("{}: {}", paint(color, word), parts.join("; ")));
}

/// How many problems there are; `None` when there are none.
fn problems(verification: &Verification) -> Option<String> {
    let number = |severity| {
        verification.diagnostics.iter().filter(|found| found.severity == severity).count()
    };
    let (errors, warnings) = (number(Severity::Error), number(Severity::Warning));
    let errors = (errors > 0).then(|| count(errors, "error"));
    let warnings = (warnings > 0).then(|| count(warnings, "warning"));
    let both: Vec<String> = errors.into_iter().chain(warnings).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

/// What was looked at, and what was not. A bundle that was not understood has no files to look at.
fn coverage(verification: &Verification) -> Vec<String> {
    let Verification { files_hashed, models_read, models_unread, .. } = verification;
    if *files_hashed == 0 && models_read.is_empty() && models_unread.is_empty() {
        return vec!["its files were not looked at".to_owned()];
    }
    let hashed = count(*files_hashed, "file");
    let read = count(models_read.len(), "model");
    let mut parts = vec![format!("{hashed} hashed, {read} compared with their ports")];
    if !models_unread.is_empty() {
        let unread = models_unread
            .iter()
            .map(|model| format!("node {} ({})", printable(&model.node), model.reason));
        parts.push(format!("not compared: {}", unread.collect::<Vec<_>>().join(", ")));
    }
    parts
}

#[cfg(test)]
mod tests {
    use veracity::{Diagnostic, codes};

    use super::*;

    fn verification() -> Verification {
        let mut verification = veracity::verify("no/such/bundle".as_ref());
        verification.diagnostics.clear();
        verification
    }

    fn plain(verification: &Verification, refused: bool) -> String {
        let mut document = Document::default();
        write(verification, refused, &mut document);
        anstream::adapter::strip_str(&document.text(80)).to_string()
    }

    #[test]
    fn the_summary_says_what_was_not_compared() {
        let mut sound = verification();
        sound.files_hashed = 3;
        sound.models_read = vec!["encoder".into()];
        let reason = "its ports are known only when it runs";
        sound.models_unread = vec![veracity::UnreadModel { node: "policy".into(), reason }];
        insta::assert_snapshot!(plain(&sound, false), @r"
        sound: 3 files hashed, 1 model compared with their ports; not compared: node
            policy (its ports are known only when it runs)
        ");
    }

    #[test]
    fn problems_come_first_and_are_counted() {
        let mut refused = verification();
        refused.diagnostics = vec![
            Diagnostic::error(codes::YAML_MISSING_KEY, "`models` is missing"),
            Diagnostic::warning(codes::HASH_MISSING, "`x` is not hashed"),
        ];
        insta::assert_snapshot!(plain(&refused, true), @"
        error[VER0106]: `models` is missing

        warning[VER0206]: `x` is not hashed

        refused: 1 error, 1 warning; its files were not looked at
        ");
    }
}
