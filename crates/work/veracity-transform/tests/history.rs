//! The history of a result: its log, what the log answers, and how models differ.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

#[path = "history/audit.rs"]
mod audit;
#[path = "history/diff.rs"]
mod diff;
#[path = "history/log.rs"]
mod log;
