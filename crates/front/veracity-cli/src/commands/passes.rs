//! `veracity passes`: what can be done to a model.

use std::fmt::Write as _;

use veracity::transform::{PassFacts, pass_facts};

use crate::cli::{PageFormat, PassesArgs};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::table::{Column, Table};

pub(super) fn execute(arguments: &PassesArgs, context: &Context) -> Result<Outcome, Failure> {
    let passes = pass_facts();
    match arguments.format {
        PageFormat::Json => context.answer_json(&passes)?,
        PageFormat::Md => context.answer(&markdown(&passes))?,
        PageFormat::Table => context.answer(&table(&passes, context.width()))?,
    }
    Ok(Outcome::Proved)
}

fn table(passes: &[PassFacts], width: usize) -> String {
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
    table.render(0, width)
}

fn markdown(passes: &[PassFacts]) -> String {
    let mut text = "| pass | class | by default | about |\n|---|---|---|---|\n".to_owned();
    for PassFacts { name, class, default, about, .. } in passes {
        let default = if *default { "yes" } else { "no" };
        let _ = writeln!(text, "| `{name}` | {class} | {default} | {about} |");
    }
    text
}
