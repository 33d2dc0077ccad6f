//! `remove-no-ops`

use veracity_onnx::{GraphBuilder, Node};
use veracity_tensor::DType;
use veracity_transform::passes::RemoveNoOps;

use crate::support::{holds, left_alone, lines};

#[test]
fn an_identity_goes() {
    let model = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .node(Node::new("Relu", ["x"], ["a"]))
        .node(Node::new("Identity", ["a"], ["b"]))
        .node(Node::new("Identity", ["b"], ["c"]))
        .node(Node::new("Neg", ["c"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    assert_eq!(lines(&holds(&RemoveNoOps, &model)), ["a = Relu(x)", "y = Neg(a)"]);
}

#[test]
fn an_output_that_is_an_input_keeps_its_node() {
    let model = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .node(Node::new("Identity", ["x"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    left_alone(RemoveNoOps, &model, "needs a node of its own");
}
