//! The same operators without what the engine makes of them.

use veracity_engine::{OptimizationLevel, SessionOptions};
use veracity_results::CauseKind;

use crate::causes::trial::{Outcome, Trial};

pub(crate) fn experiment(trial: &Trial<'_>) -> Outcome {
    let level = trial.session.optimization;
    if level == OptimizationLevel::None {
        return Outcome::NotApplicable;
    }
    let plain = SessionOptions { optimization: OptimizationLevel::None, ..trial.session.clone() };
    let found = trial.slice.run(trial.engine, &plain, trial.reference.shape());
    let error = found.map_or(f64::INFINITY, |found| trial.distance(&found));
    if !trial.allowed(error) {
        let line = format!("fusion: without the engine's optimisation it is off by {error:.2e}");
        return Outcome::RuledOut(line);
    }
    let detail = format!(
        "off by {:.2e} at optimisation level {level:?}, by {error:.2e} without optimisation",
        trial.own_error()
    );
    Outcome::Explained { kind: CauseKind::Fusion, detail }
}
