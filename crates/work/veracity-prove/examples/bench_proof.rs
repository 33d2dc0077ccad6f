//! Times the roll-out proof of a bundle against stepping it, and a whole check, and prints JSON.
//!
//! `bench_proof BUNDLE TICKS` records that many ticks into the bundle (give it a copy), then runs
//! both in turn. Both load the bundle; bare stepping writes the same inputs and looks at nothing.
#![expect(clippy::print_stdout, reason = "the figures are the answer")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use veracity_diag::Result;
use veracity_engine::{Engine, ModelFormat};
use veracity_engine_ort::{OrtEngine, Search};
use veracity_prove::{CheckOptions, Kind, RecordOptions, Samples, check, record, roll_out};
use veracity_results::{Tolerance, TolerancePolicy, Verdict};
use veracity_runtime::{EngineProvider, InputId, RunOptions, Runner};
use veracity_spec::Bundle;

const ROUNDS: usize = 5;
const CHECKED_TICKS: usize = 5;

/// ONNX Runtime, found once.
struct Ort(OrtEngine);

impl EngineProvider for Ort {
    fn engine_for(&self, format: ModelFormat) -> Result<Arc<dyn Engine>> {
        assert_eq!(format, ModelFormat::Onnx, "the bundle is of ONNX models");
        Ok(Arc::new(self.0.clone()))
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (path, ticks) = (arguments.next().expect("BUNDLE"), arguments.next().expect("TICKS"));
    let ticks: usize = ticks.parse().expect("TICKS is a number");
    let engines = Ort(OrtEngine::find(&Search::default())?);
    let bundle = Bundle::open(&path)?;

    let bundle = recorded(&bundle, &engines, CHECKED_TICKS)?;
    let mut checks = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let proof = check(&bundle, &engines, &CheckOptions::default())?;
        checks.push(begin.elapsed());
        assert_eq!(proof.verdict, Verdict::Proved, "the bundle repeats itself");
    }

    let bundle = recorded(&bundle, &engines, ticks)?;
    let samples = Samples::read(&bundle)?;
    let (mut proved, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        proved.push(time_roll_out(&bundle, &samples, &engines)?);
        bare.push(time_steps(&bundle, &samples, &engines, ticks)?);
    }
    println!(
        "{{\"check_secs\": {}, \"roll_out_secs\": {}, \"bare_secs\": {}, \"ticks\": {ticks}}}",
        median(checks).as_secs_f64(),
        median(proved).as_secs_f64(),
        median(bare).as_secs_f64(),
    );
    Ok(())
}

fn recorded(bundle: &Bundle, engines: &Ort, steps: usize) -> Result<Bundle> {
    record(bundle, engines, &RecordOptions { steps, replace: true, ..RecordOptions::default() })
}

fn time_roll_out(bundle: &Bundle, samples: &Samples, engines: &Ort) -> Result<Duration> {
    let policy = TolerancePolicy::new(Tolerance::new(1e-5, 1e-3)?);
    let begin = Instant::now();
    let proof = roll_out(bundle, samples, engines, &RunOptions::new(), &policy);
    let taken = begin.elapsed();
    assert_eq!(proof.verdict, Some(Verdict::Proved), "the bundle repeats itself");
    Ok(taken)
}

fn time_steps(bundle: &Bundle, samples: &Samples, engines: &Ort, ticks: usize) -> Result<Duration> {
    let begin = Instant::now();
    let mut runner = Runner::load(bundle, engines, &RunOptions::new())?;
    let fed: Vec<_> = runner
        .inputs()
        .iter()
        .map(|port| {
            let node = bundle.spec().node(&port.key.node).expect("inputs belong to nodes");
            let index = node.inputs.iter().position(|spec| spec.name == port.key.port);
            (node, index.expect("an input of the node"))
        })
        .collect();
    for tick in 0..ticks {
        for (id, (node, port)) in fed.iter().enumerate() {
            let value = samples.input(node, Kind::Recorded, *port, tick).expect("it was recorded");
            let bytes = value.contiguous_bytes().unwrap_or_default();
            runner.write_input(InputId(id), value.dtype(), value.shape().dims(), bytes)?;
        }
        runner.step()?;
    }
    Ok(begin.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
