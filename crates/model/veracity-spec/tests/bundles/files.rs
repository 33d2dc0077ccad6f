//! Finding bundles on disk, comparing their files with their hashes, and writing them.

use std::fs;
use std::path::Path;

use crate::common::{initial_values, rendered, spec, writer, written};
use veracity_diag::{Code, Diagnostic, Result, codes};
use veracity_spec::{Bundle, BundleWriter, FileContent, PortRef, VeracityBlock};
use veracity_tensor::{DType, Shape, Tensor, file};

fn findings<T>(result: Result<Vec<Diagnostic>>, map: impl Fn(&Diagnostic) -> T) -> Vec<T> {
    let found = result.unwrap_or_else(veracity_diag::Refusal::into_diagnostics);
    found.iter().map(map).collect()
}

fn codes_of(result: Result<Vec<Diagnostic>>) -> Vec<Code> {
    findings(result, |finding| finding.code)
}

#[test]
fn a_written_bundle_is_read_back_equal_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (target, bundle) = written(folder.path());
    assert_eq!(rendered(&bundle.verify().unwrap()), "");
    assert_eq!(bundle.yaml_path(), fs::canonicalize(&target).unwrap().join("pick.yaml"));
    let mut expected = spec();
    expected.initial_values = Some("pick_initial_values.safetensors".parse().unwrap());
    for (node, read) in expected.nodes.iter_mut().zip(&bundle.spec().nodes) {
        node.model.clone_from(&read.model);
    }
    expected.veracity.clone_from(&bundle.spec().veracity);
    assert_eq!(*bundle.spec(), expected);
    let listed: Vec<_> = bundle.spec().veracity.as_ref().unwrap().files.keys().collect();
    assert_eq!(listed.len(), 3);
    assert_eq!(bundle.initial_values().unwrap().values, initial_values());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_bundle_can_be_copied_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (target, bundle) = written(folder.path());
    let proof = "proof.json".parse().unwrap();
    let mut writer = BundleWriter::from_bundle(&bundle).unwrap();
    writer = writer.file(proof, FileContent::Bytes(b"{}".to_vec()));
    let replaced = writer.write(&target).unwrap();
    assert_eq!(replaced.spec().nodes, bundle.spec().nodes);
    assert_eq!(replaced.spec().veracity.as_ref().unwrap().files.len(), 4);
    assert_eq!(rendered(&replaced.verify().unwrap()), "");
}

#[test]
fn the_same_bundle_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let yaml = |bundle: &Bundle| fs::read(bundle.yaml_path()).unwrap();
    let first = yaml(&writer().write(folder.path().join("a/pick")).unwrap());
    let second = yaml(&writer().write(folder.path().join("b/pick")).unwrap());
    assert_eq!(first, second);
}

#[test]
fn what_cannot_be_read_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let (target, old) = written(folder.path());
    let mut unfed = spec();
    unfed.pipeline_inputs.clear();
    let mut no_such_sample = spec();
    no_such_sample.veracity =
        Some(VeracityBlock { samples: Some("s.npz".parse().unwrap()), ..VeracityBlock::default() });
    let wrong = Tensor::zeros(DType::I8, Shape::from([4]));
    let value = [(PortRef::new("encoder", "memory_in"), wrong)].into_iter().collect();
    let models = |writer: BundleWriter| {
        writer
            .file("models/encoder.onnx".parse().unwrap(), FileContent::Bytes(vec![1]))
            .file("policy.pt".parse().unwrap(), FileContent::Bytes(vec![2]))
    };
    for (name, writer, code) in [
        ("inconsistent", models(BundleWriter::new(unfed)), codes::INPUT_UNFED),
        ("no model", BundleWriter::new(spec()), codes::FILE_NOT_FOUND),
        ("no samples", models(BundleWriter::new(no_such_sample)), codes::FILE_NOT_FOUND),
        (
            "bad value",
            models(BundleWriter::new(spec())).initial_values(value),
            codes::INITIAL_VALUE_MISMATCH,
        ),
        (
            "no source",
            models(BundleWriter::new(spec()))
                .file("x".parse().unwrap(), FileContent::File("/nowhere".into())),
            codes::FILE_UNREADABLE,
        ),
    ] {
        let refusal = writer.write(&target).unwrap_err();
        let finding = refusal.first_error();
        assert_eq!(finding.code, code, "{name}: {refusal}");
        let file = finding.place.file.as_deref().unwrap_or("pick.yaml");
        assert!(!file.contains("veracity-tmp"), "{name} points into a folder that is gone: {file}");
    }
    let kept = Bundle::open(&target).unwrap();
    assert_eq!(kept.spec(), old.spec());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

