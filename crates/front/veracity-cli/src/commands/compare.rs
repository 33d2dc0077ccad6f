//! `veracity compare`: how far two files of tensors are apart.

use veracity::compare::{CompareOptions, MeasureOptions, compare_files};
use veracity::results::Tolerance;

use crate::cli::CompareArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::comparison;

pub(super) fn execute(arguments: &CompareArgs, context: &Context) -> Result<Outcome, Failure> {
    let tolerance = Tolerance::new(arguments.atol, arguments.rtol)?;
    let mut measure = MeasureOptions::new(tolerance);
    if arguments.percentiles {
        measure = measure.with_percentiles();
    }
    let mut options = CompareOptions::new(measure);
    if arguments.equal_nan {
        options = options.with_equal_nan();
    }
    let found = compare_files(&arguments.reference, &arguments.candidate, &options)?;
    context.give(arguments.format, &found, || comparison::document(&found, tolerance))?;
    Ok(found.verdict.into())
}
