//! What a safetensors file may look like, and what is refused.

use veracity_diag::{Code, codes};
use veracity_tensor::DType;
use veracity_tensor::file::{TensorMap, safetensors};

#[path = "support/samples.rs"]
mod samples;

fn read(bytes: &[u8]) -> veracity_diag::Result<(TensorMap, safetensors::Metadata)> {
    safetensors::read_from(bytes, bytes.len() as u64)
}

fn file(header: &str, elements: &[u8]) -> Vec<u8> {
    [(header.len() as u64).to_le_bytes().as_slice(), header.as_bytes(), elements].concat()
}

/// A file of one tensor `a`.
fn one(dtype: &str, shape: &str, offsets: &str, elements: &[u8]) -> Vec<u8> {
    let header =
        format!(r#"{{"a": {{"dtype": "{dtype}", "shape": {shape}, "data_offsets": {offsets}}}}}"#);
    file(&header, elements)
}

type Case = (&'static str, Vec<u8>, Code, Option<&'static str>);

/// Each case is refused with its code, and with the name of the tensor where one is to blame.
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
fn a_file_around_no_tensor_in_particular_is_refused_when_it_is_bad() {
    let ok = one("U8", "[2]", "[0, 2]", &[1, 2]);
    assert!(read(&ok).is_ok(), "the cases below differ from this one");
    let cases: [(_, Vec<u8>); 11] = [
        ("nothing", vec![]),
        ("cut in the prefix", ok[..5].to_vec()),
        ("cut in the header", ok[..30].to_vec()),
        ("cut in the elements", ok[..ok.len() - 1].to_vec()),
        ("bytes at the end", [ok.as_slice(), b"!"].concat()),
        ("a header of 2^64 bytes", [0xff; 64].to_vec()),
        ("not JSON", file("{", &[])),
        ("not UTF-8", [2_u64.to_le_bytes().as_slice(), b"{\xff"].concat()),
        ("a list", file("[]", &[])),
        ("text after the header", file("{} {}", &[])),
        ("offsets beyond the file", one("U8", "[4]", "[0, 4]", &[1, 2])),
    ];
    expect_refusals(cases.map(|(what, bytes)| (what, bytes, codes::SAFETENSORS_MALFORMED, None)));
}

#[test]
fn a_bad_tensor_is_refused_by_name() {
    let sized = |shape, offsets| one("U8", shape, offsets, &[1, 2]);
    let deep = format!(r#"{{"a": {}"#, "[".repeat(100_000));
    let (bad, size) = (codes::SAFETENSORS_MALFORMED, codes::TENSOR_SIZE_MISMATCH);
    let (large, dtype) = (codes::TENSOR_TOO_LARGE, codes::DTYPE_UNSUPPORTED);
    let cases: [(_, _, Code); 13] = [
        ("nested too deep", file(&deep, &[]), bad),
        ("a field is missing", file(r#"{"a": {"dtype": "U8", "shape": [2]}}"#, &[1, 2]), bad),
        ("a dtype nobody knows", one("F12", "[2]", "[0, 2]", &[1, 2]), bad),
        ("a negative axis", sized("[-2]", "[0, 2]"), bad),
        ("a negative offset", sized("[2]", "[0, -2]"), bad),
        ("a start that is not 0", sized("[1]", "[1, 2]"), bad),
        ("too few bytes", sized("[3]", "[0, 2]"), size),
        ("an end at the end of the world", sized("[2]", "[0, 18446744073709551615]"), size),
        ("more elements than fit", sized("[4294967296, 4294967296]", "[0, 2]"), large),
        ("empty with a huge axis", one("U8", "[0, 9223372036854775807]", "[0, 0]", &[]), large),
        ("float8", one("F8_E4M3", "[2]", "[0, 2]", &[1, 2]), dtype),
        ("complex numbers", one("C64", "[0]", "[0, 0]", &[]), dtype),
        ("a bool that is 2", one("BOOL", "[2]", "[0, 2]", &[1, 2]), codes::BOOL_INVALID),
    ];
    expect_refusals(cases.map(|(what, bytes, code)| (what, bytes, code, Some("a"))));
}

#[test]
fn entries_that_do_not_go_together_are_refused() {
    let twice = r#"{"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                    "a": {"dtype": "I8", "shape": [2], "data_offsets": [0, 2]}}"#;
    let gap = r#"{"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
                  "b": {"dtype": "U8", "shape": [1], "data_offsets": [2, 3]}}"#;
    let overlap = r#"{"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                      "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}}"#;
    let notes = r#"{"__metadata__": {"a": 1}}"#;
    let bad = codes::SAFETENSORS_MALFORMED;
    expect_refusals([
        ("one name twice", file(twice, &[1, 2]), bad, Some("a")),
        ("a gap", file(gap, &[1, 2, 3]), bad, Some("b")),
        ("an overlap", file(overlap, &[1, 2, 3]), bad, Some("b")),
        ("metadata that is not text", file(notes, &[]), bad, Some("__metadata__")),
    ]);
}

#[test]
fn the_reference_implementation_reads_what_is_written() {
    let tensors = samples::every_kind();
    let notes = safetensors::Metadata::from([("b".into(), "2".into()), ("a".into(), "1".into())]);
    let mut bytes = Vec::new();
    safetensors::write_to(&mut bytes, &tensors, &notes).unwrap();
    let reference = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(reference.len(), tensors.len());
    for (name, tensor) in &tensors {
        let view = reference.tensor(name).unwrap();
        assert_eq!((view.data(), view.shape()), (tensor.bytes(), tensor.shape().dims()), "{name}");
        let start = view.data().as_ptr() as usize - bytes.as_ptr() as usize;
        assert_eq!(start % tensor.dtype().size(), 0, "{name} is aligned");
    }
    assert_eq!(read(&bytes).unwrap(), (tensors, notes));
}

#[test]
fn the_name_of_the_metadata_is_not_for_tensors() {
    let tensors = TensorMap::from([("__metadata__".into(), samples::iota(DType::U8, [2]))]);
    let refusal =
        safetensors::write_to(Vec::new(), &tensors, &safetensors::Metadata::new()).unwrap_err();
    assert_eq!(refusal.first_error().code, codes::FILE_UNWRITABLE);
}
