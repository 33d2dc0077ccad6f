//! What a proof says about bundles that are right, and about bundles with one fault each.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[expect(dead_code, reason = "the bundles of the runtime's tests; not all of them are needed here")]
#[path = "../../../veracity-runtime/tests/runtime/common.rs"]
mod common;
mod elsewhere;
mod faults;
mod forged;
mod grouping;
mod noticed;
mod over_time;
mod standing;
mod support;
