//! Logs and elements as files beside the result.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};
use veracity_onnx::Model;
use veracity_results::{REWRITES_SCHEMA_VERSION, RewriteLog};
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
        self.write_with(path.as_ref(), |model, path| model.write(path))
    }

    /// The same, with the model written by `write`.
    pub fn write_with(
        &self,
        path: &Path,
        write: impl FnOnce(&Model, &Path) -> Result<()>,
    ) -> Result<()> {
        self.elements.write(elements_path(path))?;
        let text = serde_json::to_vec_pretty(&self.log).unwrap_or_default();
        write_bytes(log_path(path), &text)?;
        write(&self.model, path)
    }
}

/// Reads a log. Refused when it is none, or of a version that is not known.
pub fn read_log(path: impl AsRef<Path>) -> Result<RewriteLog> {
    let path = path.as_ref();
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
    let log: RewriteLog = serde_json::from_slice(&bytes)
        .map_err(|error| unreadable(format!("not a log of rewrites: {error}")))?;
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(&log.schema_version) != major(REWRITES_SCHEMA_VERSION) {
        let what = format!("version {:?} of the log is not known", log.schema_version);
        return Err(unreadable(what));
    }
    Ok(log)
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
