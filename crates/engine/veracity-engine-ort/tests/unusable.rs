//! Files that are not the library are refused, and do not stand in the way of the library.
//!
//! One test, for it needs a process that has loaded nothing yet.

#![cfg(target_os = "linux")]

use veracity_diag::codes;
use veracity_engine_ort::{OrtEngine, Search};

#[path = "support/library.rs"]
mod library;

#[test]
fn a_file_that_is_not_the_library_is_refused_and_the_library_is_found_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.so");
    std::fs::write(&text, "not a library").unwrap();
    let empty = folder.path().join("empty.so");
    std::fs::write(&empty, "").unwrap();
    // A shared library, but another one: the test itself is no library, its C runtime is.
    let other = loaded_c_library();
    for (path, reason) in [(&text, "text.so"), (&empty, "empty.so"), (&other, "OrtGetApiBase")] {
        let search = Search { library: Some(path.clone()), ..Search::default() };
        let refusal = OrtEngine::find(&search).unwrap_err();
        let problem = refusal.first_error();
        assert_eq!(problem.code, codes::ENGINE_UNUSABLE, "{refusal}");
        assert!(problem.message.contains(&*path.to_string_lossy()), "{refusal}");
        assert!(problem.message.contains(reason), "{refusal}");
    }
    library::engine();
}

/// The C library that this process runs on.
fn loaded_c_library() -> std::path::PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux tells what is mapped");
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let mut libraries = paths.filter(|path| path.contains("/libc.so") || path.contains("/libc-"));
    libraries.next().expect("the tests are linked to the C library").into()
}
