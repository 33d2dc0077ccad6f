//! `veracity inspect`: what is in a bundle.

use veracity::Bundle;

use crate::cli::{Format, InspectArgs};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::inspection;

pub(super) fn execute(arguments: &InspectArgs, context: &Context) -> Result<Outcome, Failure> {
    let bundle = Bundle::open(&arguments.bundle)?;
    let found = veracity::inspect(&bundle)?;
    context.warn(bundle.warnings())?;
    if arguments.format == Format::Json {
        context.answer_json(&found)?;
        return Ok(Outcome::Proved);
    }
    let initial = bundle.initial_values()?;
    context.warn(&initial.warnings)?;
    let document = || inspection::document(&found, &initial.values);
    context.give(arguments.format, &found, document)?;
    Ok(Outcome::Proved)
}
