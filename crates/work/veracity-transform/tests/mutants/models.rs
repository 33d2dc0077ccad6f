//! Small models that rewrites of tests are tried on.

use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_tensor::{DType, Tensor};

/// Numbers of both signs, or from 0.5 to 1.5.
pub(crate) fn numbers(dims: &[usize], seed: u64, positive: bool) -> Tensor {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let elements: Vec<f32> = (0..dims.iter().product())
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            let unit = f32::from((state >> 48) as u16) / 65536.0;
            if positive { unit + 0.5 } else { unit * 2.0 - 1.0 }
        })
        .collect();
    let shape = veracity_tensor::Shape::new(dims).unwrap();
    Tensor::from_slice(shape, &elements).unwrap()
}

fn scalar(number: f32) -> Tensor {
    Tensor::from_slice([0_usize; 0], &[number]).unwrap()
}

fn model(builder: GraphBuilder) -> Model {
    builder.finish().unwrap()
}

fn start(dims: &[usize]) -> GraphBuilder {
    GraphBuilder::new("graph", 17).input("x", DType::F32, dims.iter().copied())
}

fn end(builder: GraphBuilder, dims: &[usize]) -> Model {
    model(builder.output("y", DType::F32, dims.iter().copied()))
}

pub(crate) fn unary(operator: &str) -> Model {
    let builder = start(&[2, 8]).node(Node::new(operator, ["x"], ["y"]));
    end(builder, &[2, 8])
}

pub(crate) fn clip() -> Model {
    let builder = start(&[2, 8])
        .initializer("low", &scalar(0.0))
        .initializer("high", &scalar(6.0))
        .node(Node::new("Clip", ["x", "low", "high"], ["y"]));
    end(builder, &[2, 8])
}

#[derive(Clone, Copy)]
pub(crate) struct Bn {
    pub(crate) bias: bool,
    pub(crate) affine: bool,
    pub(crate) training: bool,
    /// Places along both axes of the picture.
    pub(crate) places: usize,
}

impl Bn {
    pub(crate) fn plain() -> Self {
        Self { bias: false, affine: true, training: false, places: 6 }
    }
}

fn conv(bn: Bn) -> GraphBuilder {
    let builder =
        start(&[1, 3, bn.places, bn.places]).initializer("w", &numbers(&[4, 3, 3, 3], 1, false));
    let builder = batch_norm(builder, bn);
    if bn.bias {
        let builder = builder.initializer("b", &numbers(&[4], 7, false));
        builder.node(Node::new("Conv", ["x", "w", "b"], ["c"]))
    } else {
        builder.node(Node::new("Conv", ["x", "w"], ["c"]))
    }
}

fn batch_norm(builder: GraphBuilder, bn: Bn) -> GraphBuilder {
    let (scale, shift) = if bn.affine {
        (numbers(&[4], 2, true), numbers(&[4], 3, false))
    } else {
        let all = |number: f32| Tensor::from_slice([4], &[number; 4]).unwrap();
        (all(1.0), all(0.0))
    };
    builder
        .initializer("scale", &scale)
        .initializer("shift", &shift)
        .initializer("mean", &numbers(&[4], 4, false))
        .initializer("variance", &numbers(&[4], 5, true))
}

fn norm(bn: Bn) -> Node {
    let inputs = ["c", "scale", "shift", "mean", "variance"];
    if bn.training {
        Node::new("BatchNormalization", inputs, ["y", "new_mean", "new_variance"])
            .float("epsilon", 1e-3)
            .int("training_mode", 1)
    } else {
        Node::new("BatchNormalization", inputs, ["y"]).float("epsilon", 1e-3)
    }
}

pub(crate) fn conv_bn(bn: Bn) -> Model {
    let places = bn.places - 2;
    end(conv(bn).node(norm(bn)), &[1, 4, places, places])
}

/// A convolution whose result is read beside its batch norm.
pub(crate) fn shared_conv() -> Model {
    let builder = conv(Bn::plain())
        .node(norm(Bn::plain()))
        .node(Node::new("Relu", ["c"], ["z"]))
        .output("z", DType::F32, [1_usize, 4, 4, 4]);
    end(builder, &[1, 4, 4, 4])
}

/// As many channels as columns, so that sizes alone do not tell the axis.
pub(crate) fn matmul_bn_3d() -> Model {
    let builder = start(&[2, 4, 5]).initializer("w", &numbers(&[5, 4], 1, false));
    let builder = batch_norm(builder, Bn::plain())
        .node(Node::new("MatMul", ["x", "w"], ["c"]))
        .node(norm(Bn::plain()));
    end(builder, &[2, 4, 4])
}

