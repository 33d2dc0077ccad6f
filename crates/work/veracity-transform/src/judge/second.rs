//! A second look at what is too far apart for roundings: in float64, and on inputs and constants
//! that are one unit in the last place off.

use std::sync::Arc;

use veracity_onnx::{Graph, Node, Weight};
use veracity_tensor::Tensor;

use super::random::Random;
use super::rules::{Outcome, Row, Rule, by_float64, by_perturbation, swing};
use super::run::{Bench, Job, Values};
use super::values::nudged;
use super::window::Side;

/// Operators that jump: a tiny change of the input says nothing about rounding there.
const JUMPS: [&str; 19] = [
    "Floor",
    "Ceil",
    "Round",
    "Sign",
    "Cast",
    "CastLike",
    "Equal",
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

/// Operators that jump at single places only: of several tiny changes the one that does least has
/// most likely crossed none of them.
const CHOOSE: [&str; 5] = ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Where"];

/// Tiny changes that are tried where something chooses.
const TRIES: u64 = 3;

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
    // What stands beside the way to the value says nothing about it.
    let mut side = suspect.side.clone();
    side.keep_for([suspect.output]);
    let has = |operators: &[&str]| {
        let one_of =
            |node: &Node| node.op_domain().is_empty() && operators.contains(&node.op_type());
        side.nodes.iter().any(one_of)
    };
    if has(&JUMPS) {
        return;
    }
    let tries = if has(&CHOOSE) { TRIES } else { 1 };
    let found: Vec<Tensor> = (0..tries)
        .filter_map(|number| moved(bench, graph, &side, suspect, seed.wrapping_add(number)))
        .collect();
    let least = found
        .iter()
        .min_by(|one, two| swing(suspect.before, one).total_cmp(&swing(suspect.before, two)));
    let Some(found) = least else { return };
    match by_perturbation(row, suspect.before, found) {
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

/// The value on inputs and constants that are one unit in the last place off: folding rounds
/// constants anew, and an input of zeros has nothing to move.
fn moved(
    bench: &mut Bench<'_>,
    graph: &Graph,
    side: &Side,
    suspect: &Suspect<'_>,
    seed: u64,
) -> Option<Tensor> {
    let reads = side.nodes.iter().flat_map(Node::reads);
    let moved: Values = reads
        .filter_map(|name| {
            let value = suspect.values.1.get(&name)?;
            let mut random = Random::new(seed, &name);
            Some((name, Arc::new(nudged(value, || random.bits() & 1 == 0))))
        })
        .collect();
    let mut side = side.clone();
    for (name, weight) in &mut side.weights {
        if let Some(tensor) = weight.tensor().filter(|tensor| tensor.dtype().is_float()) {
            let mut random = Random::new(seed, name);
            let off = nudged(&tensor, || random.bits() & 1 == 0);
            *weight = Weight::from_raw(off.dtype(), &weight.dims(), off.bytes().to_vec())?;
        }
    }
    let wanted = [suspect.output];
    let job = Job { side: &side, wanted: &wanted, values: (0, &moved) };
    bench.run(graph, &[job]).pop()?.ok()?.pop()
}
