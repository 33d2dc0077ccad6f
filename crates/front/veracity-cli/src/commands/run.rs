//! `veracity run`: steps a bundle through an episode.

mod drive;
mod outputs;

use std::time::Duration;

use serde_json::json;
use veracity::proof::{Demand, load_proved};
use veracity::results::{SCHEMA_VERSION, StepTiming};
use veracity::{Bundle, Diagnostic, Place, Refusal, Runner, codes};

use super::feed::Feed;
use super::sessions;
use crate::cli::{Rate, RunArgs};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::document::Document;
use crate::render::latency;
use crate::render::table::{Cell, Column, Table};
use outputs::Outputs;

pub(super) fn execute(arguments: &RunArgs, context: &Context) -> Result<Outcome, Failure> {
    let bundle = Bundle::open(&arguments.bundle)?;
    let period = period(arguments.rate, &bundle)?;
    // What can be refused is refused before the first step: an episode may take hours.
    if let Some(path) = &arguments.outputs {
        outputs::check_path(path, &bundle, arguments.inputs.as_deref())?;
    }
    let engines = sessions::engines(arguments.engine, &arguments.sessions);
    let map = arguments.map.as_deref();
    let options = sessions::run_options(&arguments.sessions, arguments.fuse, map)?;
    let mut runner = match demand(arguments) {
        Some(demand) => load_proved(&bundle, &engines, &options, &demand)?,
        None => Runner::load(&bundle, &engines, &options)?,
    };
    context.warn(runner.warnings())?;
    let feed = feed(arguments, &mut runner)?;
    let mut outputs = match &arguments.outputs {
        Some(_) => Some(Outputs::new(&runner, feed.steps())?),
        None => None,
    };
    let timing = drive::drive(&mut runner, &feed, period, outputs.as_mut())?;
    if let (Some(path), Some(outputs)) = (&arguments.outputs, outputs) {
        outputs.write(path)?;
    }
    let json = answer_json(arguments, &bundle, &runner, &timing);
    context.give(arguments.format, &json, || answer(&bundle, &runner, &timing))?;
    Ok(Outcome::Proved)
}

/// What is asked of a proof, if one is asked for.
fn demand(arguments: &RunArgs) -> Option<Demand> {
    let RunArgs { require_proof, prove, accept_conditional, ceiling, .. } = *arguments;
    let demand = Demand { accept_conditional, ceiling, prove };
    (require_proof || prove).then_some(demand)
}

fn feed(arguments: &RunArgs, runner: &mut Runner) -> Result<Feed, Refusal> {
    match (&arguments.inputs, arguments.mock) {
        (Some(path), _) => Feed::from_file(path, arguments.steps, runner),
        (None, Some(seed)) => Ok(Feed::mock(seed, arguments.steps, runner)),
        (None, None) => Feed::nothing(arguments.steps, runner),
    }
}

/// Time between two steps; `None` to step as fast as possible.
fn period(rate: Option<Rate>, bundle: &Bundle) -> Result<Option<Duration>, Refusal> {
    let hertz = match rate {
        None => return Ok(None),
        Some(Rate::Hertz(hertz)) => hertz,
        Some(Rate::Bundle) => bundle_rate(bundle)?,
    };
    Ok(Some(Duration::from_secs_f64(hertz.recip())))
}

fn bundle_rate(bundle: &Bundle) -> Result<f64, Refusal> {
    let refuse = |message: String| -> Refusal {
        Diagnostic::error(codes::OPTION_INVALID, message)
            .at(Place::file(bundle.yaml_path().display().to_string()))
            .hint("give the rate as a number: `--rate 50`")
            .into()
    };
    match bundle.spec().configs.frequency {
        None => Err(refuse("the bundle names no frequency".to_owned())),
        Some(hertz) if Rate::RANGE.contains(&hertz) => Ok(hertz),
        Some(hertz) => Err(refuse(format!("the bundle's frequency of {hertz} Hz cannot be kept"))),
    }
}

fn answer(bundle: &Bundle, runner: &Runner, timing: &StepTiming) -> Document {
    let mut table = Table::new([
        Column::left("session").flexible(),
        Column::left("engine"),
        Column::left("device"),
    ]);
    for session in runner.sessions() {
        let engine = format!("{} {}", session.engine, session.engine_version);
        let cells = [session.nodes.as_str(), engine.as_str(), session.device.as_str()];
        table.row(cells.map(Cell::from));
    }
    let mut document = Document::new(format!("Run: {}", bundle.yaml_path().display()));
    if runner.sessions().next().is_some() {
        document.table(table, 0);
    }
    document.gap();
    latency::write(timing, &mut document);
    document
}

fn answer_json(
    arguments: &RunArgs,
    bundle: &Bundle,
    runner: &Runner,
    timing: &StepTiming,
) -> serde_json::Value {
    json!({
        "schema_version": SCHEMA_VERSION,
        "bundle": bundle.yaml_path().display().to_string(),
        "timing": timing,
        "sessions": runner.sessions().collect::<Vec<_>>(),
        "warnings": runner.warnings(),
        "outputs": arguments.outputs.as_ref().map(|path| path.display().to_string()),
    })
}
