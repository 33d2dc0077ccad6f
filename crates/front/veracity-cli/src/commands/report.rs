//! `veracity report`: results as a page.

use serde_json::json;
use veracity::reports;
use veracity::results::SCHEMA_VERSION;

use super::target;
use crate::cli::ReportArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::document::Document;
use crate::render::text::printable;

/// The exit code tells whether there is a page, not what it says.
pub(super) fn execute(arguments: &ReportArgs, context: &Context) -> Result<Outcome, Failure> {
    let ReportArgs { results, output, format } = arguments;
    target::check_page(output, results)?;
    let results = reports::read(results)?;
    reports::write_page(&results, output)?;
    let path = output.display().to_string();
    let json = json!({ "schema_version": SCHEMA_VERSION, "page": path });
    context.give(*format, &json, || {
        let mut document = Document::new("Report");
        document.line(printable(&path));
        document
    })?;
    Ok(Outcome::Proved)
}
