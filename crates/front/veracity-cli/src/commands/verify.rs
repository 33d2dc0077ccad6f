//! `veracity verify`: everything that can be refused without running a model.

use veracity::{Code, Refusal, Verification, codes};

use crate::cli::{Format, VerifyArgs};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::verification;

/// Findings which say that there is no bundle to have an opinion about.
const NO_BUNDLE: [Code; 4] = [
    codes::BUNDLE_NOT_FOUND,
    codes::BUNDLE_AMBIGUOUS,
    codes::FILE_UNREADABLE,
    codes::PATH_NOT_A_FILE,
];

pub(super) fn execute(arguments: &VerifyArgs, context: &Context) -> Result<Outcome, Failure> {
    let found = veracity::verify(&arguments.bundle);
    let is_refused = !found.sound || (arguments.strict && !found.diagnostics.is_empty());
    if arguments.format == Format::Json {
        context.answer_json(&found)?;
    }
    if let Some(refusal) = no_bundle(&found) {
        return Err(refusal.into());
    }
    if arguments.format == Format::Table {
        context.answer(&verification::render(&found, is_refused, context.width()))?;
    }
    Ok(if is_refused { Outcome::Disproved } else { Outcome::Proved })
}

/// Why nothing was verified at all. A file inside of a bundle that cannot be read is a reason to
/// refuse the bundle instead.
fn no_bundle(found: &Verification) -> Option<Refusal> {
    let is_absent = found.diagnostics.iter().any(|found| NO_BUNDLE.contains(&found.code));
    if !found.opened && is_absent {
        Refusal::from_errors_in(found.diagnostics.clone())
    } else {
        None
    }
}
