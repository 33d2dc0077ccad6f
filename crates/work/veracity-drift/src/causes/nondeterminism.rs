//! Two runs of the same operator, and runs with other numbers of threads.

use std::num::NonZeroUsize;

use veracity_results::CauseKind;

use crate::causes::trial::{Outcome, Trial, distance};

const TWO: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

pub(crate) fn experiment(trial: &Trial<'_>) -> Outcome {
    let Some(found) = trial.found.as_ref() else { return Outcome::NotApplicable };
    if found.shape() != trial.reference.shape() {
        return Outcome::NotApplicable;
    }
    let threads = trial.session.threads;
    for (what, other) in
        [("run again", threads), ("with 1 thread", NonZeroUsize::MIN), ("with 2 threads", TWO)]
    {
        let again = trial.run_with_threads(other);
        let moved = again.as_ref().and_then(|again| distance(found, again));
        let moved = moved.unwrap_or(f64::INFINITY);
        let right = again.as_ref().is_some_and(|again| trial.allowed(trial.distance(again)));
        if right || !trial.allowed(moved) {
            let detail = format!("{what}, the operator differs from itself by {moved:.2e}");
            return Outcome::Explained { kind: CauseKind::Nondeterminism, detail };
        }
    }
    Outcome::RuledOut(
        "nondeterminism: it gives the same again, with 1 and with 2 threads".to_owned(),
    )
}
