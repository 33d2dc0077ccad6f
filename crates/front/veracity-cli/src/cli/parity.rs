//! What can be asked about a module of torch and its export.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::FindingsArgs;
use super::values::{threads, tolerance_part};

/// Compare a torch module with its ONNX export, operator by operator
#[derive(Args, Debug)]
#[command(after_help = "\
TARGET is one of
  package.module:builder    something to call, imported from the current folder
  path/file.py:builder      the same in a file
  zoo:resnet50              a network with made-up weights: any classification
                            model of torchvision, lstm, gru_policy or
                            shared_transformer
  bundle/ --node policy     a node of a bundle
A builder returns a module, (module, args) or (module, args, kwargs).

The module is torch code, so this command runs the Python of VIRTUAL_ENV, or else
`python3`, which must have torch, onnxscript and veracity.

Exits with 0 when every operator that was compared is proved, 1 when one is
disproved, 3 when none is but something could not be compared. With `--baseline`
the exit code tells what got worse since then, and only that.

Examples:
  veracity parity zoo:resnet18
  veracity parity policy.train:make_policy --weights last.pt --html drift.html
  veracity parity nets.py:Encoder --input-shape 1,3,64,64 --onnx encoder.onnx
  veracity parity nets.py:Encoder --input-shape 1,3,64,64 --against program")]
pub(crate) struct ParityArgs {
    /// What to compare; see below
    pub(crate) target: String,
    /// The node of a bundle
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// Where random numbers start: weights, inputs
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub(crate) seed: u32,
    /// Draw an input of this shape, `1,3,224,224`; give it again for further inputs
    #[arg(long, value_name = "SIZES", value_parser = shape)]
    pub(crate) input_shape: Vec<String>,
    /// An export of the module that exists already; by default a fresh one
    #[arg(long, value_name = "FILE")]
    pub(crate) onnx: Option<PathBuf>,
    /// What to compare the module with: `onnx`, `program` (the program that torch exports) or a
    /// `.pt2` file
    #[arg(long, value_name = "WHAT", default_value = "onnx")]
    pub(crate) against: String,
    /// Weights to load into the module: a `state_dict` or `.safetensors`
    #[arg(long, value_name = "FILE")]
    pub(crate) weights: Option<PathBuf>,
    /// Absolute bound of the accumulated error, for the drift origin
    #[arg(long, value_name = "A", default_value_t = 1e-4, value_parser = tolerance_part)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) tolerance: f64,
    /// Most that an operator may bring in, in units in the last place of each element
    #[arg(long, value_name = "UNITS", default_value_t = 64.0, value_parser = tolerance_part)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) budget: f64,
    /// Budgets of single operators
    #[arg(long, value_name = "FILE")]
    pub(crate) tolerances: Option<PathBuf>,
    /// How much of the export's values to compute at once
    #[arg(long, value_name = "SIZE", default_value = "16MB")]
    pub(crate) memory: String,
    /// Threads inside of one operator
    #[arg(long, value_name = "N", default_value = "1", value_parser = threads)]
    pub(crate) threads: NonZeroUsize,
    /// What runs the export
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    #[arg(value_parser = ["auto", "ort", "embedded"])]
    pub(crate) engine: String,
    /// Do not run the module in float64 too
    #[arg(long)]
    pub(crate) no_float64: bool,
    #[command(flatten)]
    pub(crate) findings: FindingsArgs,
}

/// Sizes of axes; nothing is the shape of a single number.
fn shape(text: &str) -> Result<String, String> {
    let sound = text.is_empty() || text.split(',').all(|size| size.parse::<u32>().is_ok());
    sound.then(|| text.to_owned()).ok_or_else(|| "give sizes as `1,3,224,224`".to_owned())
}
