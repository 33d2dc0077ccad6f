//! `veracity passes`: what can be done to a model.

use veracity::transform::{PassFacts, pass_facts};

use crate::cli::PassesArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::document::Document;
use crate::render::table::{Column, Table};

pub(super) fn execute(arguments: &PassesArgs, context: &Context) -> Result<Outcome, Failure> {
    let passes = pass_facts();
    context.give(arguments.format, &passes, || document(&passes))?;
    Ok(Outcome::Proved)
}

fn document(passes: &[PassFacts]) -> Document {
    let columns = [Column::left("pass"), Column::left("class"), Column::left("about").flexible()];
    let mut table = Table::new(columns);
    for pass in passes {
        let about = if pass.default {
            pass.about.to_owned()
        } else {
            format!("{} (on demand)", pass.about)
        };
        table.row([pass.name.into(), pass.class.into(), about.into()]);
    }
    let mut document = Document::new("Passes");
    document.table(table, 0);
    document
}
