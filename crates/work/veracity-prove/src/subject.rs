//! What a proof is about and what it was made with.

use std::collections::BTreeMap;

use veracity_engine::SessionOptions;
use veracity_results::{Environment, ModelSubject, SessionRecord, Subject};
use veracity_runtime::SessionFacts;
use veracity_spec::{Bundle, BundlePath};

/// What a proof of this bundle is about. Hashes are those that the bundle records: who reads the
/// files holds them to it.
pub fn subject(bundle: &Bundle) -> Subject {
    let spec = bundle.spec();
    let models = spec.nodes.iter().filter_map(|node| {
        let model = node.model.as_ref()?;
        Some(ModelSubject {
            node: node.name.clone(),
            backend: model.backend.to_string(),
            path: model.path.to_string(),
            sha256: model.sha256.to_string(),
        })
    });
    Subject {
        bundle: bundle_name(bundle),
        description_sha256: spec.digest().to_string(),
        models: models.collect(),
        files: other_files(bundle),
    }
}

/// What a bundle is called.
pub(crate) fn bundle_name(bundle: &Bundle) -> String {
    let stem = bundle.yaml_path().file_stem();
    stem.map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Every listed file but the models and the proof itself.
fn other_files(bundle: &Bundle) -> BTreeMap<String, String> {
    let spec = bundle.spec();
    let Some(block) = &spec.veracity else { return BTreeMap::new() };
    let is_model = |path: &BundlePath| {
        spec.nodes.iter().filter_map(|node| node.model.as_ref()).any(|model| model.path == *path)
    };
    block
        .files
        .iter()
        .filter(|(path, _)| !is_model(path) && block.proof.as_ref() != Some(*path))
        .map(|(path, record)| (path.to_string(), record.sha256.to_string()))
        .collect()
}

/// What ran a node, for a proof.
pub fn session_record(facts: &SessionFacts) -> SessionRecord {
    SessionRecord {
        node: facts.nodes.clone(),
        engine: facts.engine.to_owned(),
        engine_version: facts.engine_version.clone(),
        device: facts.device.clone(),
    }
}

/// Where a proof was made.
pub fn environment(sessions: Vec<SessionRecord>, options: &SessionOptions) -> Environment {
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let threads = options.threads.get();
    Environment { sessions, threads, system, ..Environment::default() }
}
