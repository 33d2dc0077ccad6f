//! `remove-dead-code`

use veracity_onnx::{GraphBuilder, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::RemoveDeadCode;

use crate::support::{holds, left_alone, lines};

fn weight() -> Tensor {
    Tensor::from_slice([2], &[1.0_f32, 2.0]).unwrap()
}

#[test]
fn what_nothing_depends_on_goes_with_all_that_only_it_reads() {
    let model = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .initializer("w", &weight())
        .initializer("unread", &weight())
        .node(Node::new("Relu", ["x"], ["y"]))
        .node(Node::new("Mul", ["x", "w"], ["dead"]))
        .node(Node::new("Neg", ["dead"], ["deader"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    let graph = holds(&RemoveDeadCode, &model);
    assert_eq!(lines(&graph), ["y = Relu(x)"]);
    assert_eq!(graph.weights().count(), 0);
}

#[test]
fn what_a_body_captures_stays() {
    let branch = |operator: &str| {
        let node = Node::new(operator, ["a", "w"], ["out"]);
        GraphBuilder::new("branch", 20).node(node).output("out", DType::F32, [2_usize])
    };
    let model = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .input("flag", DType::Bool, [0_usize; 0])
        .initializer("w", &weight())
        .node(Node::new("Relu", ["x"], ["a"]))
        .node(
            Node::new("If", ["flag"], ["y"])
                .graph("then_branch", branch("Add"))
                .graph("else_branch", branch("Sub")),
        )
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    left_alone(RemoveDeadCode, &model, "");
}
