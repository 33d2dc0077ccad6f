//! The command line: reads arguments, calls the facade, shows what it found.
//!
//! Answers go to stdout, everything else to stderr. A command returns an [`Outcome`] or a
//! [`Failure`]; only this file makes an exit code of it.

mod cli;
mod commands;
mod context;
mod outcome;
mod progress;
mod render;

use std::process::ExitCode;

use clap::Parser as _;
use veracity::progress::shown_on;

use cli::Cli;
use context::Context;
use outcome::{Failure, Outcome};

/// The question was not answered.
const COULD_NOT_RUN: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    let context = Context::new(&cli.global);
    let terminal = progress::terminal(context.is_quiet());
    match shown_on(terminal, || commands::execute(&cli.command, &context)) {
        Ok(outcome) => ExitCode::from(code_of(outcome)),
        Err(Failure::Refused(refusal)) => {
            // When stderr is gone, the exit code is all that can still be said.
            let _ = context.refuse(refusal.diagnostics());
            ExitCode::from(COULD_NOT_RUN)
        }
        Err(Failure::Output(error)) => {
            let _ = context.complain(&format!("the answer cannot be written: {error}"));
            ExitCode::from(COULD_NOT_RUN)
        }
    }
}

fn code_of(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Proved => 0,
        Outcome::Disproved => 1,
        Outcome::Inconclusive => 3,
    }
}

/// Help, the version, or what is wrong with the arguments.
fn explain(error: &clap::Error) -> ExitCode {
    // As above: nobody is left to be told.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(COULD_NOT_RUN) } else { ExitCode::SUCCESS }
}
