//! Pictures of pipelines: structure, geometry, bytes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod geometry;
mod pictures;
mod pipelines;
#[cfg(feature = "png")]
mod pixels;
mod properties;
mod refused;
mod structure;
