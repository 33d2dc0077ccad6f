//! `veracity draw`: a bundle as a picture.

use serde_json::json;
use veracity::Bundle;
use veracity::results::SCHEMA_VERSION;

use crate::cli::{DrawArgs, Format};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::text::printable;

pub(super) fn execute(arguments: &DrawArgs, context: &Context) -> Result<Outcome, Failure> {
    let bundle = Bundle::open(&arguments.bundle)?;
    context.warn(bundle.warnings())?;
    let written = match &arguments.output {
        Some(path) => veracity::picture(&bundle)?.write(path).map(|()| vec![path.clone()])?,
        None => veracity::draw_beside(&bundle)?,
    };
    let files: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    match arguments.format {
        Format::Json => {
            context.answer_json(&json!({ "schema_version": SCHEMA_VERSION, "files": files }))?;
        }
        Format::Table => {
            let lines = files.iter().map(|file| format!("{}\n", printable(file)));
            context.answer(&lines.collect::<String>())?;
        }
    }
    Ok(Outcome::Proved)
}
