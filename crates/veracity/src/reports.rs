//! Reports as files. Each file is whole or not there; what was there before stays until then.

use std::path::{Path, PathBuf};

use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_report::{drift, html};
use veracity_results::DriftReport;
use veracity_tensor::file::write_bytes;

/// Writes every file of a drift report; `base` is what their names start with. Gives their paths.
pub fn write_drift(report: &DriftReport, base: &Path) -> Result<Vec<PathBuf>> {
    let Some(name) = base.file_name() else {
        let message = "the files of a report need a name to start with";
        let place = Place::file(base.display().to_string());
        return Err(Diagnostic::error(codes::FILE_UNWRITABLE, message).at(place).into());
    };
    let mut paths = Vec::new();
    for file in drift::files(report) {
        let mut name = name.to_owned();
        name.push(file.ending);
        let path = base.with_file_name(name);
        write(&path, &file.text)?;
        paths.push(path);
    }
    Ok(paths)
}

/// Writes a drift report as a page.
pub fn write_drift_page(report: &DriftReport, path: &Path) -> Result<()> {
    write(path, &html::drift(report))
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| {
            let place = Place::file(folder.display().to_string());
            Diagnostic::error(codes::FILE_UNWRITABLE, error.to_string()).at(place)
        })?;
    }
    write_bytes(path, text.as_bytes())
}
