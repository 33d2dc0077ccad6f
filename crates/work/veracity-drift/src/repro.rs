//! One wrong operator as a folder of its own: a model, what it is given, what was expected and what
//! it gave. It shows the fault without the rest of the model and without the original.

mod folder;

use std::num::NonZeroUsize;
use std::path::Path;

use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};
use veracity_engine::{Device, Engine, OptimizationLevel, SessionOptions};
use veracity_onnx::Model;
use veracity_results::{DriftReport, DriftRow, REPRO_SCHEMA_VERSION, ReproRecord, ReproRun};
use veracity_tensor::file::{self, TensorMap};
use veracity_tensor::{SharedTensor, Tensor};

use crate::causes::room::{is_within, room};
use crate::causes::{Evidence, distance, export_slice, reference_of, run_alone};
use crate::run::run_once;
use crate::values::{Values, held, view};

/// The operator with its weights.
pub const MODEL_FILE: &str = "model.onnx";
/// `in/<name>`, `expected/<name>`, `found/<name>`, and `allowed/<name>` where each element has a budget
/// of its own.
pub const VALUES_FILE: &str = "values.safetensors";
/// What it is about.
pub const RECORD_FILE: &str = "repro.json";
/// How to run it again, for people.
pub const README_FILE: &str = "README.md";

const LEVELS: [(&str, OptimizationLevel); 3] = [
    ("none", OptimizationLevel::None),
    ("basic", OptimizationLevel::Basic),
    ("all", OptimizationLevel::All),
];

/// Writes a repro of a row, by default of the origin; gives the name of the row. `None` when there
/// is no row to write: nothing is disproved.
///
/// The folder is written whole or not at all. One that holds anything but a repro is refused.
pub fn write(
    folder: impl AsRef<Path>,
    report: &DriftReport,
    evidence: &Evidence<'_>,
    row: Option<&str>,
) -> Result<Option<String>> {
    let Some(name) = row.or(report.origin.as_deref()) else { return Ok(None) };
    let Some(row) = report.rows.iter().find(|row| row.name == name) else {
        let message = format!("no operator that was compared gives {name:?}");
        return Err(Diagnostic::error(codes::REPRO_ROW_UNKNOWN, message).into());
    };
    let reference = &reference_of(row, evidence)?;
    let slice = export_slice(row, evidence)?.closed();
    let found = run_alone(&slice, reference.shape(), evidence.engine, evidence.session).ok();
    let error = found.as_ref().and_then(|found| distance(reference, found));
    let record = record(report, row, evidence.session, error.unwrap_or(f64::INFINITY));
    let mut tensors = TensorMap::new();
    for (name, value) in &slice.values {
        tensors.insert(format!("in/{name}"), view(value)?.to_tensor());
    }
    tensors.insert(format!("expected/{name}"), view(reference)?.to_tensor());
    if let Some(found) = &found {
        tensors.insert(format!("found/{name}"), view(found)?.to_tensor());
        let how = (evidence.engine, evidence.session);
        if let Some(allowed) = room(row, &slice, reference, found, how) {
            tensors.insert(format!("allowed/{name}"), allowed);
        }
    }
    folder::write(folder.as_ref(), &slice.model, &tensors, &record)?;
    Ok(Some(name.to_owned()))
}

fn record(
    report: &DriftReport,
    row: &DriftRow,
    session: &SessionOptions,
    error: f64,
) -> ReproRecord {
    let level = LEVELS.iter().find(|(_, level)| *level == session.optimization);
    ReproRecord {
        schema_version: REPRO_SCHEMA_VERSION.to_owned(),
        model: report.model.clone(),
        reference: report.reference.clone(),
        value: row.name.clone(),
        op_type: row.op_type.clone(),
        module: row.module.clone(),
        source: row.source.clone(),
        session: report.session.clone(),
        threads: session.threads.get(),
        optimization: level.map_or("none", |(name, _)| name).to_owned(),
        budget: row.budget,
        error,
        problem: row.problem.clone(),
        cause: row.cause.clone(),
    }
}

