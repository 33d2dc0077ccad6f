//! `hold-constants`

use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::HoldConstants;

use crate::support::{holds, left_alone, lines};

fn model(constant: Node) -> Model {
    GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize])
        .node(constant)
        .node(Node::new("Add", ["x", "c"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap()
}

fn constant() -> Node {
    Node::new("Constant", [""; 0], ["c"])
}

#[test]
fn a_constant_becomes_a_weight() {
    let tensor = Tensor::from_slice([2], &[1.0_f32, -0.0]).unwrap();
    let forms = [
        constant().tensor("value", &tensor),
        constant().float("value_float", 0.5),
        constant().floats("value_floats", [1.0, 2.0]),
    ];
    for form in forms {
        let graph = holds(&HoldConstants, &model(form));
        assert_eq!(lines(&graph), ["y = Add(x, c)"]);
        assert_eq!(graph.weights().map(|(name, _)| name).collect::<Vec<_>>(), ["c"]);
    }
}

#[test]
fn a_text_is_left_alone() {
    let text = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize])
        .node(Node::new("Constant", [""; 0], ["c"]).string("value_string", "word"))
        .node(Node::new("Size", ["c"], ["n"]))
        .node(Node::new("Neg", ["x"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    left_alone(HoldConstants, &text, "not a plain tensor");
}

#[test]
fn an_output_of_the_model_is_left_alone() {
    let output = GraphBuilder::new("graph", 18)
        .node(constant().float("value_float", 0.5))
        .output("c", DType::F32, [0_usize; 0])
        .finish()
        .unwrap();
    left_alone(HoldConstants, &output, "an output of the model");
}
