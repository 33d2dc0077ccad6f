//! What people and build servers see of a proof. Proofs are made in code, texts are snapshots.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod junit;
mod proofs;
mod text;
