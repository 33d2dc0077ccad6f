//! What a pipeline is fed, step by step: a file, made-up values, or nothing.
//!
//! Everything is checked when a feed is made, so that stepping only copies bytes.

use std::path::Path;

use veracity::tensor::file::TensorMap;
use veracity::tensor::{DType, Shape, Tensor, file};
use veracity::{
    Diagnostic, InputId, Place, PlannedPort, Refusal, Reporter, Result, Runner, Target, codes,
};

/// Made-up values repeat after so many steps. Making them takes longer than a step may, so they
/// are made before the first one.
const MOCK_STEPS: u64 = 64;

/// Most memory for made-up values; large inputs repeat sooner.
const MAX_MOCK_BYTES: usize = 64 << 20;

/// Steps with made-up values when their number is not given.
const DEFAULT_MOCK_STEPS: u64 = 100;

/// What a pipeline is fed.
#[derive(Debug)]
pub(super) struct Feed {
    /// One for each pipeline input, in order.
    sources: Vec<Source>,
    steps: u64,
}

/// Values of one input: those of some steps behind each other, used again from the start when they
/// are used up.
#[derive(Debug)]
struct Source {
    values: Tensor,
    step_bytes: usize,
    count: u64,
}

impl Feed {
    /// How many steps there are to run.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Writes the inputs of one step and runs it.
    pub(super) fn step(&self, step: u64, runner: &mut Runner) -> Result<()> {
        for (index, source) in self.sources.iter().enumerate() {
            runner.input_mut(InputId(index)).copy_from_slice(source.at(step));
        }
        runner.step()
    }

    /// The inputs of every step, by name.
    pub(super) fn tensors(&self, runner: &Runner) -> Result<Vec<TensorMap>> {
        let step = |step| {
            let ports = runner.inputs().iter().zip(&self.sources);
            let tensor = |(port, source): (&PlannedPort, &Source)| {
                let value = Tensor::from_bytes(port.dtype, port.shape.clone(), source.at(step))?;
                Ok((port.key.to_string(), value))
            };
            ports.map(tensor).collect()
        };
        (0..self.steps).map(step).collect()
    }

    /// Nothing: refused when the pipeline has inputs.
    pub(super) fn nothing(steps: Option<u64>, runner: &Runner) -> Result<Self> {
        let mut reporter = Reporter::new();
        for port in runner.inputs() {
            let hint = "give tensors with `--inputs FILE`, or made-up ones with `--mock SEED`";
            reporter.report(missing(port).hint(hint));
        }
        reporter.finish()?;
        Ok(Self { sources: Vec::new(), steps: steps.unwrap_or(1) })
    }

    /// Made-up values that depend on the seed and the pipeline's inputs alone.
    pub(super) fn mock(seed: u64, steps: Option<u64>, runner: &Runner) -> Self {
        let steps = steps.unwrap_or(DEFAULT_MOCK_STEPS);
        let step_bytes: usize = runner.inputs().iter().map(bytes_of).sum();
        let fitting = (MAX_MOCK_BYTES / step_bytes.max(1)).max(1) as u64;
        let count = MOCK_STEPS.min(steps).min(fitting);
        let mut values = vec![Vec::new(); runner.inputs().len()];
        for step in 0..count {
            let tensors = runner.mock_inputs(seed.wrapping_add(step));
            for (port, values) in runner.inputs().iter().zip(&mut values) {
                values.extend_from_slice(tensors[&port.key.to_string()].bytes());
            }
        }
        let source = |(port, bytes): (&PlannedPort, Vec<u8>)| Source {
            values: Tensor::from_slice([bytes.len()], &bytes).expect("one element is one byte"),
            step_bytes: bytes_of(port),
            count,
        };
        Self { sources: runner.inputs().iter().zip(values).map(source).collect(), steps }
    }

    /// Tensors of a file, named `node/port`. Feedback inputs replace the state at once. Every
    /// problem of the file is reported.
    pub(super) fn from_file(path: &Path, steps: Option<u64>, runner: &mut Runner) -> Result<Self> {
        let place = Place::file(path.display().to_string());
        let tensors = file::read(path)?;
        let mut reporter = Reporter::new();
        let mut sources: Vec<Option<Source>> = runner.inputs().iter().map(|_| None).collect();
        for (key, tensor) in tensors {
            let taken = take(&key, tensor, runner, &mut sources);
            reporter.absorb(taken.map_err(|refusal| refusal.within(&place)));
        }
        for (port, source) in runner.inputs().iter().zip(&sources) {
            if source.is_none() && !is_named(port, reporter.diagnostics()) {
                reporter.report(missing(port).within(&place));
            }
        }
        reporter.finish()?;
        let sources: Vec<Source> = sources.into_iter().flatten().collect();
        let steps = episode_steps(&sources, runner.inputs(), steps)
            .map_err(|refusal| refusal.within(&place))?;
        Ok(Self { sources, steps })
    }
}

