//! Files as LEAPP writes them are read for what they say.

use veracity_diag::codes;
use veracity_spec::{
    AxisNames, Backend, Description, Direction, FormatVersion, PortRef, Spec, Value,
};
use veracity_tensor::DType;

fn read(yaml: &str) -> Spec {
    let description = Description::from_yaml("leapp.yaml", yaml.as_bytes().to_vec());
    let description = description
        .unwrap_or_else(|refusal| panic!("{}", crate::common::rendered(refusal.diagnostics())));
    assert_eq!(crate::common::rendered(&description.warnings), "");
    description.spec
}

/// Three nodes of three backends, in the layout of LEAPP 0.7.2.
const THREE_NODES: &str = "\
models:
  obs:
    inputs:
    - name: state_pos
      dtype: float32
      shape: [1, 6]
      type: tensor
    - name: flag
      dtype: bool
      shape: []
      type: tensor
    outputs:
    - name: obs
      dtype: float32
      shape: &id001 [1, 18]
      type: tensor
    parameters:
      model_path: obs.pt
      md5sum: ca658fad0c786e4cad713aeea2f3969a
      sha256sum: df02b3791972d0ea43e763ce5d834d68fe1b328dadf21624b7ddb84f3282ac88
      backend: jit
      warp_segments: 0
  policy:
    inputs:
    - name: obs
      dtype: float32
      shape: *id001
      type: tensor
    outputs:
    - name: action
      dtype: float32
      shape: '[1, 6]'
      type: tensor
      kind: target/joint/position
      element_names: [null, [a, b, c, d, e, f]]
      units: rad
    - name: kp
      dtype: float32
      shape: [6]
      type: tensor
    parameters:
      model_path: policy.onnx
      md5sum: 1b2ca1e35547f843f1937103801204f3
      sha256sum: d9cc66100809696c1a35bf9b13b72d29c606f04a7989505dad7e3419ed59316c
      backend: onnx
      warp_segments: 0
      opset_version: 20
  post:
    inputs:
    - name: action
      dtype: float32
      shape: [1, 6]
      type: tensor
    outputs:
    - name: target
      dtype: float32
      shape: [4, 3]
      type: tensor
      element_names: [__temporal_axis__, [a, b, c]]
      temporal_period_ms: 100
    parameters:
      model_path: post.pt2
      md5sum: 19595e5946ea6f21ea95790ec4c0c315
      sha256sum: fe3377b57e6c4271f7e9990160c40b0bc0457746f3940bc3eeb61eb0e31d5a75
      backend: pt2
      warp_segments: 0
      torch_version: 2.11.0+cu130

pipeline:
  configs:
    frequency: 50
    runtime: isaac_lab
  data_flow:
    obs/obs: [policy/obs]
    policy/action: [post/action]
  feedback_flow: {}
  inputs:
    obs: [state_pos, flag]
  outputs:
    policy: [kp]
    post: [target]

system information:
  cuda version: '13.0'
  leapp config version: '1.3'
  leapp version: 0.7.2
  os: Debian GNU/Linux 12
  python version: 3.11.7
  torch version: 2.11.0+cu130
  warp version: null

";

#[test]
fn everything_in_a_file_is_understood() {
    let spec = read(THREE_NODES);
    assert_eq!(spec.version, FormatVersion { major: 1, minor: 3 });
    let names: Vec<_> = spec.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["obs", "policy", "post"]);
    let backends: Vec<_> =
        spec.nodes.iter().map(|node| node.model.as_ref().unwrap().backend).collect();
    assert_eq!(backends, [Backend::Jit, Backend::Onnx, Backend::Pt2]);
    let port = |name: &str, direction| spec.port(&name.parse().unwrap(), direction).unwrap();
    assert_eq!(port("obs/flag", Direction::Input).dtype, DType::Bool);
    assert_eq!(port("obs/flag", Direction::Input).shape.rank(), 0);
    assert_eq!(port("policy/obs", Direction::Input).shape.dims(), [1, 18]);
    let action = port("policy/action", Direction::Output);
    assert_eq!(action.shape.dims(), [1, 6], "a shape written as text is read");
    assert_eq!(action.kind.as_deref(), Some("target/joint/position"));
    assert_eq!(action.extra.get("units"), Some(&Value::from("rad")));
    let target = port("post/target", Direction::Output);
    assert_eq!(target.element_names.as_ref().unwrap()[0], AxisNames::Temporal);
    assert_eq!(target.temporal_period_ms, Some(100.0));
    assert_eq!(spec.configs.frequency, Some(50.0));
    assert_eq!(spec.configs.extra.get("runtime"), Some(&Value::from("isaac_lab")));
    assert_eq!(
        spec.pipeline_inputs,
        [PortRef::new("obs", "state_pos"), PortRef::new("obs", "flag")]
    );
    assert_eq!(spec.system.get("leapp version"), Some(&Value::from("0.7.2")));
    assert_eq!(spec.system.get("warp version"), Some(&Value::Null));
    assert_eq!(spec.nodes[1].parameters.get("opset_version"), Some(&Value::from(20)));
    assert!(spec.veracity.is_none());
}

