//! The bytes of a file, mapped instead of copied.
#![expect(unsafe_code, reason = "a mapping shows what others do to the file")]

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use bytes::Bytes;
use veracity_diag::{Diagnostic, Place, Result, codes};

use crate::limits::MAX_FILE_BYTES;

/// Maps a model. Refused when it is absent, unreadable, something else than a file, or larger than
/// protobuf allows.
pub(crate) fn map_file(path: &Path) -> Result<Bytes> {
    map_up_to(path, MAX_FILE_BYTES)
}

/// Maps weights, which may be as large as they like: they are plain bytes. Refused when the file is
/// absent, unreadable or something else than a file.
pub(crate) fn map_weights(path: &Path) -> Result<Bytes> {
    map_up_to(path, u64::MAX)
}

fn map_up_to(path: &Path, limit: u64) -> Result<Bytes> {
    let refuse = |code, message| Err(Diagnostic::error(code, message).at(place(path)).into());
    // Asked before opening: opening a pipe would wait for a writer.
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            refuse(codes::FILE_NOT_FOUND, "no such file".to_owned())
        }
        Err(error) => refuse(codes::FILE_UNREADABLE, error.to_string()),
        Ok(metadata) if metadata.is_dir() => {
            let found = Diagnostic::error(codes::PATH_NOT_A_FILE, "a folder, not a file");
            let hint = "name one file in it; the models of a bundle lie beside its description";
            Err(found.at(place(path)).hint(hint).into())
        }
        Ok(metadata) if !metadata.is_file() => {
            refuse(codes::PATH_NOT_A_FILE, "not a regular file".to_owned())
        }
        Ok(metadata) if metadata.len() > limit => {
            let message = format!("{} bytes; an ONNX file has at most 2 GiB", metadata.len());
            refuse(codes::FILE_TOO_LARGE, message)
        }
        Ok(metadata) if metadata.len() == 0 => Ok(Bytes::new()),
        Ok(_) => map(path)
            .or_else(|error| refuse(codes::FILE_UNREADABLE, format!("cannot be read: {error}"))),
    }
}

/// Where findings about this file are.
pub(crate) fn place(path: &Path) -> Place {
    Place::file(path.display().to_string())
}

fn map(path: &Path) -> std::io::Result<Bytes> {
    let file = File::open(path)?;
    // SAFETY: the mapping is only read. Whoever overwrites a model in place while it is loaded
    // changes or cuts the weights under us, which no reader of mapped files can rule out; Veracity
    // itself replaces models by renaming, which leaves the mapped file whole.
    let mapping = unsafe { memmap2::Mmap::map(&file)? };
    Ok(Bytes::from_owner(mapping))
}
