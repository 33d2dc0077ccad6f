//! What an npz archive may look like, and what is refused.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Cursor, Write};

use veracity_diag::{Code, Result, codes};
use veracity_tensor::file::{TensorMap, npy, npz};
use veracity_tensor::{DType, Tensor};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

#[path = "support/samples.rs"]
mod samples;

fn read(bytes: &[u8]) -> Result<TensorMap> {
    npz::read_from(Cursor::new(bytes))
}

fn npy_bytes(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = Vec::new();
    npy::write_to(&mut bytes, tensor).unwrap();
    bytes
}

fn archive(members: &[(&str, &[u8])], compression: CompressionMethod) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = SimpleFileOptions::default().compression_method(compression);
        archive.start_file(*name, options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Replaces every occurrence; sizes and names stand before each member and in the directory.
fn replace_all(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut replaced = bytes.to_vec();
    let mut found = false;
    for at in 0..=bytes.len() - from.len() {
        if bytes[at..].starts_with(from) {
            replaced[at..at + from.len()].copy_from_slice(to);
            found = true;
        }
    }
    assert!(found, "{from:?} is in the archive");
    replaced
}

/// Sets bits of one byte of every member, which stands before it (signature `PK34`) and in the
/// directory (`PK12`).
fn with_bits(bytes: &[u8], local_offset: usize, directory_offset: usize, bits: u8) -> Vec<u8> {
    let mut edited = bytes.to_vec();
    for at in 0..bytes.len() {
        if bytes[at..].starts_with(b"PK\x03\x04") {
            edited[at + local_offset] |= bits;
        } else if bytes[at..].starts_with(b"PK\x01\x02") {
            edited[at + directory_offset] |= bits;
        }
    }
    edited
}

type Case = (&'static str, Vec<u8>, Code, Option<&'static str>);

/// Each case is refused with its code, and with the name of the array where one is to blame.
fn expect_refusals(cases: impl IntoIterator<Item = Case>) {
    for (what, bytes, code, name) in cases {
        match read(&bytes) {
            Ok(tensors) => panic!("{what}: read as {tensors:?}"),
            Err(refusal) => {
                let found = refusal.first_error();
                assert_eq!(found.code, code, "{what}: {refusal}");
                assert_eq!(found.place.port.as_deref(), name, "{what}: {refusal}");
            }
        }
    }
}

#[test]
fn bad_archives_are_refused() {
    let array = npy_bytes(&samples::iota(DType::F32, [2, 3]));
    let ok = archive(&[("a.npy", &array), ("b.npy", &array)], CompressionMethod::Stored);
    assert!(read(&ok).is_ok(), "the cases below differ from this one");
    let bad = codes::NPZ_MALFORMED;
    expect_refusals([
        ("nothing", vec![], bad, None),
        ("not an archive", b"PK not really, but long enough to be one".to_vec(), bad, None),
        ("cut", ok[..ok.len() - 30].to_vec(), bad, None),
        ("one name twice", replace_all(&ok, b"b.npy", b"a.npy"), bad, None),
        ("two names for one array", replace_all(&ok, b"b.npy\x93", b"c.npy\x93"), bad, Some("b")),
        ("encrypted", with_bits(&ok, 6, 8, 1), bad, Some("a")),
        ("another compression", with_bits(&ok, 8, 10, 12), bad, Some("a")),
    ]);
}

#[test]
fn bad_members_are_refused_by_name() {
    let array = npy_bytes(&samples::iota(DType::F32, [2, 3]));
    let stored = |name, bytes: &[u8]| archive(&[(name, bytes)], CompressionMethod::Stored);
    let ok = stored("a.npy", &array);
    let longer = [array.as_slice(), b"!"].concat();
    let damaged = replace_all(&ok, &5_f32.to_le_bytes(), &6_f32.to_le_bytes());
    let (bad, size) = (codes::NPZ_MALFORMED, codes::TENSOR_SIZE_MISMATCH);
    expect_refusals([
        ("not an array", stored("a.txt", b"hello"), bad, Some("a.txt")),
        ("a folder", stored("a/", b""), bad, Some("a/")),
        ("a broken array", stored("a.npy", &array[..60]), codes::NPY_MALFORMED, Some("a")),
        ("more than an array", stored("a.npy", &longer), size, Some("a")),
        ("a wrong checksum", damaged, codes::NPY_MALFORMED, Some("a")),
    ]);
}

#[test]
fn archives_that_claim_or_unpack_to_too_much_are_refused() {
    let array = npy_bytes(&samples::iota(DType::F32, [2, 3]));
    let zeros = npy_bytes(&Tensor::zeros(DType::U8, [64 << 20].into()));
    let claiming = |compression| {
        let len = u32::try_from(array.len()).unwrap().to_le_bytes();
        let bytes = archive(&[("a.npy", &array)], compression);
        replace_all(&bytes, &len, &0x7fff_ffff_u32.to_le_bytes())
    };
    let bomb = archive(&[("a.npy", &zeros)], CompressionMethod::Deflated);
    let bad = codes::NPZ_MALFORMED;
    expect_refusals([
        ("a size that is not there", claiming(CompressionMethod::Stored), bad, Some("a")),
        ("more than deflate can pack", claiming(CompressionMethod::Deflated), bad, Some("a")),
        ("a bomb", bomb, codes::FILE_TOO_LARGE, None),
    ]);
}

#[test]
fn what_is_written_reads_back_stored_or_deflated() {
    let tensors = samples::every_kind();
    let mut bytes = Cursor::new(Vec::new());
    npz::write_to(&mut bytes, &tensors).unwrap();
    assert_eq!(read(bytes.get_ref()).unwrap(), tensors);
    let members: Vec<_> =
        tensors.iter().map(|(name, tensor)| (format!("{name}.npy"), npy_bytes(tensor))).collect();
    let members: Vec<_> = members.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
    assert_eq!(read(&archive(&members, CompressionMethod::Deflated)).unwrap(), tensors);
}

#[test]
fn compressed_zeros_of_ordinary_size_are_not_a_bomb() {
    let zeros = Tensor::zeros(DType::F32, [1 << 20].into());
    let bytes = archive(&[("zeros.npy", &npy_bytes(&zeros))], CompressionMethod::Deflated);
    assert!(bytes.len() < 10_000);
    assert_eq!(read(&bytes).unwrap()["zeros"], zeros);
}

#[test]
fn an_archive_in_the_zip64_form_is_read() {
    let array = npy_bytes(&samples::iota(DType::F32, [2, 3]));
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file("a.npy", SimpleFileOptions::default().large_file(true)).unwrap();
    archive.write_all(&array).unwrap();
    let bytes = archive.finish().unwrap().into_inner();
    assert_eq!(read(&bytes).unwrap()["a"], samples::iota(DType::F32, [2, 3]));
}
