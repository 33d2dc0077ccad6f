//! `merge-squeezes`

use veracity_onnx::Node;
use veracity_transform::passes::MergeSqueezes;

use super::made::{Made, ints, opaque};
use crate::support::{holds, left_alone, lines};

/// Two nodes between two others; `None` are no axes.
fn twice(
    x: &[usize],
    (one, first): (&str, &[i64]),
    (two, second): (&str, &[i64]),
    rank: usize,
) -> Made {
    let node = |op: &str, from: &str, axes: &str, listed: &[i64], to: &str| {
        if listed.is_empty() {
            Node::new(op, [from], [to])
        } else {
            Node::new(op, [from, axes], [to])
        }
    };
    let nodes = vec![
        node(one, "x", "s", first, "a"),
        node(two, "a", "t", second, "b"),
        Node::new("Neg", ["b"], ["y"]),
    ];
    Made::new(x, nodes, rank).with("s", ints(first)).with("t", ints(second))
}

const OUT: &str = "Squeeze";
const IN: &str = "Unsqueeze";

#[test]
fn two_are_one() {
    for (x, first, second, operator, merged) in [
        (
            &[1_usize, 2, 1, 1, 3][..],
            (OUT, &[0_i64][..]),
            (OUT, &[1_i64, 2][..]),
            OUT,
            &[0_i64, 2, 3][..],
        ),
        (&[1, 2, 1, 1, 3], (OUT, &[3]), (OUT, &[0, 2]), OUT, &[0, 2, 3]),
        (&[2, 3], (IN, &[1]), (IN, &[0]), IN, &[0, 2]),
        (&[2, 3], (IN, &[0, 3]), (IN, &[1, 4]), IN, &[0, 1, 4, 5]),
        (&[2, 3], (IN, &[-1]), (IN, &[0]), IN, &[0, 3]),
        (&[2, 3], (IN, &[0, 1, 4]), (OUT, &[1]), IN, &[0, 3]),
        (&[1, 2, 3], (IN, &[1]), (OUT, &[0, 1]), OUT, &[0]),
    ] {
        let rank = 0;
        let mut made = twice(x, first, second, rank);
        made.outputs = vec![("y", expected_rank(x.len(), operator, merged.len()))];
        for opset in [11, 18] {
            let model =
                if opset == 18 { made.model() } else { old(&made, first.1, second.1).model() };
            let graph = holds(&MergeSqueezes, &model);
            assert_eq!(graph.len(), 2, "{:?}", lines(&graph));
            let (_, node) = graph.producer("b").unwrap();
            assert_eq!((node.op_type(), node.input(0)), (operator, Some("x")));
            let axes = match node.input(1) {
                Some(name) => graph.weight(name).unwrap().ints().unwrap(),
                None => node.ints_of("axes").unwrap().to_vec(),
            };
            assert_eq!(axes, merged, "{x:?} {first:?} {second:?}");
        }
    }
}

fn expected_rank(rank: usize, operator: &str, axes: usize) -> usize {
    if operator == OUT { rank - axes } else { rank + axes }
}

/// The same with attributes instead of inputs.
fn old(made: &Made, first: &[i64], second: &[i64]) -> Made {
    let attribute =
        |node: &Node, listed: &[i64]| node.clone().with_input(1, "").ints("axes", listed);
    let nodes = vec![
        attribute(&made.nodes[0], first),
        attribute(&made.nodes[1], second),
        made.nodes[2].clone(),
    ];
    let mut old = Made::new(&[], nodes, 0).opset(11);
    (old.x, old.outputs) = (made.x.clone(), made.outputs.clone());
    old
}

#[test]
fn two_that_undo_each_other_go() {
    for (x, first, second) in [
        (&[2_usize, 3][..], (IN, &[0_i64, 2][..]), (OUT, &[2_i64, 0][..])),
        (&[1, 2, 1, 3], (OUT, &[0, 2]), (IN, &[0, 2])),
        (&[1, 2, 1, 3], (OUT, &[-4, -2]), (IN, &[0, 2])),
    ] {
        let graph = holds(&MergeSqueezes, &twice(x, first, second, x.len()).model());
        assert_eq!(lines(&graph), ["y = Neg(x)"]);
    }
}

#[test]
fn all_axes_of_size_one_go_whatever_went_before() {
    for first in [&[0_i64][..], &[]] {
        let graph =
            holds(&MergeSqueezes, &twice(&[1, 2, 1, 3], (OUT, first), (OUT, &[]), 2).model());
        assert_eq!(lines(&graph), ["b = Squeeze(x)", "y = Neg(b)"]);
    }
}

#[test]
fn what_takes_two_nodes_is_no_match() {
    left_alone(MergeSqueezes, &twice(&[2, 1, 3], (IN, &[0]), (OUT, &[2]), 3).model(), "");
    left_alone(MergeSqueezes, &twice(&[1, 2, 1], (OUT, &[0]), (IN, &[1]), 3).model(), "");
    left_alone(MergeSqueezes, &twice(&[1, 2, 1], (OUT, &[]), (IN, &[0]), 2).model(), "");
}

#[test]
fn axes_that_are_not_known_are_left_alone() {
    let mut computed = twice(&[1, 1, 3], (OUT, &[0]), (OUT, &[0]), 1);
    computed.nodes.insert(0, Node::new("Abs", ["s"], ["u"]));
    computed.nodes[1] = Node::new(OUT, ["x", "u"], ["a"]);
    left_alone(MergeSqueezes, &computed.model(), "not constant");
    // Counted from the end of something of which nothing is known.
    let mut end = twice(&[1, 1, 3], (OUT, &[0]), (OUT, &[-2]), 1);
    end.nodes.insert(0, opaque("x", "unknown"));
    end.nodes[1] = end.nodes[1].clone().with_input(0, "unknown");
    left_alone(MergeSqueezes, &end.model(), "counts from the end");
    let mut empty = twice(&[1, 1, 3], (OUT, &[0]), (OUT, &[0]), 1).with("t", ints(&[]));
    empty.outputs = vec![("y", 1)];
    left_alone(MergeSqueezes, &empty.model(), "empty list");
}

#[test]
fn an_output_of_the_model_needs_a_node_of_its_own() {
    let mut made = twice(&[2, 3], (IN, &[0]), (OUT, &[0]), 2);
    made.outputs = vec![("b", 2)];
    made.nodes.pop();
    left_alone(MergeSqueezes, &made.model(), "a node of its own");
}
