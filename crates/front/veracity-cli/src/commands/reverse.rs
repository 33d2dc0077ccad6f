//! `veracity reverse`: the original of a model that was transformed.

use serde_json::json;
use veracity::results::SCHEMA_VERSION;
use veracity::transform::reverse_file;

use crate::cli::ReverseArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::document::Document;
use crate::render::text::printable;

pub(super) fn execute(arguments: &ReverseArgs, context: &Context) -> Result<Outcome, Failure> {
    let original = reverse_file(&arguments.model)?;
    original.write_fitting(&arguments.output)?;
    let path = arguments.output.display().to_string();
    let json = json!({ "schema_version": SCHEMA_VERSION, "original": path });
    context.give(arguments.format, &json, || {
        let path = printable(&path);
        let mut document = Document::new(format!("Original: {path}"));
        document.line(format!("the original is in {path}"));
        document
    })?;
    Ok(Outcome::Proved)
}
