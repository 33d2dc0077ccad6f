//! `merge-concats`

use veracity_onnx::Node;
use veracity_transform::passes::MergeConcats;

use super::made::{Made, ints, some};
use crate::support::{holds, left_alone, lines};

fn concat(inputs: &[&str], output: &str, axis: i64) -> Node {
    Node::new("Concat", inputs.to_vec(), [output]).int("axis", axis)
}

fn nested(inner: i64, outer: i64) -> Made {
    let nodes = vec![concat(&["x", "b"], "c", inner), concat(&["a", "c", "x"], "y", outer)];
    let rows = if inner.rem_euclid(3) == 1 { [2, 6, 4] } else { [2, 3, 8] };
    Made::new(&[2, 3, 4], nodes, 3)
        .with(
            "a",
            some(if inner.rem_euclid(3) == outer.rem_euclid(3) { &[2, 3, 4] } else { &rows }, 1),
        )
        .with("b", some(&[2, 3, 4], 2))
}

#[test]
fn what_is_put_together_in_steps_is_put_together_at_once() {
    for (inner, outer) in [(1, 1), (-1, -1), (1, -2), (-2, 1)] {
        let graph = holds(&MergeConcats, &nested(inner, outer).model());
        assert_eq!(lines(&graph), ["y = Concat(a, x, b, x)"]);
        assert_eq!(graph.producer("y").unwrap().1.int_of("axis"), Some(outer));
    }
    let mut twice = nested(1, 1);
    twice.nodes[1] = concat(&["c", "a", "c"], "y", 1);
    assert_eq!(lines(&holds(&MergeConcats, &twice.model())), ["y = Concat(x, b, a, x, b)"]);
}

#[test]
fn other_axes_and_other_readers_are_left_alone() {
    let mut other = nested(2, 1);
    other.nodes[1] = concat(&["a", "c"], "y", 1);
    left_alone(MergeConcats, &other.model(), "along axis 1, not 2");
    left_alone(MergeConcats, &nested(1, 1).gives("c", 3).model(), "an output");
    let mut read = nested(1, 1);
    read.nodes.push(Node::new("Neg", ["c"], ["z"]));
    left_alone(MergeConcats, &read.gives("z", 3).model(), "2 readers");
}

fn split(axis: i64, joined: &[&str], along: i64) -> Made {
    let nodes = vec![
        Node::new("Relu", ["x"], ["r"]),
        Node::new("Split", ["r", "sizes"], ["p", "q"]).int("axis", axis),
        concat(joined, "j", along),
        Node::new("Neg", ["j"], ["y"]),
    ];
    Made::new(&[2, 4], nodes, 2).with("sizes", ints(&[1, if axis == 0 { 1 } else { 3 }]))
}

#[test]
fn what_is_taken_apart_and_put_together_is_what_it_was() {
    for (axis, along) in [(1, 1), (0, 0), (-1, -1)] {
        let graph = holds(&MergeConcats, &split(axis, &["p", "q"], along).model());
        assert_eq!(lines(&graph), ["r = Relu(x)", "y = Neg(r)"]);
    }
    let graph = holds(&MergeConcats, &split(1, &["p", "q"], 1).gives("q", 2).model());
    assert_eq!(lines(&graph), ["r = Relu(x)", "p, q = Split(r, sizes)", "y = Neg(r)"]);
}

#[test]
fn parts_in_another_order_or_along_another_axis_are_left_alone() {
    left_alone(MergeConcats, &split(1, &["q", "p"], 1).model(), "");
    left_alone(MergeConcats, &split(1, &["p", "q", "q"], 1).model(), "");
    left_alone(MergeConcats, &split(1, &["p"], 1).model(), "");
    left_alone(MergeConcats, &split(0, &["p", "q"], 1).model(), "along axis 1, not 0");
}
