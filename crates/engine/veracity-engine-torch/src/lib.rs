//! TorchScript models, run by the torch that is on the machine.
//!
//! Nothing here is linked to torch: a program that uses this crate builds and starts without it.
//! [`TorchLibrary::find`] locates an installation; the first model that is loaded makes
//! [`TorchEngine`] compile a small C++ shim against it (`shim/shim.cpp`, about 15 seconds) and keep
//! the result in a cache, one per torch build. A process holds one torch: where Python has already
//! imported it, that one is used.
//!
//! # What a model can and cannot do
//! - Inputs are copied in and outputs are copied out. A module may write into its inputs, reshape
//!   them or keep them for the next call; neither the caller's memory nor another session sees it.
//! - Count, dtype and shape of the results are checked on every run.
//! - The number of threads holds for the calling thread and only during the run.
//! - A module that changes its own attributes keeps that state between runs; binding again or
//!   failing does not undo it.
//! - A TorchScript archive is a program. Loading one runs no Python, but torch's reader was not
//!   written for hostile files, and it ignores the archive's checksums: a changed weight loads
//!   without a word. The bundle's hashes are what protects from that.
//!
//! # How a model is run
//! In inference mode, by TorchScript's simple executor: the profiling executor is no faster on the
//! CPU, and it compiles again during the first runs, after which fused operators may round
//! differently. [`OptimizationLevel::None`](veracity_engine::OptimizationLevel::None) runs the graph
//! as saved; the other levels mean the same. Modules are not frozen: that gained less than the
//! noise of the measurement.

mod cache;
mod compile;
mod engine;
mod library;
mod open;
mod search;
mod session;
mod shim;

pub use engine::TorchEngine;
pub use library::TorchLibrary;
pub use search::Search;
