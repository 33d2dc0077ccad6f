//! A small sound bundle, and ways to spoil it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use veracity_diag::Diagnostic;
use veracity_spec::{
    AxisNames, Backend, Bundle, BundleWriter, Edge, FileContent, Model, Node, PortRef, PortSpec,
    Spec,
};
use veracity_tensor::{DType, Tensor};

/// Two nodes with an edge, feedback, meaning, and every block that a file may have.
pub(crate) const YAML: &str = "\
models:
  encoder:
    inputs:
    - name: image
      dtype: float32
      shape: [1, 6]
      type: tensor
      kind: state/body/pose
      element_names: [[x, 'y', z, qx, qy, qz]]
    - name: memory_in
      dtype: float32
      shape: [1, 4]
      type: tensor
    outputs:
    - name: code
      dtype: float32
      shape: [1, 4]
      type: tensor
    parameters:
      model_path: encoder.onnx
      md5sum: 0123456789abcdef0123456789abcdef
      sha256sum: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
      backend: onnx
      warp_segments: 0
      opset_version: 20
  policy:
    inputs:
    - name: code
      dtype: float32
      shape: [1, 4]
      type: tensor
    outputs:
    - name: action
      dtype: float32
      shape: [1, 2]
      type: tensor
    - name: memory
      dtype: float32
      shape: [1, 4]
      type: tensor
    parameters:
      model_path: policy.pt
      md5sum: 0123456789abcdef0123456789abcdef
      sha256sum: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
      backend: jit

pipeline:
  configs:
    frequency: 50
  data_flow:
    encoder/code: [policy/code]
  feedback_flow:
    policy/memory: [encoder/memory_in]
  initial_values: start.safetensors
  inputs:
    encoder: [image]
  outputs:
    policy: [action]

system information:
  leapp config version: '1.3'
  os: Debian GNU/Linux 12
";

/// The line and column of a `¦` in the text, and the text without it.
pub(crate) fn split_mark(text: &str) -> (String, Option<(u32, u32)>) {
    let Some(offset) = text.find('¦') else {
        return (text.to_owned(), None);
    };
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
    let position = (u32::try_from(line).unwrap(), u32::try_from(column).unwrap());
    (text.replacen('¦', "", 1), Some(position))
}

/// Text put together from numbered pieces.
pub(crate) fn pieces(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect::<Vec<_>>().concat()
}

/// One finding on one line, with its snippet and hints: as a terminal might show it.
pub(crate) fn rendered(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        writeln!(text, "{diagnostic}").unwrap();
        if let Some(snippet) = &diagnostic.place.snippet {
            let pad = " ".repeat(snippet.start as usize);
            let mark = "^".repeat(snippet.length as usize);
            writeln!(text, "  | {}\n  | {pad}{mark}", snippet.text).unwrap();
        }
        for hint in &diagnostic.hints {
            writeln!(text, "  hint: {hint}").unwrap();
        }
    }
    text
}

pub(crate) fn port(name: &str, size: usize) -> PortSpec {
    PortSpec::new(name, DType::F32, [1, size])
}

pub(crate) fn edge(source: (&str, &str), target: (&str, &str)) -> Edge {
    Edge { source: PortRef::new(source.0, source.1), target: PortRef::new(target.0, target.1) }
}

/// A spec with an edge, feedback, meaning and extra keys.
pub(crate) fn spec() -> Spec {
    let model = |file: &str, backend| Some(Model::unhashed(backend, file.parse().unwrap()));
    let mut image = port("image", 3);
    image.kind = Some("state/body/position".into());
    image.element_names = Some(vec![AxisNames::Unnamed, AxisNames::named(["x", "y", "on"])]);
    image.extra.insert("units", "m");
    Spec {
        nodes: vec![
            Node {
                name: "encoder".into(),
                inputs: vec![image, port("memory_in", 4)],
                outputs: vec![port("code", 4)],
                model: model("models/encoder.onnx", Backend::Onnx),
                parameters: [("opset_version", 20)].into_iter().collect(),
                ..Node::default()
            },
            Node {
                name: "policy".into(),
                inputs: vec![port("code", 4)],
                outputs: vec![port("action", 2), port("memory", 4)],
                model: model("policy.pt", Backend::Jit),
                ..Node::default()
            },
        ],
        data_flow: vec![edge(("encoder", "code"), ("policy", "code"))],
        feedback_flow: vec![edge(("policy", "memory"), ("encoder", "memory_in"))],
        pipeline_inputs: vec![PortRef::new("encoder", "image")],
        pipeline_outputs: vec![PortRef::new("policy", "action")],
        system: [("os", "Debian GNU/Linux 12"), ("cuda version", "13.0")].into_iter().collect(),
        ..Spec::default()
    }
}

pub(crate) fn initial_values() -> BTreeMap<PortRef, Tensor> {
    let tensor = Tensor::from_slice([1, 4], &[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    BTreeMap::from([(PortRef::new("encoder", "memory_in"), tensor)])
}

pub(crate) fn writer() -> BundleWriter {
    BundleWriter::new(spec())
        .file("models/encoder.onnx".parse().unwrap(), FileContent::Bytes(b"encoder".to_vec()))
        .file("policy.pt".parse().unwrap(), FileContent::Bytes(b"policy".to_vec()))
        .initial_values(initial_values())
}

/// A sound bundle on disk.
pub(crate) fn written(folder: &Path) -> (PathBuf, Bundle) {
    let target = folder.join("pick");
    let bundle = writer().write(&target).unwrap();
    (target, bundle)
}
