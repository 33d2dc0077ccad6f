//! `veracity report`: results as a page.

use veracity::reports;

use super::target;
use crate::cli::ReportArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};

/// The exit code tells whether there is a page, not what it says.
pub(super) fn execute(arguments: &ReportArgs, context: &Context) -> Result<Outcome, Failure> {
    let ReportArgs { results, output } = arguments;
    target::check_page(output, results)?;
    let results = reports::read(results)?;
    reports::write_page(&results, output)?;
    context.answer(&format!("{}\n", output.display()))?;
    Ok(Outcome::Proved)
}
