//! Pipelines as pictures.
//!
//! [`layout()`] turns the plain description of a pipeline into coordinates: boxes with a row for each
//! port, and lines that cross no box. [`svg()`] and [`png()`] show exactly those coordinates, so that
//! whoever draws the pipeline elsewhere can show the same picture. Texts are measured in the font
//! that they are drawn with, which is part of the crate: no picture depends on the machine that it
//! is made on, and the same pipeline gives the same bytes.
//!
//! Nothing here reads bundles or knows what a verdict means.

mod arrange;
mod bands;
mod boxes;
mod channels;
mod font;
mod frame;
mod heights;
mod layers;
mod layout;
mod order;
#[cfg(feature = "png")]
mod png;
mod routes;
mod svg;
mod tracks;
mod wiring;

pub use frame::layout;
pub use layout::{
    Align, Block, Label, Layout, LegendEntry, LegendKind, PortPlace, Route, Side, Weight,
};
#[cfg(feature = "png")]
pub use png::png;
pub use svg::svg;
