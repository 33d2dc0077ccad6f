//! Results in, bytes out: text and pages for people, `JUnit` XML for build servers, files in the
//! shape that other tools read.
//!
//! Nothing here computes or decides: what is shown was found before. The same result gives the same
//! bytes; there is no clock here and no terminal. Names and messages come from files that nobody
//! vouches for, so that [`plain::printable`] has seen all of them.

pub mod drift;
pub mod html;
mod junit;
pub mod markdown;
pub mod plain;
pub mod progress;
mod python;
pub mod rewrites;
mod spark;
mod text;

pub use junit::junit;
pub use text::{TextOptions, Tone, proof_text};
