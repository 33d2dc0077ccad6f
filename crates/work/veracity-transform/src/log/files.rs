//! Logs and elements as files beside the result.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};
use veracity_onnx::Model;
use veracity_results::{CheckedLog, REWRITES_SCHEMA_VERSION, RewriteChecks, RewriteLog};
use veracity_tensor::file::{safetensors, write_bytes};
use veracity_tensor::{DType, Shape, Tensor, TensorView};

use super::{Elements, Recorded};

/// Name of the original without elements in the side file.
const SKELETON: &str = "original";

/// Where the log of a model is: `model.onnx.rewrites.json`.
pub fn log_path(model: &Path) -> PathBuf {
    beside(model, "rewrites.json")
}

/// Where the elements that belong to the log of a model are: `model.onnx.rewrites.safetensors`.
pub fn elements_path(model: &Path) -> PathBuf {
    beside(model, "rewrites.safetensors")
}

fn beside(model: &Path, ending: &str) -> PathBuf {
    let mut name = model.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{ending}"));
    model.with_file_name(name)
}

impl Recorded {
    /// Writes model, log and elements, each of them whole or not at all. The model comes last: when
    /// that fails, the log that is there says by its hashes that it is about another model.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        self.write_with(path.as_ref(), None, |model, path| model.write(path))
    }

    /// The same, with the model written by `write`, and with what checking showed in the log.
    pub fn write_with(
        &self,
        path: &Path,
        checks: Option<&RewriteChecks>,
        write: impl FnOnce(&Model, &Path) -> Result<()>,
    ) -> Result<()> {
        self.elements.write(elements_path(path))?;
        let text = serde_json::to_vec_pretty(&Written { log: &self.log, checks });
        write_bytes(log_path(path), &text.unwrap_or_default())?;
        write(&self.model, path)
    }
}

/// A [`CheckedLog`] that is not copied to be written.
#[derive(Serialize)]
struct Written<'l> {
    #[serde(flatten)]
    log: &'l RewriteLog,
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<&'l RewriteChecks>,
}

/// Reads a log. Refused when it is none, or of a version that is not known.
pub fn read_log(path: impl AsRef<Path>) -> Result<RewriteLog> {
    read_as(path.as_ref(), |log: &RewriteLog| log)
}

/// Reads a log with what checking showed, where the file says it.
pub fn read_checked_log(path: impl AsRef<Path>) -> Result<CheckedLog> {
    read_as(path.as_ref(), |file: &CheckedLog| &file.log)
}

fn read_as<T: DeserializeOwned>(path: &Path, log: impl Fn(&T) -> &RewriteLog) -> Result<T> {
    let place = Place::file(path.display().to_string());
    let bytes = std::fs::read(path).map_err(|error| {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => codes::FILE_NOT_FOUND,
            _ => codes::FILE_UNREADABLE,
        };
        Refusal::from(Diagnostic::error(code, error.to_string()).at(place.clone()))
    })?;
    let unreadable = |what: String| -> Refusal {
        Diagnostic::error(codes::LOG_UNREADABLE, what).at(place.clone()).into()
    };
    let found: T = serde_json::from_slice(&bytes)
        .map_err(|error| unreadable(format!("not a log of rewrites: {error}")))?;
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    let version = &log(&found).schema_version;
    if major(version) != major(REWRITES_SCHEMA_VERSION) {
        return Err(unreadable(format!("version {version:?} of the log is not known")));
    }
    Ok(found)
}

/// A tensor as the owner of bytes.
struct Owned(Tensor);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Elements {
    /// Writes them, without a copy in memory.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let named = self.blobs.iter().map(|(name, bytes)| (name.as_str(), bytes));
        let all: Vec<(&str, &Bytes)> =
            std::iter::once((SKELETON, &self.skeleton)).chain(named).collect();
        let outline = |(name, bytes): &(&str, &Bytes)| safetensors::Outline {
            name: (*name).to_owned(),
            dtype: DType::U8,
            shape: Shape::from([bytes.len()]),
        };
        let outlines: Vec<safetensors::Outline> = all.iter().map(outline).collect();
        let metadata = safetensors::Metadata::new();
        safetensors::write_file_pieces(path, &outlines, &metadata, |index, sink| {
            sink(&TensorView::new(DType::U8, &outlines[index].shape, all[index].1)?)
        })
    }

    /// Reads what [`Elements::write`] wrote.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut tensors = safetensors::read(path)?;
        let Some(skeleton) = tensors.remove(SKELETON) else {
            let message = "the file does not hold the outline of an original";
            let place = Place::file(path.display().to_string());
            return Err(Diagnostic::error(codes::ELEMENTS_MISSING, message).at(place).into());
        };
        let bytes = |tensor| Bytes::from_owner(Owned(tensor));
        let blobs = tensors.into_iter().map(|(name, tensor)| (name, bytes(tensor))).collect();
        Ok(Self { skeleton: bytes(skeleton), blobs })
    }
}
