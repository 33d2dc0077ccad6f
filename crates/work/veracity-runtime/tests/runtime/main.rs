//! What a runner does, on real bundles with a real engine.

mod allocations;
mod common;
mod failing_steps;
mod reorder;
mod running;
