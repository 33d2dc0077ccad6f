//! Finds out by experiment what makes an operator wrong.
//!
//! An operator that introduces too much is run alone, on what the original computed before it, with
//! one thing changed: the original's weight, the original's attribute, a wider type, another engine.
//! What makes the error vanish is the cause. What was tried before and did not is listed. Nothing
//! is concluded from names or kinds of operators alone.

mod alone;
mod attribute;
mod fold;
mod fusion;
mod kernel;
mod layout;
mod nondeterminism;
mod operator;
mod pairing;
mod precision;
pub(crate) mod room;
pub(crate) mod slice;
mod trial;
mod weight;

use std::collections::{BTreeMap, BTreeSet};

use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{Engine, SessionOptions};
use veracity_onnx::Model;
use veracity_results::{Cause, CauseKind, DriftReport, DriftRow, Verdict};
use veracity_tensor::SharedTensor;

use crate::rows::comparable_values;
use crate::values::Values;
pub(crate) use attribute::says_how;
use slice::Slice;
use trial::{Outcome, Trial};
pub(crate) use trial::{distance, run_alone};

/// A model with what it is given.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The model.
    pub model: &'a Model,
    /// Its inputs.
    pub inputs: &'a Values,
    /// Those of its inputs that are weights.
    pub weights: &'a BTreeSet<String>,
}

/// The original as a model of its own, which holds the right weights, attributes and operators.
#[derive(Clone, Copy, Debug)]
pub struct Original<'a> {
    /// The model; of its inputs only weights are needed.
    pub side: Side<'a>,
    /// Names of the export's values and inputs in it, where they differ.
    pub names: &'a BTreeMap<String, String>,
    /// What its operators are given, by its own names and in its own types. Without, the same as
    /// those of the export.
    pub given: Option<&'a Values>,
}

/// What experiments are made with.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// The model that was compared.
    pub export: Side<'a>,
    /// What the original computed, by the names of the export.
    pub references: &'a Values,
    /// The original as a model, if there is one beside the export.
    pub original: Option<Original<'a>>,
    /// Weights of the original, by the names that they have in the export.
    pub named: &'a Values,
    /// What runs the export.
    pub engine: &'a dyn Engine,
    /// Another engine.
    pub second: Option<&'a dyn Engine>,
    /// How it was run.
    pub session: &'a SessionOptions,
}

/// What [`explain`] could use and was not given yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Inputs of the original that are weights.
    pub original: BTreeSet<String>,
    /// Constants of the export, for which there may be a weight of that name.
    pub named: BTreeSet<String>,
}

/// How many rows are looked into, if nobody says otherwise.
pub const EXPLAINED_ROWS: usize = 8;

/// What is tried, in this order; the first that explains the fault is the cause. What leaves the
/// operators as they are comes first, and exchanging all of them comes last.
const EXPERIMENTS: [fn(&Trial<'_>) -> Outcome; 9] = [
    alone::experiment,
    nondeterminism::experiment,
    fusion::experiment,
    layout::experiment,
    precision::experiment,
    weight::experiment,
    attribute::experiment,
    operator::experiment,
    kernel::experiment,
];

/// Says of each disproved row what makes it wrong. Only the first `rows` of them are looked into;
/// the others say so.
pub fn explain(report: &mut DriftReport, evidence: &Evidence<'_>, rows: usize) -> Result<()> {
    let mut left = rows;
    let disproved = report.rows.iter_mut().filter(|row| row.verdict == Verdict::Disproved);
    for row in disproved {
        row.cause = Some(match left {
            0 => passed_over(rows),
            _ => explain_row(row, evidence)?,
        });
        left = left.saturating_sub(1);
    }
    Ok(())
}

/// Finds out what makes a row wrong.
pub(crate) fn explain_row(row: &DriftRow, evidence: &Evidence<'_>) -> Result<Cause> {
    Ok(cause_of(&Trial::new(row, evidence)?))
}

/// What is said of rows behind the first ones.
pub(crate) fn passed_over(rows: usize) -> Cause {
    unknown(format!("not looked into: only the first {rows} operators are"), Vec::new())
}

/// What experiments on this report need: large weights are not kept at hand for nothing.
pub fn needs(report: &DriftReport, evidence: &Evidence<'_>, rows: usize) -> Result<Needs> {
    let mut needs = Needs::default();
    let disproved = report.rows.iter().filter(|row| row.verdict == Verdict::Disproved);
    for row in disproved.take(rows) {
        needs.named.extend(export_slice(row, evidence)?.constants());
        if let Some(slice) = original_slice(row, evidence) {
            let weights = &evidence.original.map(|original| original.side.weights);
            let reads = slice.model.inputs().into_iter().map(|input| input.name);
            let wanted = |name: &String| weights.is_some_and(|weights| weights.contains(name));
            needs.original.extend(reads.filter(wanted));
        }
    }
    Ok(needs)
}

/// What the original computed at a row. Refused when it was not kept.
pub(crate) fn reference_of(row: &DriftRow, evidence: &Evidence<'_>) -> Result<SharedTensor> {
    evidence.references.get(&row.name).cloned().ok_or_else(|| {
        let message = format!("what the original computed at {:?} was not kept", row.name);
        Diagnostic::error(codes::REPRO_ROW_UNKNOWN, message).into()
    })
}

/// What computes the value of a row in the export.
pub(crate) fn export_slice(row: &DriftRow, evidence: &Evidence<'_>) -> Result<Slice> {
    Slice::of(&evidence.export, &row.name, &given(evidence))
}

/// What computes it in the original, if the original has that value.
fn original_slice(row: &DriftRow, evidence: &Evidence<'_>) -> Option<Slice> {
    let original = evidence.original?;
    let renamed = |name: &String| original.names.get(name).unwrap_or(name).clone();
    if let Some(given) = original.given {
        return Slice::of(&original.side, &renamed(&row.name), given).ok();
    }
    let weights = evidence.export.weights;
    let inputs = evidence.export.inputs.iter().filter(|(name, _)| !weights.contains(*name));
    let mut given: Values = inputs.map(|(name, value)| (renamed(name), value.clone())).collect();
    given.extend(self::given(evidence).into_iter().map(|(name, value)| (renamed(&name), value)));
    Slice::of(&original.side, &renamed(&row.name), &given).ok()
}

/// The values at which the graph is cut: the same as when introduced errors are measured.
fn given(evidence: &Evidence<'_>) -> Values {
    let names = comparable_values(evidence.export.model, evidence.references);
    names.into_iter().map(|name| (name.clone(), evidence.references[&name].clone())).collect()
}

fn cause_of(trial: &Trial<'_>) -> Cause {
    let mut ruled_out = Vec::new();
    for experiment in EXPERIMENTS {
        match experiment(trial) {
            Outcome::Explained { kind, detail } => return Cause { kind, detail, ruled_out },
            Outcome::RuledOut(line) => ruled_out.push(line),
            Outcome::NotApplicable => {}
        }
    }
    unknown("none of the experiments explains it".to_owned(), ruled_out)
}

pub(crate) fn unknown(detail: String, ruled_out: Vec<String>) -> Cause {
    Cause { kind: CauseKind::Unknown, detail, ruled_out }
}
