//! Files that a command writes for its user.

use std::path::{Path, PathBuf};

use veracity::{Bundle, Diagnostic, Place, Refusal, Result, codes};

/// Refuses a file that could not be written at the end, and one that must not be overwritten: a file
/// of the bundle, the inputs, a device or a pipe.
pub(super) fn check(path: &Path, bundle: &Bundle, inputs: Option<&Path>) -> Result<()> {
    if path.exists() && !path.is_file() {
        return Err(unwritable(path, "this is not a regular file"));
    }
    if inputs.is_some_and(|inputs| is_same(inputs, path)) {
        return Err(unwritable(path, "this file is one that the command reads"));
    }
    if folder_of(path).is_some_and(|folder| folder.starts_with(real(bundle.root()))) {
        return Err(unwritable(path, "this file would lie inside of the bundle"));
    }
    check_folder(path)
}

/// Refuses a page that could not be written at the end, or in place of what it is made of.
pub(super) fn check_page(path: &Path, results: &Path) -> Result<()> {
    if path.exists() && !path.is_file() {
        return Err(unwritable(path, "this is not a regular file"));
    }
    if is_same(results, path) {
        return Err(unwritable(path, "this file holds the results"));
    }
    check_folder(path)
}

fn check_folder(path: &Path) -> Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            Err(unwritable(path, "the folder of this file does not exist"))
        }
        _ => Ok(()),
    }
}

/// Writes text to a file.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    let refused = |error| unwritable(path, &format!("this file cannot be written: {error}"));
    std::fs::write(path, text).map_err(refused)
}

fn unwritable(path: &Path, message: &str) -> Refusal {
    let place = Place::file(path.display().to_string());
    Diagnostic::error(codes::FILE_UNWRITABLE, message).at(place).into()
}

fn is_same(left: &Path, right: &Path) -> bool {
    right.exists() && real(left) == real(right)
}

fn folder_of(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    Some(real(if folder.as_os_str().is_empty() { Path::new(".") } else { folder }))
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
