//! What people, build servers and other tools see of a proof and of a drift report. Both are made
//! in code, texts are snapshots.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod drift_files;
mod drift_text;
mod drifts;
mod html;
mod html_proof;
mod html_rewrites;
mod junit;
mod markdown;
mod proofs;
mod rewrites;
mod text;
