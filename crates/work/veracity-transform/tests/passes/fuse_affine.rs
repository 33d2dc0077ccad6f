//! `fuse-affine`

use veracity_onnx::{GraphBuilder, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::FuseAffine;

use super::made::{Made, floats, scalar, some};
use crate::support::{holds, left_alone, lines};

/// `y = operator(a, c)`, or the other way around.
fn then(operator: &str, constant_first: bool) -> Node {
    let inputs = if constant_first { ["c", "a"] } else { ["a", "c"] };
    Node::new(operator, inputs, ["y"])
}

fn conv(operator: &str, constant_first: bool, constant: Tensor) -> Made {
    let layer = Node::new("Conv", ["x", "w", "b"], ["a"]);
    Made::new(&[2, 3, 4, 4], vec![layer, then(operator, constant_first)], 4)
        .with("w", some(&[5, 3, 2, 2], 1))
        .with("b", some(&[5], 2))
        .with("c", constant)
}

#[test]
fn channels_of_a_convolution_are_scaled_and_shifted() {
    for (operator, constant_first) in [
        ("Mul", false),
        ("Mul", true),
        ("Add", false),
        ("Add", true),
        ("Sub", false),
        ("Sub", true),
        ("Div", false),
    ] {
        for dims in [&[5_usize, 1, 1][..], &[1, 5, 1, 1], &[1, 1, 1, 1], &[1], &[]] {
            let graph = holds(&FuseAffine, &conv(operator, constant_first, some(dims, 7)).model());
            let weight = if operator == "Add" || (operator, constant_first) == ("Sub", false) {
                "w"
            } else {
                "w_folded"
            };
            assert_eq!(
                lines(&graph),
                [format!("y = Conv(x, {weight}, b_folded)")],
                "{operator} {dims:?}"
            );
        }
    }
}

#[test]
fn a_layer_without_bias_gets_one_only_when_it_is_shifted() {
    for (operator, expected) in
        [("Add", "y = ConvTranspose(x, w, w_bias)"), ("Mul", "y = ConvTranspose(x, w_folded)")]
    {
        let layer = Node::new("ConvTranspose", ["x", "w"], ["a"]).int("group", 2);
        let made = Made::new(&[1, 4, 3, 3], vec![layer, then(operator, false)], 4)
            .with("w", some(&[4, 3, 2, 2], 1))
            .with("c", some(&[6, 1, 1], 3));
        assert_eq!(lines(&holds(&FuseAffine, &made.model())), [expected]);
    }
}

#[test]
fn columns_of_a_product_are_scaled_whatever_its_axes() {
    for (x, dims) in [
        (&[3_usize, 4][..], &[5_usize][..]),
        (&[2, 3, 4], &[5]),
        (&[2, 3, 4], &[1, 1, 5]),
        (&[4], &[5]),
        (&[2, 3, 4], &[]),
    ] {
        let made =
            Made::new(x, vec![Node::new("MatMul", ["x", "w"], ["a"]), then("Div", false)], x.len())
                .with("w", some(&[4, 5], 1))
                .with("c", some(dims, 5));
        assert_eq!(lines(&holds(&FuseAffine, &made.model())), ["y = MatMul(x, w_folded)"]);
    }
    let gemm = Node::new("Gemm", ["x", "w", "b"], ["a"]).float("beta", 0.5).float("alpha", 3.0);
    let made = Made::new(&[3, 4], vec![gemm, then("Sub", true)], 2)
        .with("w", some(&[4, 5], 1))
        .with("b", some(&[1, 5], 2))
        .with("c", some(&[5], 3));
    assert_eq!(lines(&holds(&FuseAffine, &made.model())), ["y = Gemm(x, w_folded, b_folded)"]);
}

#[test]
fn a_chain_folds_into_one_layer() {
    let mut made = conv("Mul", false, some(&[5, 1, 1], 7));
    made.nodes.push(Node::new("Add", ["d", "y"], ["z"]));
    made.nodes.push(Node::new("Sub", ["z", "e"], ["v"]));
    made.outputs = vec![("v", 4)];
    let model = made.with("d", some(&[5, 1, 1], 8)).with("e", scalar(0.25)).model();
    assert_eq!(lines(&holds(&FuseAffine, &model)), ["v = Conv(x, w_folded, b_folded_2)"]);
}

#[test]
fn constants_that_differ_elsewhere_or_make_it_larger_are_left_alone() {
    for (dims, reason) in [
        (&[5_usize][..], "another axis"),
        (&[3, 1], "another axis"),
        (&[2, 5, 1, 1], "another axis"),
        (&[1, 1, 5, 1, 1], "more axes"),
        (&[1, 1, 1, 1, 1], "more axes"),
    ] {
        // Three columns: a constant for each would run.
        let mut made = conv("Mul", false, some(dims, 7));
        made.x = [2_usize, 3, 4, 6].map(Into::into).to_vec();
        left_alone(FuseAffine, &made.model(), reason);
    }
    let one = Node::new("Conv", ["x", "w"], ["a"]);
    let wider = Made::new(&[2, 3, 4, 4], vec![one, then("Mul", false)], 4)
        .with("w", some(&[1, 3, 2, 2], 1))
        .with("c", some(&[5, 1, 1], 2));
    left_alone(FuseAffine, &wider.model(), "5 constants for 1 channels");
    let product = |x: &[usize], dims: &[usize]| {
        Made::new(x, vec![Node::new("MatMul", ["x", "w"], ["a"]), then("Mul", false)], 3)
            .with("w", some(&[4, 5], 1))
            .with("c", some(dims, 2))
    };
    left_alone(FuseAffine, &product(&[3, 4], &[1, 1, 5]).model(), "more axes");
    left_alone(FuseAffine, &product(&[2, 3, 4], &[3, 1]).model(), "another axis");
    left_alone(FuseAffine, &product(&[4], &[1, 5]).model(), "more axes");
}

#[test]
fn what_is_not_affine_is_no_match() {
    left_alone(FuseAffine, &conv("Div", true, some(&[5, 1, 1], 7)).model(), "");
    let zero = floats(DType::F32, &[5, 1, 1], &[1.0, 2.0, 0.0, 3.0, 4.0]);
    left_alone(FuseAffine, &conv("Div", false, zero).model(), "divides by 0");
    left_alone(FuseAffine, &conv("Mul", false, scalar(f32::INFINITY)).model(), "not finite");
    left_alone(FuseAffine, &conv("Mul", false, scalar(1e-44)).model(), "too small");
    let mut twice = conv("Mul", false, scalar(2.0));
    twice.nodes[1] = Node::new("Mul", ["a", "a"], ["y"]);
    left_alone(FuseAffine, &twice.model(), "");
    let shifted =
        Made::new(&[3, 4], vec![Node::new("MatMul", ["x", "w"], ["a"]), then("Add", false)], 2);
    let shifted = shifted.with("w", some(&[4, 5], 1)).with("c", some(&[5], 2));
    left_alone(FuseAffine, &shifted.model(), "");
}

#[test]
fn a_layer_that_others_need_is_left_alone() {
    left_alone(FuseAffine, &conv("Mul", false, scalar(2.0)).gives("a", 4).model(), "an output");
    let mut read = conv("Mul", false, scalar(2.0));
    read.nodes.push(Node::new("Relu", ["a"], ["z"]));
    left_alone(FuseAffine, &read.gives("z", 4).model(), "2 readers");
}

#[test]
fn weights_that_are_inputs_are_left_alone() {
    for (name, reason) in [("w", "is not a constant"), ("b", "is not a constant"), ("c", "")] {
        let made = conv("Mul", false, some(&[5, 1, 1], 7));
        let mut graph = GraphBuilder::new("graph", 18).input("x", DType::F32, [2_usize, 3, 4, 4]);
        for (other, tensor) in &made.weights {
            graph = graph.initializer(*other, tensor);
            if *other == name {
                graph = graph.input(*other, DType::F32, tensor.shape().dims().to_vec());
            }
        }
        let graph = graph.node(made.nodes[0].clone()).node(made.nodes[1].clone());
        let model = graph.output("y", DType::F32, ["n", "c", "h", "w"]).finish().unwrap();
        left_alone(FuseAffine, &model, reason);
    }
}
