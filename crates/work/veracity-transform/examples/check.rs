//! Runs the standard passes over models with local checks, and prints what was found, what it took,
//! and whether the log leads to the result and back to the original: `check MODEL...`
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::allow_attributes,
    reason = "an example"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use veracity_engine_ort::{OrtEngine, Search};
use veracity_onnx::{Graph, Model};
use veracity_results::Verdict;
use veracity_transform::judge::{CheckOptions, Validation};
use veracity_transform::{
    Limits, LogOptions, Pipeline, Transformed, Trusting, record, replay, reverse, transform,
};

fn main() {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.venv/lib");
    let pythons = std::fs::read_dir(lib).into_iter().flatten().flatten();
    let site_packages: Vec<PathBuf> =
        pythons.map(|python| python.path().join("site-packages")).collect();
    let engine = OrtEngine::find(&Search { library: None, site_packages }).unwrap();
    for path in std::env::args().skip(1) {
        let model = Model::read_whole(&path).unwrap();
        let graph = Graph::new(model.clone()).unwrap();
        let pipeline = Pipeline::standard();
        let start = cpu();
        let done = transform(graph.clone(), &pipeline, Limits::default(), &mut Trusting).unwrap();
        println!("{path}: {} -> {} nodes", graph.len(), done.graph.len());
        println!("  passes alone {:.3} s", cpu() - start);
        let checked = |validation| {
            let options = CheckOptions { validation, ..CheckOptions::default() };
            let start = cpu();
            let found =
                pipeline.run_checked(graph.clone(), Limits::default(), &engine, options).unwrap();
            (found, cpu() - start)
        };
        let ((done, report), local) = checked(Validation::Local);
        let (_, whole) = checked(Validation::Final);
        let sets: BTreeSet<&str> = report
            .rewrites
            .iter()
            .flat_map(|check| &check.sets)
            .map(|set| set.trim_end_matches(" (corner)"))
            .collect();
        println!("  checked alone and as a whole {local:.3} s, as a whole {whole:.3} s");
        println!("  alone on {} sets: {sets:?}", sets.len());
        println!(
            "  {:?}, {:?}, {} rejected, drift {:?}",
            report.verdict,
            report.coverage,
            done.rejected.len(),
            report.drift()
        );
        let (is_replayed, is_reversed) = there_and_back(&model, &pipeline, &done);
        println!("  the same bytes: replayed {is_replayed}, reversed {is_reversed}");
        for check in report.rewrites.iter().filter(|check| check.verdict != Verdict::Proved) {
            println!(
                "  {:?} {} {} ({}): {:?}",
                check.verdict, check.pass, check.index, check.why, check.reason
            );
        }
    }
}

/// Whether the log makes the same result of the original, and the original of the result.
fn there_and_back(model: &Model, pipeline: &Pipeline, done: &Transformed) -> (bool, bool) {
    let recorded = record(model, pipeline, done, LogOptions::default()).unwrap();
    let again = replay(model, &recorded.log, &recorded.elements).unwrap();
    let back = reverse(&recorded.model, &recorded.log, &recorded.elements).unwrap();
    let canonical = |model: Model| Graph::new(model).unwrap().to_model().unwrap();
    let bytes = |model: Model| model.to_bytes().unwrap();
    (
        bytes(again) == bytes(recorded.model),
        bytes(canonical(back)) == bytes(canonical(model.clone())),
    )
}

/// Seconds of processor time so far: other programs disturb it least.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> =
        text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}
