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

/// Both chains of operators; when they are the same, those calls that read something else.
fn difference(export: &Slice, original: &Slice) -> String {
    let (mut is, mut was) = (kinds(export), kinds(original));
    if is == was {
        let both = calls(export).into_iter().zip(calls(original));
        (is, was) = both.filter(|(is, was)| is != was).unzip();
    }
    format!("{} in the original, {} in the export", shortened(&was), shortened(&is))
}

fn kinds(slice: &Slice) -> Vec<String> {
    slice.operators().into_iter().map(|node| node.op_type).collect()
}

fn calls(slice: &Slice) -> Vec<String> {
    let operators = slice.operators().into_iter();
    operators.map(|node| format!("{}({})", node.op_type, node.inputs.join(", "))).collect()
}

fn shortened(parts: &[String]) -> String {
    match parts.len() {
        0 => "nothing".to_owned(),
        count if count > SHOWN => {
            format!("{count} operators that end in {}", parts[count - SHOWN / 2..].join(" -> "))
        }
        _ => parts.join(" -> "),
    }
}
