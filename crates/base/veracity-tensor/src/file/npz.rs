//! Several npy arrays in one ZIP archive, stored or deflated.
//!
//! Every member is an array `NAME.npy`; anything else in the archive is refused, as is a name that
//! stands twice, since readers disagree on which one counts. Encrypted members are refused. Archives
//! are written without compression, with a fixed date.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use veracity_diag::{Diagnostic, Refusal, Result, codes};
use zip::read::ZipFileEntry;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipReadOptions, ZipWriter};

use super::{MAX_BYTES, TensorMap, disk, member, npy, place};
use crate::Tensor;

/// The arrays of any archive may take this much, however small it is: an input of zeros packs to
/// almost nothing, and unpacking it hurts nobody.
const ALWAYS_ALLOWED: u64 = 32 << 20;

/// Beyond [`ALWAYS_ALLOWED`], the arrays may take this many times the size of the archive. Numbers
/// that were measured compress to a half or a tenth; only long runs of one value do better.
const MAX_RATIO: u64 = 100;

/// Deflate cannot pack tighter than this: 258 bytes take 2 bits at the least.
const DEFLATE_RATIO: u64 = 1032;

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> Result<TensorMap> {
    let path = path.as_ref();
    let (reader, _) = disk::open(path)?;
    read_from(reader).map_err(|refusal| refusal.within(&place(path)))
}

/// Reads an archive that fills `reader` exactly.
pub fn read_from(mut reader: impl Read + Seek) -> Result<TensorMap> {
    let len = reader
        .seek(SeekFrom::End(0))
        .map_err(|error| disk::unreadable(codes::NPZ_MALFORMED, &error))?;
    let mut archive = ZipArchive::new(reader).map_err(unreadable)?;
    if archive.has_duplicate_names() {
        return Err(malformed("a name stands twice in the archive").into());
    }
    let names = check_members(&archive, len)?;
    let mut tensors = TensorMap::new();
    for (index, name) in names.into_iter().enumerate() {
        let tensor =
            read_member(&mut archive, index).map_err(|refusal| refusal.within(&member(&name)))?;
        if tensors.contains_key(&name) {
            return Err(malformed("a name stands twice in the archive").at(member(&name)).into());
        }
        tensors.insert(name, tensor);
    }
    Ok(tensors)
}

/// Checks all that members say about themselves, before any is unpacked; their names.
fn check_members<R: Read + Seek>(archive: &ZipArchive<R>, len: u64) -> Result<Vec<String>> {
    let allowed = len.saturating_mul(MAX_RATIO).clamp(ALWAYS_ALLOWED, MAX_BYTES);
    let mut names = Vec::with_capacity(archive.len());
    let mut total = 0_u64;
    for index in 0..archive.len() {
        let entry = archive.by_index_data(index).map_err(unreadable)?;
        let file_name = entry.name().map_err(unreadable)?;
        let Some(name) = file_name.strip_suffix(".npy") else {
            return Err(malformed("a member of the archive is not an `.npy` array")
                .at(member(&file_name))
                .into());
        };
        check_member(&entry, len).map_err(|refusal| refusal.within(&member(name)))?;
        total = total.saturating_add(entry.size());
        names.push(name.to_owned());
    }
    if total > allowed {
        return Err(Diagnostic::error(
            codes::FILE_TOO_LARGE,
            format!("{len} bytes unpack to {total}, more than the {allowed} that are allowed"),
        )
        .hint("save the arrays with `numpy.savez`, which does not compress")
        .into());
    }
    Ok(names)
}

fn check_member(entry: &ZipFileEntry<'_>, len: u64) -> Result<()> {
    if entry.encrypted() {
        return Err(malformed("the array is encrypted").into());
    }
    let (packed, unpacked) = (entry.compressed_size(), entry.size());
    let possible = match entry.compression() {
        CompressionMethod::Stored => packed == unpacked,
        CompressionMethod::Deflated => unpacked <= packed.saturating_mul(DEFLATE_RATIO),
        other => {
            return Err(malformed(format!("the compression `{other}` is not supported"))
                .hint("save the arrays with `numpy.savez` or `numpy.savez_compressed`")
                .into());
        }
    };
    if packed > len || !possible {
        return Err(malformed(format!("{packed} bytes cannot unpack to {unpacked}")).into());
    }
    Ok(())
}

fn read_member<R: Read + Seek>(archive: &mut ZipArchive<R>, index: usize) -> Result<Tensor> {
    // What stands before the member must say the same as the directory at the end.
    let options = ZipReadOptions::new().enforce_header_consistency(true);
    let file = archive.by_index_with_options(index, options).map_err(unreadable)?;
    let len = file.size();
    npy::read_from(file, len)
}

fn unreadable(error: ZipError) -> Refusal {
    match error {
        ZipError::Io(error) => disk::unreadable(codes::NPZ_MALFORMED, &error).into(),
        error => malformed(error.to_string()).into(),
    }
}

fn malformed(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::NPZ_MALFORMED, message)
}

/// Writes a file, atomically.
pub fn write(path: impl AsRef<Path>, tensors: &TensorMap) -> Result<()> {
    disk::replace(path.as_ref(), |writer| write_to(writer, tensors))
}

/// Writes an archive, members by name.
pub fn write_to(writer: impl Write + Seek, tensors: &TensorMap) -> Result<()> {
    let mut archive = ZipWriter::new(writer);
    for (name, tensor) in tensors {
        write_member(&mut archive, name, tensor)
            .map_err(|refusal| refusal.within(&member(name)))?;
    }
    archive.finish().map_err(disk::unwritable)?;
    Ok(())
}

fn write_member<W: Write + Seek>(
    archive: &mut ZipWriter<W>,
    name: &str,
    tensor: &Tensor,
) -> Result<()> {
    let len = npy::preamble(tensor).len() + tensor.bytes().len();
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::default())
        .large_file(len as u64 >= zip::ZIP64_BYTES_THR);
    archive.start_file(format!("{name}.npy"), options).map_err(disk::unwritable)?;
    npy::write_to(archive, tensor)
}
