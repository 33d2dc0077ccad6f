//! Checks of this repository that a compiler cannot make.
//!
//! `cargo xtask layers` holds the dependencies of the crates to the floor table in ARCHITECTURE.md.
//! `cargo xtask sizes` prints the longest files, for looking.

mod floors;
mod sizes;

use std::process::ExitCode;

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let result = match command.as_str() {
        "layers" => floors::check(),
        "sizes" => sizes::report(),
        _ => Err("usage: cargo xtask layers | sizes".to_owned()),
    };
    match result {
        Ok(summary) => {
            say(&summary);
            ExitCode::SUCCESS
        }
        Err(problems) => {
            complain(&problems);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "this is a command line tool")]
fn say(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "this is a command line tool")]
fn complain(text: &str) {
    eprintln!("{text}");
}
