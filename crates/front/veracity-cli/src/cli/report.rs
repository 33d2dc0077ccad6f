//! What can be asked about pages.

use std::path::PathBuf;

use clap::Args;

use super::Format;

/// Make a page of results: one file, to look at and to hand on
#[derive(Args, Debug)]
#[command(after_help = "\
The page holds everything and opens from disk, without a network. It is made of
the results alone: nothing is run, and the bundle is not needed.

Examples:
  veracity report policy/
  veracity report proof.json --output proof.html
  veracity drift model.onnx --save drift.json; veracity report drift.json
  veracity report small.onnx.rewrites.json")]
pub(crate) struct ReportArgs {
    /// `proof.json`, a saved drift report, a log of rewrites, or a bundle that has a proof
    pub(crate) results: PathBuf,
    /// Where to write the page
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}
