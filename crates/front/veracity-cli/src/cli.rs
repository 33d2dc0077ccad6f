//! What can be asked, as types that are already checked.

mod drift;
mod findings;
mod parity;
mod proof;
#[cfg(test)]
mod reference;
mod report;
mod transform;
mod values;
mod verify;
mod view;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use veracity::results::Tolerance;
use veracity::{Device, EngineChoice};

pub(crate) use drift::{DriftArgs, RerunArgs};
pub(crate) use findings::FindingsArgs;
pub(crate) use parity::ParityArgs;
pub(crate) use proof::{CheckArgs, DiffArgs, RecordArgs, SealArgs};
pub(crate) use report::ReportArgs;
pub(crate) use transform::{
    AuditArgs, BisectArgs, PassArgs, PassesArgs, ReverseArgs, TransformArgs,
};
pub(crate) use values::{Rate, ToleranceSpec};
use values::{ceiling, device, engine, rate, threads, tolerance_part};
pub(crate) use verify::VerifyArgs;
pub(crate) use view::ViewArgs;

const EXIT_CODES: &str = "\
Exit codes:
  0  everything that was asked for holds, or was done
  1  disproved: a bundle is refused, or values lie outside of the tolerance
  2  could not run: wrong arguments, missing files, an engine that is not there
  3  inconclusive: nothing is wrong, but something could not be compared, or is
     right only under assumptions

Examples:
  veracity inspect policy/
  veracity verify policy/ && veracity run policy/ --mock 0 --steps 1000
  veracity check policy/ --engine embedded
  veracity compare pytorch.npz veracity.npz --atol 1e-5 --rtol 1e-4";

/// Proves that an exported pipeline computes what the Python code computed, and runs it.
#[derive(Debug, Parser)]
#[command(name = "veracity", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Args, Debug)]
pub(crate) struct GlobalArgs {
    /// When to use colours; `auto` heeds `NO_COLOR`, `CLICOLOR_FORCE` and the terminal
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    #[arg(hide_possible_values = true, help_heading = "Global options")]
    pub(crate) color: ColorArg,
    /// Show answers and errors only: no warnings, no progress
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ColorArg {
    Auto,
    Always,
    Never,
}

/// Who the answer is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // No documentation here: clap would spread every help over two screens for it.
    #[default]
    Table,
    Json,
    Md,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Inspect(InspectArgs),
    Draw(DrawArgs),
    Verify(VerifyArgs),
    // Parsed once in a process, so that its size does not matter; on the heap because clippy asks.
    Check(Box<CheckArgs>),
    Diff(DiffArgs),
    Seal(SealArgs),
    Run(RunArgs),
    Bench(BenchArgs),
    Compare(CompareArgs),
    Parity(Box<ParityArgs>),
    // As above.
    Drift(Box<DriftArgs>),
    Rerun(RerunArgs),
    Report(ReportArgs),
    View(ViewArgs),
    // As above.
    Transform(Box<TransformArgs>),
    // As above.
    Bisect(Box<BisectArgs>),
    Audit(AuditArgs),
    Reverse(ReverseArgs),
    Passes(PassesArgs),
    Completions(CompletionsArgs),
}

/// Show what is in a bundle: models, ports, wiring, hashes, versions
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  veracity inspect policy/
  veracity inspect policy/policy.yaml --format json | jq .nodes[].name")]
