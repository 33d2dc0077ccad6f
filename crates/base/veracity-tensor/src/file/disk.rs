//! Opening and replacing files.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use veracity_diag::{Code, Diagnostic, Result, codes};

use super::{MAX_BYTES, place};

/// Opens a regular file and says how long it is. Anything else is refused before it is opened: a
/// pipe would block, and a device never ends.
pub(super) fn open(path: &Path) -> Result<(BufReader<File>, u64)> {
    let metadata = fs::metadata(path).map_err(|error| unopened(&error).at(place(path)))?;
    if !metadata.is_file() {
        return Err(Diagnostic::error(codes::PATH_NOT_A_FILE, "this is not a regular file")
            .at(place(path))
            .into());
    }
    let file = File::open(path).map_err(|error| unopened(&error).at(place(path)))?;
    Ok((BufReader::new(file), metadata.len()))
}

fn unopened(error: &io::Error) -> Diagnostic {
    if error.kind() == io::ErrorKind::NotFound {
        Diagnostic::error(codes::FILE_NOT_FOUND, "the file does not exist")
    } else {
        Diagnostic::error(codes::FILE_UNREADABLE, error.to_string())
    }
}

/// Refuses to read more than [`MAX_BYTES`].
pub(super) fn check_len(len: u64) -> Result<()> {
    if len > MAX_BYTES {
        return Err(Diagnostic::error(
            codes::FILE_TOO_LARGE,
            format!("{len} bytes of tensors are more than the {MAX_BYTES} that are allowed"),
        )
        .into());
    }
    Ok(())
}

/// What a failed read says about the file: that its content is broken (`malformed`), or that the
/// machine could not deliver it.
pub(super) fn unreadable(malformed: Code, error: &io::Error) -> Diagnostic {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error.kind() {
        UnexpectedEof => Diagnostic::error(malformed, "the data ends too early"),
        InvalidData | InvalidInput => Diagnostic::error(malformed, error.to_string()),
        _ => Diagnostic::error(codes::FILE_UNREADABLE, error.to_string()),
    }
}

/// Why a file could not be written.
pub(super) fn unwritable(error: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error(codes::FILE_UNWRITABLE, error.to_string())
}

/// Replaces the file at `path` by what `fill` writes, or leaves it as it was. The bytes go to a
/// temporary file in the same folder, reach the disk, and are renamed; a symbolic link at `path`
/// is replaced itself.
pub(super) fn replace(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&mut File>) -> Result<()>,
) -> Result<()> {
    fill_and_rename(path, fill).map_err(|refusal| refusal.within(&place(path)))
}

fn fill_and_rename(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&mut File>) -> Result<()>,
) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut temporary = temporary_file(folder.unwrap_or(Path::new("."))).map_err(unwritable)?;
    let mut writer = BufWriter::new(temporary.as_file_mut());
    fill(&mut writer)?;
    writer.flush().map_err(unwritable)?;
    drop(writer);
    temporary.as_file().sync_all().map_err(unwritable)?;
    temporary.persist(path).map_err(|error| unwritable(error.error))?;
    Ok(())
}

fn temporary_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".veracity-").suffix(".part");
    // Temporary files are private by default; this one becomes the user's, so the umask decides.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}
