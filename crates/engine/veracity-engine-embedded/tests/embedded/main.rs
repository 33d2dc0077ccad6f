//! What the embedded engine computes, and what it refuses.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod harness;
mod operators;
mod refusals;
mod sessions;
