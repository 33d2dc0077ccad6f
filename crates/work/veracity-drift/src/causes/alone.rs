//! The operator alone, as it stands. Where it is right then, nothing inside of it is to blame: what
//! the file says about its value is wrong, or what runs beside it makes a difference.

use veracity_engine::OptimizationLevel;
use veracity_results::CauseKind;

use crate::causes::trial::{Outcome, Trial};

pub(crate) fn experiment(trial: &Trial<'_>) -> Outcome {
    let alone = trial.own_error();
    if !trial.allowed(alone) {
        return Outcome::NotApplicable;
    }
    if let Some(problem) = &trial.row.problem {
        let detail = format!(
            "the operator is right when it is run; only what the file says about it is wrong: \
             {problem}"
        );
        return Outcome::Explained { kind: CauseKind::AttributeMismatch, detail };
    }
    let level = trial.session.optimization;
    let kind = match level {
        OptimizationLevel::None => CauseKind::Nondeterminism,
        _ => CauseKind::Fusion,
    };
    let detail = format!(
        "off by {:.2e} among the other operators, by {alone:.2e} alone, both at optimisation level \
         {level:?}",
        trial.row.introduced.max_abs
    );
    Outcome::Explained { kind, detail }
}
