//! `merge-reshapes`

use veracity_onnx::{Dim, Node};
use veracity_transform::passes::MergeReshapes;

use super::made::{Made, ints, opaque};
use crate::support::{holds, left_alone, lines};

fn reshape(from: &str, shape: &str, to: &str) -> Node {
    Node::new("Reshape", [from, shape], [to])
}

fn twice(x: &[usize], first: &[i64], second: &[i64]) -> Made {
    let nodes = vec![reshape("x", "s", "a"), reshape("a", "t", "y")];
    Made::new(x, nodes, second.len()).with("s", ints(first)).with("t", ints(second))
}

/// The shape that the one node left is given.
fn shape_of(made: &Made) -> Vec<i64> {
    let graph = holds(&MergeReshapes, &made.model());
    assert_eq!(graph.len(), 1, "{:?}", lines(&graph));
    let (_, node) = graph.producer("y").unwrap();
    assert_eq!((node.op_type(), node.input(0)), ("Reshape", Some("x")));
    graph.weight(node.input(1).unwrap()).unwrap().ints().unwrap()
}

#[test]
fn the_last_shape_counts() {
    for (first, second, merged) in [
        (&[6_i64, 4][..], &[2_i64, 12][..], &[2_i64, 12][..]),
        (&[-1], &[4, -1], &[4, -1]),
        (&[0, -1], &[24], &[24]),
        // A zero takes a size over from the shape before, or what that one takes over.
        (&[6, 4], &[0, 2, 2], &[6, 2, 2]),
        (&[0, 12], &[0, -1, 3], &[0, -1, 3]),
        (&[3, 2, -1], &[0, 0, 2, 2], &[3, 2, 2, 2]),
    ] {
        assert_eq!(shape_of(&twice(&[2, 3, 4], first, second)), merged, "{first:?} {second:?}");
    }
}

#[test]
fn a_zero_that_takes_over_what_is_not_known_is_left_alone() {
    let mut made = twice(&[2, 2], &[0, -1, 2], &[0, 0, 1, 2]);
    made.x = vec![Dim::from("n"), Dim::from("m")];
    left_alone(MergeReshapes, &made.model(), "2 axes of \"y\" are not known");
    // What is known of the result is enough.
    let mut made = twice(&[2, 3, 4], &[-1, 4], &[0, 2, 2]);
    made.x[0] = Dim::from("n");
    assert_eq!(shape_of(&made), [-1, 2, 2]);
}

#[test]
fn a_zero_may_be_a_size() {
    let allow = |node: Node| node.int("allowzero", 1);
    let mut made = twice(&[2, 0, 4], &[0, 8], &[4, 0]).opset(14);
    made.nodes[1] = allow(made.nodes[1].clone());
    made.nodes[0] = allow(made.nodes[0].clone());
    assert_eq!(shape_of(&made), [4, 0]);
    // Here the zero of the first is a size, and the zero of the second takes it over.
    let mut made = made.with("t", ints(&[0, 4]));
    made.nodes[1] = reshape("a", "t", "y");
    left_alone(MergeReshapes, &made.model(), "may be empty");
}

#[test]
fn a_shape_that_is_computed_is_left_alone_unless_its_zeros_are_sizes() {
    let mut made = twice(&[2, 3, 4], &[6, 4], &[2, 12]);
    made.nodes.insert(0, opaque("t", "u"));
    made.nodes[2] = reshape("a", "u", "y");
    left_alone(MergeReshapes, &made.model(), "are not known");
    made.nodes[0] = Node::new("Abs", ["t"], ["u"]);
    made.nodes[2] = reshape("a", "u", "y").int("allowzero", 1);
    assert_eq!(lines(&holds(&MergeReshapes, &made.model())), ["u = Abs(t)", "y = Reshape(x, u)"]);
}

#[test]
fn every_change_of_shape_before_it_counts() {
    let flatten = Node::new("Flatten", ["x"], ["a"]).int("axis", 2);
    let unsqueeze = Node::new("Unsqueeze", ["x", "s"], ["a"]);
    for first in [flatten, unsqueeze] {
        let mut made = twice(&[2, 3, 4], &[0], &[8, 3]);
        made.nodes[0] = first;
        assert_eq!(shape_of(&made), [8, 3]);
    }
}

#[test]
fn every_change_of_shape_after_it_counts_when_the_result_is_known() {
    use veracity_onnx::GraphBuilder;
    use veracity_tensor::DType;
    let model = |first: Dim, shape: &[i64]| {
        GraphBuilder::new("graph", 18)
            .input("x", DType::F32, [first, Dim::from(3), Dim::from(4)])
            .initializer("s", &ints(shape))
            .node(reshape("x", "s", "a"))
            .node(Node::new("Flatten", ["a"], ["y"]))
            .output("y", DType::F32, ["rows", "columns"])
            .finish()
            .unwrap()
    };
    for (first, expected) in [(Dim::from(2), 6), (Dim::from("n"), -1)] {
        let graph = holds(&MergeReshapes, &model(first, &[-1, 2, 2]));
        assert_eq!(lines(&graph), ["y = Reshape(x, y_shape)"]);
        assert_eq!(graph.weight("y_shape").unwrap().ints().unwrap(), [expected, 4]);
    }
    left_alone(MergeReshapes, &model(Dim::from(0), &[-1, 2, 2]), "may be empty");
    let two = [2_usize, 3, 4];
    let mut two =
        Made::new(&two, vec![reshape("x", "s", "a"), Node::new("Flatten", ["a"], ["y"])], 2);
    two.nodes.insert(0, opaque("t", "s"));
    left_alone(
        MergeReshapes,
        &two.with("t", ints(&[6, 2, 2])).model(),
        "2 axes of \"y\" are not known",
    );
}

#[test]
fn what_others_read_stays() {
    let made = twice(&[2, 3, 4], &[6, 4], &[2, 12]).gives("a", 2);
    let graph = holds(&MergeReshapes, &made.model());
    assert_eq!(lines(&graph), ["a = Reshape(x, s)", "y = Reshape(x, t)"]);
}

#[test]
fn two_that_squeeze_are_left_to_their_own_pass() {
    let nodes =
        vec![Node::new("Squeeze", ["x", "s"], ["a"]), Node::new("Squeeze", ["a", "s"], ["y"])];
    left_alone(MergeReshapes, &Made::new(&[1, 1, 4], nodes, 1).with("s", ints(&[0])).model(), "");
}
