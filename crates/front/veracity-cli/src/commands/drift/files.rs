//! The files that `veracity drift` writes.

use std::path::{Path, PathBuf};

use veracity::results::DriftReport;
use veracity::{Diagnostic, Place, Refusal, codes, reports};

use crate::cli::DriftArgs;
use crate::commands::target;
use crate::outcome::Failure;

/// Refuses what could not be written at the end, and what must not be: a file that is read.
pub(super) fn check(arguments: &DriftArgs) -> Result<(), Refusal> {
    let base = arguments.findings.report_base.as_ref().map(|base| {
        let mut path = base.clone().into_os_string();
        path.push(".json");
        PathBuf::from(path)
    });
    let written =
        [arguments.findings.save.as_ref(), arguments.findings.html.as_ref(), base.as_ref()];
    for path in written.into_iter().flatten() {
        if path.exists() && !path.is_file() {
            return Err(unwritable(path, "this is not a regular file"));
        }
        if read(arguments).into_iter().any(|other| is_same(path, other)) {
            return Err(unwritable(path, "this file is one of those that are read"));
        }
        check_folder(path)?;
    }
    arguments.findings.repro.as_deref().map_or(Ok(()), check_folder)
}

/// Files that must be there afterwards as they were. A baseline may be replaced.
fn read(arguments: &DriftArgs) -> Vec<&PathBuf> {
    let DriftArgs { reference, candidate, inputs, tolerances, .. } = arguments;
    let others = [candidate, inputs, tolerances].into_iter().filter_map(Option::as_ref);
    std::iter::once(reference).chain(others).collect()
}

fn check_folder(path: &Path) -> Result<(), Refusal> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            Err(unwritable(path, "the folder of this file does not exist"))
        }
        _ => Ok(()),
    }
}

/// Writes what was asked for. The repro is written while its values are at hand.
pub(super) fn write(arguments: &DriftArgs, report: &DriftReport) -> Result<(), Failure> {
    if let Some(path) = &arguments.findings.save {
        let json = serde_json::to_string_pretty(report).map_err(std::io::Error::from)?;
        target::write(path, &(json + "\n"))?;
    }
    if let Some(path) = &arguments.findings.html {
        reports::write_drift_page(report, path)?;
    }
    if let Some(base) = &arguments.findings.report_base {
        reports::write_drift(report, base)?;
    }
    Ok(())
}

fn is_same(left: &Path, right: &Path) -> bool {
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}

fn unwritable(path: &Path, message: &str) -> Refusal {
    let place = Place::file(path.display().to_string());
    Diagnostic::error(codes::FILE_UNWRITABLE, message).at(place).into()
}
