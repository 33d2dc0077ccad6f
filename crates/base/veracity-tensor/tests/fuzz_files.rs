//! Damaged files never make a reader panic, hang or take much memory; whatever is still accepted
//! is a file like any other.
//!
//! `VERACITY_FUZZ_CASES=1000000 cargo test --release -p veracity-tensor --test fuzz_files` fuzzes
//! for long.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Cursor, Write};

use proptest::prelude::*;
use veracity_diag::Result;
use veracity_tensor::file::{TensorMap, npy, npz, safetensors};
use veracity_tensor::{DType, Tensor};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

#[path = "support/memory.rs"]
mod memory;
#[path = "support/mutate.rs"]
mod mutate;
#[path = "support/samples.rs"]
mod samples;

use memory::within_memory;
use mutate::{config, in_time, mutate, mutations};

/// Every seed is below 1 MiB, and so is every mutation of it.
const MEMORY_LIMIT: usize = 64 << 20;

/// Length of the record at the end of an archive.
const END_LEN: usize = 22;

/// Runs a reader within its limits of time and memory.
fn read<T>(reader: impl FnOnce() -> Result<T>) -> Option<T> {
    in_time(|| within_memory(MEMORY_LIMIT, reader)).ok()
}

fn read_npy(bytes: &[u8]) -> Option<Tensor> {
    read(|| npy::read_from(bytes, bytes.len() as u64))
}

fn read_npz(bytes: &[u8]) -> Option<TensorMap> {
    read(|| npz::read_from(Cursor::new(bytes)))
}

fn npy_bytes(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = Vec::new();
    npy::write_to(&mut bytes, tensor).unwrap();
    bytes
}

fn npz_bytes(tensors: &TensorMap) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    npz::write_to(&mut bytes, tensors).unwrap();
    bytes.into_inner()
}

fn zip_bytes(members: &[(&str, &[u8])], compression: CompressionMethod) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = SimpleFileOptions::default().compression_method(compression);
        archive.start_file(*name, options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn npy_seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<_> = DType::ALL
        .into_iter()
        .flat_map(|dtype| [samples::iota(dtype, [2, 3]), samples::iota(dtype, [])])
        .map(|tensor| npy_bytes(&tensor))
        .collect();
    let rows = npy_bytes(&samples::iota(DType::F32, [2, 3]));
    let columns = replaced(&rows, b"<f4', 'fortran_order': False", b">f4', 'fortran_order': True ");
    seeds.push(columns);
    seeds
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|window| window == from).expect("is in there");
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

fn npz_seeds() -> Vec<Vec<u8>> {
    let array = npy_bytes(&samples::iota(DType::F32, [2, 3]));
    let zeros = npy_bytes(&Tensor::zeros(DType::F32, [64, 64].into()));
    let members: [(&str, &[u8]); 2] = [("a.npy", &array), ("zeros.npy", &zeros)];
    vec![
        npz_bytes(&samples::every_kind()),
        zip_bytes(&members, CompressionMethod::Stored),
        zip_bytes(&members, CompressionMethod::Deflated),
        zip_bytes(&[], CompressionMethod::Stored),
    ]
}

fn safetensors_seeds() -> Vec<Vec<u8>> {
    let one = TensorMap::from([("a".to_owned(), samples::iota(DType::F32, [2, 3]))]);
    let notes = safetensors::Metadata::from([("key".to_owned(), "value".to_owned())]);
    [(samples::every_kind(), &notes), (one, &notes), (TensorMap::new(), &notes)]
        .map(|(tensors, metadata)| {
            let mut bytes = Vec::new();
            safetensors::write_to(&mut bytes, &tensors, metadata).unwrap();
            bytes
        })
        .into()
}

#[test]
#[should_panic(expected = "bytes were held")]
fn memory_is_measured() {
    within_memory(1000, || std::hint::black_box(vec![0_u8; 2000]));
}

#[test]
fn every_seed_is_accepted() {
    assert!(npy_seeds().iter().all(|seed| read_npy(seed).is_some()));
    assert!(npz_seeds().iter().all(|seed| read_npz(seed).is_some()));
    let safetensors = |seed: &Vec<u8>| {
        read(|| safetensors::read_from(seed.as_slice(), seed.len() as u64)).is_some()
    };
    assert!(safetensors_seeds().iter().all(safetensors));
}

