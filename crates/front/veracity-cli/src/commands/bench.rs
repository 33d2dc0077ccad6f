//! `veracity bench`: step times of a bundle, with separate and with merged sessions.

use serde_json::{Value, json};
use veracity::progress::Stage;
use veracity::results::{Latency, SCHEMA_VERSION};
use veracity::{Bundle, EngineChoice, Result, Runner, StepClock};

use super::feed::Feed;
use super::sessions;
use crate::cli::BenchArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::document::Document;
use crate::render::latency;
use crate::render::table::{Cell, Column, Table};

/// Turns that each variant takes. More even out a machine whose clock changes; fewer leave the
/// caches of the variant that runs warm.
const BLOCKS: u64 = 20;

/// What the made-up inputs of a measurement depend on. Any number would do.
const SEED: u64 = 0;

/// One way to run the bundle.
struct Variant {
    engine: EngineChoice,
    is_fused: bool,
    /// Whether it runs the same sessions as the separate one: nothing was merged.
    is_same: bool,
    runner: Runner,
    feed: Feed,
    clock: StepClock,
}

pub(super) fn execute(
    arguments: &BenchArgs,
    context: &Context,
) -> std::result::Result<Outcome, Failure> {
    let bundle = Bundle::open(&arguments.bundle)?;
    let (mut variants, mut warnings) = (Vec::new(), Vec::new());
    for &engine in &arguments.engines {
        let loaded = load(&bundle, engine, arguments)?;
        for warning in loaded.iter().flat_map(|variant| variant.runner.warnings()) {
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        variants.extend(loaded.into_iter().filter(|variant| !variant.is_same));
    }
    context.warn(&warnings)?;
    measure(&mut variants, arguments)?;
    let json = answer_json(&bundle, arguments, &variants);
    context.give(arguments.format, &json, || answer(arguments, &variants))?;
    Ok(Outcome::Proved)
}

/// The bundle with separate sessions and with merged ones.
fn load(bundle: &Bundle, engine: EngineChoice, arguments: &BenchArgs) -> Result<[Variant; 2]> {
    let engines = sessions::engines(engine, &arguments.sessions);
    let variant = |is_fused| -> Result<Variant> {
        let runner = sessions::load(bundle, &engines, &arguments.sessions, is_fused)?;
        let feed = Feed::mock(SEED, Some(arguments.steps), &runner);
        let clock = StepClock::new();
        Ok(Variant { engine, is_fused, is_same: false, runner, feed, clock })
    };
    let (separate, mut fused) = (variant(false)?, variant(true)?);
    fused.is_same = fused.runner.sessions().count() == separate.runner.sessions().count();
    Ok([separate, fused])
}

/// Runs all variants in turns, so that whatever slows the machine down slows all of them.
fn measure(variants: &mut [Variant], arguments: &BenchArgs) -> Result<()> {
    let (steps, warmup) = (arguments.steps, arguments.warmup);
    let total = steps.saturating_add(warmup).saturating_mul(variants.len() as u64);
    let mut stage = Stage::new("steps", usize::try_from(total).unwrap_or(usize::MAX));
    for variant in &mut *variants {
        for step in 0..warmup {
            variant.feed.step(step, &mut variant.runner)?;
            stage.advance(1);
        }
        variant.runner.reset();
    }
    let block = steps.div_ceil(BLOCKS);
    for (turn, first) in
        (0..steps).step_by(usize::try_from(block).unwrap_or(usize::MAX)).enumerate()
    {
        // Nobody is always the first after a pause.
        let offset = turn % variants.len();
        for position in 0..variants.len() {
            let variant = &mut variants[(position + offset) % variants.len()];
            for step in first..first.saturating_add(block).min(steps) {
                variant.clock.time(|| variant.feed.step(step, &mut variant.runner))?;
                stage.advance(1);
            }
        }
    }
    Ok(())
}

fn answer(arguments: &BenchArgs, variants: &[Variant]) -> Document {
    let mut columns = vec![Column::left("engine"), Column::left("sessions")];
    columns.extend(latency::COLUMNS);
    columns.push(Column::right("ratio"));
    let mut table = Table::new(columns);
    let first = variants.first().map(|variant| variant.clock.latency()).unwrap_or_default();
    for variant in variants {
        let found = variant.clock.latency();
        let mut cells =
            vec![Cell::from(variant.engine.to_string()), Cell::from(variant.sessions())];
        cells.extend(latency::cells(&found));
        cells.push(Cell::from(format!("{:.2}", ratio(&found, &first))));
        table.row(cells);
    }
    let mut document = Document::new(format!("Step times: {}", arguments.bundle.display()));
    document.table(table, 0);
    if !variants.iter().any(|variant| variant.is_fused) {
        document.line("no neighbouring nodes were merged: there is nothing to compare with");
    }
    let BenchArgs { steps, warmup, sessions, .. } = arguments;
    let blocks = steps.div_ceil(steps.div_ceil(BLOCKS));
    document.gap();
    document.line(format!(
        "{steps} steps each, made-up inputs, in {blocks} interleaved blocks, after {warmup} \
         unmeasured"
    ));
    document.line(format!(
        "threads per operator: {}; ratios are of p50, on this machine, in this run",
        sessions.threads
    ));
    document
}

impl Variant {
    fn sessions(&self) -> String {
        let number = self.runner.sessions().count();
        let kind = if self.is_fused { "fused" } else { "separate" };
        format!("{number} {kind}")
    }
}

/// How long the median step took compared with that of the first variant.
fn ratio(found: &Latency, first: &Latency) -> f64 {
    found.p50_secs / first.p50_secs
}

fn answer_json(bundle: &Bundle, arguments: &BenchArgs, variants: &[Variant]) -> Value {
    let first = variants.first().map(|variant| variant.clock.latency()).unwrap_or_default();
    let row = |variant: &Variant| {
        let found = variant.clock.latency();
        json!({
            "engine": variant.engine.to_string(),
            "fused": variant.is_fused,
            "sessions": variant.runner.sessions().collect::<Vec<_>>(),
            "latency": found,
            "p50_ratio": ratio(&found, &first),
        })
    };
    json!({
        "schema_version": SCHEMA_VERSION,
        "bundle": bundle.yaml_path().display().to_string(),
        "steps": arguments.steps,
        "warmup": arguments.warmup,
        "seed": SEED,
        "variants": variants.iter().map(row).collect::<Vec<_>>(),
    })
}
