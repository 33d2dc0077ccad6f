//! `merge-slices`

use veracity_onnx::{Dim, Node};
use veracity_transform::passes::MergeSlices;

use super::made::{Made, ints};
use crate::support::{holds, left_alone, lines};

/// Starts, ends, axes and steps.
type Bounds<'b> = [&'b [i64]; 4];

fn slice(from: &str, names: [&'static str; 4], to: &str) -> Node {
    Node::new("Slice", [from, names[0], names[1], names[2], names[3]], [to])
}

const FIRST: [&str; 4] = ["starts", "ends", "axes", "steps"];
const SECOND: [&str; 4] = ["starts2", "ends2", "axes2", "steps2"];

fn twice(first: Bounds<'_>, second: Bounds<'_>) -> Made {
    let nodes = vec![slice("x", FIRST, "a"), slice("a", SECOND, "y")];
    let mut made = Made::new(&[6, 9], nodes, 2);
    for (name, listed) in FIRST.into_iter().zip(first).chain(SECOND.into_iter().zip(second)) {
        made = made.with(name, ints(listed));
    }
    made
}

fn merged(made: &Made) -> Vec<Vec<i64>> {
    let graph = holds(&MergeSlices, &made.model());
    assert_eq!(graph.len(), 1, "{:?}", lines(&graph));
    let (_, node) = graph.producer("y").unwrap();
    assert_eq!(node.input(0), Some("x"));
    let list = |name: &String| graph.weight(name).unwrap().ints().unwrap();
    node.inputs()[1..].iter().map(list).collect()
}

#[test]
fn slices_of_different_axes_stand_beside_each_other() {
    let made = twice([&[1], &[5], &[0], &[2]], [&[-1], &[-8], &[-1], &[-1]]);
    assert_eq!(merged(&made), [[1, -1], [5, -8], [0, 1], [2, -1]]);
}

#[test]
fn slices_of_one_axis_are_composed() {
    for (first, second, expected) in [
        ([&[2_i64][..], &[8], &[1], &[1]], [&[1_i64][..], &[4], &[1], &[1]], [3, 6, 1, 1]),
        ([&[1], &[9], &[1], &[2]], [&[1], &[4], &[1], &[2]], [3, 8, 1, 4]),
        ([&[-4], &[i64::MAX], &[-1], &[1]], [&[-2], &[-1], &[1], &[1]], [7, 8, 1, 1]),
        ([&[2], &[4], &[1], &[1]], [&[5], &[9], &[1], &[1]], [0, 0, 1, 1]),
    ] {
        let found: Vec<i64> = merged(&twice(first, second)).concat();
        assert_eq!(found, expected);
    }
}

#[test]
fn without_a_known_size_only_plain_slices_from_the_front_are_composed() {
    let named = |first: Bounds<'_>, second: Bounds<'_>| {
        let mut made = twice(first, second);
        made.x[1] = Dim::from("length");
        made
    };
    let plain = named([&[0], &[i64::MAX], &[1], &[1]], [&[1], &[i64::MAX], &[1], &[1]]);
    assert_eq!(merged(&plain).concat(), [1, i64::MAX, 1, 1]);
    for (first, second) in [
        ([&[-3_i64][..], &[9], &[1], &[1]], [&[1_i64][..], &[2], &[1], &[1]]),
        ([&[0], &[9], &[1], &[1]], [&[0], &[-1], &[1], &[1]]),
        ([&[0], &[9], &[1], &[2]], [&[0], &[2], &[1], &[1]]),
    ] {
        left_alone(MergeSlices, &named(first, second).model(), "axis 1 is not known");
    }
}

#[test]
fn slices_that_go_backward_along_one_axis_are_left_alone() {
    let made = twice([&[-1], &[-9], &[1], &[-1]], [&[1], &[3], &[1], &[1]]);
    left_alone(MergeSlices, &made.model(), "goes backward");
}

#[test]
fn axes_and_steps_may_be_left_out_and_old_versions_have_attributes() {
    let mut made = twice([&[1, 2], &[6, 8], &[0], &[1]], [&[1], &[9], &[0], &[1]]);
    made.nodes[0] = Node::new("Slice", ["x", "starts", "ends"], ["a"]);
    made.nodes[1] = Node::new("Slice", ["a", "starts2", "ends2"], ["y"]);
    assert_eq!(merged(&made), [[2, 2], [6, 8], [0, 1], [1, 1]]);
    let old = |from: &str, start: i64, to: &str| {
        Node::new("Slice", [from], [to]).ints("starts", [start]).ints("ends", [5]).ints("axes", [1])
    };
    let made = Made::new(&[6, 9], vec![old("x", 1, "a"), old("a", 2, "y")], 2).opset(9);
    let graph = holds(&MergeSlices, &made.model());
    let (_, node) = graph.producer("y").unwrap();
    assert_eq!(
        (node.inputs(), node.ints_of("starts"), node.ints_of("ends")),
        (&["x".to_owned()][..], Some(&[3][..]), Some(&[5][..]))
    );
}

#[test]
fn bounds_that_are_computed_are_left_alone() {
    for name in ["starts", "ends2"] {
        let mut made = twice([&[1], &[5], &[0], &[1]], [&[1], &[5], &[1], &[1]]);
        made.nodes.insert(0, Node::new("Abs", [name], ["computed"]));
        for node in &mut made.nodes[1..] {
            if let Some(index) = node.inputs().iter().position(|input| input == name) {
                *node = node.clone().with_input(index, "computed");
            }
        }
        left_alone(MergeSlices, &made.model(), "not constant");
    }
}

#[test]
fn a_slice_that_others_read_stays() {
    let made = twice([&[1], &[5], &[0], &[1]], [&[1], &[5], &[1], &[1]]).gives("a", 2);
    let graph = holds(&MergeSlices, &made.model());
    assert_eq!(graph.len(), 2);
    assert_eq!(graph.producer("y").unwrap().1.input(0), Some("x"));
}
