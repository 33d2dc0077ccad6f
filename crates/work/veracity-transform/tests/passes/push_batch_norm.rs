//! `push-batch-norm`

use veracity_onnx::Node;
use veracity_tensor::DType;
use veracity_transform::passes::PushBatchNorm;

use super::made::{Made, floats, some};
use crate::support::{holds, left_alone, lines};

fn norm() -> Node {
    Node::new("BatchNormalization", ["x", "scale", "shift", "mean", "var"], ["a"])
}

/// `x` is normalised and given to a layer.
fn case(x: &[usize], layer: Node, weight: &[usize], bias: &[usize]) -> Made {
    let positive: Vec<f64> =
        (1..=x[1]).map(|index| 0.3 * f64::from(u8::try_from(index).unwrap())).collect();
    Made::new(x, vec![norm(), layer], x.len())
        .with("w", some(weight, 1))
        .with("b", some(bias, 2))
        .with("scale", some(&[x[1]], 3))
        .with("shift", some(&[x[1]], 4))
        .with("mean", some(&[x[1]], 5))
        .with("var", floats(DType::F32, &[x[1]], &positive))
}

fn conv() -> Node {
    Node::new("Conv", ["a", "w", "b"], ["y"])
}

const IMAGE: &[usize] = &[2, 4, 5, 5];

#[test]
fn every_layer_takes_the_normalisation_in() {
    let gemm = |inputs: &[&str]| Node::new("Gemm", inputs.to_vec(), ["y"]).float("alpha", 0.5);
    for (expected, made) in [
        ("Conv(x, w_folded, b_folded)", case(IMAGE, conv(), &[6, 4, 2, 3], &[6])),
        ("Conv(x, w_folded, b_folded)", case(IMAGE, conv().int("group", 2), &[6, 2, 3, 3], &[6])),
        (
            "Conv(x, w_folded, w_bias)",
            case(
                IMAGE,
                Node::new("Conv", ["a", "w"], ["y"]).string("auto_pad", "VALID"),
                &[1, 4, 1, 1],
                &[1],
            ),
        ),
        (
            "Gemm(x, w_folded, b_folded)",
            case(&[3, 4], gemm(&["a", "w", "b"]).float("beta", 2.0), &[4, 5], &[5]),
        ),
        (
            "Gemm(x, w_folded, b_folded)",
            case(&[3, 4], gemm(&["a", "w", "b"]).int("transB", 1), &[5, 4], &[1, 5]),
        ),
        ("Gemm(x, w_folded, w_bias)", case(&[3, 4], gemm(&["a", "w"]), &[4, 1], &[1])),
        (
            "Gemm(x, w_folded, w_bias)",
            case(&[3, 4], gemm(&["a", "w"]).int("transB", 1), &[1, 4], &[1]),
        ),
        (
            "Gemm(x, w_folded, w_bias)",
            case(&[3, 4], Node::new("MatMul", ["a", "w"], ["y"]), &[4, 5], &[5]),
        ),
    ] {
        assert_eq!(lines(&holds(&PushBatchNorm, &made.model())), [format!("y = {expected}")]);
    }
}

/// A normalisation that only scales.
fn scaling(made: Made) -> Made {
    let zeros = || floats(DType::F32, &[4], &[0.0; 4]);
    made.with("shift", zeros()).with("mean", zeros())
}

#[test]
fn padding_is_not_normalised() {
    for padded in [conv().ints("pads", [0, 1, 0, 0]), conv().string("auto_pad", "SAME_LOWER")] {
        let made = case(IMAGE, padded.clone(), &[6, 4, 3, 3], &[6]);
        left_alone(PushBatchNorm, &made.model(), "padding is not normalised");
        holds(&PushBatchNorm, &scaling(made).model());
    }
    let product = case(&[3, 4], Node::new("MatMul", ["a", "w"], ["y"]), &[4, 5], &[5]);
    let graph = holds(&PushBatchNorm, &scaling(product).model());
    assert_eq!(lines(&graph), ["y = MatMul(x, w_folded)"]);
}

#[test]
fn what_is_not_the_same_is_left_alone() {
    let plain = || case(IMAGE, conv(), &[6, 4, 3, 3], &[6]);
    left_alone(PushBatchNorm, &plain().gives("a", 4).model(), "an output");
    let mut read = plain();
    read.nodes.push(Node::new("Relu", ["a"], ["z"]));
    left_alone(PushBatchNorm, &read.gives("z", 4).model(), "2 readers");
    let mut learns = plain();
    learns.nodes[0] = norm().int("training_mode", 1);
    left_alone(PushBatchNorm, &learns.model(), "training mode");
    let turned = Node::new("Gemm", ["a", "w"], ["y"]).int("transA", 1);
    left_alone(PushBatchNorm, &case(&[4, 4], turned, &[4, 5], &[5]).model(), "as rows");
    let deconvolution = Node::new("ConvTranspose", ["a", "w"], ["y"]);
    left_alone(
        PushBatchNorm,
        &case(IMAGE, deconvolution, &[4, 2, 2, 2], &[2]).model(),
        "ConvTranspose",
    );
    // As many rows as columns: sizes alone would look right.
    let product = case(&[2, 4, 4], Node::new("MatMul", ["a", "w"], ["y"]), &[4, 5], &[5]);
    left_alone(PushBatchNorm, &product.model(), "2 axes");
    let mut weight = plain();
    weight.nodes[1] = Node::new("Conv", ["x", "a"], ["y"]);
    left_alone(PushBatchNorm, &weight.model(), "");
    let mut other = plain();
    other.nodes[1] = Node::new("Relu", ["a"], ["y"]);
    left_alone(PushBatchNorm, &other.model(), "");
}
