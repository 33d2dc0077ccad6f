//! What is in a bundle, for people and for programs.

use serde::Serialize;
use veracity_diag::{Diagnostic, Result};
use veracity_onnx::Model;
use veracity_prove::{Standing, of_bundle, standing};
use veracity_results::Verdict;
use veracity_spec::{Backend, Bundle, Spec};

/// What is in a bundle.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection<'a> {
    /// Version of this JSON; see [`crate::results::SCHEMA_VERSION`].
    pub schema_version: &'static str,
    /// The YAML file.
    pub bundle: String,
    /// Everything the YAML says.
    #[serde(flatten)]
    pub spec: &'a Spec,
    /// What the model files themselves say.
    pub models: Vec<ModelFacts>,
    /// What its proof says, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofFacts>,
}

/// What the proof of a bundle says, and whether it still is about the bundle.
#[derive(Clone, Debug, Serialize)]
pub struct ProofFacts {
    /// What it is worth, in words.
    pub standing: String,
    /// Its verdict, if it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What the verdict rests on.
    pub assumptions: Vec<Diagnostic>,
}

/// What a model file says about itself.
#[derive(Clone, Debug, Serialize)]
pub struct ModelFacts {
    /// The node it belongs to.
    pub node: String,
    /// Size of the file.
    pub file_bytes: u64,
    /// Operator set; ONNX only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opset: Option<i64>,
    /// What made it; ONNX only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub producer: Option<String>,
    /// Operators in it; ONNX only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operators: Option<usize>,
}

/// Looks into a bundle that was opened. Model files that are missing are refused.
pub fn inspect(bundle: &Bundle) -> Result<Inspection<'_>> {
    let mut models = Vec::new();
    for node in &bundle.spec().nodes {
        let Some(model) = &node.model else { continue };
        let path = model.path.resolve(bundle.root())?;
        let read = if model.backend == Backend::Onnx { Some(Model::read(&path)?) } else { None };
        models.push(ModelFacts {
            node: node.name.clone(),
            file_bytes: std::fs::metadata(&path).map_or(0, |metadata| metadata.len()),
            opset: read.as_ref().and_then(Model::opset),
            producer: read.as_ref().map(Model::producer),
            operators: read.as_ref().map(Model::op_count),
        });
    }
    Ok(Inspection {
        schema_version: crate::results::SCHEMA_VERSION,
        bundle: bundle.yaml_path().display().to_string(),
        spec: bundle.spec(),
        models,
        proof: proof_facts(bundle),
    })
}

/// A proof that cannot be read says so here; `check` and `run --require-proof` refuse it.
fn proof_facts(bundle: &Bundle) -> Option<ProofFacts> {
    let words = match standing(bundle) {
        Ok(Standing::Missing) => return None,
        Ok(Standing::Good) => "proved".to_owned(),
        Ok(Standing::Conditional(_)) => "conditional".to_owned(),
        Ok(Standing::Stale(change)) => format!("stale: {change}"),
        Ok(Standing::Negative(verdict)) => verdict.word().to_owned(),
        Ok(Standing::OnlyRepeats) => "about repeated runs, not about the Python code".to_owned(),
        Err(refusal) => format!("not readable: {refusal}"),
    };
    let proof = of_bundle(bundle).ok();
    Some(ProofFacts {
        standing: words,
        verdict: proof.as_ref().map(|proof| proof.verdict),
        assumptions: proof.map(|proof| proof.assumptions).unwrap_or_default(),
    })
}
