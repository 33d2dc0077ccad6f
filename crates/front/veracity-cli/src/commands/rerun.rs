//! `veracity rerun`: a wrong operator alone, run again.

use veracity::{EngineSearch, Engines, drift};

use crate::cli::RerunArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::drift as rendered;

pub(super) fn execute(arguments: &RerunArgs, context: &Context) -> Result<Outcome, Failure> {
    let recorded = drift::engine_of_repro(&arguments.folder)?;
    let ort_library = arguments.ort_library.clone();
    let search = EngineSearch { ort_library, ..EngineSearch::default() };
    let engines = Engines::new(arguments.engine.unwrap_or(recorded), search);
    let run = drift::rerun(&arguments.folder, &engines)?;
    context.give(arguments.format, &run, || rendered::rerun(&run))?;
    Ok(if run.shows { Outcome::Disproved } else { Outcome::Proved })
}
