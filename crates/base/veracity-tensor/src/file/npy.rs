//! One array in NumPy's own format, versions 1.0 to 3.0.
//!
//! The header is a Python dictionary. It is read by a small parser for the three keys that the
//! format has (`header`), not by one for Python literals in general: those recurse, and bring
//! a dozen crates. Structured, object, string and complex dtypes are refused.
//!
//! bfloat16 has no name in NumPy: `ml_dtypes` arrays are saved as `<V2`, and as `|V2` after NumPy
//! alone has loaded and saved them again. Both are read as bfloat16, so raw two-byte voids, which are
//! saved as `|V2` too, are read as numbers. It is written as `<V2`, as `ml_dtypes` does.

use std::io::{Read, Write};
use std::path::Path;

use veracity_diag::{Diagnostic, Result, codes};

use super::{disk, elements, place};
use crate::Tensor;

mod header;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Longest header that is read. NumPy writes 118 bytes for up to about six axes and refuses more
/// than 10,000 itself; a `u16` length, all that version 1.0 has, reaches this far.
const MAX_HEADER_LEN: usize = 64 << 10;

/// The elements start on a multiple of this, so that the file can be memory-mapped.
const ALIGNMENT: usize = 64;

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> Result<Tensor> {
    let path = path.as_ref();
    let (reader, len) = disk::open(path)?;
    read_from(reader, len).map_err(|refusal| refusal.within(&place(path)))
}

/// Reads an array that fills the `len` bytes of `reader` exactly.
pub fn read_from(mut reader: impl Read, len: u64) -> Result<Tensor> {
    disk::check_len(len)?;
    let text = read_header_text(&mut reader, len)?;
    let header = header::parse(&text.bytes)?;
    let data_len = header.shape.elements() * header.dtype.size();
    if text.end.checked_add(data_len as u64) != Some(len) {
        return Err(Diagnostic::error(
            codes::TENSOR_SIZE_MISMATCH,
            format!(
                "{} bytes do not fill {} of shape {}, which takes {data_len}",
                len - text.end,
                header.dtype,
                header.shape
            ),
        )
        .into());
    }
    let mut tensor = elements::read(&mut reader, header.dtype, header.shape, codes::NPY_MALFORMED)?;
    expect_end(&mut reader)?;
    if header.big_endian {
        elements::swap_bytes(&mut tensor);
    }
    if header.fortran_order { elements::row_major_from_column_major(&tensor) } else { Ok(tensor) }
}

struct HeaderText {
    bytes: Vec<u8>,
    /// Where the elements start.
    end: u64,
}

fn read_header_text(reader: &mut impl Read, len: u64) -> Result<HeaderText> {
    let [magic @ .., major, minor] = read_array::<8>(reader)?;
    if magic != *MAGIC {
        return Err(malformed("this does not start like an npy array").into());
    }
    let (start, text_len) = match (major, minor) {
        (1, 0) => (10, u32::from(u16::from_le_bytes(read_array(reader)?))),
        (2 | 3, 0) => (12, u32::from_le_bytes(read_array(reader)?)),
        _ => return Err(malformed(format!("version {major}.{minor} is not known")).into()),
    };
    let end = start + u64::from(text_len);
    if text_len as usize > MAX_HEADER_LEN || end > len {
        return Err(malformed(format!("a header of {text_len} bytes is too long")).into());
    }
    let mut bytes = vec![0; text_len as usize];
    read_exact(reader, &mut bytes)?;
    Ok(HeaderText { bytes, end })
}

fn read_array<const N: usize>(reader: &mut impl Read) -> Result<[u8; N]> {
    let mut array = [0; N];
    read_exact(reader, &mut array)?;
    Ok(array)
}

fn read_exact(reader: &mut impl Read, buffer: &mut [u8]) -> Result<()> {
    reader.read_exact(buffer).map_err(|error| disk::unreadable(codes::NPY_MALFORMED, &error).into())
}

/// Reads once more. A file may have grown meanwhile, and an archive checks its checksum only when
/// it sees the end.
fn expect_end(reader: &mut impl Read) -> Result<()> {
    match reader.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(malformed("bytes follow after the array").into()),
        Err(error) => Err(disk::unreadable(codes::NPY_MALFORMED, &error).into()),
    }
}

fn malformed(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::NPY_MALFORMED, message)
}

/// Writes a file, atomically.
pub fn write(path: impl AsRef<Path>, tensor: &Tensor) -> Result<()> {
    disk::replace(path.as_ref(), |writer| write_to(writer, tensor))
}

/// Writes an array.
pub fn write_to(mut writer: impl Write, tensor: &Tensor) -> Result<()> {
    writer
        .write_all(&preamble(tensor))
        .and_then(|()| writer.write_all(tensor.bytes()))
        .map_err(|error| disk::unwritable(error).into())
}

/// Everything before the elements.
pub(super) fn preamble(tensor: &Tensor) -> Vec<u8> {
    const START: usize = 10;
    let mut text = header::text(tensor.dtype(), tensor.shape());
    let end = (START + text.len() + 1).next_multiple_of(ALIGNMENT);
    text.extend(std::iter::repeat_n(' ', end - START - text.len() - 1));
    text.push('\n');
    let text_len = u16::try_from(text.len()).expect("64 axes of 20 digits are below 64 KiB");
    [MAGIC, &[1, 0], &text_len.to_le_bytes(), text.as_bytes()].concat()
}
