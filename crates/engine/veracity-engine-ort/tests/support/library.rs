//! Finds ONNX Runtime for tests. A test that needs it fails without it: a test that skips itself
//! proves nothing.

use std::path::{Path, PathBuf};

use crate::{OrtEngine, Search};

/// ONNX Runtime from where users have it, or from the environment that `make setup` makes.
pub(crate) fn engine() -> OrtEngine {
    let mut search = Search::default();
    if std::env::var_os("VIRTUAL_ENV").is_none() {
        search.site_packages = workspace_site_packages();
    }
    OrtEngine::find(&search).unwrap_or_else(|refusal| {
        panic!("run `make setup` first: these tests need ONNX Runtime\n{refusal:#?}")
    })
}

fn workspace_site_packages() -> Vec<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.venv/lib");
    let entries = std::fs::read_dir(python).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join("site-packages")).collect()
}
