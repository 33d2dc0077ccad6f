//! A second look at what is too far apart for roundings: in float64, and on inputs that are one
//! unit in the last place off.

use std::sync::Arc;

use veracity_onnx::{Graph, Node};
use veracity_tensor::Tensor;

use super::random::Random;
use super::rules::{Outcome, Row, Rule, by_float64, by_perturbation};
use super::run::{Bench, Job, Values};
use super::values::nudged;
use super::window::Side;

/// Operators that jump: a tiny change of the input says nothing about rounding there.
const JUMPS: [&str; 24] = [
    "Floor",
    "Ceil",
    "Round",
    "Sign",
    "Cast",
    "CastLike",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Equal",
    "Where",
    "ArgMax",
    "ArgMin",
    "TopK",
    "NonZero",
    "QuantizeLinear",
    "DynamicQuantizeLinear",
    "Mod",
    "IsNaN",
    "IsInf",
    "NonMaxSuppression",
    "If",
    "Loop",
];

/// A pair that needs a second look.
pub(super) struct Suspect<'w> {
    pub(super) side: &'w Side,
    /// Name of the value, before.
    pub(super) output: &'w str,
    pub(super) values: (usize, &'w Values),
    pub(super) before: &'w Tensor,
    pub(super) after: &'w Tensor,
    pub(super) row: Row,
}

/// Decides about suspects; whatever no rule accepts is wrong.
pub(super) fn look(
    bench: &mut Bench<'_>,
    graph: &Graph,
    suspects: &[Suspect<'_>],
    seed: u64,
) -> Vec<Row> {
    let wanted: Vec<[&str; 1]> = suspects.iter().map(|suspect| [suspect.output]).collect();
    let jobs: Vec<Job<'_>> = suspects
        .iter()
        .zip(&wanted)
        .map(|(one, wanted)| Job { side: one.side, wanted, values: one.values })
        .collect();
    let exact = bench.run_wide(graph, &jobs);
    let mut rows: Vec<Row> = Vec::new();
    for (suspect, exact) in suspects.iter().zip(exact) {
        let mut row = suspect.row.clone();
        if let Some(exact) = exact.ok().and_then(|mut found| found.pop()) {
            row.outcome = by_float64(&row, suspect.before, suspect.after, &exact);
            row.rule = Rule::Float64;
        }
        if row.outcome != Outcome::Right {
            perturb(bench, graph, suspect, &mut row, seed);
        }
        if row.outcome == Outcome::Suspect {
            let reason = format!(
                "it is off by {:.3e} where values reach {:.3e}, more than roundings explain",
                row.max_abs, row.scale
            );
            row.outcome = Outcome::Wrong(reason);
        }
        rows.push(row);
    }
    rows
}

fn perturb(bench: &mut Bench<'_>, graph: &Graph, suspect: &Suspect<'_>, row: &mut Row, seed: u64) {
    let jumps = |node: &Node| node.op_domain().is_empty() && JUMPS.contains(&node.op_type());
    if suspect.side.nodes.iter().any(jumps) {
        return;
    }
    let reads = suspect.side.nodes.iter().flat_map(Node::reads);
    let moved: Values = reads
        .filter_map(|name| {
            let value = suspect.values.1.get(&name)?;
            let mut random = Random::new(seed, &name);
            Some((name, Arc::new(nudged(value, || random.bits() & 1 == 0))))
        })
        .collect();
    let wanted = [suspect.output];
    let job = Job { side: suspect.side, wanted: &wanted, values: (0, &moved) };
    let Some(Ok(mut found)) = bench.run(graph, &[job]).pop() else { return };
    let Some(found) = found.pop() else { return };
    match by_perturbation(row, suspect.before, &found) {
        Outcome::Right => {
            row.outcome = Outcome::Right;
            row.rule = Rule::Perturbed;
        }
        wrong @ Outcome::Wrong(_) if row.outcome == Outcome::Suspect => {
            row.outcome = wrong;
            row.rule = Rule::Perturbed;
        }
        _ => {}
    }
}
