//! What can be asked about proofs.

use std::path::PathBuf;

use clap::Args;
use veracity::EngineChoice;

use super::values::{ToleranceSpec, engine, tolerance_spec};
use super::{Format, SessionArgs};

/// Prove a bundle on this machine: each node alone, then all of it over time
#[derive(Args, Debug)]
#[command(after_help = "\
Every recorded sample runs through its model, and the recorded passes run as an
episode through the whole bundle. No Python is needed. Without `--tolerance` the
bundle is judged as it was when it was exported.

SPEC is one of
  auto                           the tolerances derived while exporting
  atol=1e-5,rtol=1e-4            for every port
  policy/action:atol=0,rtol=0    for one port; give it again for others
A value passes when |exported - source| <= atol + rtol * |source|. Integers and
bools must be equal whatever is given.

`--record` is for bundles without samples, such as those that LEAPP wrote: it runs
the bundle and keeps what it did in it. What is then proved is that the bundle
computes the same elsewhere, and nothing about the Python code.

With `--baseline` the exit code tells what got worse since then, and only that:
0 when nothing is worse, 1 when something is. Otherwise 0 when everything is
proved, 1 when something is disproved, 3 when nothing is disproved but something
could not be compared, or is right only under assumptions: a warning of tracing
about a value that the recorded passes may have fixed. `--accept-conditional`
takes assumptions as they are and exits with 0; `--deny-warnings` lets every
warning exit with 3.

Examples:
  veracity check policy/
  veracity check policy/ --engine embedded --tolerance atol=1e-5,rtol=1e-4 --save
  veracity check policy/ --rejudge --tolerance policy/action:atol=1e-6,rtol=0
  veracity check leapp_bundle/ --record --mock 0 --steps 50 --save
  veracity check policy/ --baseline main/proof.json --junit proof.xml")]
#[command(group = clap::ArgGroup::new("judgement").args(["tolerance", "equal_nan"]).multiple(true))]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct CheckArgs {
    /// The bundle's YAML file, or the folder that holds it
    pub(crate) bundle: PathBuf,
    /// What runs ONNX models; TorchScript models always run in torch
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = engine())]
    pub(crate) engine: EngineChoice,
    /// What counts as equal; see below
    #[arg(long, value_name = "SPEC", value_parser = tolerance_spec)]
    pub(crate) tolerance: Vec<ToleranceSpec>,
    /// Accept NaN that stands in the same places on both sides
    #[arg(long)]
    pub(crate) equal_nan: bool,
    /// Run nothing: judge what the bundle's proof measured by another tolerance
    #[arg(long, requires = "judgement", conflicts_with_all = ["record", "engine"])]
    pub(crate) rejudge: bool,
    /// Put the result into the bundle, as its proof
    #[arg(long)]
    pub(crate) save: bool,
    /// Write the result to a file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Fail only on what is worse than in this proof, a `.json` file or a bundle
    #[arg(long, value_name = "PROOF")]
    pub(crate) baseline: Option<PathBuf>,
    /// Exit with 0 when everything compared is right, whatever it is assumed under
    #[arg(long, conflicts_with_all = ["baseline", "deny_warnings"])]
    pub(crate) accept_conditional: bool,
    /// Let what tracing warned of keep a bundle from being proved: exit with 3
    #[arg(long, conflicts_with = "baseline")]
    pub(crate) deny_warnings: bool,
    /// Write the result to a file, as XML for build servers (`JUnit`)
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the result to a file, as a page to look at
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sessions: SessionArgs,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    // Last: its heading holds for whatever follows.
    #[command(flatten)]
    pub(crate) record: RecordArgs,
}

/// How samples are made from a run.
#[derive(Args, Debug)]
#[command(next_help_heading = "Recording")]
pub(crate) struct RecordArgs {
    /// First run the bundle, and keep what it did in it as samples
    #[arg(long)]
    pub(crate) record: bool,
    /// Tensors to feed while recording, as for `run`
    #[arg(long, value_name = "FILE", requires = "record", conflicts_with = "mock")]
    pub(crate) inputs: Option<PathBuf>,
    /// Record with made-up values that depend on this number alone; 0 without
    #[arg(long, value_name = "SEED", requires = "record")]
    pub(crate) mock: Option<u64>,
    /// Steps to record; by default the whole episode, 32 with made-up values
    #[arg(long, value_name = "N", requires = "record")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: Option<u64>,
    /// Give up samples that the Python code made, and with them what they prove
    #[arg(long, requires = "record")]
    pub(crate) replace: bool,
}

/// Say what changed between two proofs, or between two ONNX models
#[derive(Args, Debug)]
#[command(after_help = "\
A port is worse when its verdict is, when it is gone, when it is new and
disproved, or when it is disproved in both and needs more than twice the `atol`
to pass. A warning of tracing that is new is worse, too. Exits with 0 when nothing
is worse, 1 when something is.

Examples:
  veracity diff laptop.json robot.json
  veracity diff before/ after/ --format json")]
pub(crate) struct DiffArgs {
    /// The earlier proof, or the one to trust: a `.json` file or a bundle
    pub(crate) before: PathBuf,
    /// The later one
    pub(crate) after: PathBuf,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Record the hashes of a bundle's files anew, after changing it on purpose
#[derive(Args, Debug)]
#[command(after_help = "\
The proof stays what it was: about the files as they were. If anything changed it
is stale, and `run --require-proof` refuses the bundle until `check --save` has
proved it again.

Examples:
  veracity seal policy/
  veracity seal policy/ && veracity check policy/ --save")]
pub(crate) struct SealArgs {
    /// The bundle's YAML file, or the folder that holds it
    pub(crate) bundle: PathBuf,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}
