//! The same operators in another engine.

use veracity_results::CauseKind;

use crate::causes::trial::{Outcome, Trial};

pub(crate) fn experiment(trial: &Trial<'_>) -> Outcome {
    let Some(second) = trial.second else { return Outcome::NotApplicable };
    // Engines know more about weights that are inside of a model.
    let slice = trial.slice.closed();
    let (ours, theirs) = (trial.engine.name(), second.name());
    let error = match slice.run(second, trial.session, trial.reference.shape()) {
        Ok(found) => trial.distance(&found),
        Err(refusal) => {
            let why = &refusal.first_error().message;
            return Outcome::RuledOut(format!("kernel: {theirs} does not take it: {why}"));
        }
    };
    let own = trial.own_error();
    if !trial.allowed(error) {
        let line = format!("kernel: {theirs} is off by {error:.2e}, {ours} by {own:.2e}");
        return Outcome::RuledOut(line);
    }
    match trial.row.float64 {
        Some(wide) if wide.candidate <= wide.reference => Outcome::RuledOut(format!(
            "kernel: {theirs} agrees with the original, but float64 is nearer to {ours}: {:.2e} \
             against {:.2e}",
            wide.candidate, wide.reference
        )),
        wide => {
            let float64 = if wide.is_some() { " and float64 agree" } else { " agrees" };
            let detail = format!(
                "{theirs}{float64} with the original ({error:.2e}), {ours} is off by {own:.2e}"
            );
            Outcome::Explained { kind: CauseKind::OpImplementation, detail }
        }
    }
}
