//! `veracity diff`: what changed between two proofs.

use veracity::proof;

use crate::cli::{DiffArgs, Format};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::difference;

pub(super) fn execute(arguments: &DiffArgs, context: &Context) -> Result<Outcome, Failure> {
    let (before, after) = (proof::read(&arguments.before)?, proof::read(&arguments.after)?);
    let found = proof::difference(&before, &after);
    match arguments.format {
        Format::Json => context.answer_json(&found)?,
        Format::Table => context.answer(&difference::render(&found, context.width()))?,
    }
    let is_worse = found.worse().next().is_some();
    Ok(if is_worse { Outcome::Disproved } else { Outcome::Proved })
}