impl Source {
    fn at(&self, step: u64) -> &[u8] {
        // Below the count, which is the size of an axis in memory.
        let position = usize::try_from(step % self.count).unwrap_or(0);
        &self.values.bytes()[position * self.step_bytes..][..self.step_bytes]
    }
}

/// Puts a tensor where its name says.
fn take(
    key: &str,
    tensor: Tensor,
    runner: &mut Runner,
    sources: &mut [Option<Source>],
) -> Result<()> {
    match runner.find_target(key)? {
        Target::State(state) => runner.write_state(state, &tensor.view()).map_err(|refusal| {
            hinted(refusal, "feedback inputs are given once, as the value before the first step")
        }),
        Target::Input(input) => {
            sources[input.0] = Some(source(&runner.inputs()[input.0], tensor)?);
            Ok(())
        }
    }
}

fn source(port: &PlannedPort, tensor: Tensor) -> Result<Source> {
    let place = Place::port(&port.key.node, &port.key.port);
    if tensor.dtype() != port.dtype {
        return Err(wrong_dtype(port, tensor.dtype()).at(place).into());
    }
    let count = match tensor.shape().dims() {
        dims if dims == port.shape.dims() => 1,
        [steps, dims @ ..] if dims == port.shape.dims() && *steps > 0 => *steps as u64,
        _ => return Err(wrong_shape(port, tensor.shape()).at(place).into()),
    };
    Ok(Source { step_bytes: bytes_of(port), count, values: tensor })
}

/// How many steps the episode has, unless fewer are wanted.
fn episode_steps(sources: &[Source], ports: &[PlannedPort], wanted: Option<u64>) -> Result<u64> {
    let mut episodes = sources
        .iter()
        .zip(ports)
        .filter(|(source, port)| source.values.shape().rank() > port.shape.rank());
    let Some((first, first_port)) = episodes.next() else {
        return Ok(wanted.unwrap_or(1));
    };
    if let Some((other, port)) = episodes.find(|(other, _)| other.count != first.count) {
        let message = format!(
            "input \"{}\" has {} steps, but input \"{}\" has {}",
            port.key, other.count, first_port.key, first.count
        );
        return Err(Diagnostic::error(codes::INPUT_SHAPE, message)
            .at(Place::port(&port.key.node, &port.key.port))
            .into());
    }
    match wanted {
        Some(steps) if steps > first.count => {
            let message = format!("{steps} steps are wanted, but the episode has {}", first.count);
            Err(Diagnostic::error(codes::OPTION_INVALID, message)
                .hint("leave out `--steps` to run the whole episode")
                .into())
        }
        Some(steps) => Ok(steps),
        None => Ok(first.count),
    }
}

fn bytes_of(port: &PlannedPort) -> usize {
    port.shape.elements() * port.dtype.size()
}

/// Whether a finding is already about this port.
fn is_named(port: &PlannedPort, diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|found| {
        let place = &found.place;
        place.node.as_ref() == Some(&port.key.node) && place.port.as_ref() == Some(&port.key.port)
    })
}

fn missing(port: &PlannedPort) -> Diagnostic {
    let (key, dtype, shape) = (&port.key, port.dtype, &port.shape);
    let message = format!("input \"{key}\", {dtype} {shape}, was not given");
    Diagnostic::error(codes::INPUT_MISSING, message).at(Place::port(&key.node, &key.port))
}

fn wrong_dtype(port: &PlannedPort, found: DType) -> Diagnostic {
    let message = format!("input \"{}\" is {}, got {found}", port.key, port.dtype);
    let hint = format!("convert it to {} first; nothing is converted silently", port.dtype);
    Diagnostic::error(codes::INPUT_DTYPE, message).hint(hint)
}

fn wrong_shape(port: &PlannedPort, found: &Shape) -> Diagnostic {
    let message = format!("input \"{}\" has shape {}, got {found}", port.key, port.shape);
    Diagnostic::error(codes::INPUT_SHAPE, message)
        .hint("give the port's shape, or the same with a leading axis of at least one step")
}

fn hinted(refusal: Refusal, hint: &str) -> Refusal {
    let hinted = refusal.into_diagnostics().into_iter().map(|found| found.hint(hint)).collect();
    Refusal::from_errors_in(hinted).expect("a refusal holds an error, and a hint changes none")
}
