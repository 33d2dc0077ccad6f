//! Pages: one file each that needs nothing else, neither a network nor a server.
//!
//! A page is text with everything inside; without scripts it still shows everything. What comes from
//! a report goes through [`escape`](escape::escape), without exception.

mod chart;
mod drift;
mod escape;
mod facts;
mod graph;
mod histogram;
mod picture;
mod proof;
mod rewrites;
mod shell;
mod table;
mod tree;
mod words;

pub use drift::drift;
pub use escape::escape;
pub use graph::{Anchor, Drawing, DrawnBox, DrawnLine, DrawnText};
pub use picture::unproved;
pub use proof::proof;
pub use rewrites::{Rewritten, Window, Windows, rewrites, rewritten_bundle};
