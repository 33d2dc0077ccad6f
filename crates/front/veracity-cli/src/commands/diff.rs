//! `veracity diff`: what changed between two proofs, or between two models.

use veracity::report::{TextOptions, rewrites};
use veracity::transform::diff_files;
use veracity::{Diagnostic, Refusal, codes, proof};

use super::transform::is_model;
use crate::cli::{DiffArgs, Format};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::difference;
use crate::render::proof::painted;

pub(super) fn execute(arguments: &DiffArgs, context: &Context) -> Result<Outcome, Failure> {
    match (is_model(&arguments.before), is_model(&arguments.after)) {
        (true, true) => models(arguments, context),
        (false, false) => proofs(arguments, context),
        _ => {
            let message = "one is a model and the other is not";
            let found = Diagnostic::error(codes::OPTION_INVALID, message);
            Err(Refusal::from(found.hint("give two proofs, or two `.onnx` files")).into())
        }
    }
}

/// Models differ on purpose, so that a difference is an answer and no failure.
fn models(arguments: &DiffArgs, context: &Context) -> Result<Outcome, Failure> {
    let found = diff_files(&arguments.before, &arguments.after)?;
    match arguments.format {
        Format::Json => context.answer_json(&found)?,
        Format::Md => {
            let text = rewrites::diff_markdown(&found);
            context.answer(&format!("# What changed\n\n{text}"))?;
        }
        Format::Table => {
            let width = context.width();
            let options = TextOptions { width, paint: painted, ..TextOptions::default() };
            context.answer(&rewrites::diff_text(&found, &options))?;
        }
    }
    Ok(Outcome::Proved)
}

fn proofs(arguments: &DiffArgs, context: &Context) -> Result<Outcome, Failure> {
    let (before, after) = (proof::read(&arguments.before)?, proof::read(&arguments.after)?);
    let found = proof::difference(&before, &after);
    context.give(arguments.format, &found, || difference::document(&found))?;
    Ok(if found.is_worse() { Outcome::Disproved } else { Outcome::Proved })
}