pub(crate) struct InspectArgs {
    /// The bundle's YAML file, or the folder that holds it
    pub(crate) bundle: PathBuf,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Draw a bundle: nodes with their ports, wiring, and what comes back a tick later
#[derive(Args, Debug)]
#[command(after_help = "\
Without --output an SVG and a PNG are written beside the bundle's YAML file. A
verdict is shown where the bundle holds a proof that is about it as it is.

Examples:
  veracity draw policy/
  veracity draw policy/ -o docs/policy.svg")]
pub(crate) struct DrawArgs {
    /// The bundle's YAML file, or the folder that holds it
    pub(crate) bundle: PathBuf,
    /// Where to write one picture, `.svg` or `.png`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Step a bundle through an episode and say how long the steps took
#[derive(Args, Debug)]
#[command(after_help = "\
The inputs file holds tensors named `node/port`. One of the port's own shape is
used on every step; one with an extra leading axis is an episode, one step after
the other. A feedback input of the port's shape replaces the initial value. A
step's time covers writing the inputs and running every node.

A proof is about how a bundle was run: `--require-proof` refuses one that was made
with another engine, another major version of it or on another kind of device, and
one that was judged more widely than the bundle was exported. `--prove` proves the
bundle on the spot, with the engine and options that will run it.

Examples:
  veracity run policy/ --inputs episode.npz --outputs actions.npz
  veracity run policy/ --mock 0 --steps 10000 --rate bundle --require-proof
  veracity run policy/ --inputs robot.npz --map map.yaml --outputs robot_out.npz
  veracity run policy/ --mock 0 --steps 100 --engine embedded --format json")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct RunArgs {
    /// The bundle's YAML file, or the folder that holds it
    pub(crate) bundle: PathBuf,
    /// Tensors to feed, `.npz` or `.safetensors`
    #[arg(long, value_name = "FILE", conflicts_with = "mock")]
    pub(crate) inputs: Option<PathBuf>,
    /// Feed made-up values that depend on this number alone
    #[arg(long, value_name = "SEED")]
    pub(crate) mock: Option<u64>,
    /// Steps to run; by default the whole episode, 100 with `--mock`, else 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: Option<u64>,
    /// Steps per second, or `bundle` for the bundle's frequency; as fast as possible without
    #[arg(long, value_name = "HZ", value_parser = rate, allow_negative_numbers = true)]
    pub(crate) rate: Option<Rate>,
    /// What runs ONNX models; TorchScript models always run in torch
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = engine())]
    pub(crate) engine: EngineChoice,
    /// Merge neighbouring ONNX nodes into one session, if that is shown to change nothing
    #[arg(long)]
    pub(crate) fuse: bool,
    /// Refuse a bundle whose proof is missing, stale, negative or conditional
    #[arg(long, group = "proved")]
    pub(crate) require_proof: bool,
    /// With `--require-proof`, take a verdict that rests on assumptions
    #[arg(long, requires = "proved")]
    pub(crate) accept_conditional: bool,
    /// The widest tolerance that the proof may have been judged by, `atol=1e-4,rtol=1e-3`;
    /// without, what the bundle was exported with
    #[arg(long, value_name = "SPEC", value_parser = ceiling, requires = "proved")]
    pub(crate) ceiling: Option<Tolerance>,
    /// Prove the bundle first, with the engine and options that will run it
    #[arg(long, group = "proved")]
    pub(crate) prove: bool,
    /// Take inputs and give outputs in a robot's order: a map of `veracity verify --write-map`
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<PathBuf>,
    /// Where to write every output of every step, `.npz` or `.safetensors`
    #[arg(long, value_name = "FILE")]
    pub(crate) outputs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sessions: SessionArgs,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Measure the step time of a bundle with separate and with merged sessions
#[derive(Args, Debug)]
#[command(after_help = "\
All variants get the same made-up inputs and take turns in blocks, so that a
machine that slows down slows all of them. The ratios hold for this machine and
this run.

Examples:
  veracity bench policy/
  veracity bench policy/ --engine ort --engine embedded --steps 50000")]
pub(crate) struct BenchArgs {
    /// The bundle's YAML file, or the folder that holds it
    pub(crate) bundle: PathBuf,
    /// Steps to measure of each variant
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: u64,
    /// Steps of each variant that are run before and not measured
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) warmup: u64,
    /// What runs ONNX models; give it again to compare engines
    #[arg(long = "engine", value_name = "ENGINE", default_value = "auto", value_parser = engine())]
    pub(crate) engines: Vec<EngineChoice>,
    #[command(flatten)]
    pub(crate) sessions: SessionArgs,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Compare the tensors of two files by name
#[derive(Args, Debug)]
#[command(after_help = "\
A value passes when |candidate - reference| <= atol + rtol * |reference|;
integers and bools must be equal. There is no default tolerance on purpose: what
is close enough depends on what the values are for, and a proof without a stated
tolerance says nothing.

Exits with 0 when every tensor is proved, 1 when one is disproved, 3 when none
is disproved but one could not be compared.

Examples:
  veracity compare pytorch.npz veracity.npz --atol 1e-5 --rtol 1e-4
  veracity compare before.npz after.npz --atol 0 --rtol 0 --percentiles")]
