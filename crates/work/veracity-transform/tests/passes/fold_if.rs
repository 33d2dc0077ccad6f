//! `fold-if`

use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_tensor::{DType, Shape, Tensor};
use veracity_transform::passes::FoldIf;

use crate::support::{holds, left_alone, lines};

fn truth(condition: bool) -> Tensor {
    let shape = Shape::new([0; 0]).unwrap();
    Tensor::from_bytes(DType::Bool, shape, &[u8::from(condition)]).unwrap()
}

fn weight() -> Tensor {
    Tensor::from_slice([2], &[1.0_f32, -2.0]).unwrap()
}

/// A branch that holds a weight of its own. The other branch defines the same names.
fn branch(operator: &str) -> GraphBuilder {
    GraphBuilder::new("branch", 18)
        .initializer("w", &weight())
        .node(Node::new(operator, ["a", "w"], ["u"]))
        .node(Node::new("Neg", ["u"], ["out"]))
        .output("out", DType::F32, [2_usize])
}

fn around(condition: Option<bool>, branches: [GraphBuilder; 2]) -> Model {
    let [then, other] = branches;
    let mut graph = GraphBuilder::new("graph", 18).input("x", DType::F32, [2_usize]);
    graph = match condition {
        Some(condition) => graph.initializer("flag", &truth(condition)),
        None => graph.input("flag", DType::Bool, [0_usize; 0]),
    };
    graph
        .node(Node::new("Relu", ["x"], ["a"]))
        .node(Node::new("Abs", ["x"], ["t"]))
        .node(
            Node::new("If", ["flag"], ["b"]).graph("then_branch", then).graph("else_branch", other),
        )
        .node(Node::new("Add", ["b", "t"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap()
}

#[test]
fn the_branch_that_is_taken_comes_under_names_of_its_own() {
    for (condition, operator) in [(true, "Add"), (false, "Mul")] {
        let graph = holds(&FoldIf, &around(Some(condition), [branch("Add"), branch("Mul")]));
        assert_eq!(
            lines(&graph),
            [
                "a = Relu(x)",
                "t = Abs(x)",
                &format!("b/u = {operator}(a, b/w)"),
                "b = Neg(b/u)",
                "y = Add(b, t)"
            ]
        );
    }
}

#[test]
fn a_branch_that_hands_on_a_value_from_around_it() {
    let outer = GraphBuilder::new("branch", 18).output("a", DType::F32, [2_usize]);
    let held = GraphBuilder::new("branch", 18).initializer("w", &weight()).output(
        "w",
        DType::F32,
        [2_usize],
    );
    let negated = GraphBuilder::new("branch", 18).node(Node::new("Neg", ["a"], ["n"])).output(
        "n",
        DType::F32,
        [2_usize],
    );
    let graph = holds(&FoldIf, &around(Some(false), [negated, held.clone()]));
    assert_eq!(lines(&graph)[2], "b = Identity(b/w)");
    // ONNX Runtime takes no branch that only hands on a value from around it.
    let done = crate::support::run(vec![Box::new(FoldIf)], &around(Some(true), [outer, held]));
    assert_eq!(lines(&done.graph)[2], "b = Identity(a)");
}

#[test]
fn a_branch_within_the_branch_is_folded_next() {
    let inner = Node::new("If", ["flag"], ["c"])
        .graph("then_branch", branch("Add"))
        .graph("else_branch", branch("Mul"));
    let outer = || {
        GraphBuilder::new("branch", 18)
            .node(inner.clone())
            .node(Node::new("Neg", ["c"], ["out"]))
            .output("out", DType::F32, [2_usize])
    };
    let graph = holds(&FoldIf, &around(Some(true), [outer(), outer()]));
    assert_eq!(graph.len(), 6, "{:?}", lines(&graph));
}

#[test]
fn each_precondition_has_its_reason() {
    let branches = || [branch("Add"), branch("Mul")];
    left_alone(FoldIf, &around(None, branches()), "the condition is not constant");
    let replaceable = {
        let [then, other] = branches();
        GraphBuilder::new("graph", 18)
            .input("a", DType::F32, [2_usize])
            .input("flag", DType::Bool, [0_usize; 0])
            .initializer("flag", &truth(true))
            .node(
                Node::new("If", ["flag"], ["y"])
                    .graph("then_branch", then)
                    .graph("else_branch", other),
            )
            .output("y", DType::F32, [2_usize])
    };
    left_alone(FoldIf, &replaceable.finish().unwrap(), "the condition is not constant");
}
