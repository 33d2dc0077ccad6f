//! One file for each command: arguments in, calls to the facade, an answer out.

pub(crate) mod audit;
mod bench;
mod bisect;
mod check;
mod compare;
mod completions;
mod diff;
mod draw;
mod drift;
mod feed;
mod inspect;
mod parity;
mod passes;
mod report;
mod rerun;
mod reverse;
mod run;
mod seal;
mod sessions;
mod target;
mod transform;
mod verify;
mod view;

use crate::cli::Command;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};

/// Does what was asked for.
pub(crate) fn execute(command: &Command, context: &Context) -> Result<Outcome, Failure> {
    match command {
        Command::Inspect(arguments) => inspect::execute(arguments, context),
        Command::Draw(arguments) => draw::execute(arguments, context),
        Command::Verify(arguments) => verify::execute(arguments, context),
        Command::Check(arguments) => check::execute(arguments, context),
        Command::Diff(arguments) => diff::execute(arguments, context),
        Command::Seal(arguments) => seal::execute(arguments, context),
        Command::Run(arguments) => run::execute(arguments, context),
        Command::Bench(arguments) => bench::execute(arguments, context),
        Command::Compare(arguments) => compare::execute(arguments, context),
        Command::Parity(arguments) => parity::execute(arguments, context),
        Command::Drift(arguments) => drift::execute(arguments, context),
        Command::Rerun(arguments) => rerun::execute(arguments, context),
        Command::Report(arguments) => report::execute(arguments, context),
        Command::View(arguments) => view::execute(arguments, context),
        Command::Transform(arguments) => transform::execute(arguments, context),
        Command::Bisect(arguments) => bisect::execute(arguments, context),
        Command::Audit(arguments) => audit::execute(arguments, context),
        Command::Reverse(arguments) => reverse::execute(arguments, context),
        Command::Passes(arguments) => passes::execute(arguments, context),
        Command::Completions(arguments) => completions::execute(arguments, context),
    }
}
