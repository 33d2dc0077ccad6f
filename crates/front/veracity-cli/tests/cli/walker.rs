//! A bundle and a robot: `action = obs * (1, 10, 100)` for hip, knee and ankle.

use std::collections::BTreeMap;

use veracity::spec::{AxisNames, Map};
use veracity::tensor::DType;
use veracity::tensor::file::safetensors;
use veracity::{BundleDraft, Extra, NodeDraft, PortDraft};
use veracity_onnx::{GraphBuilder, Node};

use crate::bundle::floats;
use crate::support::Desk;

/// What is observed in three passes, in the order of the bundle.
pub(crate) const OBSERVED: [[f32; 3]; 3] = [[0.5, -1.0, 2.0], [0.25, 3.0, -4.0], [1.5, 0.0, 8.0]];

/// The robot has the ankle first: the bundle's elements are its 1, 2, 0.
pub(crate) const ROBOT: &str = "\
rate_hz: 50
joints:
  names: [ankle, hip, knee]
  stiffness: {hip: 20, knee: 30, ankle: 40}
inputs:
  policy/obs: {kind: state/joint/position, element_names: joints, units: rad}
outputs:
  policy/action: {kind: target/joint/position, element_names: joints, units: rad}
";

/// Values in the robot's order.
pub(crate) fn of_robot(values: [f32; 3]) -> [f32; 3] {
    [values[2], values[0], values[1]]
}

/// What the bundle answers, in its own order.
pub(crate) fn action(observed: [f32; 3]) -> [f32; 3] {
    [observed[0], 10.0 * observed[1], 100.0 * observed[2]]
}

/// Writes the bundle `walker` with samples, and `robot.yaml`. Without names, the bundle says nothing
/// about its ports.
pub(crate) fn write_walker(desk: &Desk, with_names: bool) {
    let model = GraphBuilder::new("policy", 17)
        .input("obs", DType::F32, [1, 3])
        .initializer("gain", &floats([3], &[1.0, 10.0, 100.0]))
        .node(Node::new("Mul", ["obs", "gain"], ["action"]))
        .output("action", DType::F32, [1, 3])
        .metadata("joint_names", "hip,knee,ankle")
        .metadata("joint_stiffness", "20.000,30.000,40.000")
        .finish()
        .unwrap();
    model.write(desk.path("policy.onnx")).unwrap();
    let port = |name: &str, kind: &str| PortDraft {
        kind: Some(kind.into()),
        element_names: Some(vec![AxisNames::Unnamed, AxisNames::named(["hip", "knee", "ankle"])]),
        extra: Extra(Map::from_iter([("units", "rad")])),
        ..PortDraft { name: name.into(), ..PortDraft::default() }
    };
    let node = NodeDraft {
        name: "policy".into(),
        model: Some(desk.path("policy.onnx")),
        inputs: with_names.then(|| vec![port("obs", "state/joint/position")]),
        outputs: with_names.then(|| vec![port("action", "target/joint/position")]),
        ..NodeDraft::default()
    };
    let samples = Some(write_samples(desk));
    let frequency = Some(50.0);
    let draft = BundleDraft { nodes: vec![node], frequency, samples, ..BundleDraft::default() };
    draft.write(&desk.path("walker"), BTreeMap::new()).unwrap();
    std::fs::write(desk.path("robot.yaml"), ROBOT).unwrap();
}

fn write_samples(desk: &Desk) -> std::path::PathBuf {
    let tensors = [
        ("recorded/policy/in/obs", OBSERVED.concat()),
        ("recorded/policy/out/action", OBSERVED.map(action).concat()),
    ];
    let tensors = tensors.map(|(key, values)| (key.to_owned(), floats([3, 1, 3], &values))).into();
    let metadata = [("veracity.samples", "1"), ("origin", "python"), ("made_with", "torch")];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let mut bytes = Vec::new();
    safetensors::write_to(&mut bytes, &tensors, &metadata).unwrap();
    std::fs::write(desk.path("samples.safetensors"), bytes).unwrap();
    desk.path("samples.safetensors")
}

/// Writes what the robot recorded in the same passes, in its own order.
pub(crate) fn write_values(desk: &Desk, observed: [[f32; 3]; 3], order: fn([f32; 3]) -> [f32; 3]) {
    desk.tensors(
        "values.npz",
        [
            ("policy/obs", floats([3, 1, 3], &observed.map(order).concat())),
            ("policy/action", floats([3, 1, 3], &observed.map(action).map(order).concat())),
        ],
    );
}
