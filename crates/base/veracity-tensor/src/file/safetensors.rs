//! Tensors in the safetensors format, with the file's own notes (`__metadata__`).
//!
//! The header is checked here and not by the `safetensors` crate, which supplies its types: that
//! one does not say which tensor is wrong, and takes the last of two tensors with one name. The
//! tensors must follow each other without gaps and fill the file, as the format demands. They are
//! written widest elements first and then by name, so that every one is aligned.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

use serde_json::json;
use veracity_diag::{Diagnostic, Result, codes};

use super::{TensorMap, disk, elements, member, place};
use crate::Tensor;

mod header;

use header::{METADATA_KEY, format_dtype};

/// What a file says about itself.
pub type Metadata = BTreeMap<String, String>;

/// Longest header that is read. A tensor takes about 100 bytes of it, so this is room for 160,000;
/// the parsed header takes several times as much memory.
const MAX_HEADER_LEN: usize = 16 << 20;

/// Reads the tensors of a file.
pub fn read(path: impl AsRef<Path>) -> Result<TensorMap> {
    read_with_metadata(path).map(|(tensors, _)| tensors)
}

/// Reads the tensors of a file and what it says about itself.
pub fn read_with_metadata(path: impl AsRef<Path>) -> Result<(TensorMap, Metadata)> {
    let path = path.as_ref();
    let (reader, len) = disk::open(path)?;
    read_from(reader, len).map_err(|refusal| refusal.within(&place(path)))
}

/// Reads tensors that fill the `len` bytes of `reader` exactly.
pub fn read_from(mut reader: impl Read, len: u64) -> Result<(TensorMap, Metadata)> {
    disk::check_len(len)?;
    let mut prefix = [0; 8];
    read_exact(&mut reader, &mut prefix)?;
    let header_len = u64::from_le_bytes(prefix);
    let Some(data_len) = len.checked_sub(8).and_then(|len| len.checked_sub(header_len)) else {
        return Err(malformed("the header is longer than the file").into());
    };
    let header_len = usize::try_from(header_len).unwrap_or(usize::MAX);
    if header_len > MAX_HEADER_LEN {
        return Err(malformed(format!("a header of {header_len} bytes is too long")).into());
    }
    let mut text = vec![0; header_len];
    read_exact(&mut reader, &mut text)?;
    let header = header::parse(&text, data_len)?;
    let mut tensors = TensorMap::new();
    for (name, dtype, shape) in header.tensors {
        let tensor = elements::read(&mut reader, dtype, shape, codes::SAFETENSORS_MALFORMED)
            .map_err(|refusal| refusal.within(&member(&name)))?;
        tensors.insert(name, tensor);
    }
    Ok((tensors, header.metadata))
}

fn read_exact(reader: &mut impl Read, buffer: &mut [u8]) -> Result<()> {
    reader
        .read_exact(buffer)
        .map_err(|error| disk::unreadable(codes::SAFETENSORS_MALFORMED, &error).into())
}

fn malformed(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::SAFETENSORS_MALFORMED, message)
}

/// Writes a file, atomically.
pub fn write(path: impl AsRef<Path>, tensors: &TensorMap) -> Result<()> {
    write_with_metadata(path, tensors, &Metadata::new())
}

/// Writes a file with what it says about itself, atomically.
pub fn write_with_metadata(
    path: impl AsRef<Path>,
    tensors: &TensorMap,
    metadata: &Metadata,
) -> Result<()> {
    disk::replace(path.as_ref(), |writer| write_to(writer, tensors, metadata))
}

/// Writes tensors.
pub fn write_to(mut writer: impl Write, tensors: &TensorMap, metadata: &Metadata) -> Result<()> {
    if tensors.contains_key(METADATA_KEY) {
        return Err(disk::unwritable("this name is reserved in safetensors files")
            .at(member(METADATA_KEY))
            .into());
    }
    let mut ordered: Vec<_> = tensors.iter().collect();
    ordered.sort_by_key(|(name, tensor)| (Reverse(tensor.dtype().size()), *name));
    let text = header_text(&ordered, metadata);
    let prefix = (text.len() as u64).to_le_bytes();
    let data = ordered.iter().map(|(_, tensor)| tensor.bytes());
    for bytes in [&prefix, text.as_bytes()].into_iter().chain(data) {
        writer.write_all(bytes).map_err(disk::unwritable)?;
    }
    Ok(())
}

fn header_text(ordered: &[(&String, &Tensor)], metadata: &Metadata) -> String {
    let mut header = serde_json::Map::new();
    if !metadata.is_empty() {
        header.insert(METADATA_KEY.to_owned(), json!(metadata));
    }
    let mut start = 0;
    for (name, tensor) in ordered {
        let end = start + tensor.bytes().len();
        let info = json!({
            "dtype": format_dtype(tensor.dtype()),
            "shape": tensor.shape(),
            "data_offsets": [start, end],
        });
        header.insert((*name).clone(), info);
        start = end;
    }
    let mut text = serde_json::Value::Object(header).to_string();
    // The prefix is 8 bytes long; with this padding the first tensor is aligned, too.
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    text
}
