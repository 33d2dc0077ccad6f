//! Tensor files: `.npy`, `.npz` and `.safetensors`.
//!
//! Files come from anywhere, so every size a file claims is checked against the bytes it really
//! has before memory is set aside for it, and whatever does not fit exactly is refused: a reader
//! here returns what the writer meant or a [`Refusal`](veracity_diag::Refusal) that names the file
//! and, inside of an archive, the tensor (as the port of the place). Elements are read straight
//! into the memory of their tensor, without a memory map: a file that is cut short while it is
//! being read is an error, not a crash.
//!
//! Writing is atomic and gives the same bytes for the same tensors.

#[cfg(target_endian = "big")]
compile_error!("tensor files are little endian and are read into memory as they are");

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use veracity_diag::{Diagnostic, Place, Result, codes};

use crate::Tensor;

mod disk;
mod elements;
pub mod folder;
pub mod npy;
pub mod npz;
pub mod safetensors;

/// Tensors by name.
pub type TensorMap = BTreeMap<String, Tensor>;

/// Most bytes that one file may hold, unpacked. All of it goes into memory: this is far more than
/// the inputs or samples of a pipeline take, and stops a sparse file from taking the machine down.
pub const MAX_BYTES: u64 = 16 << 30;

enum Kind {
    Npy,
    Npz,
    Safetensors,
}

/// Reads a file of the kind its extension says. The one tensor of an `.npy` file goes by the name
/// of the file without its extension.
pub fn read(path: impl AsRef<Path>) -> Result<TensorMap> {
    let path = path.as_ref();
    match kind(path)? {
        Kind::Npy => {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok(TensorMap::from([(name, npy::read(path)?)]))
        }
        Kind::Npz => npz::read(path),
        Kind::Safetensors => safetensors::read(path),
    }
}

/// Writes a file of the kind its extension says. An `.npy` file takes exactly one tensor and does
/// not keep its name.
pub fn write(path: impl AsRef<Path>, tensors: &TensorMap) -> Result<()> {
    let path = path.as_ref();
    match kind(path)? {
        Kind::Npy => {
            npy::write(path, only(tensors).map_err(|refusal| refusal.within(&place(path)))?)
        }
        Kind::Npz => npz::write(path, tensors),
        Kind::Safetensors => safetensors::write(path, tensors),
    }
}

/// Replaces the file at `path` by these bytes, or leaves it as it was.
pub fn write_bytes(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    disk::replace(path.as_ref(), |file| {
        file.write_all(bytes).map_err(|e| disk::unwritable(e).into())
    })
}

fn only(tensors: &TensorMap) -> Result<&Tensor> {
    let mut values = tensors.values();
    match (values.next(), values.next()) {
        (Some(tensor), None) => Ok(tensor),
        _ => Err(Diagnostic::error(
            codes::TENSOR_FILE_KIND,
            format!("an `.npy` file holds exactly one tensor, not {}", tensors.len()),
        )
        .hint("write to a `.npz` or `.safetensors` file")
        .into()),
    }
}

fn kind(path: &Path) -> Result<Kind> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        Some("npy") => Ok(Kind::Npy),
        Some("npz") => Ok(Kind::Npz),
        Some("safetensors") => Ok(Kind::Safetensors),
        _ => Err(Diagnostic::error(
            codes::TENSOR_FILE_KIND,
            "the file name does not end in a tensor format",
        )
        .at(place(path))
        .hint("name it `.npz`, `.safetensors` or `.npy`")
        .into()),
    }
}

fn place(path: &Path) -> Place {
    Place::file(path.display().to_string())
}

/// A tensor inside of a file that the caller will name.
fn member(name: &str) -> Place {
    Place { port: Some(name.to_owned()), ..Place::default() }
}
