//! ONNX Runtime, for tests.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use veracity_engine_ort::{OrtEngine, Search};

/// ONNX Runtime from the Python environment that `make setup` creates.
pub(crate) fn ort() -> &'static OrtEngine {
    static ENGINE: OnceLock<OrtEngine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.venv/lib");
        let pythons = std::fs::read_dir(lib).into_iter().flatten().flatten();
        let site_packages: Vec<PathBuf> =
            pythons.map(|python| python.path().join("site-packages")).collect();
        let search = Search { library: None, site_packages };
        OrtEngine::find(&search).expect("no ONNX Runtime: run `make setup` first")
    })
}
