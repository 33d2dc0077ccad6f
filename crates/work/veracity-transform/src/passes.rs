//! The passes, one file each.
//!
//! Each file states what the pass promises, what it needs to hold before it proposes anything, and
//! why the result is then the same. Its tests are in `tests/passes/`, under the same name: it fires,
//! it leaves alone what only looks like a match (one case for each precondition), a second run finds
//! nothing, and the numbers are right.

mod constants;
mod dead_code;
mod no_ops;

pub use constants::HoldConstants;
pub use dead_code::RemoveDeadCode;
pub use no_ops::RemoveNoOps;

use crate::Pass;

/// Passes that are safe to run unasked, in the order of their value.
pub fn standard() -> Vec<Box<dyn Pass>> {
    vec![Box::new(HoldConstants), Box::new(RemoveNoOps), Box::new(RemoveDeadCode)]
}

/// Passes that only run when they are asked for.
fn on_demand() -> Vec<Box<dyn Pass>> {
    Vec::new()
}

/// Every pass there is.
pub fn all() -> Vec<Box<dyn Pass>> {
    standard().into_iter().chain(on_demand()).collect()
}
