//! What an npy array may look like, and what is refused.

use veracity_diag::{Code, Result, codes};
use veracity_tensor::file::npy;
use veracity_tensor::{DType, MAX_RANK, Tensor};

#[path = "support/samples.rs"]
mod samples;

fn read(bytes: &[u8]) -> Result<Tensor> {
    npy::read_from(bytes, bytes.len() as u64)
}

/// An array of version 1.0 with any header and elements.
fn array(header: &str, elements: &[u8]) -> Vec<u8> {
    let len = u16::try_from(header.len()).expect("a short header").to_le_bytes();
    [b"\x93NUMPY\x01\x00", len.as_slice(), header.as_bytes(), elements].concat()
}

/// An array with its dtype, order and shape as they stand in the header.
fn described(descr: &str, fortran_order: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
    let header =
        format!("{{'descr': {descr}, 'fortran_order': {fortran_order}, 'shape': {shape}, }}");
    array(&header, elements)
}

fn expect_refusal(what: &str, bytes: &[u8], code: Code) {
    match read(bytes) {
        Ok(tensor) => panic!("{what}: read as {tensor:?}"),
        Err(refusal) => assert_eq!(refusal.first_error().code, code, "{what}: {refusal}"),
    }
}

#[test]
fn what_does_not_start_like_an_array_is_refused() {
    let ok = described("'|u1'", "False", "(2,)", &[1, 2]);
    assert!(read(&ok).is_ok(), "the cases below differ from this one");
    let edited = |at: usize, byte: u8| {
        let mut bytes = ok.clone();
        bytes[at] = byte;
        bytes
    };
    for (what, bytes) in [
        ("nothing", vec![]),
        ("cut in the magic", ok[..4].to_vec()),
        ("cut in the length", ok[..9].to_vec()),
        ("cut in the header", ok[..30].to_vec()),
        ("another magic", edited(1, b'M')),
        ("version 4", edited(6, 4)),
        ("version 1.1", edited(7, 1)),
        ("a header that is longer than the file", edited(9, 0xff)),
        ("a header of 4 GiB", [b"\x93NUMPY\x02\x00", [0xff; 64].as_slice()].concat()),
    ] {
        expect_refusal(what, &bytes, codes::NPY_MALFORMED);
    }
}

#[test]
fn bad_headers_are_refused() {
    for (what, header) in [
        ("empty", ""),
        ("not a dictionary", "[1, 2]"),
        ("no keys", "{}"),
        ("a key is missing", "{'descr': '|u1', 'shape': (2,)}"),
        ("a key is there twice", "{'shape': (2,), 'shape': (2,)}"),
        ("an unknown key", "{'order': 'C'}"),
        ("a key that is not text", "{descr: '|u1'}"),
        ("no closing brace", "{'descr': '|u1', "),
        ("no closing quote", "{'descr"),
        ("no comma", "{'descr': '|u1' 'shape': (2,)}"),
        ("text after it", "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)} {}"),
        ("an escape", "{'de\\scr': '|u1', 'fortran_order': False, 'shape': (2,)}"),
        ("not ASCII", "{'déscr': '|u1', 'fortran_order': False, 'shape': (2,)}"),
        ("an order of 0", "{'descr': '|u1', 'fortran_order': 0, 'shape': (2,)}"),
        (
            "an order that is almost True",
            "{'descr': '|u1', 'fortran_order': Truely, 'shape': (2,)}",
        ),
        ("a dtype that is a number", "{'descr': 1, 'fortran_order': False, 'shape': (2,)}"),
    ] {
        expect_refusal(what, &array(header, &[1, 2]), codes::NPY_MALFORMED);
    }
}

#[test]
fn bad_shapes_are_refused() {
    let (bad, large) = (codes::NPY_MALFORMED, codes::TENSOR_TOO_LARGE);
    let size = codes::TENSOR_SIZE_MISMATCH;
    let many_axes = format!("({})", "1, ".repeat(MAX_RANK + 1));
    for (shape, code) in [
        ("2", bad),
        ("(2)", bad),
        ("[2]", bad),
        ("(-2,)", bad),
        ("(2.0,)", bad),
        ("(2,,)", bad),
        ("(,)", bad),
        ("(None,)", bad),
        ("(99999999999999999999,)", large),
        ("(4294967296, 4294967296)", large),
        ("(0, 9223372036854775807)", large),
        (&many_axes, large),
        ("(1099511627776,)", size),
        ("(3,)", size),
        ("(1,)", size),
        ("()", size),
        ("(0,)", size),
    ] {
        expect_refusal(shape, &described("'|u1'", "False", shape, &[1, 2]), code);
    }
}

#[test]
fn dtypes_that_tensors_do_not_have_are_refused() {
    for descr in [
        "[('a', '<f4'), ('b', '<i4')]",
        "('<f4', (2,))",
        "'|O'",
        "'<c8'",
        "'<U4'",
        "'|S4'",
        "'<M8[ns]'",
        "'<f16'",
        "'<V1'", // What all float8 types become.
        "'<V4'",
        "''",
    ] {
        let bytes = described(descr, "False", "(2,)", &[0; 8]);
        expect_refusal(descr, &bytes, codes::DTYPE_UNSUPPORTED);
    }
    let two = described("'|b1'", "False", "(2,)", &[1, 2]);
    expect_refusal("a bool that is 2", &two, codes::BOOL_INVALID);
}

#[test]
fn a_reader_must_be_as_long_as_it_was_said_to_be() {
    let bytes = described("'|u1'", "False", "(4,)", &[1, 2, 3, 4]);
    let longer = [bytes.as_slice(), b"!"].concat();
    for reader in [&bytes[..bytes.len() - 1], &longer] {
        let refusal = npy::read_from(reader, bytes.len() as u64).unwrap_err();
        assert_eq!(refusal.first_error().code, codes::NPY_MALFORMED, "{}", reader.len());
    }
}

#[test]
fn columns_first_and_big_endian_become_rows_and_little_endian() {
    let elements: Vec<u8> = [0_u16, 3, 1, 4, 2, 5].into_iter().flat_map(u16::to_be_bytes).collect();
    let tensor = read(&described("'>u2'", "True", "(2, 3)", &elements)).unwrap();
    assert_eq!(tensor, samples::iota(DType::U16, [2, 3]));
}

#[test]
fn fortran_order_does_not_matter_without_elements_or_axes() {
    for (shape, elements) in [("()", [7].as_slice()), ("(0, 3)", &[]), ("(1, 1)", &[7])] {
        let rows = read(&described("'|u1'", "False", shape, elements)).unwrap();
        let columns = read(&described("'|u1'", "True", shape, elements)).unwrap();
        assert_eq!(rows, columns, "{shape}");
    }
}

#[test]
fn what_is_written_starts_aligned_and_reads_back() {
    let many_axes = Tensor::zeros(DType::F32, vec![1; MAX_RANK].try_into().unwrap());
    for tensor in samples::every_kind().into_values().chain([many_axes]) {
        let mut bytes = Vec::new();
        npy::write_to(&mut bytes, &tensor).unwrap();
        assert_eq!((bytes.len() - tensor.bytes().len()) % 64, 0);
        assert_eq!(read(&bytes).unwrap(), tensor);
    }
}
