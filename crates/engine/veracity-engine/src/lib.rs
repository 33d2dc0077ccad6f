//! What an inference engine must be able to do.
//!
//! An [`Engine`] loads models; a [`Session`] is one loaded model. A session is bound to memory once
//! and then run many times, so that a step neither allocates nor looks anything up. This crate
//! implements no engine.

mod options;
mod port;
mod python;
mod source;

pub use options::{Device, OptimizationLevel, SessionOptions};
pub use port::{Port, Ports};
pub use python::site_packages_of;
pub use source::{ModelBytes, ModelFormat, ModelSource};
use veracity_diag::Result;
use veracity_tensor::SharedTensor;

/// Loads models of some formats.
pub trait Engine: Send + Sync {
    /// Short stable name: `ort`, `torch`, `embedded`.
    fn name(&self) -> &'static str;

    /// Version of the library behind it, as that library says it.
    fn version(&self) -> String;

    /// Whether models of this format can be loaded at all.
    fn supports(&self, format: ModelFormat) -> bool;

    /// Whether models may be merged into one session. Not where the engine refuses values at the
    /// borders of a model that it would mistake inside of one.
    fn may_merge(&self) -> bool {
        true
    }

    /// Loads a model.
    ///
    /// `ports` is what the bundle declares. The engine refuses a model that it can see to differ:
    /// a port that is missing, or that has another dtype or shape. What the format does not tell
    /// (TorchScript knows no shapes) is checked when the model runs.
    fn load(
        &self,
        source: &ModelSource,
        ports: &Ports,
        options: &SessionOptions,
    ) -> Result<Box<dyn Session>>;
}

/// One loaded model. It runs in the thread that calls it and may be moved between threads.
pub trait Session: Send {
    /// Fixes the memory that inputs are read from and outputs are written to, in the order of the
    /// declared ports. The session keeps the tensors alive. Several bindings may exist.
    fn bind(&mut self, inputs: &[SharedTensor], outputs: &[SharedTensor]) -> Result<Binding>;

    /// Runs the model once on a binding.
    ///
    /// Reads the bound inputs and writes the bound outputs, so nothing else may touch that memory
    /// meanwhile: whoever holds the other clones of the [`SharedTensor`]s answers for that. On
    /// failure the outputs hold anything. Allocates no Rust memory when it succeeds, unless the
    /// engine's documentation says otherwise.
    fn run(&mut self, binding: Binding) -> Result<()>;

    /// What the session runs on, for people: `cpu`, `cuda:0`.
    fn device(&self) -> String;
}

/// One set of memory that a session was bound to. Only valid for that session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding(pub usize);
