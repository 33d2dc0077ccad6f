//! `veracity completions`: scripts that complete these commands.

use clap::CommandFactory as _;

use crate::cli::{Cli, CompletionsArgs};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};

pub(super) fn execute(arguments: &CompletionsArgs, context: &Context) -> Result<Outcome, Failure> {
    // Into memory first: the generator panics when its output goes away.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "veracity", &mut script);
    context.answer(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Proved)
}