pub(crate) struct CompareArgs {
    /// The tensors to trust: `.npz`, `.safetensors` or `.npy`
    pub(crate) reference: PathBuf,
    /// The tensors to check
    pub(crate) candidate: PathBuf,
    /// Largest absolute error that passes; required on purpose
    #[arg(long, value_name = "A", value_parser = tolerance_part, allow_negative_numbers = true)]
    pub(crate) atol: f64,
    /// Largest error relative to the reference that passes; required on purpose
    #[arg(long, value_name = "R", value_parser = tolerance_part, allow_negative_numbers = true)]
    pub(crate) rtol: f64,
    /// Accept NaN that stands in the same places on both sides
    #[arg(long)]
    pub(crate) equal_nan: bool,
    /// Find the exact p50, p75, p90, p99 and p99.5 of the error
    #[arg(long)]
    pub(crate) percentiles: bool,
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Print a script that completes these commands in a shell
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  veracity completions bash > /etc/bash_completion.d/veracity
  veracity completions zsh > ~/.zfunc/_veracity")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// How models are to be run.
#[derive(Args, Debug)]
pub(crate) struct SessionArgs {
    /// Where to run: `auto`, `cpu`, `cuda` or `cuda:N`
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = device)]
    pub(crate) device: Device,
    /// Threads inside of one operator; more than 1 seldom helps small models
    #[arg(long, value_name = "N", default_value = "1", value_parser = threads)]
    pub(crate) threads: NonZeroUsize,
    /// ONNX Runtime's library, or a folder that holds it
    #[arg(long, value_name = "PATH")]
    pub(crate) ort_library: Option<PathBuf>,
    /// The folder of the torch package
    #[arg(long, value_name = "PATH")]
    pub(crate) torch: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }

    #[test]
    fn impossible_values_are_refused() {
        for (arguments, part) in [
            (&["run", "b", "--rate", "0"][..], "between 0.001 and 1000000"),
            (&["run", "b", "--rate", "-5"], "between 0.001 and 1000000"),
            (&["run", "b", "--rate", "nan"], "between 0.001 and 1000000"),
            (&["run", "b", "--rate", "fast"], "`bundle`"),
            (&["run", "b", "--steps", "0"], "0 is not in"),
            (&["run", "b", "--threads", "0"], "between 1 and"),
            (&["run", "b", "--device", "tpu"], "cuda:N"),
            (&["run", "b", "--engine", "onnx"], "auto, ort, embedded, torch"),
            (&["run", "b", "--mock", "1", "--inputs", "a.npz"], "cannot be used with"),
            (&["compare", "a", "b", "--atol", "1"], "--rtol"),
            (&["compare", "a", "b", "--atol", "-1", "--rtol", "0"], "at least 0"),
            (&["compare", "a", "b", "--atol", "inf", "--rtol", "0"], "at least 0"),
            (&["inspekt", "b"], "'inspect'"),
            (&["check", "b", "--tolerance", "1e-5"], "`atol=A,rtol=R`"),
            (&["check", "b", "--tolerance", "atol=1e-5"], "`rtol` is missing"),
            (&["check", "b", "--tolerance", "rtol=1e-5"], "`atol` is missing"),
            (&["check", "b", "--tolerance", "atol=1,rtol=1,atol=2"], "`atol` stands twice"),
            (&["check", "b", "--tolerance", "atol=-1,rtol=0"], "at least 0"),
            (&["check", "b", "--tolerance", "atol=nan,rtol=0"], "at least 0"),
            (&["check", "b", "--tolerance", "atol=1,ulp=0"], "`atol=A,rtol=R`"),
            (&["check", "b", "--tolerance", "action:atol=1,rtol=0"], "`node/port`"),
            (&["check", "b", "--tolerance", "policy/action:auto"], "`atol=A,rtol=R`"),
            (&["check", "b", "--tolerance"], "value is required"),
            (&["check", "b", "--rejudge"], "--tolerance"),
            (&["check", "b", "--rejudge", "--equal-nan", "--record"], "cannot be used with"),
            (&["check", "b", "--rejudge", "--equal-nan", "--engine", "ort"], "cannot be used with"),
            (&["check", "b", "--mock", "1"], "--record"),
            (&["check", "b", "--replace"], "--record"),
            (&["check", "b", "--record", "--mock", "1", "--inputs", "x"], "cannot be used with"),
            (&["check", "b", "--record", "--steps", "0"], "0 is not in"),
            (&["parity"], "<TARGET>"),
            (&["parity", "zoo:lstm", "--input-shape", "1,-3"], "`1,3,224,224`"),
            (&["parity", "zoo:lstm", "--engine", "torch"], "auto, ort, embedded"),
            (&["parity", "zoo:lstm", "--tolerance", "nan"], "at least 0"),
            (&["parity", "zoo:lstm", "--format", "html"], "table, json, md"),
            (&["diff", "a"], "<AFTER>"),
            (&["verify", "b", "--values", "v.npz"], "--robot"),
            (&["verify", "b", "--write-map", "m.yaml"], "--robot"),
            (&["verify", "b", "--robot", "r", "--atol", "1"], "--values"),
            (&["verify", "b", "--robot", "r", "--gain-rtol", "-1"], "at least 0"),
            (&["seal"], "<BUNDLE>"),
            (&["report"], "<RESULTS>"),
            (&["view"], "<RESULTS>"),
            (&["view", "a", "b", "c"], "unexpected argument"),
            (&["drift"], "<REFERENCE>"),
            (&["drift", "a", "--level", "most"], "none, basic, extended, all"),
            (&["drift", "a", "--memory", "0"], "at least 1 byte"),
            (&["drift", "a", "--memory", "5 parsecs"], "`512MB`"),
            (&["drift", "a", "--dim", "batch"], "`batch=4`"),
            (&["drift", "a", "--dim", "batch=-1"], "`batch=4`"),
            (&["drift", "a", "--budget", "-1"], "at least 0"),
            (&["drift", "a", "--inputs", "x", "--seed", "1"], "cannot be used with"),
            (&["bisect", "a", "--tool", "t", "--repro", "d"], "cannot be used with"),
        ] {
            let error = Cli::try_parse_from([&["veracity"], arguments].concat()).unwrap_err();
            assert!(error.to_string().contains(part), "{arguments:?}: {error}");
            assert_eq!(error.exit_code(), 2, "{arguments:?}");
        }
    }
}
