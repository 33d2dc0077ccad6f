//! Findings and numbers as text for a terminal.
//!
//! Everything here returns text with colours in it; the streams take them out where they do not
//! belong. Nothing here writes, and nothing is understandable by its colour alone.

pub(crate) mod audit;
pub(crate) mod baseline;
pub(crate) mod bisection;
pub(crate) mod comparison;
pub(crate) mod diagnostic;
pub(crate) mod difference;
pub(crate) mod document;
pub(crate) mod drift;
pub(crate) mod inspection;
pub(crate) mod latency;
pub(crate) mod proof;
pub(crate) mod robot;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod verification;
