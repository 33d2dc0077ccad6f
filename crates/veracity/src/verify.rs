//! Everything that can be refused without running a model.

use std::path::Path;

use serde::Serialize;
use veracity_diag::{Diagnostic, Reporter, Severity};
use veracity_spec::{Backend, Bundle};

/// What verifying a bundle found, and how much it could look at.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    /// Version of this JSON; see [`crate::results::SCHEMA_VERSION`].
    pub schema_version: &'static str,
    /// The bundle's YAML file, or the path that was given when there is none.
    pub bundle: String,
    /// Whether nothing has to be refused.
    pub sound: bool,
    /// Every problem, errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Files whose hash was compared with the recorded one.
    pub files_hashed: usize,
    /// Nodes whose model was read and compared with the declared ports.
    pub models_read: Vec<String>,
    /// Nodes whose model only its engine can read: its ports are compared when it runs.
    pub models_unread: Vec<String>,
}

/// Checks a bundle: its YAML, its paths, its hashes, its wiring, the ports of its ONNX models. Needs
/// no engine and runs nothing.
pub fn verify(path: &Path) -> Verification {
    let mut reporter = Reporter::new();
    let bundle = reporter.absorb(Bundle::open(path));
    let mut files_hashed = 0;
    if let Some(bundle) = &bundle {
        for warning in reporter.absorb(bundle.verify()).unwrap_or_default() {
            reporter.report(warning);
        }
        files_hashed = bundle.named_files().len();
        veracity_runtime::check_models(bundle, &mut reporter);
    }
    let by_backend = |readable: bool| -> Vec<String> {
        let nodes = bundle.iter().flat_map(|bundle| &bundle.spec().nodes);
        nodes
            .filter(|node| {
                let backend = node.model.as_ref().map(|model| model.backend);
                backend.is_some_and(|backend| (backend == Backend::Onnx) == readable)
            })
            .map(|node| node.name.clone())
            .collect()
    };
    let diagnostics = reporter.diagnostics().to_vec();
    Verification {
        schema_version: crate::results::SCHEMA_VERSION,
        bundle: bundle.as_ref().map_or(path, |bundle| bundle.yaml_path()).display().to_string(),
        sound: !diagnostics.iter().any(|found| found.severity == Severity::Error),
        diagnostics,
        files_hashed,
        models_read: by_backend(true),
        models_unread: by_backend(false),
    }
}
