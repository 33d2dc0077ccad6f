//! `fuse-batch-norm`

use veracity_onnx::{Dim, GraphBuilder, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::FuseBatchNorm;

use super::made::{Made, floats, opaque, some, tensor, weight};
use crate::support::{holds, left_alone, lines};

const PARAMETERS: [&str; 4] = ["scale", "shift", "mean", "var"];

fn norm() -> Node {
    Node::new("BatchNormalization", ["a", "scale", "shift", "mean", "var"], ["y"])
        .float("epsilon", 1e-3)
}

/// A layer `a`, normalised to `y`, all of it in one dtype.
fn case(dtype: DType, x: &[usize], layer: Node, weights: &[(&'static str, &[usize])]) -> Made {
    let mut made = Made::new(x, vec![layer, norm()], x.len());
    made.dtype = dtype;
    for (seed, (name, dims)) in weights.iter().enumerate() {
        made = made.with(name, tensor(&weight(dtype, dims, seed)));
    }
    made
}

/// With parameters of the normalisation for so many channels.
fn normalised(mut made: Made, channels: usize) -> Made {
    for (seed, name) in PARAMETERS.into_iter().enumerate() {
        let (dtype, dims, mut elements) = weight(made.dtype, &[channels], 40 + seed);
        if name == "var" {
            elements = elements.iter().map(|one| one.abs() + 0.25).collect();
        }
        made = made.with(name, floats(dtype, &dims, &elements));
    }
    made
}

fn conv(dtype: DType) -> Made {
    let layer = Node::new("Conv", ["x", "w"], ["a"]).ints("pads", [1, 1, 1, 1]);
    normalised(case(dtype, &[2, 3, 5, 5], layer, &[("w", &[4, 3, 3, 3])]), 4)
}

/// What comes out, the shape of `x`, the layer, its weights and its channels.
type Case<'c> = (&'c str, &'c [usize], Node, Vec<(&'static str, &'c [usize])>, usize);

#[test]
fn every_layer_takes_the_normalisation_in() {
    let gemm = |inputs: &[&str]| Node::new("Gemm", inputs.to_vec(), ["a"]);
    let image: &[usize] = &[2, 4, 5, 5];
    let cases: Vec<Case<'_>> = vec![
        (
            "Conv(x, w_folded, w_bias)",
            image,
            Node::new("Conv", ["x", "w"], ["a"]),
            vec![("w", &[6, 4, 3, 3])],
            6,
        ),
        (
            "Conv(x, w_folded, b_folded)",
            image,
            Node::new("Conv", ["x", "w", "b"], ["a"]).int("group", 2),
            vec![("w", &[6, 2, 1, 1]), ("b", &[6])],
            6,
        ),
        (
            "Conv(x, w_folded, b_folded)",
            &[2, 4, 9],
            Node::new("Conv", ["x", "w", "b"], ["a"]),
            vec![("w", &[3, 4, 2]), ("b", &[3])],
            3,
        ),
        (
            "ConvTranspose(x, w_folded, w_bias)",
            image,
            Node::new("ConvTranspose", ["x", "w"], ["a"]).ints("strides", [2, 2]),
            vec![("w", &[4, 3, 2, 2])],
            3,
        ),
        (
            "ConvTranspose(x, w_folded, b_folded)",
            image,
            Node::new("ConvTranspose", ["x", "w", "b"], ["a"]).int("group", 2),
            vec![("w", &[4, 3, 2, 2]), ("b", &[6])],
            6,
        ),
        (
            "Gemm(x, w_folded, b_folded)",
            &[3, 4],
            gemm(&["x", "w", "b"]).float("alpha", 0.5).float("beta", 2.0),
            vec![("w", &[4, 5]), ("b", &[5])],
            5,
        ),
        (
            "Gemm(x, w_folded, b_folded)",
            &[3, 4],
            gemm(&["x", "w", "b"]).int("transB", 1),
            vec![("w", &[5, 4]), ("b", &[1, 5])],
            5,
        ),
        (
            "Gemm(x, w_folded, b_folded)",
            &[4, 3],
            gemm(&["x", "w", "b"]).int("transA", 1).float("beta", -3.0),
            vec![("w", &[4, 5]), ("b", &[])],
            5,
        ),
        ("Gemm(x, w_folded, w_bias)", &[3, 4], gemm(&["x", "w"]), vec![("w", &[4, 5])], 5),
        (
            "Gemm(x, w_folded, w_bias)",
            &[3, 4],
            Node::new("MatMul", ["x", "w"], ["a"]),
            vec![("w", &[4, 5])],
            5,
        ),
    ];
    for dtype in [DType::F32, DType::F64] {
        for (expected, x, layer, weights, channels) in &cases {
            // Engines convolve no float64.
            if dtype == DType::F64 && x.len() > 2 {
                continue;
            }
            let made = normalised(case(dtype, x, layer.clone(), weights), *channels);
            let graph = holds(&FuseBatchNorm, &made.model());
            assert_eq!(lines(&graph), [format!("y = {expected}")], "{dtype}");
        }
    }
}

#[test]
fn halves_are_folded_in_float64() {
    let mut made = conv(DType::F16);
    holds(&FuseBatchNorm, &made.model());
    // Statistics of another type than the input, as later versions allow.
    for (name, weight) in &mut made.weights {
        if ["mean", "var"].contains(name) {
            let elements: Vec<f64> =
                weight.as_slice::<half::f16>().unwrap().iter().map(|one| one.to_f64()).collect();
            *weight = floats(DType::F32, &[4], &elements);
        }
    }
    let folded = holds(&FuseBatchNorm, &made.model());
    assert!(folded.weight("w_folded").is_some_and(|weight| weight.dtype() == Some(DType::F16)));
}

#[test]
fn a_normalisation_without_parameters_of_its_own_neither_scales_nor_shifts() {
    // What `affine=False` becomes: a scale of ones and a bias of zeros.
    let made = conv(DType::F32)
        .with("scale", floats(DType::F32, &[4], &[1.0; 4]))
        .with("shift", floats(DType::F32, &[4], &[0.0; 4]));
    holds(&FuseBatchNorm, &made.model());
}

#[test]
fn a_shared_weight_is_copied() {
    let mut made = conv(DType::F32);
    made.nodes.push(Node::new("Conv", ["x", "w"], ["z"]).ints("pads", [1, 1, 1, 1]));
    let graph = holds(&FuseBatchNorm, &made.gives("z", 4).model());
    assert_eq!(lines(&graph), ["y = Conv(x, w_folded, w_bias)", "z = Conv(x, w)"]);
}

#[test]
fn two_layers_that_share_weight_and_normalisation_get_weights_of_their_own() {
    let mut made = conv(DType::F32);
    made.nodes.push(Node::new("Conv", ["x", "w"], ["c"]));
    made.nodes.push(norm().with_input(0, "c").with_output(0, "z"));
    let graph = holds(&FuseBatchNorm, &made.gives("z", 4).model());
    assert_eq!(
        lines(&graph),
        ["y = Conv(x, w_folded, w_bias)", "z = Conv(x, w_folded_1, w_bias_1)"]
    );
}

#[test]
fn old_versions_are_known() {
    for opset in [7, 8, 9, 13, 14, 15] {
        holds(&FuseBatchNorm, &conv(DType::F32).opset(opset).model());
    }
    let spatial = |value: i64| {
        let mut made = conv(DType::F32).opset(7);
        made.nodes[1] = norm().int("spatial", value);
        made
    };
    holds(&FuseBatchNorm, &spatial(1).model());
    left_alone(FuseBatchNorm, &spatial(0).model(), "each activation");
    left_alone(FuseBatchNorm, &conv(DType::F32).opset(6).model(), "training mode");
}

#[test]
fn what_learns_is_left_alone() {
    let mut training = conv(DType::F32);
    training.nodes[1] = norm().int("training_mode", 1);
    left_alone(FuseBatchNorm, &training.model(), "training mode");
    let mut statistics = conv(DType::F32).opset(13);
    statistics.nodes[1] = norm().with_output(1, "mean_now").with_output(2, "var_now");
    left_alone(FuseBatchNorm, &statistics.model(), "statistics");
}

#[test]
fn a_layer_that_others_need_is_left_alone() {
    left_alone(FuseBatchNorm, &conv(DType::F32).gives("a", 4).model(), "an output");
    let mut read = conv(DType::F32);
    read.nodes.push(Node::new("Relu", ["a"], ["z"]));
    left_alone(FuseBatchNorm, &read.gives("z", 4).model(), "2 readers");
    let mut captured =
        conv(DType::F32).with("flag", Tensor::from_bytes(DType::Bool, [].into(), &[1]).unwrap());
    let branch = |op: &str| {
        GraphBuilder::new("branch", 18).node(Node::new(op, ["a"], ["out"])).output(
            "out",
            DType::F32,
            ["n", "c", "h", "w"],
        )
    };
    captured.nodes.push(
        Node::new("If", ["flag"], ["z"])
            .graph("then_branch", branch("Relu"))
            .graph("else_branch", branch("Neg")),
    );
    left_alone(FuseBatchNorm, &captured.gives("z", 4).model(), "2 readers");
}

#[test]
fn what_is_not_constant_is_left_alone() {
    for name in ["w", "scale", "shift", "mean", "var"] {
        let made = conv(DType::F32);
        let mut graph = GraphBuilder::new("graph", 18).input("x", DType::F32, [2_usize, 3, 5, 5]);
        for (other, tensor) in &made.weights {
            graph = graph.initializer(*other, tensor);
            if *other == name {
                // A weight that is an input as well can be replaced from outside.
                graph = graph.input(*other, DType::F32, tensor.shape().dims().to_vec());
            }
        }
        for node in &made.nodes {
            graph = graph.node(node.clone());
        }
        let model = graph.output("y", DType::F32, ["n", "c", "h", "w"]).finish().unwrap();
        left_alone(FuseBatchNorm, &model, "is not a constant");
    }
    let layer = Node::new("Conv", ["x", "w", "b"], ["a"]);
    let mut bias = normalised(case(DType::F32, &[2, 3, 5, 5], layer, &[("w", &[4, 3, 3, 3])]), 4);
    bias.nodes.insert(0, Node::new("ReduceMean", ["w", "axes"], ["b"]).int("keepdims", 0));
    bias = bias.with("axes", Tensor::from_slice([3], &[1_i64, 2, 3]).unwrap());
    left_alone(FuseBatchNorm, &bias.model(), "the bias \"b\" is not a constant");
}

#[test]
fn products_are_left_alone_unless_their_last_axis_is_normalised() {
    let product = |x: &[usize]| {
        let layer = Node::new("MatMul", ["x", "w"], ["a"]);
        normalised(case(DType::F32, x, layer, &[("w", &[4, 5])]), 5)
    };
    holds(&FuseBatchNorm, &product(&[5, 4]).model());
    // As many rows as columns: sizes alone would look right.
    left_alone(FuseBatchNorm, &product(&[2, 5, 4]).model(), "2 axes");
    let mut unknown = product(&[5, 4]);
    unknown.nodes.insert(0, opaque("x", "same"));
    unknown.nodes[1] = Node::new("MatMul", ["same", "w"], ["a"]);
    left_alone(FuseBatchNorm, &unknown.model(), "2 axes");
    let layer = Node::new("Gemm", ["x", "w", "b"], ["a"]);
    let rows = case(DType::F32, &[3, 4], layer, &[("w", &[4, 5]), ("b", &[3, 5])]);
    left_alone(FuseBatchNorm, &normalised(rows, 5).model(), "one number for each channel");
}

#[test]
fn parameters_that_do_not_fit_are_left_alone() {
    let negative = floats(DType::F32, &[4], &[1.0, 1.0, -0.5, 1.0]);
    left_alone(FuseBatchNorm, &conv(DType::F32).with("var", negative).model(), "not positive");
    let huge = floats(DType::F32, &[4], &[3e38; 4]);
    let tiny = floats(DType::F32, &[4], &[0.0; 4]);
    let made = conv(DType::F32).with("scale", huge.clone()).with("var", tiny);
    left_alone(FuseBatchNorm, &made.model(), "not be finite");
    let made =
        conv(DType::F32).with("var", huge).with("scale", floats(DType::F32, &[4], &[1e-25; 4]));
    left_alone(FuseBatchNorm, &made.model(), "too small");
    left_alone(
        FuseBatchNorm,
        &conv(DType::F32).with("mean", some(&[3], 1)).model(),
        "each channel",
    );
}

#[test]
fn what_follows_something_else_is_no_match() {
    let mut made = conv(DType::F32);
    made.nodes[0] = Node::new("Relu", ["x"], ["a"]);
    left_alone(FuseBatchNorm, &made.model(), "");
    made.nodes[0] = Node::new("Conv", ["x", "w"], ["a"]).domain("somebody.else");
    left_alone(FuseBatchNorm, &made.model(), "");
}

#[test]
fn sizes_may_have_names() {
    let mut made = conv(DType::F32);
    made.x[0] = Dim::from("batch");
    holds(&FuseBatchNorm, &made.model());
}
