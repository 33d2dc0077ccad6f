//! Files on disk, of every kind.

use std::fs;

use veracity_diag::codes;
use veracity_tensor::DType;
use veracity_tensor::file::{self, TensorMap, npy, safetensors};

#[path = "support/samples.rs"]
mod samples;

#[test]
fn every_tensor_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["all.npz", "all.safetensors", "all.NPZ"] {
        let path = folder.path().join(name);
        file::write(&path, &samples::every_kind()).unwrap();
        assert_eq!(file::read(&path).unwrap(), samples::every_kind(), "{name}");
    }
    for (name, tensor) in samples::every_kind() {
        let path = folder.path().join("one.npy");
        file::write(&path, &TensorMap::from([(name.clone(), tensor.clone())])).unwrap();
        assert_eq!(file::read(&path).unwrap(), TensorMap::from([("one".into(), tensor)]), "{name}");
    }
}

#[test]
fn the_same_tensors_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let notes: safetensors::Metadata =
        ["d", "a", "c", "b"].map(|key| (key.to_owned(), String::new())).into();
    let bytes = |index: usize| {
        let (npz, notebook) =
            (folder.path().join(format!("{index}.npz")), folder.path().join("a.safetensors"));
        file::write(&npz, &samples::every_kind()).unwrap();
        safetensors::write_with_metadata(&notebook, &samples::every_kind(), &notes).unwrap();
        (fs::read(npz).unwrap(), fs::read(notebook).unwrap())
    };
    assert!(bytes(1) == bytes(2));
}

#[test]
fn what_a_file_says_about_itself_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let tensors = TensorMap::from([("x".into(), samples::iota(DType::F16, [3]))]);
    let notes = safetensors::Metadata::from([("format".into(), "pt".into())]);
    safetensors::write_with_metadata(&path, &tensors, &notes).unwrap();
    assert_eq!(safetensors::read_with_metadata(&path).unwrap(), (tensors, notes));
}

#[test]
fn a_refusal_names_the_file_and_the_tensor() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.npz");
    let unknown = folder.path().join("tensors.csv");
    let directory = folder.path().join("folder.npy");
    let broken = folder.path().join("broken.safetensors");
    fs::create_dir(&directory).unwrap();
    let header = r#"{"a": {"dtype": "F8_E5M2", "shape": [1], "data_offsets": [0, 1]}}"#;
    let header_len = (header.len() as u64).to_le_bytes();
    fs::write(&broken, [header_len.as_slice(), header.as_bytes(), &[0]].concat()).unwrap();
    for (path, code, port) in [
        (&missing, codes::FILE_NOT_FOUND, None),
        (&unknown, codes::TENSOR_FILE_KIND, None),
        (&directory, codes::PATH_NOT_A_FILE, None),
        (&broken, codes::DTYPE_UNSUPPORTED, Some("a")),
    ] {
        let refusal = file::read(path).unwrap_err();
        let found = refusal.first_error();
        assert_eq!(found.code, code, "{refusal}");
        assert_eq!(found.place.file.as_deref(), path.to_str());
        assert_eq!(found.place.port.as_deref(), port, "{refusal}");
    }
}

#[test]
fn a_sparse_terabyte_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.npy", "a.safetensors"] {
        let path = folder.path().join(name);
        let file = fs::File::create(&path).unwrap();
        if file.set_len(1 << 40).is_err() {
            continue; // This file system has no sparse files.
        }
        let refusal = file::read(&path).unwrap_err();
        assert_eq!(refusal.first_error().code, codes::FILE_TOO_LARGE);
    }
}

#[test]
fn an_npy_file_takes_one_tensor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    for tensors in [TensorMap::new(), samples::every_kind()] {
        let refusal = file::write(&path, &tensors).unwrap_err();
        assert_eq!(refusal.first_error().code, codes::TENSOR_FILE_KIND);
        assert!(!path.exists());
    }
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let good = TensorMap::from([("x".into(), samples::iota(DType::F32, [2]))]);
    file::write(&path, &good).unwrap();
    let bad = TensorMap::from([("__metadata__".into(), samples::iota(DType::F32, [2]))]);
    let refusal = file::write(&path, &bad).unwrap_err();
    assert_eq!(refusal.first_error().place.file.as_deref(), path.to_str());
    assert_eq!(file::read(&path).unwrap(), good);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let nowhere = folder.path().join("nowhere").join("a.npz");
    let refusal = file::write(&nowhere, &good).unwrap_err();
    assert_eq!(refusal.first_error().code, codes::FILE_UNWRITABLE);
}

#[cfg(unix)]
#[test]
fn a_written_file_has_the_rights_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (ours, plain) = (folder.path().join("a.npy"), folder.path().join("plain"));
    npy::write(&ours, &samples::iota(DType::U8, [1])).unwrap();
    fs::write(&plain, "").unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&ours), mode(&plain));
}
