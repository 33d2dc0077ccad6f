//! The right values in another order of axes.

use veracity_compare::find_permutation;
use veracity_results::{CauseKind, Tolerance};

use crate::causes::trial::{Outcome, Trial};
use crate::values::view;

pub(crate) fn experiment(trial: &Trial<'_>) -> Outcome {
    match permutation(trial) {
        None if trial.found.is_none() => Outcome::NotApplicable,
        None => Outcome::RuledOut("layout: no order of the axes restores agreement".to_owned()),
        Some(order) => {
            let detail = format!(
                "the values are right with the export's axes in the order {order:?}: it is {} in \
                 the export, {} in the original",
                trial.found.as_ref().map(|found| found.shape().to_string()).unwrap_or_default(),
                trial.reference.shape()
            );
            Outcome::Explained { kind: CauseKind::LayoutMismatch, detail }
        }
    }
}

fn permutation(trial: &Trial<'_>) -> Option<Vec<usize>> {
    let found = trial.found.as_ref()?;
    let tolerance = Tolerance::new(trial.row.budget, 0.0).ok()?;
    find_permutation(&view(&trial.reference).ok()?, &view(found).ok()?, tolerance)
}
