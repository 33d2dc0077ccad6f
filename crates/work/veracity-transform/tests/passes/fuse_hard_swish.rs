//! `fuse-hard-swish`

use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::FuseHardSwish;

use crate::support::{holds, left_alone, lines};

fn sigmoid(opset: i64, dtype: DType, alpha: f32) -> Model {
    let node = Node::new("HardSigmoid", ["x"], ["h"]).float("alpha", alpha).float("beta", 0.5);
    GraphBuilder::new("graph", opset)
        .input("x", dtype, [2_usize, 8])
        .node(node)
        .node(Node::new("Mul", ["h", "x"], ["y"]))
        .output("y", dtype, [2_usize, 8])
        .finish()
        .unwrap()
}

/// `x * Clip(x + shift, 0, high) / 6`, the division standing where the case says.
fn clip(shift: f32, high: f32, order: &[&[&str]]) -> Model {
    let mut graph = GraphBuilder::new("graph", 14).input("x", DType::F32, [2_usize, 8]);
    let constants =
        [("shift", shift), ("low", 0.0), ("high", high), ("six", 6.0), ("sixth", 1.0 / 6.0)];
    for (name, value) in constants {
        graph = graph.initializer(name, &Tensor::from_slice([], &[value]).unwrap());
    }
    graph = graph.node(Node::new("Add", ["shift", "x"], ["s"])).node(Node::new(
        "Clip",
        ["s", "low", "high"],
        ["c"],
    ));
    for node in order {
        let (last, first) = node.split_last().unwrap();
        graph = graph.node(Node::new(first[0], first[1..].to_vec(), [*last]));
    }
    graph.output("y", DType::F32, [2_usize, 8]).finish().unwrap()
}

const ORDER: &[&[&str]] = &[&["Mul", "x", "c", "p"], &["Div", "p", "six", "y"]];

#[test]
fn a_value_times_its_hard_sigmoid_becomes_one_node() {
    let graph = holds(&FuseHardSwish, &sigmoid(14, DType::F32, 1.0 / 6.0));
    assert_eq!(lines(&graph), ["y = HardSwish(x)"]);
}

#[test]
fn a_value_times_what_is_clipped_becomes_one_node_in_every_order() {
    let orders: [&[&[&str]]; 4] = [
        ORDER,
        &[&["Div", "c", "six", "p"], &["Mul", "p", "x", "y"]],
        &[&["Mul", "c", "sixth", "p"], &["Mul", "x", "p", "y"]],
        &[&["Mul", "sixth", "x", "p"], &["Mul", "p", "c", "y"]],
    ];
    for order in orders {
        let graph = holds(&FuseHardSwish, &clip(3.0, 6.0, order));
        assert_eq!(lines(&graph), ["y = HardSwish(x)"], "{order:?}");
    }
}

#[test]
fn each_precondition_has_its_reason() {
    let upside_down: &[&[&str]] = &[&["Mul", "x", "c", "p"], &["Div", "six", "p", "y"]];
    let shown: &[&[&str]] =
        &[&["Mul", "x", "c", "p"], &["Div", "p", "six", "q"], &["Add", "q", "s", "y"]];
    let cases = [
        (sigmoid(13, DType::F32, 1.0 / 6.0), "needs opset 14; the model has 13"),
        (sigmoid(14, DType::F32, 0.2), "has the slope 0.2"),
        (sigmoid(14, DType::F64, 1.0 / 6.0), "HardSwish of float64"),
        (clip(2.0, 6.0, ORDER), "it is x * Clip(x + 2, 0, 6)"),
        (clip(3.0, 5.0, ORDER), "it is x * Clip(x + 3, 0, 5)"),
        (clip(3.0, 6.0, upside_down), ""),
        (clip(3.0, 6.0, shown), "\"s\" is read by others as well"),
    ];
    for (model, reason) in &cases {
        left_alone(FuseHardSwish, model, reason);
    }
}
