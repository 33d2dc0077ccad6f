//! Changes ONNX graphs, one proved rewrite at a time.
//!
//! A [`Pass`] looks at a graph and proposes patches; it changes nothing itself. The runner
//! ([`transform`]) applies what is proposed, keeps a record of each rewrite, and asks a [`Judge`]
//! about it: a rewrite that is judged wrong is taken back, alone. What a pass saw and left alone is
//! recorded with the precondition that failed.

mod class;
mod digest;
mod facts;
mod found;
pub mod judge;
mod pass;
pub mod passes;
mod pattern;
mod pipeline;
mod runner;
mod view;

pub use class::Class;
pub use facts::{Element, Fact, Facts};
pub use found::{Declined, Found, Proposal};
pub use pass::{Parameter, Pass};
pub use pipeline::Pipeline;
pub use runner::{
    Judge, Limits, Match, Opinion, PassDone, Rewrite, Sweep, Transformed, Trusting, transform,
    transform_only,
};
pub use view::View;