#[test]
fn writing_what_was_read_gives_the_same_file() {
    // Aliases and text shapes are LEAPP's to write; the rest comes back byte by byte, in quotes
    // where YAML readers disagree about plain text.
    let plain = THREE_NODES
        .replace("&id001 ", "")
        .replace("*id001", "[1, 18]")
        .replace("'[1, 6]'", "[1, 6]");
    assert_eq!(read(THREE_NODES).to_yaml(), plain.trim_end().to_owned() + "\n");
}

#[test]
fn older_versions_are_read() {
    for version in ["'1.1'", "'1.2'", "1.2", "1.3"] {
        read(&THREE_NODES.replace("'1.3'", version));
    }
}

#[test]
fn a_described_node_needs_no_model_until_it_runs() {
    let yaml = THREE_NODES
        .replace("model_path: policy.onnx", "model_path: null")
        .replace("md5sum: 1b2ca1e35547f843f1937103801204f3", "md5sum: null")
        .replace(
            "sha256sum: d9cc66100809696c1a35bf9b13b72d29c606f04a7989505dad7e3419ed59316c",
            "sha256sum: null",
        )
        .replace("backend: onnx", "backend: null");
    let spec = read(&yaml);
    let without: Vec<_> = spec.nodes_without_model().map(|node| node.name.as_str()).collect();
    assert_eq!(without, ["policy"]);
}

#[test]
fn flows_may_be_left_out_and_names_may_repeat_across_sides() {
    let yaml = "\
models:
  n:
    inputs: [{name: h, dtype: int64, shape: [2]}]
    outputs: [{name: h, dtype: int64, shape: [2]}]
    parameters: {model_path: n.pt, md5sum: ca658fad0c786e4cad713aeea2f3969a, sha256sum: df02b3791972d0ea43e763ce5d834d68fe1b328dadf21624b7ddb84f3282ac88, backend: jit}
pipeline: {inputs: {n: [h]}, outputs: {n: [h]}}
system information: {leapp config version: '1.1'}
";
    assert!(read(yaml).data_flow.is_empty());
}

#[test]
fn places_lead_back_into_the_file() {
    let description = Description::from_yaml("f.yaml", THREE_NODES.as_bytes().to_vec()).unwrap();
    let places = &description.places;
    let obs: PortRef = "policy/obs".parse().unwrap();
    for (place, marked) in [
        (places.node("policy"), "\n  ¦policy:\n"),
        (places.model("policy"), "model_path: ¦policy.onnx"),
        (places.port(&obs, Direction::Input), "- name: ¦obs\n      dtype: float32\n      shape: *"),
        (places.edge_into(&obs), "[¦policy/obs]"),
    ] {
        let text = THREE_NODES.replacen(&marked.replace('¦', ""), marked, 1);
        let (_, position) = crate::common::split_mark(&text);
        assert_eq!(place.line.zip(place.column), position, "{marked}");
    }
    let place = places.port(&obs, Direction::Input);
    assert_eq!(place.to_string(), "f.yaml:25:13 (policy/obs)");
    assert_eq!(places.node("nobody").to_string(), "f.yaml (nobody)");
}

#[test]
fn an_alias_is_blamed_where_it_stands() {
    let yaml = THREE_NODES.replace("&id001 [1, 18]", "&id001 [1, 1000000000]");
    let refusal = Description::from_yaml("f.yaml", yaml.into_bytes()).unwrap_err();
    let texts: Vec<_> = refusal
        .diagnostics()
        .iter()
        .filter(|finding| finding.code == codes::SHAPE_TOO_LARGE)
        .map(|finding| finding.place.snippet.as_ref().unwrap().text.trim())
        .collect();
    assert_eq!(texts, ["shape: &id001 [1, 1000000000]", "shape: *id001"]);
}
