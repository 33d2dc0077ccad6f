//! What is in a bundle, for people and for programs.

use serde::Serialize;
use veracity_diag::Result;
use veracity_onnx::Model;
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
    })
}
