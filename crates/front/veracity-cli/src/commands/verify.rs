//! `veracity verify`: everything that can be refused without running a model.

use std::path::Path;

use veracity::results::Tolerance;
use veracity::{Bundle, Code, Refusal, RobotCheck, RobotOptions, Verification, codes};

use super::target;
use crate::cli::{Format, VerifyArgs};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::document::Document;
use crate::render::{robot, verification};

/// Findings which say that there is no bundle to have an opinion about.
const NO_BUNDLE: [Code; 4] = [
    codes::BUNDLE_NOT_FOUND,
    codes::BUNDLE_AMBIGUOUS,
    codes::FILE_UNREADABLE,
    codes::PATH_NOT_A_FILE,
];

pub(super) fn execute(arguments: &VerifyArgs, context: &Context) -> Result<Outcome, Failure> {
    let mut found = veracity::verify(&arguments.bundle);
    let mut map = None;
    if let Some(robot) = arguments.robot.as_deref().filter(|_| found.opened) {
        let bundle = Bundle::open(&arguments.bundle)?;
        if let Some(path) = &arguments.write_map {
            target::check(path, &bundle, Some(robot))?;
        }
        let check = hold(&bundle, robot, arguments)?;
        map = write_map(&check, arguments.write_map.as_deref())?;
        found.robot = Some(check);
    }
    let is_refused = !found.sound || (arguments.strict && !found.diagnostics.is_empty());
    if arguments.format == Format::Json {
        context.answer_json(&found)?;
    }
    if let Some(refusal) = no_bundle(&found) {
        return Err(refusal.into());
    }
    if arguments.format != Format::Json {
        let document = || {
            let mut document = Document::new(format!("Verified: {}", arguments.bundle.display()));
            verification::write(&found, is_refused, &mut document);
            if let Some(check) = &found.robot {
                robot::write(check, map.as_deref(), &mut document);
            }
            document
        };
        context.give(arguments.format, &found, document)?;
    }
    Ok(if is_refused { Outcome::Disproved } else { outcome(&found, arguments.strict) })
}

/// How a sound bundle stands to the robot.
fn outcome(found: &Verification, strict: bool) -> Outcome {
    match &found.robot {
        Some(check) if check.differs() => Outcome::Disproved,
        Some(check) if strict && !check.diagnostics.is_empty() => Outcome::Disproved,
        Some(check) if !check.agrees => Outcome::Inconclusive,
        _ => Outcome::Proved,
    }
}

fn hold(bundle: &Bundle, robot: &Path, arguments: &VerifyArgs) -> Result<RobotCheck, Refusal> {
    let tolerance = Tolerance::new(arguments.atol, arguments.rtol)?;
    let options = RobotOptions::new().with_gain_rtol(arguments.gain_rtol).with_tolerance(tolerance);
    veracity::check_robot(bundle, robot, arguments.values.as_deref(), options)
}

/// Writes the map, and says what was done. A map that could mend nothing is not written beside
/// differences: it would look as if it did.
fn write_map(check: &RobotCheck, path: Option<&Path>) -> Result<Option<String>, Refusal> {
    let Some(path) = path else { return Ok(None) };
    let count = check.reorder.len();
    if count == 0 && !check.agrees {
        return Ok(Some("no map was written: no order explains a difference".to_owned()));
    }
    target::write(path, &check.reorder_map().to_yaml())?;
    let order = if count == 1 { "order" } else { "orders" };
    Ok(Some(format!("{count} {order} written to {}", path.display())))
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
