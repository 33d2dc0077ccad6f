//! The outputs from end to end.
//!
//! Each operator may be within its budget and the output be wrong: budgets add up, and operators
//! are looked at on the reference's values. So outputs are held to what roundings explain from the
//! inputs on: how far they move when inputs and all constants are moved by as much as one operator
//! may introduce.

use veracity_diag::{Diagnostic, Place, codes};
use veracity_onnx::NodeFacts;
use veracity_results::{DriftReport, DriftRow, Verdict};
use veracity_tensor::Tensor;

use crate::elements::Judged;
use crate::look::{Again, Suspect, look};
use crate::rows::DriftOptions;
use crate::tiles::numbers;

/// How many times farther from float64 than the reference a candidate may be.
const AS_NEAR: f64 = 2.0;

/// Whether outputs are judged: nothing is wrong already, and no rule lets an operator introduce more
/// than the budget, which may show at the outputs.
pub(crate) fn is_due(rows: &[DriftRow], options: &DriftOptions) -> bool {
    let widened = |row: &DriftRow| {
        let allowed = options.budget.units / crate::budget::Budget::default().units;
        options.rule_for(row).is_some()
            && row.introduced.largest() > 1e-5 * row.scale * allowed.max(1.0)
    };
    !rows.iter().any(|row| row.verdict == Verdict::Disproved || widened(row))
}

/// What is to be said about outputs that are wrong.
pub(crate) fn findings(
    names: &[&str],
    suspects: &[Suspect],
    wide: &[Option<Tensor>],
    rows: &[DriftRow],
    nodes: &[NodeFacts],
    again: &mut Again<'_>,
) -> Vec<Diagnostic> {
    let judged = look(suspects, again);
    let mut wrong = Vec::new();
    for (((name, judged), suspect), wide) in names.iter().zip(&judged).zip(suspects).zip(wide) {
        let near = wide.as_ref().is_some_and(|wide| is_as_near(suspect, wide));
        if !judged.is_within() && !near {
            wrong.push(finding(name, judged, first(name, rows, nodes)));
        }
    }
    wrong
}

/// Whether the candidate is about as near to float64 as the reference, in every element: then its
/// error is the rounding of both.
fn is_as_near(suspect: &Suspect, wide: &Tensor) -> bool {
    let count = wide.shape().elements();
    let [exact, reference, found] = [wide, &suspect.reference, &suspect.found]
        .map(|side| numbers(&side.view(), 0, count.min(side.shape().elements())));
    let largest = |side: &[f64]| {
        exact.iter().zip(side).map(|(exact, is)| (exact - is).abs()).fold(0.0_f64, f64::max)
    };
    let all_finite = found.iter().all(|value| value.is_finite());
    let each = exact.iter().zip(&reference).zip(&found).all(|((exact, was), is)| {
        (exact - is).abs() <= suspect.relative * exact.abs() + AS_NEAR * (exact - was).abs()
    });
    all_finite && each && largest(&found) <= AS_NEAR * largest(&reference)
}

/// The first value on the way to an output whose accumulated error is more than one operator may
/// introduce; the output itself if there is none.
fn first<'r>(output: &'r str, rows: &'r [DriftRow], nodes: &[NodeFacts]) -> &'r str {
    let mut behind: std::collections::BTreeSet<&str> = [output].into();
    for node in nodes.iter().rev() {
        if node.outputs.iter().any(|name| behind.contains(name.as_str())) {
            behind.extend(node.inputs.iter().map(String::as_str));
        }
    }
    let leaves = |row: &&DriftRow| {
        behind.contains(row.name.as_str()) && row.accumulated.largest() > row.budget
    };
    rows.iter().find(leaves).map_or(output, |row| row.name.as_str())
}

fn finding(name: &str, judged: &Judged, from: &str) -> Diagnostic {
    let what = match &judged.element {
        Some(one) => format!(
            "it is {:e} instead of {:e} at {:?}, and roundings explain {:.2e}",
            one.candidate, one.reference, one.index, one.budget
        ),
        None => "it has a NaN or an infinity that the reference has not".to_owned(),
    };
    let message = format!(
        "every operator is within its budget and output {name:?} is wrong: {what}; the error first \
         leaves what one operator may introduce at {from:?}"
    );
    Diagnostic::error(codes::DRIFT_END_TO_END, message).at(Place::node(from))
}

/// Puts what was found into a report.
pub(crate) fn put(report: &mut DriftReport, wrong: Vec<Diagnostic>) {
    if !wrong.is_empty() {
        report.verdict = Verdict::Disproved;
        report.reasons.extend(wrong);
    }
}
