//! Writes the folder of a repro in one step.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};
use veracity_onnx::Model;
use veracity_tensor::file::{TensorMap, safetensors};

use super::RewriteRepro;
use super::repro::{AFTER_FILE, BEFORE_FILE, README_FILE, RECORD_FILE, VALUES_FILE};

/// Refuses a target that holds anything but a repro of a rewrite.
pub(super) fn refuse_others(target: &Path) -> Result<()> {
    let taken = |what: String| -> Refusal {
        Diagnostic::error(codes::REPRO_FOLDER_TAKEN, what)
            .at(Place::file(target.display().to_string()))
            .hint("name a folder that does not exist yet, or one that holds a repro of a rewrite")
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
    let ours = [BEFORE_FILE, AFTER_FILE, VALUES_FILE, RECORD_FILE, README_FILE];
    if let Some(name) = names.iter().find(|name| !ours.contains(&name.as_str())) {
        return Err(taken(format!("the folder holds {name:?}, which is not part of a repro")));
    }
    if !names.is_empty() && !names.iter().any(|name| name == RECORD_FILE) {
        return Err(taken(format!("the folder holds {:?} and is not a repro", names[0])));
    }
    Ok(())
}

/// Fills a folder beside the target and moves it there. A repro that is there already is replaced.
pub(super) fn write(
    target: &Path,
    models: [&Model; 2],
    tensors: &TensorMap,
    record: &RewriteRepro,
) -> Result<()> {
    let staging = beside(target)?;
    let written = fill(&staging, models, tensors, record)
        .and_then(|()| replace(target, &staging).map_err(|error| unwritable(target, &error)));
    written.inspect_err(|_| {
        // The first error is the one to report.
        let _ = fs::remove_dir_all(&staging);
    })
}

fn fill(
    folder: &Path,
    models: [&Model; 2],
    tensors: &TensorMap,
    record: &RewriteRepro,
) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    models[0].write(folder.join(BEFORE_FILE))?;
    models[1].write(folder.join(AFTER_FILE))?;
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
fn beside(target: &Path) -> Result<PathBuf> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = target
        .file_name()
        .ok_or_else(|| unwritable(target, &io::Error::other("the path does not end in a name")))?;
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    Ok(target.with_file_name(format!(".{}.{process}.{count}.new", name.display())))
}

fn unwritable(path: &Path, error: &io::Error) -> Refusal {
    let message = format!("cannot be written: {error}");
    let place = Place::file(path.display().to_string());
    Diagnostic::error(codes::FILE_UNWRITABLE, message).at(place).into()
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
