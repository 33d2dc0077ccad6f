//! `veracity seal`: a bundle that was changed on purpose, recorded as it is now.

use serde_json::json;
use veracity::Bundle;
use veracity::proof::{self, Sealed, Standing};
use veracity::results::{SCHEMA_VERSION, Verdict};

use crate::cli::SealArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::document::Document;
use crate::render::style::{self, paint};
use crate::render::text::{count, printable};

pub(super) fn execute(arguments: &SealArgs, context: &Context) -> Result<Outcome, Failure> {
    let bundle = Bundle::open(&arguments.bundle)?;
    let sealed = proof::seal(&bundle)?;
    let json = answer_json(&bundle, &sealed);
    context.give(arguments.format, &json, || answer(arguments, &sealed))?;
    Ok(Outcome::Proved)
}

/// What the proof is worth: a word, why, and whether something is to be done about it.
fn worth(standing: &Standing) -> (&'static str, Option<&str>, bool) {
    match standing {
        Standing::Missing => ("missing", None, true),
        Standing::Stale(change) => ("stale", Some(change), true),
        Standing::Negative(Verdict::Disproved) => ("disproved", None, false),
        Standing::Negative(_) => ("inconclusive", None, false),
        Standing::OnlyRepeats => ("repeats", None, false),
        Standing::Conditional(_) => ("conditional", None, false),
        Standing::Good => ("good", None, false),
    }
}

fn answer(arguments: &SealArgs, sealed: &Sealed) -> Document {
    let bundle = arguments.bundle.display().to_string();
    let bundle = printable(&bundle);
    let mut document = Document::new(format!("Sealed: {bundle}"));
    document.line(match sealed.changed.len() {
        0 => "sealed: every file is as it was recorded".to_owned(),
        files => format!("sealed: {} recorded anew", count(files, "file")),
    });
    for file in &sealed.changed {
        document.line(format!("  {}", printable(file)));
    }
    let (word, why, is_open) = worth(&sealed.proof);
    let why = why.map_or(String::new(), |why| format!(": {}", printable(why)));
    let color = if is_open { style::WARNING } else { style::HEADING };
    document.line(format!("proof: {}{why}", paint(color, word)));
    if is_open {
        document.line(format!("hint: prove it with `veracity check {bundle} --save`"));
    }
    document
}

fn answer_json(bundle: &Bundle, sealed: &Sealed) -> serde_json::Value {
    let (word, why, _) = worth(&sealed.proof);
    json!({
        "schema_version": SCHEMA_VERSION,
        "bundle": bundle.yaml_path().display().to_string(),
        "changed": sealed.changed,
        "proof": word,
        "why": why,
    })
}
