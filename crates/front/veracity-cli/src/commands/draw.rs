//! `veracity draw`: a bundle as a picture.

use serde_json::json;
use veracity::Bundle;
use veracity::results::SCHEMA_VERSION;

use crate::cli::DrawArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::document::Document;
use crate::render::text::printable;

pub(super) fn execute(arguments: &DrawArgs, context: &Context) -> Result<Outcome, Failure> {
    let bundle = Bundle::open(&arguments.bundle)?;
    context.warn(bundle.warnings())?;
    let written = match &arguments.output {
        Some(path) => veracity::picture(&bundle)?.write(path).map(|()| vec![path.clone()])?,
        None => veracity::draw_beside(&bundle)?,
    };
    let files: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    let json = json!({ "schema_version": SCHEMA_VERSION, "files": files });
    context.give(arguments.format, &json, || {
        let mut document = Document::new(format!("Pictures: {}", arguments.bundle.display()));
        for file in &files {
            document.line(printable(file));
        }
        document
    })?;
    Ok(Outcome::Proved)
}
