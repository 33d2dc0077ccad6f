//! NumPy and the Python package `safetensors` write what is read here, and read what is written.

use std::path::Path;
use std::process::Command;

use veracity_tensor::DType;
use veracity_tensor::file::{self, TensorMap};

#[path = "support/samples.rs"]
mod samples;

fn python(action: &str, folder: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let interpreter = here.join("../../../.venv/bin/python");
    let output = Command::new(&interpreter)
        .args([&here.join("tests/numpy_interop.py"), Path::new(action), folder])
        .output()
        .unwrap_or_else(|error| {
            panic!("{}: {error}; run `make setup` first", interpreter.display())
        });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_form_that_numpy_writes_is_read() {
    let folder = tempfile::tempdir().unwrap();
    python("write", folder.path());
    for name in [
        "plain.npz",
        "compressed.npz",
        "columns.npz",
        "big_endian.npz",
        "voids.npz",
        "plain.safetensors",
    ] {
        let tensors = file::read(folder.path().join(name)).unwrap();
        assert_eq!(tensors, samples::every_kind(), "{name}");
    }
    for name in ["version1", "version2", "version3"] {
        let tensors = file::read(folder.path().join(format!("{name}.npy"))).unwrap();
        let expected = samples::iota(DType::F32, [2, 3]);
        assert_eq!(tensors, TensorMap::from([(name.to_owned(), expected)]));
    }
}

#[test]
fn numpy_reads_everything_that_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["rust.npz", "rust.safetensors"] {
        file::write(folder.path().join(name), &samples::every_kind()).unwrap();
    }
    let one = TensorMap::from([("rust".to_owned(), samples::iota(DType::F32, [2, 3]))]);
    file::write(folder.path().join("rust.npy"), &one).unwrap();
    python("check", folder.path());
}
