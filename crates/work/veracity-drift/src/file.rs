//! Small text files that people give.

use std::io::Read as _;
use std::path::Path;

use veracity_diag::{Diagnostic, Place, Result, codes};

/// The text of a regular file that is not larger than this.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String> {
    let refuse = |code, message: String| {
        let place = Place::file(path.display().to_string());
        Err(Diagnostic::error(code, message).at(place).into())
    };
    let mut text = String::new();
    // Asked before opening: opening a pipe would wait for a writer.
    let read = match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            return refuse(codes::PATH_NOT_A_FILE, "not a regular file".to_owned());
        }
        Ok(_) => std::fs::File::open(path)
            .and_then(|file| file.take(limit.saturating_add(1)).read_to_string(&mut text)),
        Err(error) => Err(error),
    };
    match read {
        Ok(_) if text.len() as u64 > limit => {
            refuse(codes::FILE_TOO_LARGE, format!("more than {limit} bytes"))
        }
        Ok(_) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            refuse(codes::FILE_NOT_FOUND, "the file does not exist".to_owned())
        }
        Err(error) => refuse(codes::FILE_UNREADABLE, format!("cannot be read: {error}")),
    }
}

/// Where JSON could not be read.
pub(crate) fn position(error: &serde_json::Error) -> Place {
    let number = |count: usize| u32::try_from(count).ok().filter(|&count| count > 0);
    Place { line: number(error.line()), column: number(error.column()), ..Place::default() }
}