pub(crate) fn residual() -> Model {
    let builder = start(&[2, 8])
        .node(Node::new("Tanh", ["x"], ["a"]))
        .node(Node::new("Sigmoid", ["a"], ["b"]))
        .node(Node::new("Add", ["a", "b"], ["s"]))
        .node(Node::new("Relu", ["s"], ["y"]));
    end(builder, &[2, 8])
}

pub(crate) fn divided(by: f32) -> Model {
    let builder =
        start(&[4, 64]).initializer("by", &scalar(by)).node(Node::new("Div", ["x", "by"], ["y"]));
    end(builder, &[4, 64])
}

pub(crate) fn linear() -> Model {
    let builder = start(&[3, 8])
        .initializer("w", &numbers(&[8, 4], 1, false))
        .initializer("b", &numbers(&[4], 2, false))
        .node(Node::new("Gemm", ["x", "w", "b"], ["y"]));
    end(builder, &[3, 4])
}

pub(crate) fn projections() -> Model {
    let builder = start(&[3, 8])
        .initializer("wq", &numbers(&[8, 4], 1, false))
        .initializer("wk", &numbers(&[8, 4], 2, false))
        .node(Node::new("MatMul", ["x", "wq"], ["q"]))
        .node(Node::new("MatMul", ["x", "wk"], ["k"]))
        .node(Node::new("Tanh", ["k"], ["t"]))
        .node(Node::new("Mul", ["q", "t"], ["y"]));
    end(builder, &[3, 4])
}

/// Two transpositions, of which others read the first.
pub(crate) fn transposed() -> Model {
    let builder = start(&[2, 2, 2])
        .node(Node::new("Transpose", ["x"], ["a"]).ints("perm", [1, 2, 0]))
        .node(Node::new("Transpose", ["a"], ["y"]).ints("perm", [0, 2, 1]))
        .node(Node::new("Relu", ["a"], ["z"]))
        .output("z", DType::F32, [2_usize, 2, 2]);
    end(builder, &[2, 2, 2])
}

pub(crate) fn plus_zero() -> Model {
    let builder = start(&[2, 8])
        .initializer("zero", &scalar(0.0))
        .node(Node::new("Relu", ["x"], ["a"]))
        .node(Node::new("Add", ["a", "zero"], ["b"]))
        .node(Node::new("Tanh", ["b"], ["y"]));
    end(builder, &[2, 8])
}

pub(crate) fn twins() -> Model {
    let slope =
        |name: &str, alpha: f32| Node::new("LeakyRelu", ["x"], [name]).float("alpha", alpha);
    let builder = start(&[2, 8])
        .node(slope("a", 0.1))
        .node(slope("b", 0.2))
        .node(slope("c", 0.1))
        .node(Node::new("Add", ["a", "b"], ["s"]))
        .node(Node::new("Mul", ["s", "c"], ["y"]));
    end(builder, &[2, 8])
}

pub(crate) fn constant() -> Model {
    let builder = start(&[2, 8])
        .node(Node::new("Constant", [""; 0], ["half"]).float("value_float", 0.5))
        .node(Node::new("Mul", ["x", "half"], ["y"]));
    end(builder, &[2, 8])
}

pub(crate) fn gathered() -> Model {
    let index = Tensor::from_slice([2], &[0_i64, 3]).unwrap();
    let builder = start(&[2, 8])
        .initializer("index", &index)
        .node(Node::new("Gather", ["x", "index"], ["y"]).int("axis", 1));
    end(builder, &[2, 2])
}

pub(crate) fn layer_norm() -> Model {
    let builder = start(&[4, 32])
        .initializer("two", &scalar(2.0))
        .initializer("epsilon", &scalar(1e-5))
        .node(Node::new("ReduceMean", ["x"], ["m"]).ints("axes", [-1]))
        .node(Node::new("Sub", ["x", "m"], ["d"]))
        .node(Node::new("Pow", ["d", "two"], ["p"]))
        .node(Node::new("ReduceMean", ["p"], ["v"]).ints("axes", [-1]))
        .node(Node::new("Add", ["v", "epsilon"], ["e"]))
        .node(Node::new("Sqrt", ["e"], ["r"]))
        .node(Node::new("Div", ["d", "r"], ["y"]));
    end(builder, &[4, 32])
}

pub(crate) fn hard_swish() -> Model {
    let builder = start(&[2, 64])
        .node(Node::new("HardSigmoid", ["x"], ["h"]).float("alpha", 1.0 / 6.0).float("beta", 0.5))
        .node(Node::new("Mul", ["x", "h"], ["y"]));
    end(builder, &[2, 64])
}
