//! A small bundle: two ONNX nodes, one with memory.

use std::collections::BTreeMap;

use veracity::spec::AxisNames;
use veracity::tensor::{DType, Tensor};
use veracity::{BundleDraft, NodeDraft, PortDraft};
use veracity_onnx::{GraphBuilder, Node};

use crate::support::Desk;

/// Writes the bundle `policy`: on each step `h = h + 2 * obs` and `action = -h`, with `h` 0.5 at
/// the start.
pub(crate) fn write_policy(desk: &Desk) {
    let row = |name: &str| PortDraft { name: name.into(), ..PortDraft::default() };
    let observed = PortDraft {
        kind: Some("state/joint/position".into()),
        element_names: Some(vec![AxisNames::Unnamed, AxisNames::named(["hip", "knee", "ankle"])]),
        ..row("obs")
    };
    let node = |name: &str, inputs: Vec<PortDraft>| NodeDraft {
        name: name.into(),
        model: Some(desk.path(&format!("{name}.onnx"))),
        inputs: Some(inputs),
        ..NodeDraft::default()
    };
    scale_model().write(desk.path("scale.onnx")).unwrap();
    memory_model().write(desk.path("memory.onnx")).unwrap();
    let edge = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let draft = BundleDraft {
        nodes: vec![node("scale", vec![observed]), node("memory", vec![row("x"), row("h")])],
        data_flow: vec![edge("scale/scaled", "memory/x")],
        feedback_flow: vec![edge("memory/h_next", "memory/h")],
        frequency: Some(50.0),
        ..BundleDraft::default()
    };
    let initial = BTreeMap::from([("memory/h".to_owned(), floats([1, 3], &[0.5; 3]))]);
    draft.write(&desk.path("policy"), initial).unwrap();
}

/// Writes the bundle `sum`: `action = -(x + h)`, with both given on each step.
pub(crate) fn write_sum(desk: &Desk) {
    memory_model().write(desk.path("sum.onnx")).unwrap();
    let sum = NodeDraft {
        name: "sum".into(),
        model: Some(desk.path("sum.onnx")),
        ..NodeDraft::default()
    };
    let draft = BundleDraft { nodes: vec![sum], ..BundleDraft::default() };
    draft.write(&desk.path("sum"), BTreeMap::new()).unwrap();
}

/// A tensor of float32.
pub(crate) fn floats<const N: usize>(shape: [usize; N], elements: &[f32]) -> Tensor {
    Tensor::from_slice(shape, elements).unwrap()
}

fn scale_model() -> veracity_onnx::Model {
    GraphBuilder::new("scale", 17)
        .input("obs", DType::F32, [1, 3])
        .initializer("two", &floats([1], &[2.0]))
        .node(Node::new("Mul", ["obs", "two"], ["scaled"]))
        .output("scaled", DType::F32, [1, 3])
        .finish()
        .unwrap()
}

fn memory_model() -> veracity_onnx::Model {
    GraphBuilder::new("memory", 17)
        .input("x", DType::F32, [1, 3])
        .input("h", DType::F32, [1, 3])
        .node(Node::new("Add", ["x", "h"], ["h_next"]))
        .node(Node::new("Neg", ["h_next"], ["action"]))
        .output("action", DType::F32, [1, 3])
        .output("h_next", DType::F32, [1, 3])
        .finish()
        .unwrap()
}

/// An episode of observations and the actions that belong to it.
pub(crate) fn write_episode(desk: &Desk, steps: u8) {
    let observation = |step: u8| [f32::from(step), 0.25, -1.0];
    let observations: Vec<[f32; 3]> = (0..steps).map(observation).collect();
    let mut memory = [0.5_f32; 3];
    let mut actions = Vec::new();
    for observation in &observations {
        for (memory, value) in memory.iter_mut().zip(observation) {
            *memory += 2.0 * value;
        }
        actions.extend(memory.map(|value| -value));
    }
    let shape = [usize::from(steps), 1, 3];
    desk.tensors("episode.npz", [("scale/obs", floats(shape, &observations.concat()))]);
    desk.tensors("expected.npz", [("memory/action", floats(shape, &actions))]);
}
