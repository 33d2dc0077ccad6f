//! Makes samples from a run of the bundle itself.
//!
//! For bundles that came without any. What they prove is that the bundle computes the same
//! elsewhere, never that it computes what some Python code computed.

use std::collections::BTreeMap;

use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_results::Origin;
use veracity_runtime::{EngineProvider, RunOptions, Runner, Watch, side_files};
use veracity_spec::{Bundle, Direction, PortSpec};
use veracity_tensor::{Shape, Tensor, file};

use crate::samples::{Kind, SAMPLES_FORMAT, Samples};

/// How to record.
#[derive(Clone, Debug, Default)]
pub struct RecordOptions {
    /// Inputs of each tick, by `node/port`; made up from `seed` when there are none.
    pub inputs: Vec<BTreeMap<String, Tensor>>,
    /// Ticks to record when the inputs are made up.
    pub steps: usize,
    /// What made-up inputs depend on.
    pub seed: u64,
    /// Whether samples that the Python code made may be replaced.
    pub replace: bool,
    /// How the bundle is run.
    pub run: RunOptions,
}

/// Runs the bundle and stores what went in and out of every node as its samples. Gives the bundle
/// as it is then; its old proof, if any, is stale.
pub fn record(
    bundle: &Bundle,
    engines: &dyn EngineProvider,
    options: &RecordOptions,
) -> Result<Bundle> {
    if !options.replace && Samples::read(bundle)?.reference().origin == Origin::Python {
        let place = Place::file(bundle.yaml_path().display().to_string());
        let message = "the bundle has samples from the Python code, which are worth more";
        return Err(Diagnostic::error(codes::USAGE, message)
            .at(place)
            .hint("`veracity check` without `--record` checks against them")
            .into());
    }
    let mut runner = Runner::load(bundle, engines, &options.run)?;
    let ticks = if options.inputs.is_empty() { options.steps } else { options.inputs.len() };
    let mut columns = columns(bundle, &runner);
    for tick in 0..ticks {
        match options.inputs.get(tick) {
            Some(inputs) => drop(runner.run(inputs)?),
            None => drop(runner.run(&runner.mock_inputs(options.seed.wrapping_add(tick as u64)))?),
        }
        for column in &mut columns {
            column.bytes.extend_from_slice(runner.watched(column.watch)?);
        }
    }
    let tensors: BTreeMap<String, Tensor> =
        columns.into_iter().map(|column| column.into_tensor(ticks)).collect::<Result<_>>()?;
    let mut text = Vec::new();
    file::safetensors::write_to(&mut text, &tensors, &metadata(&runner, options))?;
    bundle.attach_samples(&text, &side_files(bundle)?)?;
    Bundle::open(bundle.yaml_path())
}

fn metadata(runner: &Runner, options: &RecordOptions) -> BTreeMap<String, String> {
    let mut engines: Vec<String> = runner
        .sessions()
        .map(|session| format!("{} {}", session.engine, session.engine_version))
        .collect();
    engines.sort();
    engines.dedup();
    let mut metadata = BTreeMap::from([
        ("veracity.samples".to_owned(), SAMPLES_FORMAT.to_owned()),
        ("origin".to_owned(), "runtime".to_owned()),
        ("made_with".to_owned(), engines.join(", ")),
    ]);
    if options.inputs.is_empty() {
        metadata.insert("seed".to_owned(), options.seed.to_string());
    }
    metadata
}

/// One port over all ticks.
struct Column<'b> {
    key: String,
    port: &'b PortSpec,
    watch: Watch,
    bytes: Vec<u8>,
}

impl Column<'_> {
    fn into_tensor(self, ticks: usize) -> Result<(String, Tensor)> {
        let dims = [&[ticks], self.port.shape.dims()].concat();
        let shape = Shape::new(dims).ok_or_else(|| {
            let message = format!("{} ticks of {:?} are too many", ticks, self.key);
            Diagnostic::error(codes::TENSOR_TOO_LARGE, message)
        })?;
        Ok((self.key, Tensor::from_bytes(self.port.dtype, shape, &self.bytes)?))
    }
}

fn columns<'b>(bundle: &'b Bundle, runner: &Runner) -> Vec<Column<'b>> {
    let mut columns = Vec::new();
    for node in &bundle.spec().nodes {
        for (direction, side) in [(Direction::Input, "in"), (Direction::Output, "out")] {
            for port in node.ports(direction) {
                if let Some(watch) = runner.watch(&node.name, &port.name, direction) {
                    let key =
                        format!("{}/{}/{side}/{}", Kind::Recorded.word(), node.name, port.name);
                    columns.push(Column { key, port, watch, bytes: Vec::new() });
                }
            }
        }
    }
    columns
}
