//! `merge-repeats`

use veracity_onnx::{GraphBuilder, Node};
use veracity_tensor::DType;
use veracity_transform::passes::MergeRepeats;

use super::made::Made;
use crate::support::{holds, left_alone, lines};

fn twice(first: &str, second: &str) -> Made {
    let nodes = vec![
        Node::new(first, ["x"], ["a"]),
        Node::new(second, ["a"], ["b"]),
        Node::new("Sqrt", ["b"], ["y"]),
    ];
    Made::new(&[37], nodes, 1)
}

#[test]
fn what_changes_nothing_when_done_again_is_done_once() {
    for operator in ["Abs", "Ceil", "Floor", "Round", "Sign", "Relu"] {
        for dtype in [DType::F32, DType::F64, DType::F16] {
            let mut made = twice(operator, operator);
            made.dtype = dtype;
            made.nodes.remove(2);
            made.outputs = vec![("b", 1)];
            let graph = holds(&MergeRepeats, &made.model());
            assert_eq!(lines(&graph), [format!("b = {operator}(x)")]);
        }
    }
}

#[test]
fn what_undoes_itself_is_not_done() {
    let graph = holds(&MergeRepeats, &twice("Neg", "Neg").model());
    assert_eq!(lines(&graph), ["y = Sqrt(x)"]);
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::Bool, [3_usize])
        .node(Node::new("Not", ["x"], ["a"]))
        .node(Node::new("Not", ["a"], ["b"]))
        .node(Node::new("Or", ["b", "a"], ["y"]))
        .output("y", DType::Bool, [3_usize])
        .finish()
        .unwrap();
    assert_eq!(lines(&holds(&MergeRepeats, &model)), ["a = Not(x)", "y = Or(x, a)"]);
}

#[test]
fn different_operators_and_others_that_repeat_are_no_match() {
    for (first, second) in [("Ceil", "Floor"), ("Exp", "Exp"), ("Tanh", "Tanh"), ("Neg", "Abs")] {
        left_alone(MergeRepeats, &twice(first, second).model(), "");
    }
}

#[test]
fn outputs_of_the_model_need_nodes_of_their_own() {
    let mut made = twice("Abs", "Abs");
    made.nodes.remove(2);
    made.outputs = vec![("a", 1), ("b", 1)];
    left_alone(MergeRepeats, &made.model(), "a node of its own");
}
