//! Folders of files that belong together, written in one step.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};

/// Refuses a target that holds anything but such files, or files without the one that makes them a
/// repro: a model alone may be anybody's. A target that does not exist is fine.
pub fn refuse_others(target: &Path, ours: &[&str], record: &str) -> Result<()> {
    let taken = |what: String| -> Refusal {
        Diagnostic::error(codes::REPRO_FOLDER_TAKEN, what)
            .at(Place::file(target.display().to_string()))
            .hint("name a folder that does not exist yet, or one that holds such a repro")
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
    if let Some(name) = names.iter().find(|name| !ours.contains(&name.as_str())) {
        return Err(taken(format!("the folder holds {name:?}, which is not part of a repro")));
    }
    if !names.is_empty() && !names.iter().any(|name| name == record) {
        return Err(taken(format!("the folder holds {:?} and is not a repro", names[0])));
    }
    Ok(())
}

/// Lets `fill` fill a folder beside the target and moves it there; a folder that is there already
/// is replaced. When something fails, the target is as it was.
pub fn write(target: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let staging = beside(target)?;
    let written = fs::create_dir_all(&staging)
        .map_err(|error| unwritable(&staging, &error))
        .and_then(|()| fill(&staging))
        .and_then(|()| replace(target, &staging).map_err(|error| unwritable(target, &error)));
    written.inspect_err(|_| {
        // The first error is the one to report.
        let _ = fs::remove_dir_all(&staging);
    })
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