type Damage = fn(&Path);

/// What happens to the folder of a bundle, and what `verify_files` says to it.
const DAMAGE: &[(&str, Damage, &[Code])] = &[
    (
        "changed model",
        |root| fs::write(root.join("policy.pt"), "POLICY").unwrap(),
        &[codes::HASH_MISMATCH],
    ),
    (
        "longer model",
        |root| fs::write(root.join("policy.pt"), "policy!").unwrap(),
        &[codes::HASH_MISMATCH],
    ),
    ("no model", |root| fs::remove_file(root.join("policy.pt")).unwrap(), &[codes::FILE_NOT_FOUND]),
    (
        "folder for a model",
        |root| {
            fs::remove_file(root.join("policy.pt")).unwrap();
            fs::create_dir(root.join("policy.pt")).unwrap();
        },
        &[codes::PATH_NOT_A_FILE],
    ),
    (
        "link out of the bundle",
        |root| {
            fs::rename(root.join("policy.pt"), root.parent().unwrap().join("policy.pt")).unwrap();
            std::os::unix::fs::symlink("../policy.pt", root.join("policy.pt")).unwrap();
        },
        &[codes::PATH_SYMLINK_LEAVES_BUNDLE],
    ),
    (
        "changed initial values",
        |root| {
            let path = root.join("pick_initial_values.safetensors");
            let mut bytes = fs::read(&path).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(path, bytes).unwrap();
        },
        &[codes::HASH_MISMATCH],
    ),
    (
        "file dropped from the list",
        |root| {
            edit(root, |yaml| {
                yaml.split_inclusive('\n').filter(|line| !line.contains("policy.pt: {")).collect()
            });
        },
        &[codes::HASH_MISSING],
    ),
    (
        "wrong MD5 only",
        |root| {
            edit(root, |yaml| {
                yaml.replacen("md5sum: ", "md5sum: 00112233445566778899aabbccddeeff # ", 1)
            });
        },
        &[codes::HASH_MISMATCH],
    ),
    (
        "two problems at once",
        |root| {
            fs::write(root.join("policy.pt"), "POLICY").unwrap();
            fs::remove_file(root.join("models/encoder.onnx")).unwrap();
        },
        &[codes::FILE_NOT_FOUND, codes::HASH_MISMATCH],
    ),
];

#[test]
fn damage_to_files_is_found() {
    for (name, damage, expected) in DAMAGE {
        let folder = tempfile::tempdir().unwrap();
        let (target, _) = written(folder.path());
        damage(&target);
        let bundle = Bundle::open(&target).unwrap();
        assert_eq!(codes_of(bundle.verify_files()), *expected, "{name}");
        assert!(bundle.verify().is_err(), "{name}");
        let lines = findings(bundle.verify_files(), |finding| finding.place.line);
        assert!(
            lines.iter().all(Option::is_some),
            "{name}: every finding is in a line of the YAML"
        );
    }
}

fn edit(root: &Path, change: impl Fn(&str) -> String) {
    let path = root.join("pick.yaml");
    let yaml = fs::read_to_string(&path).unwrap();
    let changed = change(&yaml);
    assert_ne!(yaml, changed);
    fs::write(path, changed).unwrap();
}

#[test]
fn without_a_list_only_models_are_hashed() {
    let folder = tempfile::tempdir().unwrap();
    let (target, _) = written(folder.path());
    edit(&target, |yaml| yaml.split("\nveracity:").next().unwrap().to_owned());
    let bundle = Bundle::open(&target).unwrap();
    assert_eq!(codes_of(bundle.verify_files()), [codes::HASH_MISSING]);
    assert!(bundle.verify().is_ok(), "that alone is a warning");
    fs::write(target.join("policy.pt"), "POLICY").unwrap();
    assert!(bundle.verify_files().is_err());
}

