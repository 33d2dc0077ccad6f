//! Pictures of pipelines: structure, geometry, bytes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod geometry;
mod pictures;
mod pipelines;
mod properties;
mod refused;
mod structure;
