//! `veracity drift`: two models, engines or levels, operator by operator.

mod files;
mod repeat;

use serde::Serialize;
use veracity::drift::{Budget, DriftOptions, EXPLAINED_ROWS};
use veracity::report::drift;
use veracity::results::DriftReport;
use veracity::two::{Feed, ModelChoice, Pursuit, Rules, drift_models, read_report, worse_than};
use veracity::{Diagnostic, EngineChoice, EngineSearch, Engines, Refusal, SessionOptions, codes};

use crate::cli::{DriftArgs, Format};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::document::Document;
use crate::render::{baseline, drift as rendered};

pub(super) fn execute(arguments: &DriftArgs, context: &Context) -> Result<Outcome, Failure> {
    // What can be refused is refused before anything runs.
    check(arguments)?;
    let baseline = arguments.findings.baseline.as_deref().map(read_report).transpose()?;
    let command = repeat::command(std::env::args().skip(1));
    let report = DriftReport { command, ..compare(arguments)? };
    files::write(arguments, &report)?;
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
    files::check(arguments)
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
    let second = here.second_onnx();
    let pursuit = Pursuit {
        rows: if arguments.no_causes { 0 } else { EXPLAINED_ROWS },
        second: second.as_deref(),
        repro: arguments.findings.repro.as_deref(),
    };
    drift_models(&reference, &candidate, &feed, &options(arguments)?, &pursuit)
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
    let since = || worse.map(baseline::document);
    let text = match arguments.findings.format {
        Format::Json => return Ok(context.answer_json(&Answer { report, worse })?),
        Format::Md => baseline::below(drift::markdown(report), since(), Document::markdown),
        Format::Table => {
            let width = context.width();
            let shown = rendered::render(report, width);
            baseline::below(shown, since(), |since| since.text(width))
        }
    };
    Ok(context.answer(&text)?)
}
