//! What the file says about a value, against what it is when it is run.

use veracity_results::CauseKind;

use crate::causes::trial::{Outcome, Trial};

pub(crate) fn experiment(trial: &Trial<'_>) -> Outcome {
    if !trial.allowed(trial.own_error()) {
        return Outcome::NotApplicable;
    }
    let detail = match &trial.row.problem {
        Some(problem) => format!(
            "the operator is right when it is run; only what the file says about it is wrong: \
             {problem}"
        ),
        None => return Outcome::NotApplicable,
    };
    Outcome::Explained { kind: CauseKind::AttributeMismatch, detail }
}
