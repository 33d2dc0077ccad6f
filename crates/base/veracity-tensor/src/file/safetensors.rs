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
use veracity_diag::{Diagnostic, Refusal, Result, codes};

use super::{TensorMap, disk, elements, member, place};
use crate::{DType, Shape, Tensor, TensorView};

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

/// Reads what a file says about itself, without its tensors.
pub fn read_metadata(path: impl AsRef<Path>) -> Result<Metadata> {
    let path = path.as_ref();
    let (mut reader, len) = disk::open(path)?;
    let header = read_header(&mut reader, len).map_err(|refusal| refusal.within(&place(path)))?;
    Ok(header.metadata)
}

/// Reads tensors that fill the `len` bytes of `reader` exactly.
pub fn read_from(mut reader: impl Read, len: u64) -> Result<(TensorMap, Metadata)> {
    let header = read_header(&mut reader, len)?;
    let mut tensors = TensorMap::new();
    for (name, dtype, shape) in header.tensors {
        let tensor = elements::read(&mut reader, dtype, shape, codes::SAFETENSORS_MALFORMED)
            .map_err(|refusal| refusal.within(&member(&name)))?;
        tensors.insert(name, tensor);
    }
    Ok((tensors, header.metadata))
}

fn read_header(mut reader: impl Read, len: u64) -> Result<header::Header> {
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
    header::parse(&text, data_len)
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
pub fn write_to(writer: impl Write, tensors: &TensorMap, metadata: &Metadata) -> Result<()> {
    let outline = |(name, tensor): (&String, &Tensor)| Outline {
        name: name.clone(),
        dtype: tensor.dtype(),
        shape: tensor.shape().clone(),
    };
    let outlines: Vec<Outline> = tensors.iter().map(outline).collect();
    write_pieces(writer, &outlines, metadata, |index, sink| {
        let tensor = &tensors[&outlines[index].name];
        sink(&tensor.view())
    })
}

/// A tensor of a file that is to be written.
#[derive(Clone, Debug)]
pub struct Outline {
    /// Its name in the file.
    pub name: String,
    /// Type of its elements.
    pub dtype: DType,
    /// Sizes of its axes.
    pub shape: Shape,
}

/// Takes a piece of a tensor.
pub type Sink<'a> = dyn FnMut(&TensorView<'_>) -> Result<()> + 'a;

/// Writes tensors whose elements come in pieces: `pieces` is asked for each tensor, by its position
/// in `outlines`, and gives the pieces to the sink one after the other. Nothing is kept of them, so
/// that a file may be larger than the memory. Refused when pieces do not fill their tensor.
pub fn write_pieces(
    mut writer: impl Write,
    outlines: &[Outline],
    metadata: &Metadata,
    mut pieces: impl FnMut(usize, &mut Sink<'_>) -> Result<()>,
) -> Result<()> {
    if outlines.iter().any(|outline| outline.name == METADATA_KEY) {
        return Err(disk::unwritable("this name is reserved in safetensors files")
            .at(member(METADATA_KEY))
            .into());
    }
    let mut ordered: Vec<(usize, &Outline)> = outlines.iter().enumerate().collect();
    ordered.sort_by_key(|(_, outline)| (Reverse(outline.dtype.size()), &outline.name));
    let text = header_text(&ordered, metadata);
    let prefix = (text.len() as u64).to_le_bytes();
    for bytes in [&prefix, text.as_bytes()] {
        writer.write_all(bytes).map_err(disk::unwritable)?;
    }
    for (index, outline) in ordered {
        let mut missing = byte_len(outline);
        let mut sink = |piece: &TensorView<'_>| {
            let len = piece.shape().elements() * piece.dtype().size();
            missing = match missing.checked_sub(len) {
                Some(rest) if piece.dtype() == outline.dtype => rest,
                _ => return Err(misfit(outline)),
            };
            write_view(&mut writer, piece)
        };
        pieces(index, &mut sink)?;
        if missing > 0 {
            return Err(misfit(outline));
        }
    }
    Ok(())
}

