//! What an inference engine must be able to do.
//!
//! An [`Engine`] loads models; a [`Session`] is one loaded model, which the engine provides as a
//! [`Model`]. A session is bound to memory once and then run many times, so that a step neither
//! allocates nor looks anything up. What all engines must check (fit, aliasing, memory that another
//! session is using) is checked here, once. This crate implements no engine.

mod options;
mod port;
mod python;
mod session;
mod source;

pub use options::{Device, OptimizationLevel, SessionOptions};
pub use port::{Port, Ports};
pub use python::site_packages_of;
pub use session::{Binding, Model, Session};
pub use source::{ModelBytes, ModelFormat, ModelSource};
use veracity_diag::{Diagnostic, Refusal, Result, codes};
use veracity_tensor::Tensor;

/// One run of a model whose outputs nobody declared.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation<'v> {
    /// What it is given, by name.
    pub inputs: &'v [(&'v str, &'v Tensor)],
    /// Names of the values that are wanted.
    pub outputs: &'v [&'v str],
}

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
    ) -> Result<Session>;

    /// Runs an ONNX model once and gives the outputs of these names, whatever their shapes are:
    /// for values that nobody declared. `None` stands for an output that is no tensor of ours.
    ///
    /// Loads the model for this one run, so that it is not for loops.
    fn evaluate(
        &self,
        source: &ModelSource,
        inputs: &[(&str, &Tensor)],
        outputs: &[&str],
        options: &SessionOptions,
    ) -> Result<Vec<Option<Tensor>>> {
        let _ = (inputs, outputs, options);
        Err(self.cannot(source, "run a model whose shapes are not declared"))
    }

    /// Runs an ONNX model several times, loaded once where the engine can do that: for what is to be
    /// seen to repeat itself, and for many inputs of the same shapes.
    fn evaluate_each(
        &self,
        source: &ModelSource,
        runs: &[Evaluation<'_>],
        options: &SessionOptions,
    ) -> Result<Vec<Vec<Option<Tensor>>>> {
        runs.iter().map(|run| self.evaluate(source, run.inputs, run.outputs, options)).collect()
    }

    /// The graph that the engine makes of an ONNX model before it runs it, as an ONNX file, without
    /// what the named optimisers of the engine would do.
    fn optimized(
        &self,
        source: &ModelSource,
        options: &SessionOptions,
        left_out: &[&str],
    ) -> Result<Vec<u8>> {
        let _ = (options, left_out);
        Err(self.cannot(source, "write the graph that it optimised"))
    }

    /// A refusal of what an engine does not offer.
    fn cannot(&self, source: &ModelSource, what: &str) -> Refusal {
        let message = format!("the engine `{}` cannot {what}", self.name());
        Diagnostic::error(codes::ENGINE_UNSUPPORTED, message)
            .at(source.bytes.place())
            .hint("use `--engine ort`")
            .into()
    }
}
