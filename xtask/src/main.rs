//! Checks of this repository that a compiler cannot make.
//!
//! `cargo xtask layers` holds the dependencies of the crates to the floor table in ARCHITECTURE.md,
//! and sees to it that both fronts share one build of what they use.
//! `cargo xtask schema` writes the JSON Schemas of files, with `--check` it only says whether those
//! that are there are current. `cargo xtask book` lays out what the site of the documentation is made
//! of, with `--check` it looks for dead links in the finished one. `cargo xtask sizes` prints the longest files, for looking.

mod book;
mod features;
mod floors;
mod schema;
mod sizes;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["layers"] => floors::check().and_then(|first| Ok(first + "\n" + &features::check()?)),
        ["schema"] => schema::write(),
        ["schema", "--check"] => schema::check(),
        ["book"] => book::stage(),
        ["book", "--check"] => book::check(),
        ["sizes"] => sizes::report(),
        _ => {
            Err("usage: cargo xtask layers | schema [--check] | book [--check] | sizes".to_owned())
        }
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
