//! Counts the nodes of models before and after the standard passes, and how long that takes.
//!
//! `cargo run --release -p veracity-transform --example counts -- model.onnx …`; with `-v`, operators,
//! rewrites and what was left alone, too; with `--passes=default,-fold-constants`, other passes.

#![expect(clippy::print_stdout, reason = "it is there to print")]

use std::collections::BTreeMap;
use std::time::Instant;

use veracity_onnx::{Graph, Model};
use veracity_transform::{Limits, Pipeline, Trusting, transform};

fn main() -> veracity_diag::Result<()> {
    let (options, paths): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let asked = options.iter().find_map(|option| option.strip_prefix("--passes="));
    let passes = asked.unwrap_or("default");
    for path in paths {
        let begin = Instant::now();
        let graph = Graph::new(Model::read_whole(&path)?)?;
        let before = graph.len();
        let read = begin.elapsed();
        let pipeline = Pipeline::from_names(passes.split(','))?;
        let done = transform(graph, &pipeline, Limits::default(), &mut Trusting)?;
        let took = begin.elapsed().saturating_sub(read);
        println!(
            "{path}: {before} nodes -> {}, {} rewrites in {} rounds; read {:.3} s, transformed {:.3} s",
            done.graph.len(),
            done.rewrites.len(),
            done.rounds,
            read.as_secs_f64(),
            took.as_secs_f64(),
        );
        if options.iter().any(|option| option == "-v") {
            let mut operators: BTreeMap<&str, usize> = BTreeMap::new();
            for (_, node) in done.graph.nodes() {
                *operators.entry(node.op_type()).or_default() += 1;
            }
            let mut rewrites: BTreeMap<&str, usize> = BTreeMap::new();
            for rewrite in &done.rewrites {
                *rewrites.entry(rewrite.pass).or_default() += 1;
            }
            println!("  {operators:?}\n  {rewrites:?}");
            for (pass, declined) in &done.declined {
                let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
                for one in declined {
                    *reasons.entry(&one.reason).or_default() += 1;
                }
                println!("  {pass}: {reasons:?}");
            }
        }
    }
    Ok(())
}
