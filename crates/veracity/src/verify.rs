//! Everything that can be refused without running a model.

use std::path::Path;

use serde::Serialize;
use veracity_diag::{Diagnostic, Reporter, Severity};
use veracity_spec::{Backend, Bundle, BundlePath, Node};

use crate::RobotCheck;

/// What verifying a bundle found, and how much it could look at.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    /// Version of this JSON; see [`crate::results::SCHEMA_VERSION`].
    pub schema_version: &'static str,
    /// The bundle's YAML file, or the path that was given when there is none.
    pub bundle: String,
    /// Whether there is a bundle whose description could be read.
    pub opened: bool,
    /// Whether nothing has to be refused.
    pub sound: bool,
    /// Every problem, errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Files that were hashed and compared with what the bundle says.
    pub files_hashed: usize,
    /// Nodes whose model was read and compared with the declared ports.
    pub models_read: Vec<String>,
    /// Models that were not compared with the declared ports.
    pub models_unread: Vec<UnreadModel>,
    /// How the bundle stands to a robot, when it was held against one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robot: Option<RobotCheck>,
}

/// A model that was not compared with the declared ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreadModel {
    /// The node it belongs to.
    pub node: String,
    /// Why not.
    pub reason: &'static str,
}

/// Checks a bundle: its YAML, its paths, its hashes, its wiring, the ports of its ONNX models. Needs
/// no engine and runs nothing.
pub fn verify(path: &Path) -> Verification {
    let mut reporter = Reporter::new();
    let bundle = reporter.absorb(Bundle::open(path));
    let mut files_hashed = 0;
    let mut models_read = Vec::new();
    if let Some(bundle) = &bundle {
        for warning in reporter.absorb(bundle.verify()).unwrap_or_default() {
            reporter.report(warning);
        }
        let files = bundle.named_files();
        let opens = |file: &&BundlePath| {
            file.resolve(bundle.root()).is_ok_and(|path| std::fs::File::open(path).is_ok())
        };
        files_hashed = files.iter().filter(opens).count();
        models_read = veracity_runtime::check_models(bundle, &mut reporter);
    }
    let diagnostics = reporter.diagnostics().to_vec();
    Verification {
        schema_version: crate::results::SCHEMA_VERSION,
        bundle: bundle.as_ref().map_or(path, |bundle| bundle.yaml_path()).display().to_string(),
        opened: bundle.is_some(),
        sound: !diagnostics.iter().any(|found| found.severity == Severity::Error),
        diagnostics,
        files_hashed,
        models_unread: bundle.map(|bundle| unread(&bundle, &models_read)).unwrap_or_default(),
        models_read,
        robot: None,
    }
}

fn unread(bundle: &Bundle, read: &[String]) -> Vec<UnreadModel> {
    let reason = |node: &Node| match node.model.as_ref().map(|model| model.backend) {
        None => "it has no model",
        Some(Backend::Onnx) => "its model could not be read",
        Some(Backend::Jit) => "the ports of TorchScript are known only when it runs",
        Some(Backend::Pt2) => "the ports of pt2 are known only when it runs",
    };
    let nodes = bundle.spec().nodes.iter().filter(|node| !read.contains(&node.name));
    nodes.map(|node| UnreadModel { node: node.name.clone(), reason: reason(node) }).collect()
}
