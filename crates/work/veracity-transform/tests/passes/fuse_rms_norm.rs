//! `fuse-rms-norm`

use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::FuseRmsNorm;

use crate::support::{holds, left_alone, lines};

fn floats<const N: usize>(dims: [usize; N], elements: &[f32]) -> Tensor {
    Tensor::from_slice(dims, elements).unwrap()
}

/// `x / sqrt(mean(x * x) + epsilon) * scale`, divided in one of three ways.
fn model(opset: i64, axis: i64, divide: &str, scale: &Tensor) -> Model {
    let graph = GraphBuilder::new("graph", opset)
        .input("x", DType::F32, [4_usize, 4])
        .initializer("epsilon", &floats([1], &[1e-6]))
        .initializer("minus", &floats([], &[-0.5]))
        .initializer("axes", &Tensor::from_slice([1], &[axis]).unwrap())
        .initializer("scale", scale)
        .node(Node::new("Mul", ["x", "x"], ["squares"]))
        .node(Node::new("ReduceMean", ["squares", "axes"], ["mean"]))
        .node(Node::new("Add", ["mean", "epsilon"], ["above"]));
    let graph = match divide {
        "power" => graph.node(Node::new("Pow", ["above", "minus"], ["r"])).node(Node::new(
            "Mul",
            ["x", "r"],
            ["n"],
        )),
        "reciprocal" => graph
            .node(Node::new("Sqrt", ["above"], ["root"]))
            .node(Node::new("Reciprocal", ["root"], ["r"]))
            .node(Node::new("Mul", ["r", "x"], ["n"])),
        _ => graph.node(Node::new("Sqrt", ["above"], ["root"])).node(Node::new(
            "Div",
            ["x", "root"],
            ["n"],
        )),
    };
    graph
        .node(Node::new("Mul", ["scale", "n"], ["y"]))
        .output("y", DType::F32, [4_usize, 4])
        .finish()
        .unwrap()
}

#[test]
fn a_value_over_its_root_mean_square_becomes_one_node() {
    let scale = floats([4], &[1.0, -2.0, 0.5, 3.0]);
    for divide in ["div", "reciprocal", "power"] {
        let graph = holds(&FuseRmsNorm, &model(23, 1, divide, &scale));
        assert_eq!(lines(&graph), ["y = RMSNormalization(x, scale)"], "{divide}");
    }
}

#[test]
fn a_scale_for_each_row_stays_a_node() {
    let rows = floats([4, 1], &[1.0, 2.0, 3.0, 4.0]);
    let graph = holds(&FuseRmsNorm, &model(23, -1, "div", &rows));
    assert_eq!(lines(&graph), ["n = RMSNormalization(x, n.scale)", "y = Mul(scale, n)"]);
}

#[test]
fn each_precondition_has_its_reason() {
    let scale = floats([4], &[1.0, -2.0, 0.5, 3.0]);
    left_alone(FuseRmsNorm, &model(20, 1, "div", &scale), "needs opset 23; the model has 20");
    left_alone(FuseRmsNorm, &model(23, 0, "div", &scale), "not over the last axes");
}
