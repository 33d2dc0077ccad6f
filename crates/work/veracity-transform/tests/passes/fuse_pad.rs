//! `fuse-pad`

use veracity_onnx::Node;
use veracity_tensor::Tensor;
use veracity_transform::passes::FusePad;

use super::made::{Made, ints, scalar, some};
use crate::support::{holds, left_alone, lines};

fn pad() -> Node {
    Node::new("Pad", ["x", "pads", "value"], ["a"])
}

fn case(node: Node, pads: &[i64], value: f32) -> Made {
    Made::new(&[1, 2, 6, 5], vec![pad(), node], 4)
        .with("w", some(&[3, 2, 3, 3], 1))
        .with("pads", ints(pads))
        .with("value", scalar(value))
}

fn conv() -> Node {
    Node::new("Conv", ["a", "w"], ["y"])
}

fn pool(operator: &str) -> Node {
    Node::new(operator, ["a"], ["y"]).ints("kernel_shape", [3, 3])
}

/// Different on all four sides.
const SIDES: [i64; 8] = [0, 0, 1, 0, 0, 0, 2, 1];

fn pads_of(made: &Made) -> Vec<i64> {
    let graph = holds(&FusePad, &made.model());
    assert_eq!(graph.len(), 1, "{:?}", lines(&graph));
    graph.producer("y").unwrap().1.ints_of("pads").unwrap().to_vec()
}

#[test]
fn zeros_around_become_padding_of_the_convolution() {
    assert_eq!(pads_of(&case(conv(), &SIDES, 0.0)), [1, 0, 2, 1]);
    assert_eq!(pads_of(&case(conv().ints("pads", [1, 1, 0, 0]), &SIDES, 0.0)), [2, 1, 2, 1]);
    assert_eq!(pads_of(&case(conv().string("auto_pad", "VALID"), &SIDES, 0.0)), [1, 0, 2, 1]);
    let strided = conv().ints("strides", [2, 1]).ints("dilations", [1, 2]);
    assert_eq!(pads_of(&case(strided, &SIDES, 0.0)), [1, 0, 2, 1]);
    let mut without_value = case(conv(), &SIDES, 0.0);
    without_value.nodes[0] = Node::new("Pad", ["x", "pads"], ["a"]);
    assert_eq!(pads_of(&without_value), [1, 0, 2, 1]);
}

#[test]
fn some_axes_may_be_named() {
    let mut made = case(conv(), &[1, 0, 2, 3], 0.0).with("axes", ints(&[-1, 2]));
    made.nodes[0] = Node::new("Pad", ["x", "pads", "value", "axes"], ["a"]);
    assert_eq!(pads_of(&made), [0, 1, 3, 2]);
}

#[test]
fn old_versions_have_attributes() {
    let mut made = case(conv(), &SIDES, 0.0).opset(10);
    made.weights.retain(|(name, _)| *name == "w");
    made.nodes[0] = Node::new("Pad", ["x"], ["a"]).ints("pads", SIDES).float("value", 0.0);
    assert_eq!(pads_of(&made), [1, 0, 2, 1]);
    made.nodes[0] = Node::new("Pad", ["x"], ["a"]).ints("pads", SIDES).float("value", 1.0);
    left_alone(FusePad, &made.model(), "padded with 1");
}

#[test]
fn pools_have_padding_of_their_own() {
    assert_eq!(pads_of(&case(pool("AveragePool"), &SIDES, 0.0)), [1, 0, 2, 1]);
    let counts = pool("AveragePool").int("count_include_pad", 1).ints("pads", [0, 1, 0, 1]);
    assert_eq!(pads_of(&case(counts, &SIDES, 0.0)), [1, 1, 2, 2]);
    let own = pool("AveragePool").ints("pads", [0, 1, 0, 1]);
    left_alone(FusePad, &case(own, &SIDES, 0.0).model(), "does not count");
    left_alone(FusePad, &case(pool("AveragePool"), &SIDES, 0.5).model(), "padded with 0.5");
    let lowest = case(pool("MaxPool"), &SIDES, f32::NEG_INFINITY);
    left_alone(FusePad, &lowest.model(), "do not agree");
}

#[test]
fn pools_that_would_see_the_difference_are_left_alone() {
    for (node, reason) in [
        (pool("AveragePool").int("ceil_mode", 1), "rounds its output up"),
        (pool("AveragePool").ints("dilations", [1, 2]), "gaps"),
        (pool("AveragePool").ints("kernel_shape", [2, 2]), "as large as its kernel"),
    ] {
        left_alone(FusePad, &case(node, &SIDES, 0.0).model(), reason);
    }
}

#[test]
fn other_padding_is_left_alone() {
    for (pads, value, reason) in [
        (SIDES, 0.5, "padded with 0.5"),
        (SIDES, -0.0, "padded with -0"),
        ([0, 1, 1, 0, 0, 0, 1, 0], 0.0, "batch or the channels"),
        ([1, 0, 0, 0, 0, 0, 0, 0], 0.0, "batch or the channels"),
        ([0, 0, 1, -1, 0, 0, 1, 0], 0.0, "cuts off"),
    ] {
        left_alone(FusePad, &case(conv(), &pads, value).model(), reason);
    }
    let mut reflected = case(conv(), &SIDES, 0.0);
    reflected.nodes[0] = pad().string("mode", "reflect");
    left_alone(FusePad, &reflected.model(), "repeats elements");
    let same = conv().string("auto_pad", "SAME_UPPER");
    left_alone(FusePad, &case(same, &SIDES, 0.0).model(), "SAME_UPPER");
    let mut computed = case(conv(), &SIDES, 0.0);
    computed.weights.retain(|(name, _)| *name != "pads");
    computed = computed.with("half", ints(&SIDES));
    computed.nodes.insert(0, Node::new("Neg", ["half"], ["pads"]));
    left_alone(FusePad, &computed.model(), "not constant");
    let none =
        case(conv(), &SIDES, 0.0).with("value", Tensor::from_slice([0], &[0.0_f32; 0]).unwrap());
    left_alone(FusePad, &none.model(), "no float constant");
}

#[test]
fn a_padded_value_that_others_need_is_left_alone() {
    left_alone(FusePad, &case(conv(), &SIDES, 0.0).gives("a", 4).model(), "an output");
    let mut read = case(conv(), &SIDES, 0.0);
    read.nodes.push(Node::new("Relu", ["a"], ["z"]));
    left_alone(FusePad, &read.gives("z", 4).model(), "2 readers");
}
