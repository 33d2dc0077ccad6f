//! Changes ONNX graphs, one proved rewrite at a time.
//!
//! A [`Pass`] looks at a graph and proposes patches; it changes nothing itself. The runner
//! ([`transform`]) applies what is proposed, keeps a record of each rewrite, and asks a [`Judge`]
//! about it: a rewrite that is judged wrong is taken back, alone. What a pass saw and left alone is
//! recorded with the precondition that failed.

mod audit;
mod base64;
pub mod bisect;
mod class;
mod diff;
mod digest;
mod evaluate;
mod facts;
mod fields;
mod found;
pub mod judge;
mod lineage;
mod log;
mod pass;
pub mod passes;
mod pattern;
mod pipeline;
mod provenance;
mod replay;
mod reverse;
mod runner;
mod view;

pub use audit::{Audit, audit};
pub use class::Class;
pub use diff::diff;
pub use digest::model_sha256;
pub use facts::{Element, Fact, Facts};
pub use found::{Declined, Found, Proposal};
pub use log::{
    Elements, LogOptions, Recorded, elements_path, log_path, log_sha256, read_checked_log,
    read_log, record, sides,
};
pub use pass::{Parameter, Pass};
pub use pipeline::Pipeline;
pub use replay::replay;
pub use reverse::reverse;
pub use runner::{
    Judge, Limits, Match, Opinion, PassDone, Rewrite, Sweep, Transformed, Trusting, transform,
    transform_only,
};
pub use view::View;
