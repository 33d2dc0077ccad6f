//! The original's operators in the place of the export's.

use veracity_results::CauseKind;

use crate::causes::attribute::{Change, changes};
use crate::causes::slice::Slice;
use crate::causes::trial::{Outcome, Trial};

/// Operators that are shown of a slice.
const SHOWN: usize = 8;

pub(crate) fn experiment(trial: &Trial<'_>) -> Outcome {
    let Some((original, pairs)) = &trial.original else { return Outcome::NotApplicable };
    let error = trial.error(original);
    if !trial.allowed(error) {
        let line = format!("operators: with the original's it is off by {error:.2e} as well");
        return Outcome::RuledOut(line);
    }
    if !pairs.alike {
        let detail = difference(&trial.slice, original);
        return Outcome::Explained { kind: CauseKind::OperatorMismatch, detail };
    }
    // The same operators, and the original's are right: attributes and weights only help together.
    let changes = changes(trial, original, pairs);
    if changes.is_empty() {
        return Outcome::RuledOut("operators: they are the original's".to_owned());
    }
    let texts: Vec<&str> = changes.iter().map(Change::text).collect();
    let detail = format!("together with weights: {}", texts.join("; "));
    Outcome::Explained { kind: CauseKind::AttributeMismatch, detail }
}

/// Both chains of operators; what they read, when the operators are the same.
fn difference(export: &Slice, original: &Slice) -> String {
    let (is, was) = (chain(export), chain(original));
    let (is, was) = if is == was { (calls(export), calls(original)) } else { (is, was) };
    format!("{was} in the original, {is} in the export")
}

fn chain(slice: &Slice) -> String {
    let operators: Vec<String> = slice.operators().into_iter().map(|node| node.op_type).collect();
    shortened(&operators)
}

fn calls(slice: &Slice) -> String {
    let operators = slice.operators().into_iter();
    let calls: Vec<String> =
        operators.map(|node| format!("{}({})", node.op_type, node.inputs.join(", "))).collect();
    shortened(&calls)
}

fn shortened(parts: &[String]) -> String {
    match parts.len() {
        0 => "nothing".to_owned(),
        count if count > SHOWN => {
            format!("{} operators that end in {}", count, parts[count - SHOWN / 2..].join(" -> "))
        }
        _ => parts.join(" -> "),
    }
}
