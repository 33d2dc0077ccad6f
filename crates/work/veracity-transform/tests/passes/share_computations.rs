//! `share-computations`

use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_tensor::DType;
use veracity_transform::passes::ShareComputations;

use crate::support::{holds, left_alone, lines, run};

/// Two nodes that read `x`, and the sum of what they give.
fn pair(one: Node, two: Node) -> Model {
    GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize, 2])
        .node(one)
        .node(two)
        .node(Node::new("Add", ["a", "b"], ["y"]))
        .output("y", DType::F32, [2_usize, 2])
        .finish()
        .unwrap()
}

#[test]
fn what_is_computed_twice_is_computed_once() {
    let softmax = |value: &str| Node::new("Softmax", ["x"], [value]).int("axis", 0);
    let graph = holds(&ShareComputations, &pair(softmax("a"), softmax("b").named("other")));
    assert_eq!(lines(&graph), ["a = Softmax(x)", "y = Add(a, a)"]);
}

#[test]
fn chains_and_crowds_end_as_one() {
    let mut builder = GraphBuilder::new("graph", 18).input("x", DType::F32, [2_usize]);
    for index in 0..6 {
        let (one, two) = (format!("a{index}"), format!("b{index}"));
        builder =
            builder.node(Node::new("Exp", ["x"], [&one])).node(Node::new("Neg", [one], [two]));
    }
    let sum = Node::new("Sum", (0..6).map(|index| format!("b{index}")), ["y"]);
    let model = builder.node(sum).output("y", DType::F32, [2_usize]).finish().unwrap();
    let graph = holds(&ShareComputations, &model);
    assert_eq!(lines(&graph), ["a0 = Exp(x)", "b0 = Neg(a0)", "y = Sum(b0, b0, b0, b0, b0, b0)"]);
    let done = run(vec![Box::new(ShareComputations)], &model);
    assert_eq!(done.rewrites.len(), 2, "a crowd goes in one rewrite");
    assert_eq!(done.rewrites[0].applied.context.len(), 1, "which names who stays");
}

#[test]
fn other_attributes_inputs_or_operators_stay() {
    let cases = [
        (
            Node::new("Softmax", ["x"], ["a"]).int("axis", 0),
            Node::new("Softmax", ["x"], ["b"]).int("axis", 1),
        ),
        (Node::new("Elu", ["x"], ["a"]).float("alpha", 0.5), Node::new("Elu", ["x"], ["b"])),
        (Node::new("Exp", ["x"], ["a"]), Node::new("Exp", ["a"], ["b"])),
        (Node::new("Exp", ["x"], ["a"]), Node::new("Neg", ["x"], ["b"])),
    ];
    for (one, two) in cases {
        left_alone(ShareComputations, &pair(one, two), "");
    }
}

#[test]
fn what_may_differ_each_time_stays() {
    let random = |value: &str| Node::new("RandomNormalLike", ["x"], [value]);
    left_alone(ShareComputations, &pair(random("a"), random("b")), "something else each time");
    let strange = |value: &str| Node::new("Strange", ["x"], [value]).domain("com.example");
    left_alone(ShareComputations, &pair(strange("a"), strange("b")), "no standard operator");
    let drop = |value: &str| {
        GraphBuilder::new("graph", 18)
            .input("x", DType::F32, [2_usize])
            .input("ratio", DType::F32, [0_usize; 0])
            .input("train", DType::Bool, [0_usize; 0])
            .node(Node::new("Dropout", ["x", "ratio", "train"], ["a"]))
            .node(Node::new("Dropout", ["x", "ratio", "train"], [value]))
            .node(Node::new("Add", ["a", value], ["y"]))
            .output("y", DType::F32, [2_usize])
            .finish()
            .unwrap()
    };
    left_alone(ShareComputations, &drop("b"), "something else each time");
}

#[test]
fn bodies_stay() {
    let branch = |operator: &str| {
        let node = Node::new(operator, ["x"], ["out"]);
        GraphBuilder::new("branch", 18).node(node).output("out", DType::F32, [2_usize])
    };
    let fork = |value: &str| {
        Node::new("If", ["flag"], [value])
            .graph("then_branch", branch("Exp"))
            .graph("else_branch", branch("Neg"))
    };
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize])
        .input("flag", DType::Bool, [0_usize; 0])
        .node(fork("a"))
        .node(fork("b"))
        .node(Node::new("Add", ["a", "b"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    left_alone(ShareComputations, &model, "has bodies");
}

#[test]
fn outputs_of_the_model_keep_their_names() {
    let model = |outputs: &[&str]| {
        let mut builder = GraphBuilder::new("graph", 18)
            .input("x", DType::F32, [2_usize])
            .node(Node::new("Exp", ["x"], ["a"]))
            .node(Node::new("Exp", ["x"], ["b"]))
            .node(Node::new("Exp", ["x"], ["c"]))
            .node(Node::new("Add", ["a", "c"], ["y"]));
        for output in outputs {
            builder = builder.output(*output, DType::F32, [2_usize]);
        }
        builder.finish().unwrap()
    };
    assert_eq!(
        lines(&holds(&ShareComputations, &model(&["y", "b"]))),
        ["b = Exp(x)", "y = Add(b, b)"]
    );
    let graph = holds(&ShareComputations, &model(&["y", "b", "c"]));
    assert_eq!(lines(&graph).len(), 3, "two outputs need two nodes");
    let done = run(vec![Box::new(ShareComputations)], &model(&["y", "a", "b"]));
    let reasons = &done.declined["share-computations"];
    assert!(reasons.iter().any(|one| one.reason.contains("both are outputs")), "{reasons:?}");
}

#[test]
fn an_output_that_the_twin_leaves_out_keeps_the_node() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [1_usize, 1, 4])
        .node(Node::new("MaxPool", ["x"], ["a"]).ints("kernel_shape", [2]))
        .node(Node::new("MaxPool", ["x"], ["b", "places"]).ints("kernel_shape", [2]))
        .node(Node::new("Add", ["a", "b"], ["y"]))
        .output("y", DType::F32, [1_usize, 1, 3])
        .output("places", DType::I64, [1_usize, 1, 3])
        .finish()
        .unwrap();
    left_alone(ShareComputations, &model, "does not give all of its outputs");
}
