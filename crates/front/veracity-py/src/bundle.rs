//! Writing bundles from Python.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use veracity::tensor::{Shape, Tensor, file};
use veracity::{Bundle, BundleDraft, Diagnostic, Place, PortDraft, Refusal, codes};

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
    let draft = draft_from(draft_json).or_raise(py)?;
    let initial = tensors_from(initial_values)?;
    let bundle = py.detach(|| draft.write(&folder, initial)).or_raise(py)?;
    // The file as the caller would name it, not by its absolute path.
    Ok(folder.join(bundle.yaml_path().file_name().unwrap_or_default()))
}

/// Reads a draft.
pub(crate) fn draft_from(json: &str) -> veracity::Result<BundleDraft> {
    serde_json::from_str(json).map_err(|error| unreadable(&error))
}

/// What a bundle says about itself and its models, in JSON; refused when its files are not what it
/// says.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
pub(crate) fn inspect(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let look = || -> veracity::Result<String> {
        let bundle = Bundle::open(&path)?;
        bundle.verify()?;
        let found = veracity::inspect(&bundle)?;
        serde_json::to_string(&found).map_err(|error| unreadable(&error))
    };
    py.detach(look).or_raise(py)
}

/// Draws a bundle beside its YAML file; returns the pictures.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
pub(crate) fn draw(py: Python<'_>, path: PathBuf) -> PyResult<Vec<PathBuf>> {
    py.detach(|| veracity::draw_beside(&Bundle::open(&path)?)).or_raise(py)
}

/// Writes samples into a safetensors file that need not outlive a crash: for each name the values
/// of one port, of one dtype and shape, along a new first axis. Values are written from where they
/// are; no more than one is ever copied, and only when it is on a GPU.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
pub(crate) fn write_samples(
    py: Python<'_>,
    path: PathBuf,
    samples: BTreeMap<String, Vec<Bound<'_, PyAny>>>,
    metadata: BTreeMap<String, String>,
) -> PyResult<()> {
    let outlines = samples.iter().map(outline_of).collect::<PyResult<Vec<_>>>()?;
    let unwritable = |error: std::io::Error| {
        Diagnostic::error(codes::FILE_UNWRITABLE, format!("cannot be written: {error}"))
            .at(Place::file(path.display().to_string()))
    };
    let file = File::create(&path).map_err(|error| unwritable(error).into()).or_raise(py)?;
    let mut writer = BufWriter::new(file);
    let mut raised = None;
    let write =
        file::safetensors::write_pieces(&mut writer, &outlines, &metadata, |index, sink| {
            let name = &outlines[index].name;
            for value in &samples[name] {
                let input = Input::from_object(name, value).map_err(|error| {
                    raised = Some(error);
                    Refusal::from(Diagnostic::error(codes::INPUT_DTYPE, "not a tensor"))
                })?;
                sink(&input.view()?)?;
            }
            Ok(())
        });
    if let Some(error) = raised {
        return Err(error);
    }
    write.or_raise(py)?;
    writer.flush().map_err(|error| unwritable(error).into()).or_raise(py)
}

fn outline_of(
    (name, values): (&String, &Vec<Bound<'_, PyAny>>),
) -> PyResult<file::safetensors::Outline> {
    let Some(first) = values.first() else {
        let message = format!("there are no samples of {name:?}");
        return Err(pyo3::exceptions::PyValueError::new_err(message));
    };
    let first_value = Input::from_object(name, first)?;
    let dims = [&[values.len()], first_value.dims.as_slice()].concat();
    let shape = Shape::new(dims)
        .ok_or_else(|| Diagnostic::error(codes::INPUT_SHAPE, "the shape is too large").into())
        .or_raise(first.py())?;
    Ok(file::safetensors::Outline { name: name.clone(), dtype: first_value.dtype, shape })
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

pub(crate) fn tensors_from(values: &Bound<'_, PyDict>) -> PyResult<BTreeMap<String, Tensor>> {
    let mut tensors = BTreeMap::new();
    for (key, value) in values {
        let key: String = key.extract()?;
        let tensor = Input::from_object(&key, &value)?.view().or_raise(values.py())?.to_tensor();
        tensors.insert(key, tensor);
    }
    Ok(tensors)
}
