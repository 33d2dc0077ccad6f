//! `merge-transposes`

use veracity_onnx::Node;
use veracity_transform::passes::MergeTransposes;

use super::made::Made;
use crate::support::{holds, left_alone, lines};

fn turn(perm: Option<&[i64]>, from: &str, to: &str) -> Node {
    let node = Node::new("Transpose", [from], [to]);
    match perm {
        Some(perm) => node.ints("perm", perm),
        None => node,
    }
}

/// `x` is turned twice, between two nodes that stay.
fn twice(first: Option<&[i64]>, second: Option<&[i64]>) -> Made {
    let nodes = vec![
        Node::new("Relu", ["x"], ["r"]),
        turn(first, "r", "a"),
        turn(second, "a", "b"),
        Node::new("Neg", ["b"], ["y"]),
    ];
    Made::new(&[2, 3, 4], nodes, 3)
}

#[test]
fn two_are_one() {
    for (first, second, merged) in [
        (Some(&[1_i64, 2, 0][..]), Some(&[1_i64, 2, 0][..]), [2_i64, 0, 1]),
        (Some(&[0, 2, 1]), Some(&[1, 0, 2]), [2, 0, 1]),
        (None, Some(&[0, 2, 1]), [2, 0, 1]),
        (Some(&[0, 2, 1]), None, [1, 2, 0]),
    ] {
        let graph = holds(&MergeTransposes, &twice(first, second).model());
        assert_eq!(lines(&graph), ["r = Relu(x)", "b = Transpose(r)", "y = Neg(b)"]);
        assert_eq!(graph.producer("b").unwrap().1.ints_of("perm").unwrap(), merged);
    }
}

#[test]
fn two_that_undo_each_other_go() {
    for (first, second) in [
        (Some(&[1_i64, 2, 0][..]), Some(&[2_i64, 0, 1][..])),
        (None, None),
        (Some(&[2, 1, 0]), None),
    ] {
        let graph = holds(&MergeTransposes, &twice(first, second).model());
        assert_eq!(lines(&graph), ["r = Relu(x)", "y = Neg(r)"]);
    }
}

#[test]
fn a_long_chain_becomes_one() {
    let perm: &[i64] = &[1, 2, 0];
    let mut nodes: Vec<Node> =
        (0..4).map(|at| turn(Some(perm), &format!("v{at}"), &format!("v{}", at + 1))).collect();
    nodes[0] = turn(Some(perm), "x", "v1");
    nodes.push(Node::new("Neg", ["v4"], ["y"]));
    let graph = holds(&MergeTransposes, &Made::new(&[2, 3, 4], nodes, 3).model());
    assert_eq!(lines(&graph), ["v4 = Transpose(x)", "y = Neg(v4)"]);
}

#[test]
fn one_that_others_read_stays() {
    let mut made = twice(Some(&[1, 2, 0]), Some(&[2, 0, 1]));
    made.nodes.push(Node::new("Abs", ["a"], ["z"]));
    let graph = holds(&MergeTransposes, &made.gives("z", 3).model());
    assert_eq!(lines(&graph), ["r = Relu(x)", "a = Transpose(r)", "y = Neg(r)", "z = Abs(a)"]);
}

#[test]
fn an_output_of_the_model_needs_a_node_of_its_own() {
    let nodes = vec![turn(None, "x", "a"), turn(None, "a", "y")];
    left_alone(MergeTransposes, &Made::new(&[2, 3], nodes, 2).model(), "a node of its own");
    let nodes = vec![Node::new("Relu", ["x"], ["r"]), turn(None, "r", "a"), turn(None, "a", "y")];
    assert_eq!(
        lines(&holds(&MergeTransposes, &Made::new(&[2, 3], nodes.clone(), 2).model())),
        ["y = Relu(x)"]
    );
    left_alone(
        MergeTransposes,
        &Made::new(&[2, 3], nodes, 2).gives("r", 2).model(),
        "a node of its own",
    );
}

#[test]
fn one_alone_is_no_match() {
    let nodes = vec![turn(None, "x", "a"), Node::new("Relu", ["a"], ["b"]), turn(None, "b", "y")];
    left_alone(MergeTransposes, &Made::new(&[2, 3], nodes, 2).model(), "");
}