#[test]
fn initial_values_must_fit_their_inputs() {
    let value = |dims: Vec<usize>| Tensor::zeros(DType::F32, Shape::new(dims).unwrap());
    for (name, tensors, expected) in [
        ("not a port", vec![("a/b/c", value(vec![1]))], codes::INITIAL_VALUE_UNKNOWN),
        ("unknown node", vec![("nobody/x", value(vec![1]))], codes::INITIAL_VALUE_UNKNOWN),
        ("an output", vec![("policy/memory", value(vec![1, 4]))], codes::INITIAL_VALUE_UNKNOWN),
        ("wrong shape", vec![("encoder/memory_in", value(vec![4]))], codes::INITIAL_VALUE_MISMATCH),
        (
            "wrong dtype",
            vec![("encoder/memory_in", Tensor::zeros(DType::F64, Shape::from([1, 4])))],
            codes::INITIAL_VALUE_MISMATCH,
        ),
        ("none", vec![], codes::INITIAL_VALUE_MISSING),
        (
            "no feedback",
            vec![("encoder/image", value(vec![1, 3])), ("encoder/memory_in", value(vec![1, 4]))],
            codes::INITIAL_VALUE_UNKNOWN,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (target, bundle) = written(folder.path());
        let tensors = tensors.into_iter().map(|(name, tensor)| (name.to_owned(), tensor)).collect();
        file::safetensors::write(target.join("pick_initial_values.safetensors"), &tensors).unwrap();
        let result = bundle.initial_values();
        let fatal = !matches!(name, "none" | "no feedback");
        assert_eq!(result.is_err(), fatal, "{name}");
        let found = codes_of(result.map(|values| values.warnings));
        assert!(found.contains(&expected), "{name}: {found:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (target, bundle) = written(folder.path());
    fs::write(target.join("pick_initial_values.safetensors"), "junk").unwrap();
    let refusal = bundle.initial_values().unwrap_err();
    assert_eq!(refusal.first_error().code, codes::SAFETENSORS_MALFORMED);
}

#[test]
fn a_node_without_model_is_a_warning_until_it_must_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut described = spec();
    described.nodes[1].model = None;
    let bundle = BundleWriter::new(described)
        .file("models/encoder.onnx".parse().unwrap(), FileContent::Bytes(vec![1]))
        .initial_values(initial_values())
        .write(folder.path().join("pick"))
        .unwrap();
    assert_eq!(codes_of(bundle.verify()), [codes::MODEL_ABSENT]);
    assert_eq!(bundle.require_models().unwrap_err().first_error().code, codes::MODEL_ABSENT);
}

#[test]
fn a_bundle_is_found_by_file_or_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (target, _) = written(folder.path());
    let yaml = target.join("pick.yaml");
    assert!(Bundle::open(&target).is_ok() && Bundle::open(&yaml).is_ok());
    fs::write(target.join("other.yaml"), "models: {}").unwrap();
    assert!(Bundle::open(&target).is_ok(), "the file named like the folder is preferred");
    fs::rename(&yaml, target.join("robot.yml")).unwrap();
    let code = |path: &Path| Bundle::open(path).unwrap_err().first_error().code;
    assert_eq!(code(&target), codes::BUNDLE_AMBIGUOUS);
    fs::write(target.join("other.yaml"), "settings: {}").unwrap();
    assert!(Bundle::open(&target).is_ok(), "only one of the two describes a pipeline");
    fs::remove_file(target.join("robot.yml")).unwrap();
    fs::write(target.join("third.yaml"), "- x").unwrap();
    assert_eq!(code(&target), codes::BUNDLE_NOT_FOUND);
    assert_eq!(code(&target.join("policy.pt")), codes::BUNDLE_NOT_FOUND);
    assert_eq!(code(&folder.path().join("nothing")), codes::BUNDLE_NOT_FOUND);
}

#[test]
fn progress_counts_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (_, bundle) = written(folder.path());
    let mut heard = 0;
    bundle.verify_files_with(&mut |count| heard += count).unwrap();
    assert_eq!(heard, bundle.bytes_to_verify());
    assert!(heard > 0);
}
