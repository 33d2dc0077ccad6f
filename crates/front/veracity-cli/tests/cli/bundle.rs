//! A small bundle: two ONNX nodes, one with memory.

use std::collections::BTreeMap;

use veracity::spec::AxisNames;
use veracity::tensor::file::safetensors;
use veracity::tensor::{DType, Tensor};
use veracity::{BundleDraft, NodeDraft, PortDraft};
use veracity_onnx::{GraphBuilder, Node};

use crate::support::Desk;

/// Writes the bundle `policy`: on each step `h = h + 2 * obs` and `action = -h`, with `h` 0.5 at
/// the start.
pub(crate) fn write_policy(desk: &Desk) {
    write_draft(desk, &policy_draft(desk));
}

/// Writes the bundle `policy` with samples that the Python code is said to have made. Of the last one
/// the action is `wrong` by so much.
pub(crate) fn write_recorded_policy(desk: &Desk, wrong: f32) {
    let observations: [[f32; 3]; 4] =
        [[1.0, 0.25, -1.0], [0.5, 0.0, 2.0], [-0.75, 3.0, 0.125], [1.5, -2.0, 0.0]];
    let mut memory = [0.5_f32; 3];
    let mut ports: BTreeMap<&str, Vec<f32>> = BTreeMap::new();
    for observation in observations {
        let scaled = observation.map(|value| 2.0 * value);
        let next = [0, 1, 2].map(|index| memory[index] + scaled[index]);
        for (port, values) in [
            ("scale/in/obs", observation),
            ("scale/out/scaled", scaled),
            ("memory/in/x", scaled),
            ("memory/in/h", memory),
            ("memory/out/action", next.map(|value| -value)),
            ("memory/out/h_next", next),
        ] {
            ports.entry(port).or_default().extend(values);
        }
        memory = next;
    }
    if let Some(last) = ports.get_mut("memory/out/action").and_then(|values| values.last_mut()) {
        *last += wrong;
    }
    let tensor = |(port, values): (&str, Vec<f32>)| {
        (format!("recorded/{port}"), floats([observations.len(), 1, 3], &values))
    };
    let tensors = ports.into_iter().map(tensor).collect();
    let metadata = [("veracity.samples", "1"), ("origin", "python"), ("made_with", "torch 2.11.0")];
    let metadata =
        metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect();
    let mut bytes = Vec::new();
    safetensors::write_to(&mut bytes, &tensors, &metadata).unwrap();
    std::fs::write(desk.path("samples.safetensors"), bytes).unwrap();
    let samples = Some(desk.path("samples.safetensors"));
    write_draft(desk, &BundleDraft { samples, ..policy_draft(desk) });
}

fn write_draft(desk: &Desk, draft: &BundleDraft) {
    let initial = BTreeMap::from([("memory/h".to_owned(), floats([1, 3], &[0.5; 3]))]);
    draft.write(&desk.path("policy"), initial).unwrap();
}

fn policy_draft(desk: &Desk) -> BundleDraft {
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
    BundleDraft {
        nodes: vec![node("scale", vec![observed]), node("memory", vec![row("x"), row("h")])],
        data_flow: vec![edge("scale/scaled", "memory/x")],
        feedback_flow: vec![edge("memory/h_next", "memory/h")],
        frequency: Some(50.0),
        ..BundleDraft::default()
    }
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
