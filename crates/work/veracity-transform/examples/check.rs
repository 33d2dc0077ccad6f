//! Runs the standard passes over models with local checks, and prints what was found and what it
//! took beside one run of the model: `check MODEL...`
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::allow_attributes,
    reason = "an example"
)]

use std::path::{Path, PathBuf};
use std::time::Instant;

use veracity_engine_ort::{OrtEngine, Search};
use veracity_onnx::{Graph, Model};
use veracity_results::Verdict;
use veracity_transform::judge::{CheckOptions, Checker, InputSet, Inputs, Validation};
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
        let start = Instant::now();
        let done = transform(graph.clone(), &pipeline, Limits::default(), &mut Trusting).unwrap();
        println!("{path}: {} -> {} nodes", graph.len(), done.graph.len());
        println!("  passes alone {:.3} s", start.elapsed().as_secs_f64());
        let inputs = Inputs { sets: vec![InputSet::Normal], ..Inputs::default() };
        let options = CheckOptions { inputs, ..CheckOptions::default() };
        let mut checker = Checker::new(&graph, &engine, options.clone());
        let start = Instant::now();
        let mut done =
            transform(graph.clone(), &pipeline, Limits::default(), &mut checker).unwrap();
        println!(
            "  with local checks {:.3} s, {} runs",
            start.elapsed().as_secs_f64(),
            checker.runs()
        );
        let start = Instant::now();
        let report = checker.finish(&mut done).unwrap();
        println!("  the whole {:.3} s: {:?}", start.elapsed().as_secs_f64(), report.verdict);
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
        let start = Instant::now();
        let mut again = transform(graph, &pipeline, Limits::default(), &mut Trusting).unwrap();
        let alone = start.elapsed();
        let start = Instant::now();
        once.finish(&mut again).unwrap();
        // The original twice and the result once.
        let took = start.elapsed().as_secs_f64();
        println!("  three runs {took:.3} s (passes {:.3} s)", alone.as_secs_f64());
    }
}
