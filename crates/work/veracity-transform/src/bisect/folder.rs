//! What lies in the folder of a repro.

use std::path::Path;

use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_onnx::Model;
use veracity_tensor::file::{TensorMap, folder, safetensors, write_bytes};

use super::RewriteRepro;
use super::repro::{AFTER_FILE, BEFORE_FILE, README_FILE, RECORD_FILE, VALUES_FILE};

/// Refuses a target that holds anything but a repro of a rewrite.
pub(super) fn refuse_others(target: &Path) -> Result<()> {
    let ours = [BEFORE_FILE, AFTER_FILE, VALUES_FILE, RECORD_FILE, README_FILE];
    folder::refuse_others(target, &ours, RECORD_FILE)
}

/// Writes the folder in one step. A repro that is there already is replaced.
pub(super) fn write(
    target: &Path,
    models: [&Model; 2],
    tensors: &TensorMap,
    record: &RewriteRepro,
) -> Result<()> {
    let json = serde_json::to_string_pretty(record).map_err(|error| {
        let place = Place::file(target.join(RECORD_FILE).display().to_string());
        Diagnostic::error(codes::FILE_UNWRITABLE, error.to_string()).at(place)
    })?;
    folder::write(target, |folder| {
        models[0].write(folder.join(BEFORE_FILE))?;
        models[1].write(folder.join(AFTER_FILE))?;
        safetensors::write(folder.join(VALUES_FILE), tensors)?;
        write_bytes(folder.join(RECORD_FILE), (json + "\n").as_bytes())?;
        write_bytes(folder.join(README_FILE), readme(record).as_bytes())
    })
}

fn readme(record: &RewriteRepro) -> String {
    let RewriteRepro { pass, class, index, why, reason, set, .. } = record;
    let outcome = if reason.is_empty() {
        "Nothing differs here: the rewrite is only wrong together with others.".to_owned()
    } else {
        format!("They differ: {reason}")
    };
    format!(
        "# Rewrite {index} of {pass} ({class})\n\n`{BEFORE_FILE}` is what was there, `{AFTER_FILE}` \
         what came instead, because: {why}.\n`{VALUES_FILE}` holds what both are given (`in/`, \
         {set} values) and what they give (`before/`, `after/`).\n\n{outcome}\n\nAny program that \
         runs ONNX shows it again: feed `in/` to both and compare what `{RECORD_FILE}` lists under \
         `outputs`.\n",
    )
}
