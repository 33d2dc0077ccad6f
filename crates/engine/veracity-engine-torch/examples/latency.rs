//! How long a TorchScript model takes, for looking.
//!
//! ```text
//! cargo run --release -p veracity-engine-torch --example latency -- \
//!     policy.pt --in 'float32[1,48]' --out 'float32[1,12]' [--chain 3] [--device cuda] [--threads 1]
//! ```
//!
//! `--chain N` runs N sessions of the model one after the other in each step.
#![expect(clippy::print_stdout, reason = "an example talks to its user")]

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use veracity_engine::{
    Device, Engine, ModelBytes, ModelFormat, ModelSource, Port, Ports, SessionOptions,
};
use veracity_engine_torch::{Search, TorchEngine};
use veracity_tensor::{DType, Shape, SharedTensor};

const WARM_UP: usize = 100;
const STEPS: usize = 10_000;

struct Arguments {
    model: PathBuf,
    ports: Ports,
    chain: usize,
    options: SessionOptions,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    let engine = TorchEngine::find(&Search::default())?;
    let source = ModelSource {
        format: ModelFormat::TorchScript,
        bytes: ModelBytes::File(arguments.model.clone()),
    };
    let prepared = timed(|| engine.prepare())?;
    let mut sessions = Vec::new();
    let loaded = timed(|| {
        for _ in 0..arguments.chain {
            let mut session = engine.load(&source, &arguments.ports, &arguments.options)?;
            let binding =
                session.bind(&zeros(&arguments.ports.inputs), &zeros(&arguments.ports.outputs))?;
            sessions.push((session, binding));
        }
        Ok::<_, veracity_diag::Refusal>(())
    })?;
    let mut step = || sessions.iter_mut().try_for_each(|(session, binding)| session.run(*binding));
    let first = timed(&mut step)?;
    for _ in 0..WARM_UP {
        step()?;
    }
    let mut times = Vec::with_capacity(STEPS);
    for _ in 0..STEPS {
        times.push(timed(&mut step)?);
    }
    times.sort();
    let at = |permille: usize| times[(STEPS * permille / 1000).min(STEPS - 1)];
    println!("torch {}, prepared in {prepared:.1?}, loaded in {loaded:.1?}", engine.version());
    println!("first {first:.1?}  p50 {:.2?}  p99 {:.2?}  max {:.1?}", at(500), at(990), at(1000));
    Ok(())
}

fn timed<E>(mut work: impl FnMut() -> Result<(), E>) -> Result<Duration, E> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

fn zeros(ports: &[Port]) -> Vec<SharedTensor> {
    ports.iter().map(|port| SharedTensor::zeros(port.dtype, port.shape.clone())).collect()
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let mut found = Arguments {
        model: words.next().ok_or("name a model")?.into(),
        ports: Ports::default(),
        chain: 1,
        options: SessionOptions::default(),
    };
    while let Some(flag) = words.next() {
        let value = words.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--in" => found.ports.inputs.push(port(&value)?),
            "--out" => found.ports.outputs.push(port(&value)?),
            "--chain" => found.chain = value.parse()?,
            "--threads" => found.options.threads = value.parse::<NonZeroUsize>()?,
            "--device" => {
                found.options.device = Device::from_name(&value).ok_or("which device?")?;
            }
            _ => return Err(format!("{flag} is not known").into()),
        }
    }
    Ok(found)
}

/// `float32[1,48]`.
fn port(text: &str) -> Result<Port, Box<dyn Error>> {
    let (dtype, dims) = text.split_once('[').ok_or("a port is written `float32[1,48]`")?;
    let dims = dims.trim_end_matches(']').split(',').filter(|dim| !dim.trim().is_empty());
    let dims = dims.map(|dim| dim.trim().parse()).collect::<Result<Vec<usize>, _>>()?;
    let dtype = DType::from_name(dtype).ok_or_else(|| format!("{dtype} is not a dtype"))?;
    Ok(Port::new(text, dtype, Shape::new(dims).ok_or("the shape is too large")?))
}
