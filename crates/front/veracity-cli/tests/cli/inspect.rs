//! `veracity inspect`.

use crate::assert_said;
use crate::bundle::write_policy;
use crate::support::Desk;

#[test]
fn a_bundle_is_shown_with_ports_wiring_and_hashes() {
    let desk = Desk::new();
    write_policy(&desk);
    assert_said!(desk.run("inspect policy"), @"
    exit code 0
    ----- stdout -----
    policy: format 1.3, 50 Hz, 2 nodes
    policy/policy.yaml

    1. scale
       scale.onnx (onnx, [size], sha256 [sha256 start])
       opset 17, 1 operator, made by veracity [version]
            name    dtype    shape   kind                  elements
       in   obs     float32  [1, 3]  state/joint/position  - x hip, knee, ankle
       out  scaled  float32  [1, 3]

    2. memory
       memory.onnx (onnx, [size], sha256 [sha256 start])
       opset 17, 2 operators, made by veracity [version]
            name    dtype    shape
       in   x       float32  [1, 3]
       in   h       float32  [1, 3]
       out  action  float32  [1, 3]
       out  h_next  float32  [1, 3]

    wiring
      when       from           to        starts from
      same step  scale/scaled   memory/x
      next step  memory/h_next  memory/h  0.5

    pipeline
           port
      in   scale/obs
      out  memory/action

    files
      file                                size  sha256
      memory.onnx [size]  [sha256 start]
      policy_initial_values.safetensors [size]  [sha256 start]
      scale.onnx [size]  [sha256 start]

    made with
      what              version
      os                [os]
      veracity version  [version]
    ");
}

#[test]
fn programs_get_all_that_the_bundle_says() {
    let desk = Desk::new();
    write_policy(&desk);
    let found = desk.run("inspect policy/policy.yaml --format json").done().json();
    for (pointer, value) in [
        ("/schema_version", serde_json::json!("1.0")),
        ("/bundle", "policy/policy.yaml".into()),
        ("/nodes/0/inputs/0/kind", "state/joint/position".into()),
        ("/feedback_flow/0/target", "memory/h".into()),
        ("/configs/frequency", 50.0.into()),
        ("/models/1/operators", 2.into()),
    ] {
        assert_eq!(found.pointer(pointer), Some(&value), "{pointer}");
    }
}

#[test]
fn what_is_no_bundle_is_refused() {
    assert_said!(Desk::new().run("inspect nowhere"), @"
    exit code 2
    ----- stderr -----
    error[VER0209]: there is no bundle here
     --> nowhere
    ");
}
