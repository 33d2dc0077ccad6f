//! Writing bundles from Python.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use veracity::tensor::{Tensor, file};
use veracity::{BundleDraft, Diagnostic, Place, PortDraft, Refusal, codes};

use crate::errors::OrRaise;
use crate::input::Input;

/// Writes a bundle from a draft in JSON; returns its YAML file.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
pub(crate) fn write_bundle(
    py: Python<'_>,
    folder: PathBuf,
    draft_json: &str,
    initial_values: &Bound<'_, PyDict>,
) -> PyResult<PathBuf> {
    let draft: BundleDraft =
        serde_json::from_str(draft_json).map_err(|error| unreadable(&error)).or_raise(py)?;
    let initial = tensors_from(initial_values)?;
    let bundle = py.detach(|| draft.write(&folder, initial)).or_raise(py)?;
    // The file as the caller would name it, not by its absolute path.
    Ok(folder.join(bundle.yaml_path().file_name().unwrap_or_default()))
}

/// Writes tensors into a safetensors file that need not outlive a crash.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
pub(crate) fn write_tensors(
    py: Python<'_>,
    path: PathBuf,
    tensors: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let tensors = tensors_from(tensors)?;
    py.detach(|| {
        let unwritable = |error: std::io::Error| {
            Diagnostic::error(codes::FILE_UNWRITABLE, format!("cannot be written: {error}"))
                .at(Place::file(path.display().to_string()))
        };
        let file = File::create(&path).map_err(unwritable)?;
        let mut writer = BufWriter::new(file);
        file::safetensors::write_to(&mut writer, &tensors, &BTreeMap::new())?;
        Ok(writer.flush().map_err(unwritable)?)
    })
    .or_raise(py)
}

/// Files and folders that belong to no bundle and that a new bundle here would replace.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
pub(crate) fn strangers(py: Python<'_>, folder: PathBuf) -> PyResult<Vec<String>> {
    let folder: &Path = &folder;
    py.detach(|| veracity::strangers(folder)).or_raise(py)
}

/// Why the element names of a port, given in JSON, do not fit its shape; `None` when they do.
#[pyfunction]
pub(crate) fn element_names_problem(py: Python<'_>, port_json: &str) -> PyResult<Option<String>> {
    let port: PortDraft =
        serde_json::from_str(port_json).map_err(|error| unreadable(&error)).or_raise(py)?;
    port.element_names_problem().or_raise(py)
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    Diagnostic::error(codes::USAGE, format!("not a bundle: {error}")).into()
}

fn tensors_from(values: &Bound<'_, PyDict>) -> PyResult<BTreeMap<String, Tensor>> {
    let mut tensors = BTreeMap::new();
    for (key, value) in values {
        let key: String = key.extract()?;
        let tensor = Input::from_object(&key, &value)?.view().or_raise(values.py())?.to_tensor();
        tensors.insert(key, tensor);
    }
    Ok(tensors)
}
