//! What can be asked about changes of models.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use veracity::transform::{OnFail, Validation};
use veracity::{EngineChoice, OptimizationLevel};

use super::Format;
use super::values::{dim, engine, level, on_fail, threads, validation};

/// Change a model, or the ONNX nodes of a bundle, and prove each change
#[derive(Args, Debug)]
#[command(after_help = "\
Every rewrite is cut out with what it replaced; both are run on the values that the
model really has there and on unpleasant ones, and compared as the class of its
pass demands: exact-bits, exact-real, approximate. One that is wrong is taken back
alone. At the end the outputs are compared with those of the original.

PASSES is a list: `default` stands for the standard passes, a minus takes one out,
others are added by name. `veracity passes` lists them.

Beside the model lie `OUT.rewrites.json`, the log of every change and check, and
`OUT.rewrites.safetensors`, what `veracity reverse` needs to go back. Of a bundle a
new one is written, and proved before it takes its place.

Exits with 0 when everything that was kept is proved (or nothing was to be
checked), 1 when something wrong was kept, 3 when something could not be checked.

Examples:
  veracity transform model.onnx -o small.onnx --html small.html
  veracity transform model.onnx -o small.onnx --passes default,-fuse-batch-norm
  veracity transform model.onnx -o small.onnx --inputs batch.npz --on-fail raise
  veracity transform policy/ -o policy_small/")]
pub(crate) struct TransformArgs {
    /// An ONNX model, or a bundle
    pub(crate) input: PathBuf,
    /// The new model, or the folder of the new bundle
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) what: PassArgs,
    /// What is checked: `local`, `pass`, `final` or `off`
    #[arg(long, value_name = "WHAT", default_value = "local", value_parser = validation())]
    pub(crate) validate: Validation,
    /// What becomes of a wrong rewrite: `rollback`, `raise` or `keep`
    #[arg(long, value_name = "HOW", default_value = "rollback", value_parser = on_fail())]
    pub(crate) on_fail: OnFail,
    /// Write the model alone: no log, nothing in the nodes about where they come from
    #[arg(long)]
    pub(crate) no_log: bool,
    /// Write a page to look at; a new bundle has one as `report.html` without being asked
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Which passes run, and on what they are checked.
#[derive(Args, Debug)]
pub(crate) struct PassArgs {
    /// Passes to run, in this order
    #[arg(long, value_name = "PASSES", default_value = "default", value_delimiter = ',')]
    #[arg(allow_hyphen_values = true)]
    pub(crate) passes: Vec<String>,
    /// Tensors to check on, by the names of the inputs: `.npz`, `.safetensors` or `.npy`
    #[arg(long, value_name = "FILE")]
    pub(crate) inputs: Option<PathBuf>,
    /// What made-up values are drawn from
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Size of a named axis of made-up values, `batch=4`
    #[arg(long, value_name = "NAME=SIZE", value_parser = dim)]
    pub(crate) dim: Vec<(String, usize)>,
    /// What runs the models
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = engine())]
    pub(crate) engine: EngineChoice,
    /// Threads inside of one operator
    #[arg(long, value_name = "N", default_value = "1", value_parser = threads)]
    pub(crate) threads: NonZeroUsize,
    /// ONNX Runtime's library, or a folder that holds it
    #[arg(long, value_name = "PATH")]
    pub(crate) ort_library: Option<PathBuf>,
}

/// Find the rewrite that makes a model wrong
#[derive(Args, Debug)]
#[command(after_help = "\
The outputs are compared with those of the original. The passes are searched first,
then the rewrites of the guilty one; where several are wrong only together, the
smallest set of them. `--repro` writes what was replaced and what replaced it as two
models, with the inputs that show the fault.

With `--tool` another optimiser is searched instead, as a black box: the command is
run with `{in}`, `{out}` and `{skip}`, the names it is to leave out, joined by commas
(or one after the other where the command has `{skip...}`). Without `{skip}` it is
only compared.

Exits with 1 when something was found, 0 when the models agree.

Examples:
  veracity bisect model.onnx --repro fault/
  veracity bisect model.onnx --tool \"onnxslim {in} {out} --skip-fusion-patterns {skip...}\" \\
      --names FusionConvBN,FusionGemm
  veracity bisect model.onnx --ort-level extended --names ConvBNFusion,GeluFusion")]
pub(crate) struct BisectArgs {
    /// An ONNX model
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) what: PassArgs,
    /// Another optimiser, as a command
    #[arg(long, value_name = "COMMAND")]
    pub(crate) tool: Option<String>,
    /// ONNX Runtime at this level as the other optimiser: `basic`, `extended` or `all`
    #[arg(long, value_name = "LEVEL", value_parser = level(), conflicts_with = "tool")]
    pub(crate) ort_level: Option<OptimizationLevel>,
    /// Names of what the other optimiser can leave out
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) names: Vec<String>,
    /// Write the fault alone, as models that show it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["tool", "ort_level"])]
    pub(crate) repro: Option<PathBuf>,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Say what was done to a model, from its log
#[derive(Args, Debug)]
#[command(after_help = "\
Without a question the log is held against the model: whether it still is the one
that the log is about, and what each pass did. `--original` also does every rewrite
again and compares the bytes.

Examples:
  veracity audit small.onnx
  veracity audit small.onnx --original model.onnx
  veracity audit small.onnx --node conv1 --why-not bn7 --value relu_3")]
pub(crate) struct AuditArgs {
    /// A model that `veracity transform` wrote
    pub(crate) model: PathBuf,
    /// The original: every rewrite is done again on it
    #[arg(long, value_name = "FILE")]
    pub(crate) original: Option<PathBuf>,
    /// Nodes that a pass made or changed
    #[arg(long, value_name = "PASS")]
    pub(crate) pass: Option<String>,
    /// Where a node of the model comes from
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// What became of a value of the original
    #[arg(long, value_name = "VALUE")]
    pub(crate) value: Option<String>,
    /// Why a node of the original was left alone
    #[arg(long, value_name = "NODE")]
    pub(crate) why_not: Option<String>,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Undo a transformation: the original, byte for byte
#[derive(Args, Debug)]
#[command(after_help = "\
Reads the log and the elements beside the model. The original comes back with all
its weights inside, whether or not they lay in a file of their own. Refused when the model or its log
was changed since.

Examples:
  veracity reverse small.onnx -o model.onnx")]
pub(crate) struct ReverseArgs {
    /// A model that `veracity transform` wrote
    pub(crate) model: PathBuf,
    /// Where to write the original
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// List the passes: what each does and what it promises about the numbers
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  veracity passes
  veracity passes --format json")]
pub(crate) struct PassesArgs {
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}
