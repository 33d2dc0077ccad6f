//! `veracity drift`: two models, engines or levels, operator by operator.

use std::path::Path;

use serde::Serialize;
use veracity::drift::{Budget, DriftOptions};
use veracity::results::DriftReport;
use veracity::two::{Feed, ModelChoice, Rules, drift_models, read_report, worse_than};
use veracity::{
    Diagnostic, EngineChoice, EngineSearch, Engines, Place, Refusal, SessionOptions, codes,
};

use super::target;
use crate::cli::{DriftArgs, Format};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::{diagnostic, drift as rendered, style};

pub(super) fn execute(arguments: &DriftArgs, context: &Context) -> Result<Outcome, Failure> {
    // What can be refused is refused before anything runs.
    check(arguments)?;
    let baseline = arguments.baseline.as_deref().map(read_report).transpose()?;
    let report = compare(arguments)?;
    if let Some(path) = &arguments.save {
        let json = serde_json::to_string_pretty(&report).map_err(std::io::Error::from)?;
        target::write(path, &(json + "\n"))?;
    }
    let worse = baseline.map(|baseline| worse_than(&baseline, &report));
    answer(arguments, context, &report, worse.as_deref())?;
    Ok(match worse {
        Some(worse) if !worse.is_empty() => Outcome::Disproved,
        // Nothing to compare is never "nothing got worse".
        Some(_) if report.rows.is_empty() => Outcome::Inconclusive,
        Some(_) => Outcome::Proved,
        None => report.verdict.into(),
    })
}

fn check(arguments: &DriftArgs) -> Result<(), Refusal> {
    let same_engine = arguments.reference_engine.is_none_or(|other| other == arguments.engine);
    let same_level = arguments.level == arguments.reference_level;
    if arguments.candidate.is_none() && same_engine && same_level {
        let message = "both sides are the same model on the same engine at the same level";
        return Err(Diagnostic::error(codes::OPTION_INVALID, message)
            .hint("give a second model, or `--reference-engine`, or `--level`")
            .into());
    }
    let Some(path) = &arguments.save else { return Ok(()) };
    let read =
        [Some(&arguments.reference), arguments.candidate.as_ref(), arguments.inputs.as_ref()];
    for other in read.into_iter().flatten() {
        if is_same(path, other) {
            let place = Place::file(path.display().to_string());
            let message = "this file is one of those that are compared";
            return Err(Diagnostic::error(codes::FILE_UNWRITABLE, message).at(place).into());
        }
    }
    Ok(())
}

fn is_same(left: &Path, right: &Path) -> bool {
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}

fn compare(arguments: &DriftArgs) -> Result<DriftReport, Refusal> {
    let engines = |choice: EngineChoice| {
        let ort_library = arguments.ort_library.clone();
        Engines::new(choice, EngineSearch { ort_library, ..EngineSearch::default() })
    };
    let here = engines(arguments.engine);
    let there = engines(arguments.reference_engine.unwrap_or(arguments.engine));
    let reference = ModelChoice {
        path: &arguments.reference,
        engines: &there,
        level: arguments.reference_level,
    };
    let path = arguments.candidate.as_ref().unwrap_or(&arguments.reference);
    let candidate = ModelChoice { path, engines: &here, level: arguments.level };
    let feed = match &arguments.inputs {
        Some(path) => Feed::File(path.clone()),
        None => Feed::Drawn { seed: arguments.seed, dims: arguments.dim.iter().cloned().collect() },
    };
    drift_models(&reference, &candidate, &feed, &options(arguments)?)
}

fn options(arguments: &DriftArgs) -> Result<DriftOptions, Refusal> {
    let rules = arguments.tolerances.as_deref().map(Rules::read).transpose()?;
    let defaults = DriftOptions::default();
    Ok(DriftOptions {
        budget: Budget { units: arguments.budget },
        rules: rules.unwrap_or_default(),
        tolerance: arguments.tolerance,
        memory_bytes: arguments.memory,
        session: SessionOptions { threads: arguments.threads, ..defaults.session },
        ..defaults
    })
}

/// A report, with what is worse than in a baseline if there is one.
#[derive(Serialize)]
struct Answer<'r> {
    #[serde(flatten)]
    report: &'r DriftReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    worse: Option<&'r [Diagnostic]>,
}

fn answer(
    arguments: &DriftArgs,
    context: &Context,
    report: &DriftReport,
    worse: Option<&[Diagnostic]>,
) -> Result<(), Failure> {
    if arguments.format == Format::Json {
        return Ok(context.answer_json(&Answer { report, worse })?);
    }
    let mut text = rendered::render(report, context.width());
    if let Some(worse) = worse {
        text.push('\n');
        for found in worse {
            text += &diagnostic::render(found, context.width());
        }
        text += &summary(worse.len());
    }
    Ok(context.answer(&text)?)
}

fn summary(worse: usize) -> String {
    let text = match worse {
        0 => style::paint(style::GOOD, "nothing is worse than in the baseline"),
        _ => style::paint(style::ERROR, &format!("{worse} worse than in the baseline")),
    };
    text + "\n"
}