/// Writes a file like [`write_pieces`], atomically.
pub fn write_file_pieces(
    path: impl AsRef<Path>,
    outlines: &[Outline],
    metadata: &Metadata,
    pieces: impl FnMut(usize, &mut Sink<'_>) -> Result<()>,
) -> Result<()> {
    disk::replace(path.as_ref(), |writer| write_pieces(writer, outlines, metadata, pieces))
}

/// Bytes of strided memory that are put in order at once.
const ORDERED_AT_ONCE: usize = 1 << 20;

fn write_view(writer: &mut impl Write, view: &TensorView<'_>) -> Result<()> {
    if let Some(bytes) = view.contiguous_bytes() {
        return Ok(writer.write_all(bytes).map_err(disk::unwritable)?);
    }
    let (size, elements) = (view.dtype().size(), view.shape().elements());
    let mut buffer = vec![0; (elements * size).min(ORDERED_AT_ONCE)];
    for first in (0..elements).step_by(ORDERED_AT_ONCE / size) {
        let count = (elements - first).min(ORDERED_AT_ONCE / size);
        let part = &mut buffer[..count * size];
        view.copy_elements(first, part);
        writer.write_all(part).map_err(disk::unwritable)?;
    }
    Ok(())
}

fn byte_len(outline: &Outline) -> usize {
    outline.shape.elements() * outline.dtype.size()
}

fn misfit(outline: &Outline) -> Refusal {
    let Outline { name, dtype, shape } = outline;
    let message = format!("the pieces of a tensor do not fill {dtype}{shape}");
    Diagnostic::error(codes::TENSOR_SIZE_MISMATCH, message).at(member(name)).into()
}

fn header_text(ordered: &[(usize, &Outline)], metadata: &Metadata) -> String {
    let mut header = serde_json::Map::new();
    if !metadata.is_empty() {
        header.insert(METADATA_KEY.to_owned(), json!(metadata));
    }
    let mut start = 0;
    for (_, outline) in ordered {
        let end = start + byte_len(outline);
        let info = json!({
            "dtype": format_dtype(outline.dtype),
            "shape": outline.shape,
            "data_offsets": [start, end],
        });
        header.insert(outline.name.clone(), info);
        start = end;
    }
    let mut text = serde_json::Value::Object(header).to_string();
    // The prefix is 8 bytes long; with this padding the first tensor is aligned, too.
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(dims: &[usize]) -> Outline {
        let shape = Shape::new(dims.to_vec()).unwrap();
        Outline { name: "x".into(), dtype: DType::U8, shape }
    }

    #[test]
    fn pieces_are_put_together_whatever_their_strides() {
        let bytes = [0_u8, 1, 2, 3, 4, 5];
        let rows = TensorView::new(DType::U8, &[2, 3].into(), &bytes).unwrap();
        let columns = TensorView::strided(DType::U8, &[3, 2].into(), &[1, 3], 0, &bytes).unwrap();
        let mut file = Vec::new();
        let metadata = Metadata::from([("seed".to_owned(), "7".to_owned())]);
        write_pieces(&mut file, &[outline(&[2, 6])], &metadata, |_, sink| {
            sink(&rows)?;
            sink(&columns)
        })
        .unwrap();
        let (tensors, read) = read_from(file.as_slice(), file.len() as u64).unwrap();
        assert_eq!(tensors["x"].bytes(), [0, 1, 2, 3, 4, 5, 0, 3, 1, 4, 2, 5]);
        assert_eq!(read, metadata);
    }

    #[test]
    fn pieces_that_do_not_fill_their_tensor_are_refused() {
        let bytes = [0_u8; 4];
        for (what, shape, dtype) in [
            ("too few", [5], DType::U8),
            ("too many", [3], DType::U8),
            ("another dtype", [4], DType::Bool),
        ] {
            let piece = TensorView::new(dtype, &[4].into(), &bytes).unwrap();
            let written =
                write_pieces(Vec::new(), &[outline(&shape)], &Metadata::new(), |_, sink| {
                    sink(&piece)
                });
            let code = written.unwrap_err().first_error().code;
            assert_eq!(code, codes::TENSOR_SIZE_MISMATCH, "{what}");
        }
    }
}
