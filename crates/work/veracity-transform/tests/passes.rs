//! The rules of every pass, one file each.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

#[path = "passes/dead_code.rs"]
mod dead_code;
#[path = "passes/no_ops.rs"]
mod no_ops;