/// Refuses a folder that [`write()`] would refuse, before anything is run for it.
pub fn check_target(folder: impl AsRef<Path>) -> Result<()> {
    folder::refuse_others(folder.as_ref())
}

/// Reads what a repro is about.
pub fn read(folder: impl AsRef<Path>) -> Result<ReproRecord> {
    let path = folder.as_ref().join(RECORD_FILE);
    let place = Place::file(path.display().to_string());
    let refuse = |problem: String| -> Refusal {
        Diagnostic::error(codes::REPRO_UNREADABLE, problem).at(place.clone()).into()
    };
    let text =
        std::fs::read_to_string(&path).map_err(|error| refuse(format!("not a repro: {error}")))?;
    let record: ReproRecord =
        serde_json::from_str(&text).map_err(|error| refuse(format!("not a repro: {error}")))?;
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(&record.schema_version) != major(REPRO_SCHEMA_VERSION) {
        let problem = format!(
            "version {} of the format; this program reads {REPRO_SCHEMA_VERSION}",
            record.schema_version
        );
        return Err(refuse(problem));
    }
    Ok(record)
}

/// Runs a repro again, as it was run when it was written, in this engine.
pub fn run(folder: impl AsRef<Path>, engine: &dyn Engine) -> Result<ReproRun> {
    let folder = folder.as_ref();
    let record = read(folder)?;
    let model = Model::read(folder.join(MODEL_FILE))?;
    let tensors = file::read(folder.join(VALUES_FILE))?;
    let value = |side: &str| tensors.get(&format!("{side}/{}", record.value));
    let expected = value("expected").ok_or_else(|| {
        let message = format!("there is no expected value of {:?}", record.value);
        let place = Place::file(folder.join(VALUES_FILE).display().to_string());
        Diagnostic::error(codes::REPRO_UNREADABLE, message).at(place)
    })?;
    let found = value("found");
    let again = run_model(&model, &record, &tensors, found.unwrap_or(expected), engine);
    let again = match again {
        Ok(again) => Some(again),
        // Where it could not be run at first, that is the fault.
        Err(refusal) if found.is_some() && !other_shape(&refusal) => return Err(refusal),
        Err(_) => None,
    };
    let error = again.as_ref().and_then(|again| distance(&held(&expected.view()), again));
    let error = error.unwrap_or(f64::INFINITY);
    let shows = match (value("allowed"), &again) {
        (Some(allowed), Some(again)) => !is_within(&held(&expected.view()), again, allowed),
        _ => error > record.budget,
    };
    let again =
        again.as_ref().map(|again| view(again).map(|again| again.to_tensor())).transpose()?;
    Ok(ReproRun {
        value: record.value,
        engine: engine.name().to_owned(),
        engine_version: engine.version(),
        shows,
        repeats: again.as_ref() == found,
        error,
        budget: record.budget,
    })
}

fn other_shape(refusal: &Refusal) -> bool {
    refusal.first_error().code == codes::ENGINE_OUTPUT_MISMATCH
}

fn run_model(
    model: &Model,
    record: &ReproRecord,
    tensors: &TensorMap,
    like: &Tensor,
    engine: &dyn Engine,
) -> Result<SharedTensor> {
    let inputs: Values = tensors
        .iter()
        .filter_map(|(name, tensor)| Some((name.strip_prefix("in/")?.to_owned(), tensor)))
        .map(|(name, tensor)| (name, held(&tensor.view())))
        .collect();
    let level = LEVELS.iter().find(|(name, _)| *name == record.optimization);
    let session = SessionOptions {
        threads: NonZeroUsize::new(record.threads).unwrap_or(NonZeroUsize::MIN),
        device: Device::Cpu,
        optimization: level.map_or(OptimizationLevel::None, |(_, level)| *level),
    };
    let given = |name: &str| inputs.get(name).cloned();
    let wanted = [(record.value.as_str(), &held(&like.view()))];
    let mut found = run_once(engine, model, &given, &wanted, &session)?;
    Ok(found.remove(0))
}
