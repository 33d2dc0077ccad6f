//! Local checks raise no false alarm on random graphs.
//!
//! 60 graphs in a normal run; `VERACITY_RANDOM_GRAPHS=5000` asks for more.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "support/random/mod.rs"]
mod random;
mod support;

use veracity_onnx::Graph;
use veracity_results::Verdict;
use veracity_transform::judge::{CheckOptions, InputSet, Inputs};
use veracity_transform::{Limits, Pipeline};

#[test]
fn right_passes_are_not_blamed() {
    let graphs = std::env::var("VERACITY_RANDOM_GRAPHS").ok();
    let graphs = graphs.and_then(|number| number.parse().ok()).unwrap_or(60_u64);
    let (mut blamed, mut proved, mut open) = (Vec::new(), 0, 0);
    for seed in 0..graphs {
        let (model, _) = random::model(seed);
        let graph = Graph::new(model).unwrap();
        let inputs = Inputs { sets: vec![InputSet::Normal], ..Inputs::default() };
        let options = CheckOptions { inputs, ..CheckOptions::default() };
        let pipeline = Pipeline::standard();
        let (_, checks) =
            pipeline.run_checked(graph, Limits::default(), support::ort(), options).unwrap();
        for check in &checks.rewrites {
            match check.verdict {
                Verdict::Proved => proved += 1,
                Verdict::Conditional | Verdict::NotComparable => open += 1,
                Verdict::Disproved => blamed.push(format!(
                    "graph {seed}, {} ({}): {:?}",
                    check.pass, check.why, check.reason
                )),
            }
        }
        for check in checks.cumulative.iter().filter(|one| one.verdict == Verdict::Disproved) {
            blamed.push(format!("graph {seed} as a whole: {check:?}"));
        }
    }
    assert!(blamed.is_empty(), "{} of {proved} are blamed:\n{}", blamed.len(), blamed.join("\n"));
    assert!(proved > 0 && open * 20 <= proved, "{proved} proved, {open} not checked");
}