/// An archive of 1 MB and one member whose end record claims `members` in the old form.
fn claiming(members: u16) -> Vec<u8> {
    let array = npy_bytes(&Tensor::zeros(DType::U8, [900_000].into()));
    let mut bytes = zip_bytes(&[("a.npy", &array)], CompressionMethod::Stored);
    let counts = bytes.len() - END_LEN + 8;
    let members_bytes = members.to_le_bytes();
    bytes[counts..counts + 4].copy_from_slice(&[members_bytes, members_bytes].concat());
    bytes[counts + 4..counts + 8].copy_from_slice(&(u32::from(members) * 46).to_le_bytes());
    bytes
}

/// The same in the zip64 form, which can claim more.
fn claiming_zip64(members: u64) -> Vec<u8> {
    let mut bytes = claiming(1);
    bytes.truncate(bytes.len() - END_LEN);
    let start = bytes.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap() as u64;
    let end = bytes.len() as u64;
    bytes.extend(b"PK\x06\x06");
    bytes.extend(44_u64.to_le_bytes());
    bytes.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for number in [members, members, members * 46, start] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(b"PK\x06\x07\0\0\0\0");
    bytes.extend(end.to_le_bytes());
    bytes.extend([1, 0, 0, 0]);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([0xff; 12]);
    bytes.extend([0, 0]);
    bytes
}

#[test]
fn a_million_members_that_are_not_there_take_no_memory() {
    assert!(read_npz(&claiming_zip64(1)).is_some(), "the cases below differ from this one");
    for members in [2, 60_000, u16::MAX - 1] {
        assert_eq!(read_npz(&claiming(members)), None, "{members}");
    }
    for members in [2, 60_000, 800_000, 1 << 40] {
        assert_eq!(read_npz(&claiming_zip64(members)), None, "{members}");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn damaged_npy(
        seed in prop::sample::select(npy_seeds()),
        other in prop::sample::select(npy_seeds()),
        mutations in mutations(),
    ) {
        let damaged = mutate(&seed, &other, &mutations);
        if let Some(tensor) = read_npy(&damaged) {
            prop_assert_eq!(read_npy(&npy_bytes(&tensor)), Some(tensor));
        }
    }

    #[test]
    fn damaged_npz(
        seed in prop::sample::select(npz_seeds()),
        other in prop::sample::select(npz_seeds()),
        mutations in mutations(),
    ) {
        let damaged = mutate(&seed, &other, &mutations);
        if let Some(tensors) = read_npz(&damaged) {
            prop_assert_eq!(read_npz(&npz_bytes(&tensors)), Some(tensors));
        }
    }

    /// Checksums stop most damage to an archive; this one has damage that was there before.
    #[test]
    fn archives_of_damaged_arrays(
        seed in prop::sample::select(npy_seeds()),
        other in prop::sample::select(npy_seeds()),
        mutations in mutations(),
        name in "[a-z./\\\\é]{0,5}",
        deflated in any::<bool>(),
    ) {
        let damaged = mutate(&seed, &other, &mutations);
        let compression =
            if deflated { CompressionMethod::Deflated } else { CompressionMethod::Stored };
        let archive = zip_bytes(&[(&format!("{name}.npy"), &damaged)], compression);
        let tensors = read_npz(&archive);
        let alone = read_npy(&damaged).map(|tensor| TensorMap::from([(name, tensor)]));
        prop_assert_eq!(&tensors, &alone);
        if let Some(tensors) = tensors {
            prop_assert_eq!(read_npz(&npz_bytes(&tensors)), Some(tensors));
        }
    }

    #[test]
    fn damaged_safetensors(
        seed in prop::sample::select(safetensors_seeds()),
        other in prop::sample::select(safetensors_seeds()),
        mutations in mutations(),
    ) {
        let damaged = mutate(&seed, &other, &mutations);
        let read_back =
            |bytes: &[u8]| read(|| safetensors::read_from(bytes, bytes.len() as u64));
        if let Some((tensors, metadata)) = read_back(&damaged) {
            // The reference implementation must agree that this is a file.
            let reference = ::safetensors::SafeTensors::deserialize(&damaged);
            prop_assert_eq!(reference.map(|file| file.len()).ok(), Some(tensors.len()));
            let mut written = Vec::new();
            safetensors::write_to(&mut written, &tensors, &metadata).unwrap();
            prop_assert_eq!(read_back(&written), Some((tensors, metadata)));
        }
    }
}
