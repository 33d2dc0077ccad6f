//! The library is found, and whatever is not the library is refused.

use std::path::PathBuf;

use veracity_diag::codes;
use veracity_engine::{Engine, ModelFormat};
use veracity_engine_ort::{OrtEngine, Search};

#[path = "support/library.rs"]
mod library;

fn find_at(path: impl Into<PathBuf>) -> veracity_diag::Result<OrtEngine> {
    OrtEngine::find(&Search { library: Some(path.into()), ..Search::default() })
}

#[test]
fn the_engine_says_what_it_is() {
    let engine = library::engine();
    assert_eq!(engine.name(), "ort");
    assert!(engine.version().starts_with("1."), "{}", engine.version());
    assert!(engine.library().is_file());
    assert!(engine.providers().iter().any(|provider| provider == "CPUExecutionProvider"));
    assert!(engine.supports(ModelFormat::Onnx));
    assert!(!engine.supports(ModelFormat::TorchScript));
}

#[test]
fn the_same_library_is_found_again_by_any_way() {
    let engine = library::engine();
    let file = engine.library();
    let folder = file.parent().unwrap();
    let roundabout = folder.join("..").join(folder.file_name().unwrap());
    for path in [file, folder, &roundabout] {
        assert_eq!(find_at(path).unwrap().library(), file);
    }
}

#[test]
fn another_library_does_not_go_by_the_name_of_the_first() {
    let first = library::engine();
    let folder = tempfile::tempdir().unwrap();
    let second = folder.path().join(first.library().file_name().unwrap());
    std::fs::write(&second, "").unwrap();
    let refusal = find_at(&second).unwrap_err();
    assert_eq!(refusal.first_error().code, codes::ENGINE_UNUSABLE);
    for path in [&*second, first.library()] {
        assert!(refusal.to_string().contains(&*path.to_string_lossy()), "{refusal}");
    }
}

#[test]
fn a_place_without_a_library_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = find_at(folder.path()).unwrap_err();
    assert_eq!(refusal.first_error().code, codes::ENGINE_UNUSABLE);
    assert!(refusal.first_error().hints[0].contains(&*folder.path().to_string_lossy()));
}
