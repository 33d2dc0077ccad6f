//! Runs the built binary as a person or a script would.
//!
//! What a command says is a snapshot of exit code, stdout and stderr. Bundles and tensors are made
//! in code; the embedded engine runs them, except where the engine is the subject.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bench;
mod bundle;
mod check;
mod check_files;
mod check_refused;
mod compare;
mod diff;
mod draw;
mod drift;
mod formats;
mod inspect;
mod parity;
mod report;
mod run;
mod run_refused;
mod seal;
mod support;
mod terminal;
mod transform;
mod verify;
mod verify_robot;
mod view;
mod walker;
