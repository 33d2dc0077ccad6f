//! What lies in the folder of a repro.

use std::path::Path;

use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_onnx::Model;
use veracity_results::ReproRecord;
use veracity_tensor::file::{TensorMap, folder, safetensors, write_bytes};

use super::{MODEL_FILE, README_FILE, RECORD_FILE, VALUES_FILE};

/// Writes the folder in one step. A repro that is there already is replaced.
pub(super) fn write(
    target: &Path,
    model: &Model,
    tensors: &TensorMap,
    record: &ReproRecord,
) -> Result<()> {
    refuse_others(target)?;
    let json = serde_json::to_string_pretty(record).map_err(|error| {
        let place = Place::file(target.join(RECORD_FILE).display().to_string());
        Diagnostic::error(codes::FILE_UNWRITABLE, error.to_string()).at(place)
    })?;
    folder::write(target, |folder| {
        model.write(folder.join(MODEL_FILE))?;
        safetensors::write(folder.join(VALUES_FILE), tensors)?;
        write_bytes(folder.join(RECORD_FILE), (json + "\n").as_bytes())?;
        write_bytes(folder.join(README_FILE), readme(record).as_bytes())
    })
}

/// Refuses a target that holds anything but a repro.
pub(super) fn refuse_others(target: &Path) -> Result<()> {
    let ours = [MODEL_FILE, README_FILE, RECORD_FILE, VALUES_FILE];
    folder::refuse_others(target, &ours, RECORD_FILE)
}

fn readme(record: &ReproRecord) -> String {
    let ReproRecord { value, op_type, model, session, error, budget, .. } = record;
    let place = [&record.module, &record.source];
    let place: Vec<&str> =
        place.into_iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    let place = if place.is_empty() { String::new() } else { format!(" ({})", place.join(", ")) };
    let cause = record.cause.as_ref().map_or_else(String::new, |cause| {
        let kind = serde_json::to_value(cause.kind).ok();
        let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or("unknown").to_owned();
        format!("\nCause, by experiment: {kind}: {}\n", cause.detail)
    });
    format!(
        "# {op_type} `{value}` of {model}\n\n`{MODEL_FILE}` is this operator alone{place}, with its \
         weights. `{VALUES_FILE}` holds what it is given\n(`in/`), what it should give \
         (`expected/`) and what it gave (`found/`).\n\nOn {} {} it was off by {error:.3e}, where \
         {budget:.3e} is allowed.\n{cause}\nTo run it again:\n\n    veracity rerun this-folder\n\nin \
         Python:\n\n    import veracity.drift\n    \
         print(veracity.drift.rerun(\"this-folder\"))\n\nor with any other program that runs ONNX: \
         feed `in/` and compare the output with `expected/`.\n",
        session.engine, session.engine_version
    )
}
