//! Runs the standard passes over models with local checks, and prints what was found and what it
//! took beside one run of the model: `check MODEL...`
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::allow_attributes,
    reason = "an example"
)]

use std::path::{Path, PathBuf};

use veracity_engine_ort::{OrtEngine, Search};
use veracity_onnx::{Graph, Model};
use veracity_results::Verdict;
use veracity_transform::judge::{CheckOptions, Checker, Inputs, Validation};
use veracity_transform::{Limits, Pipeline, Trusting, transform};

fn main() {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.venv/lib");
    let pythons = std::fs::read_dir(lib).into_iter().flatten().flatten();
    let site_packages: Vec<PathBuf> =
        pythons.map(|python| python.path().join("site-packages")).collect();
    let engine = OrtEngine::find(&Search { library: None, site_packages }).unwrap();
    for path in std::env::args().skip(1) {
        let graph = Graph::new(Model::read_whole(&path).unwrap()).unwrap();
        let pipeline = Pipeline::standard();
        let start = cpu();
        let done = transform(graph.clone(), &pipeline, Limits::default(), &mut Trusting).unwrap();
        println!("{path}: {} -> {} nodes", graph.len(), done.graph.len());
        println!("  passes alone {:.3} s", cpu() - start);
        let inputs = Inputs::default();
        let options = CheckOptions { inputs, ..CheckOptions::default() };
        let mut checker = Checker::new(&graph, &engine, options.clone());
        let start = cpu();
        let mut done =
            transform(graph.clone(), &pipeline, Limits::default(), &mut checker).unwrap();
        println!("  with local checks {:.3} s, {} runs", cpu() - start, checker.runs());
        let start = cpu();
        let report = checker.finish(&mut done).unwrap();
        println!("  the whole {:.3} s: {:?}", cpu() - start, report.verdict);
        println!(
            "  {:?}, {} rejected, drift {:?}",
            report.coverage,
            done.rejected.len(),
            report.drift()
        );
        for check in report.rewrites.iter().filter(|check| check.verdict != Verdict::Proved) {
            println!(
                "  {:?} {} {} ({}): {:?}",
                check.verdict, check.pass, check.index, check.why, check.reason
            );
        }
        let options = CheckOptions { validation: Validation::Final, ..options };
        let mut once = Checker::new(&graph, &engine, options);
        let start = cpu();
        let mut again = transform(graph, &pipeline, Limits::default(), &mut Trusting).unwrap();
        let alone = cpu() - start;
        let start = cpu();
        once.finish(&mut again).unwrap();
        // The original twice and the result once.
        let took = cpu() - start;
        println!("  three runs {took:.3} s (passes {alone:.3} s)");
    }
}

/// Seconds of processor time so far: other programs disturb it least.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> =
        text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}
