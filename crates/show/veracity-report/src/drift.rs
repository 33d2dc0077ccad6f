//! A drift report: for people, for programs, and in the shape that other tools read.
//!
//! Everything is made from a [`DriftReport`](veracity_results::DriftReport), so that the command line
//! and Python write the same bytes.

mod causes;
mod files;
mod layers;
mod markdown;
mod overlay;
mod text;
mod words;

pub use files::{ReportFile, files};
pub use layers::{Layer, layers};
pub use markdown::markdown;
pub use overlay::overlay;
pub(crate) use text::fitted;
pub use text::text;
pub(crate) use words::{cause_line, coverage_lines, shape, verdict, verdict_line};
