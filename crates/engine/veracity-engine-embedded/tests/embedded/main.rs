//! What the embedded engine computes, and what it refuses.

mod harness;
mod operators;
mod refusals;
mod sessions;
