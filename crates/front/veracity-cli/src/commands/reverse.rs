//! `veracity reverse`: the original of a model that was transformed.

use veracity::transform::reverse_file;

use crate::cli::ReverseArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::text::printable;

pub(super) fn execute(arguments: &ReverseArgs, context: &Context) -> Result<Outcome, Failure> {
    let original = reverse_file(&arguments.model)?;
    original.write_fitting(&arguments.output)?;
    let path = arguments.output.display().to_string();
    context.answer(&format!("the original, all weights inside, is in {}\n", printable(&path)))?;
    Ok(Outcome::Proved)
}
