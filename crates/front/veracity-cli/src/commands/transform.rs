//! `veracity transform`: a model or a bundle, changed and proved.

mod bundle;

use std::path::Path;

use serde::Serialize;
use veracity::report::{TextOptions, rewrites};
use veracity::results::{RewriteChecks, RewriteLog};
use veracity::transform::{
    Change, CheckOptions, Inputs, LogOptions, Model, TransformOptions, transform_model,
};
use veracity::two::read_inputs;
use veracity::{Diagnostic, EngineSearch, Engines, Place, Refusal, codes, reports};

use super::target;
use crate::cli::{Format, PassArgs, TransformArgs};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::proof::painted;

pub(super) fn execute(arguments: &TransformArgs, context: &Context) -> Result<Outcome, Failure> {
    if !is_model(&arguments.input) {
        return bundle::execute(arguments, context);
    }
    check_target(arguments)?;
    let original = Model::read_whole(&arguments.input)?;
    let options = TransformOptions {
        check: CheckOptions {
            validation: arguments.validate,
            on_fail: arguments.on_fail,
            ..check_options(&arguments.what, Some(&original))?
        },
        ..options(arguments)
    };
    let change = transform_model(&original, &options, &engines(&arguments.what))?;
    write(arguments, &change)?;
    let name = arguments.output.display().to_string();
    answer(arguments, context, &name, &change)?;
    Ok(outcome(&change))
}

/// Whether a path is a model and not a bundle.
pub(super) fn is_model(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("onnx"))
}

pub(super) fn engines(what: &PassArgs) -> Engines {
    let ort_library = what.ort_library.clone();
    Engines::new(what.engine, EngineSearch { ort_library, ..EngineSearch::default() })
}

/// What was asked for, the checks aside.
fn options(arguments: &TransformArgs) -> TransformOptions {
    TransformOptions {
        passes: arguments.what.passes.clone(),
        log: LogOptions { provenance: !arguments.no_log },
        ..TransformOptions::default()
    }
}

/// What models are checked on. `model` says which inputs a file must hold.
pub(super) fn check_options(
    what: &PassArgs,
    model: Option<&Model>,
) -> Result<CheckOptions, Refusal> {
    let mut inputs =
        Inputs { seed: what.seed, named: what.dim.iter().cloned().collect(), ..Inputs::default() };
    if let (Some(path), Some(model)) = (&what.inputs, model) {
        inputs.recorded.push(read_inputs(model, path)?);
    }
    Ok(CheckOptions { inputs, threads: what.threads, ..CheckOptions::default() })
}

/// The original must stay: it is what everything is compared with.
fn check_target(arguments: &TransformArgs) -> Result<(), Refusal> {
    let (input, output) = (&arguments.input, &arguments.output);
    let same = matches!((input.canonicalize(), output.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if same {
        let message = "the result would replace the original";
        return Err(Diagnostic::error(codes::OPTION_INVALID, message)
            .at(Place::file(output.display().to_string()))
            .hint("choose another file for `-o`")
            .into());
    }
    arguments.html.as_ref().map_or(Ok(()), |page| target::check_page(page, input))
}

fn write(arguments: &TransformArgs, change: &Change) -> Result<(), Refusal> {
    change.write(&arguments.output, !arguments.no_log)?;
    let name = arguments.output.file_name().unwrap_or_default().to_string_lossy();
    arguments.html.as_ref().map_or(Ok(()), |path| reports::write_change_page(&name, change, path))
}

/// What a program is told.
#[derive(Serialize)]
struct Answer<'c> {
    #[serde(flatten)]
    log: &'c RewriteLog,
    checks: Option<&'c RewriteChecks>,
}

fn answer(
    arguments: &TransformArgs,
    context: &Context,
    name: &str,
    change: &Change,
) -> Result<(), Failure> {
    let (log, checks) = (&change.recorded()?.log, change.checks.as_ref());
    let text = match arguments.format {
        Format::Json => return Ok(context.answer_json(&Answer { log, checks })?),
        Format::Md => rewrites::markdown(name, log, checks),
        Format::Table => {
            let width = context.width();
            let options = TextOptions { width, paint: painted, ..TextOptions::default() };
            rewrites::text(name, log, checks, &options)
        }
    };
    Ok(context.answer(&text)?)
}

/// Not to check is a choice; what could not be checked is not.
fn outcome(change: &Change) -> Outcome {
    change.checks.as_ref().map_or(Outcome::Proved, |checks| checks.verdict.into())
}
