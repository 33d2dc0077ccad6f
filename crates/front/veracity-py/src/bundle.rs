//! Writing bundles from Python.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use veracity::{BundleDraft, Diagnostic, codes};

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
    let draft: BundleDraft = serde_json::from_str(draft_json)
        .map_err(|error| Diagnostic::error(codes::USAGE, format!("not a bundle: {error}")).into())
        .or_raise(py)?;
    let mut initial = BTreeMap::new();
    for (key, value) in initial_values {
        let key: String = key.extract()?;
        let tensor = Input::from_object(&key, &value)?.view().or_raise(py)?.to_tensor();
        initial.insert(key, tensor);
    }
    let bundle = py.detach(|| draft.write(&folder, initial)).or_raise(py)?;
    // The file as the caller would name it, not by its absolute path.
    Ok(folder.join(bundle.yaml_path().file_name().unwrap_or_default()))
}
