//! `unsqueeze-after-transpose`

use veracity_onnx::{Dim, Node};
use veracity_transform::passes::UnsqueezeAfterTranspose;

use super::made::{Made, ints, opaque};
use crate::support::{holds, left_alone, lines};

fn turn(from: &str, perm: &[i64], to: &str) -> Node {
    Node::new("Transpose", [from], [to]).ints("perm", perm)
}

/// `x` is turned, gets axes, and is turned again.
fn grown(by: Node, second: &[i64]) -> Made {
    let nodes = vec![turn("x", &[1, 0, 2], "a"), by, turn("b", second, "y")];
    let made = Made::new(&[2, 3, 4], nodes, second.len());
    made.with("axes", ints(&[0])).with("shape", ints(&[1, 3, 2, 4]))
}

fn unsqueeze() -> Node {
    Node::new("Unsqueeze", ["a", "axes"], ["b"])
}

fn reshape() -> Node {
    Node::new("Reshape", ["a", "shape"], ["b"])
}

#[test]
fn axes_that_come_between_transpositions_come_after_one() {
    for by in [unsqueeze(), reshape()] {
        for (second, perm, axes) in [
            (&[0_i64, 1, 3, 2][..], &[1_i64, 2, 0][..], &[0_i64][..]),
            (&[3, 0, 1, 2], &[2, 1, 0], &[1]),
            (&[2, 3, 1, 0], &[0, 2, 1], &[3]),
        ] {
            let graph = holds(&UnsqueezeAfterTranspose, &grown(by.clone(), second).model());
            let expected = ["y_turned = Transpose(x)", "y = Unsqueeze(y_turned, y_axes)"];
            assert_eq!(lines(&graph), expected);
            assert_eq!(graph.producer("y_turned").unwrap().1.ints_of("perm").unwrap(), perm);
            assert_eq!(graph.weight("y_axes").unwrap().ints().unwrap(), axes);
        }
    }
}

#[test]
fn several_axes_and_orders_that_are_not_named() {
    let by = Node::new("Unsqueeze", ["a", "axes"], ["b"]);
    let mut made = grown(by, &[0, 1, 2, 3, 4]).with("axes", ints(&[1, -1]));
    made.nodes[0] = Node::new("Transpose", ["x"], ["a"]);
    made.nodes[2] = Node::new("Transpose", ["b"], ["y"]);
    let graph = holds(&UnsqueezeAfterTranspose, &made.model());
    assert_eq!(graph.producer("y_turned").unwrap().1.ints_of("perm").unwrap(), [0, 1, 2]);
    assert_eq!(graph.weight("y_axes").unwrap().ints().unwrap(), [0, 3]);
}

#[test]
fn old_versions_have_attributes() {
    let by = Node::new("Unsqueeze", ["a"], ["b"]).ints("axes", [0]);
    let graph = holds(&UnsqueezeAfterTranspose, &grown(by, &[0, 1, 3, 2]).opset(11).model());
    assert_eq!(graph.producer("y").unwrap().1.ints_of("axes").unwrap(), [0]);
}

#[test]
fn shapes_that_change_more_are_no_match() {
    for shape in [&[3_i64, 8, 1][..], &[1, 6, 4], &[2, 3, 4], &[3, 2, 4]] {
        let made = grown(reshape(), &[2, 0, 1]).with("shape", ints(shape));
        left_alone(UnsqueezeAfterTranspose, &made.model(), "");
    }
    // Two sizes that are not known may differ.
    let mut unknown = grown(reshape(), &[0, 1, 3, 2]).with("shape", ints(&[1, -1, 2, 4]));
    unknown.x = vec![Dim::from(2), Dim::Unknown, Dim::from(4)];
    left_alone(UnsqueezeAfterTranspose, &unknown.model(), "");
}

#[test]
fn what_is_between_other_nodes_is_no_match() {
    let mut before = grown(unsqueeze(), &[0, 1, 3, 2]);
    before.nodes[0] = Node::new("Relu", ["x"], ["a"]);
    left_alone(UnsqueezeAfterTranspose, &before.model(), "");
    let mut after = grown(unsqueeze(), &[0, 1, 3, 2]);
    after.nodes[2] = Node::new("Relu", ["b"], ["y"]);
    left_alone(UnsqueezeAfterTranspose, &after.model(), "");
}

#[test]
fn what_is_not_known_or_needed_elsewhere_is_left_alone() {
    let plain = || grown(unsqueeze(), &[0, 1, 3, 2]);
    left_alone(UnsqueezeAfterTranspose, &plain().gives("a", 3).model(), "an output");
    left_alone(UnsqueezeAfterTranspose, &plain().gives("b", 4).model(), "an output");
    let mut computed = plain();
    computed.nodes.insert(0, opaque("axes", "other"));
    computed.nodes[2] = Node::new("Unsqueeze", ["a", "other"], ["b"]);
    left_alone(UnsqueezeAfterTranspose, &computed.model(), "not constant");
}
