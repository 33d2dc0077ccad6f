//! Where a model comes from.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use veracity_diag::Place;

/// File formats of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModelFormat {
    /// ONNX protobuf.
    Onnx,
    /// TorchScript archive.
    TorchScript,
    /// `torch.export` archive.
    Pt2,
}

impl fmt::Display for ModelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Onnx => "ONNX",
            Self::TorchScript => "TorchScript",
            Self::Pt2 => "pt2",
        })
    }
}

/// A model to load.
#[derive(Clone, Debug)]
pub struct ModelSource {
    /// How the bytes are to be read.
    pub format: ModelFormat,
    /// The bytes, or where they are.
    pub bytes: ModelBytes,
}

impl ModelBytes {
    /// The file of the model, for findings about it; unknown when it has none.
    pub fn place(&self) -> Place {
        match self {
            Self::File(path) => Place::file(path.display().to_string()),
            Self::Memory(_) => Place::default(),
        }
    }
}

/// The bytes of a model, or where they are.
#[derive(Clone, Debug)]
pub enum ModelBytes {
    /// A file; external data lies beside it.
    File(PathBuf),
    /// In memory, complete.
    Memory(Arc<[u8]>),
}
