//! What can be asked about two models.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use veracity::{EngineChoice, OptimizationLevel};

use super::values::{dim, engine, level, memory, threads, tolerance_part};
use super::{FindingsArgs, Format};

/// Compare two ONNX models, engines or levels of optimisation, operator by operator
#[derive(Args, Debug)]
#[command(after_help = "\
The reference gives the values to trust, by name; outputs also by position. Each
operator of the candidate is run on the reference's values, so that only what it
brings in itself counts. What adds up is shown beside it.

Without CANDIDATE the same file is compared with itself: give another engine or
another level. A level is looked at as the graph that ONNX Runtime makes at it.

The first 8 operators that are wrong are run again with one thing changed: the
reference's weight, its attribute, a wider type, another engine. What makes the
error vanish is the cause. `--repro` writes the first of them as a model of its
own, which `veracity rerun` runs again.

With `--baseline` the exit code tells what got worse since then, and only that:
0 when nothing is worse, 1 when something is. Otherwise 0 when everything is
proved, 1 when something is disproved, 3 when nothing is disproved but something
could not be compared.

Examples:
  veracity drift fp32.onnx fp16.onnx --inputs batch.npz
  veracity drift fp32.onnx int8.onnx --tolerances tolerances.json --save drift.json
  veracity drift good.onnx bad.onnx --html drift.html --repro fault/
  veracity drift model.onnx --engine embedded --reference-engine ort
  veracity drift model.onnx --level all --dim batch=4 --baseline drift.json")]
pub(crate) struct DriftArgs {
    /// The model to trust
    pub(crate) reference: PathBuf,
    /// The model to check; without, the same file
    pub(crate) candidate: Option<PathBuf>,
    /// Tensors to feed, by the names of the inputs: `.npz`, `.safetensors` or `.npy`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "dim"])]
    pub(crate) inputs: Option<PathBuf>,
    /// Feed made-up values that depend on this number alone
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Size of a named axis of made-up values, `batch=4`; 1 without
    #[arg(long, value_name = "NAME=SIZE", value_parser = dim)]
    pub(crate) dim: Vec<(String, usize)>,
    /// What runs the candidate
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = engine())]
    pub(crate) engine: EngineChoice,
    /// What runs the reference; as the candidate without
    #[arg(long, value_name = "ENGINE", value_parser = engine())]
    pub(crate) reference_engine: Option<EngineChoice>,
    /// How far the candidate is optimised: `none`, `basic`, `extended` or `all`
    #[arg(long, value_name = "LEVEL", default_value = "none", value_parser = level())]
    pub(crate) level: OptimizationLevel,
    /// How far the reference is optimised
    #[arg(long, value_name = "LEVEL", default_value = "none", value_parser = level())]
    pub(crate) reference_level: OptimizationLevel,
    /// What an operator may introduce, in units in the last place of each element
    #[arg(long, value_name = "UNITS", value_parser = tolerance_part)]
    #[arg(default_value = "64", allow_negative_numbers = true)]
    pub(crate) budget: f64,
    /// What single operators may introduce instead, a JSON file
    #[arg(long, value_name = "FILE")]
    pub(crate) tolerances: Option<PathBuf>,
    /// Absolute tolerance of the accumulated error, for the place where drift first shows
    #[arg(long, value_name = "A", value_parser = tolerance_part)]
    #[arg(default_value = "1e-4", allow_negative_numbers = true)]
    pub(crate) tolerance: f64,
    /// Memory for values that are looked at together: `512MB`, `2GB`
    #[arg(long, value_name = "SIZE", default_value = "512MB", value_parser = memory)]
    pub(crate) memory: usize,
    /// Threads inside of one operator
    #[arg(long, value_name = "N", default_value = "1", value_parser = threads)]
    pub(crate) threads: NonZeroUsize,
    /// ONNX Runtime's library, or a folder that holds it
    #[arg(long, value_name = "PATH")]
    pub(crate) ort_library: Option<PathBuf>,
    /// Do not look for what makes operators wrong
    #[arg(long)]
    pub(crate) no_causes: bool,
    #[command(flatten)]
    pub(crate) findings: FindingsArgs,
}

/// Run a wrong operator again, from a folder that `--repro` wrote
#[derive(Args, Debug)]
#[command(after_help = "\
The operator is given what it was given when the folder was written, and what comes
out is held against what should. It needs neither Python nor the models.

Exits with 1 when the fault shows again, 0 when it does not.

Examples:
  veracity rerun fault/
  veracity rerun fault/ --engine embedded")]
pub(crate) struct RerunArgs {
    /// The folder
    pub(crate) folder: PathBuf,
    /// What runs it; without, what ran it when the folder was written
    #[arg(long, value_name = "ENGINE", value_parser = engine())]
    pub(crate) engine: Option<EngineChoice>,
    /// ONNX Runtime's library, or a folder that holds it
    #[arg(long, value_name = "PATH")]
    pub(crate) ort_library: Option<PathBuf>,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}
