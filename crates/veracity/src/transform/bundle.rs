//! Changes the ONNX nodes of a bundle, and proves the bundle that comes out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_prove::{CheckOptions, Kind, Samples, check, to_json};
use veracity_results::Proof;
use veracity_spec::{Backend, Bundle, BundlePath, BundleWriter, FileContent, Node};
use veracity_tensor::Tensor;

use super::{Change, TransformOptions, transform_file};
use crate::Engines;

/// Recorded samples of a node that its rewrites are checked on.
const MOST_SAMPLES: usize = 3;

/// A bundle that was changed.
#[derive(Debug)]
pub struct BundleChange {
    /// The description of the new bundle.
    pub path: PathBuf,
    /// Its nodes, in the order of the bundle.
    pub nodes: Vec<NodeChange>,
    /// What is proved about the new bundle: its nodes alone, and all of it over time.
    pub proof: Proof,
}

/// What became of a node.
#[derive(Debug)]
pub struct NodeChange {
    /// Its name.
    pub node: String,
    /// What was done to its model; `None` for a node without ONNX model.
    pub change: Option<Change>,
}

/// Changes every ONNX model of a bundle and writes a new bundle, which is proved before it takes
/// its place. Rewrites are checked on the recorded samples as well. The old bundle stays as it is.
pub fn transform_bundle(
    bundle: &Bundle,
    target: &Path,
    options: &TransformOptions,
    prove: &CheckOptions,
    engines: &Engines,
) -> Result<BundleChange> {
    refuse_itself(bundle, target)?;
    bundle.verify()?;
    let samples = Samples::read(bundle)?;
    let mut writer = BundleWriter::from_bundle(bundle)?.without_proof();
    let mut nodes = Vec::new();
    for node in &bundle.spec().nodes {
        let change = match onnx_model(bundle, node)? {
            None => None,
            Some((path, file)) => {
                let options = with_samples(options, node, &samples);
                let change = transform_file(&file, &options, engines)?;
                let bytes = FileContent::Bytes(change.model()?.to_bytes()?);
                writer = writer.file(path, bytes);
                Some(change)
            }
        };
        nodes.push(NodeChange { node: node.name.clone(), change });
    }
    let mut proved = None;
    let path = writer.write_proved(target, &mut |bundle| {
        let proof = check(bundle, engines, prove)?;
        let json = to_json(&proof)?;
        proved = Some(proof);
        Ok(json)
    })?;
    let proof = proved.ok_or_else(|| {
        Diagnostic::error(codes::PROOF_MISSING, "the new bundle was written without a proof")
    })?;
    Ok(BundleChange { path, nodes, proof })
}

/// The old bundle must stay, so that one can go back and compare.
fn refuse_itself(bundle: &Bundle, target: &Path) -> Result<()> {
    let real = |path: &Path| path.canonicalize().ok();
    if real(bundle.root()).is_some_and(|root| real(target) == Some(root)) {
        let message = "the new bundle would replace the one that it is made of";
        return Err(Diagnostic::error(codes::OPTION_INVALID, message)
            .at(Place::file(target.display().to_string()))
            .hint("choose another folder")
            .into());
    }
    Ok(())
}

fn onnx_model(bundle: &Bundle, node: &Node) -> Result<Option<(BundlePath, PathBuf)>> {
    match &node.model {
        Some(model) if model.backend == Backend::Onnx => {
            Ok(Some((model.path.clone(), model.path.resolve(bundle.root())?)))
        }
        _ => Ok(None),
    }
}

/// The options, with recorded inputs of a node for its model to be checked on.
fn with_samples(options: &TransformOptions, node: &Node, samples: &Samples) -> TransformOptions {
    let mut options = options.clone();
    for kind in [Kind::Recorded, Kind::Fresh] {
        for sample in 0..samples.count(&node.name, kind).min(MOST_SAMPLES) {
            let input = |(index, port): (usize, &veracity_spec::PortSpec)| {
                let value = samples.input(node, kind, index, sample)?;
                Some((port.name.clone(), value.to_tensor()))
            };
            let values: Option<BTreeMap<String, Tensor>> =
                node.inputs.iter().enumerate().map(input).collect();
            options.check.inputs.recorded.extend(values);
        }
    }
    options
}
