//! Writes the folder of a repro in one step.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};
use veracity_onnx::Model;
use veracity_results::ReproRecord;
use veracity_tensor::file::{TensorMap, safetensors};

use super::{MODEL_FILE, README_FILE, RECORD_FILE, VALUES_FILE};

/// Fills a folder beside the target and moves it there. A repro that is there already is replaced.
pub(super) fn write(
    target: &Path,
    model: &Model,
    tensors: &TensorMap,
    record: &ReproRecord,
) -> Result<()> {
    refuse_others(target)?;
    let staging = beside(target, "new")?;
    let written = fill(&staging, model, tensors, record)
        .and_then(|()| replace(target, &staging).map_err(|error| unwritable(target, &error)));
    written.inspect_err(|_| {
        // The first error is the one to report.
        let _ = fs::remove_dir_all(&staging);
    })
}

/// Refuses a target that holds anything but a repro.
pub(super) fn refuse_others(target: &Path) -> Result<()> {
    let taken = |what: String| -> Refusal {
        Diagnostic::error(codes::REPRO_FOLDER_TAKEN, what)
            .at(Place::file(target.display().to_string()))
            .hint("name a folder that does not exist yet, or one that holds a repro")
            .into()
    };
    let entries = match fs::read_dir(target) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(taken(format!("not a folder: {error}"))),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| taken(format!("cannot be read: {error}")))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    let ours = [MODEL_FILE, README_FILE, RECORD_FILE, VALUES_FILE];
    let strange = names.iter().find(|name| !ours.contains(&name.as_str()));
    if let Some(name) = strange {
        return Err(taken(format!("the folder holds {name:?}, which is not part of a repro")));
    }
    // A model alone may be anybody's.
    if !names.is_empty() && !names.iter().any(|name| name == RECORD_FILE) {
        return Err(taken(format!("the folder holds {:?} and is not a repro", names[0])));
    }
    Ok(())
}

fn fill(folder: &Path, model: &Model, tensors: &TensorMap, record: &ReproRecord) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    model.write(folder.join(MODEL_FILE))?;
    safetensors::write(folder.join(VALUES_FILE), tensors)?;
    let json = serde_json::to_string_pretty(record)
        .map_err(|error| unwritable(&folder.join(RECORD_FILE), &io::Error::other(error)))?;
    for (name, text) in [(RECORD_FILE, json + "\n"), (README_FILE, readme(record))] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| unwritable(&path, &error))?;
    }
    Ok(())
}

fn replace(target: &Path, staging: &Path) -> io::Result<()> {
    if !target.exists() {
        return fs::rename(staging, target);
    }
    let old = staging.with_extension("old");
    fs::rename(target, &old)?;
    if let Err(error) = fs::rename(staging, target) {
        fs::rename(&old, target)?;
        return Err(error);
    }
    fs::remove_dir_all(old)
}

/// A name in the folder of the target that nobody else uses.
fn beside(target: &Path, kind: &str) -> Result<PathBuf> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = target
        .file_name()
        .ok_or_else(|| unwritable(target, &io::Error::other("the path does not end in a name")))?;
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    Ok(target.with_file_name(format!(".{}.{process}.{count}.{kind}", name.display())))
}

fn unwritable(path: &Path, error: &io::Error) -> Refusal {
    let message = format!("cannot be written: {error}");
    Diagnostic::error(codes::FILE_UNWRITABLE, message)
        .at(Place::file(path.display().to_string()))
        .into()
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
