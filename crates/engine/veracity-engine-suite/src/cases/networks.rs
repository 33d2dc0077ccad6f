//! The layers that policies are made of, against plain loops in float64.

use veracity_engine::Engine;
use veracity_onnx::Node;
use veracity_tensor::Tensor;

use crate::Case;
use crate::trial::Trial;
use crate::values::{numbers, rounded, tensor, wave};

pub(super) const CASES: &[Case] = &[
    Case { id: "mlp_of_gemm_and_elu", run: gemm_elu },
    Case { id: "mlp_of_matmul_add_and_tanh", run: matmul_tanh },
    Case { id: "gru_as_torch_exports_it", run: gru },
    Case { id: "layer_normalization", run: layer_normalization },
    Case { id: "softmax", run: softmax },
    Case { id: "conv_batchnorm_relu", run: conv_batchnorm_relu },
];

/// What float32 sums of a few dozen products may be off by.
const TOLERANCE: f64 = 1e-5;

/// `x · w` for `x` of `rows` rows.
fn matmul(x: &[f64], w: &[f64], rows: usize) -> Vec<f64> {
    let inner = x.len() / rows;
    let columns = w.len() / inner;
    let cell = |row: usize, column: usize| {
        (0..inner).map(|k| x[row * inner + k] * w[k * columns + column]).sum()
    };
    (0..rows).flat_map(|row| (0..columns).map(move |column| cell(row, column))).collect()
}

/// Adds `bias` to every row.
fn add_bias(x: Vec<f64>, bias: &[f64]) -> Vec<f64> {
    x.into_iter().zip(bias.iter().cycle()).map(|(x, b)| x + b).collect()
}

/// The transpose of a matrix with that many rows.
fn transposed(x: &[f64], rows: usize) -> Vec<f64> {
    let columns = x.len() / rows;
    (0..columns).flat_map(|c| (0..rows).map(move |r| x[r * columns + c])).collect()
}

fn gemm_elu(engine: &dyn Engine) -> Result<(), String> {
    let (x, w1, b1) = (wave([2, 5], 0.1), wave([8, 5], 0.2), wave([8], 0.3));
    let (w2, b2) = (wave([3, 8], 0.4), wave([3], 0.5));
    let elu = |x: f64| if x > 0.0 { x } else { x.exp() - 1.0 };
    let hidden = add_bias(matmul(&numbers(&x), &transposed(&numbers(&w1), 8), 2), &numbers(&b1));
    let hidden: Vec<f64> = hidden.into_iter().map(elu).collect();
    let y = add_bias(matmul(&hidden, &transposed(&numbers(&w2), 3), 2), &numbers(&b2));
    Trial::new(&[("x", &x)], &[("y", &rounded([2, 3], &y))])
        .constant("w1", &w1)
        .constant("b1", &b1)
        .constant("w2", &w2)
        .constant("b2", &b2)
        .node(Node::new("Gemm", ["x", "w1", "b1"], ["h"]).int("transB", 1))
        .node(Node::new("Elu", ["h"], ["e"]).float("alpha", 1.0))
        .node(Node::new("Gemm", ["e", "w2", "b2"], ["y"]).int("transB", 1))
        .within(TOLERANCE)
        .check(engine)
}

fn matmul_tanh(engine: &dyn Engine) -> Result<(), String> {
    let (x, w, b) = (wave([1, 6], 0.6), wave([6, 4], 0.7), wave([4], 0.8));
    let sums = add_bias(matmul(&numbers(&x), &numbers(&w), 1), &numbers(&b));
    let y: Vec<f64> = sums.into_iter().map(f64::tanh).collect();
    Trial::new(&[("x", &x)], &[("y", &rounded([1, 4], &y))])
        .constant("w", &w)
        .constant("b", &b)
        .node(Node::new("MatMul", ["x", "w"], ["m"]))
        .node(Node::new("Add", ["m", "b"], ["s"]))
        .node(Node::new("Tanh", ["s"], ["y"]))
        .within(TOLERANCE)
        .check(engine)
}

/// The weights of a GRU with one direction: gates update, reset, new.
struct Gru {
    input_weights: Tensor,
    state_weights: Tensor,
    biases: Tensor,
    state_size: usize,
}

impl Gru {
    fn new(input_size: usize, state_size: usize) -> Self {
        Self {
            input_weights: wave([1, 3 * state_size, input_size], 1.1),
            state_weights: wave([1, 3 * state_size, state_size], 1.2),
            biases: wave([1, 6 * state_size], 1.3),
            state_size,
        }
    }

    /// The next state. The reset gate is applied after the product with the state, as torch does.
    fn step(&self, x: &[f64], state: &[f64]) -> Vec<f64> {
        let gates = 3 * self.state_size;
        let biases = numbers(&self.biases);
        let (input_bias, state_bias) = biases.split_at(gates);
        let product = |weights: &Tensor, x: &[f64], bias: &[f64]| {
            add_bias(matmul(x, &transposed(&numbers(weights), gates), 1), bias)
        };
        let from_input = product(&self.input_weights, x, input_bias);
        let from_state = product(&self.state_weights, state, state_bias);
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let unit = |i: usize| {
            let (reset_at, new_at) = (i + self.state_size, i + 2 * self.state_size);
            let update = sigmoid(from_input[i] + from_state[i]);
            let reset = sigmoid(from_input[reset_at] + from_state[reset_at]);
            let new = (from_input[new_at] + reset * from_state[new_at]).tanh();
            (1.0 - update) * new + update * state[i]
        };
        (0..self.state_size).map(unit).collect()
    }
}

fn gru(engine: &dyn Engine) -> Result<(), String> {
    let gru = Gru::new(3, 4);
    let (x, start) = (wave([2, 1, 3], 1.4), wave([1, 1, 4], 1.5));
    let steps = numbers(&x);
    let first = gru.step(&steps[..3], &numbers(&start));
    let last = gru.step(&steps[3..], &first);
    let every = rounded([2, 1, 1, 4], &[first, last.clone()].concat());
    Trial::new(
        &[("x", &x), ("start", &start)],
        &[("every", &every), ("last", &rounded([1, 1, 4], &last))],
    )
    .constant("w", &gru.input_weights)
    .constant("r", &gru.state_weights)
    .constant("b", &gru.biases)
    .node(
        Node::new("GRU", ["x", "w", "r", "b", "", "start"], ["every", "last"])
            .int("hidden_size", 4)
            .int("linear_before_reset", 1),
    )
    .within(TOLERANCE)
    .check(engine)
}

fn layer_normalization(engine: &dyn Engine) -> Result<(), String> {
    let (x, scale, bias) = (wave([2, 6], 2.1), wave([6], 2.2), wave([6], 2.3));
    let normalized = numbers(&x).chunks(6).flat_map(normalize).collect::<Vec<_>>();
    let scaled = normalized.iter().zip(numbers(&scale).into_iter().cycle()).map(|(x, s)| x * s);
    let y = add_bias(scaled.collect(), &numbers(&bias));
    Trial::new(&[("x", &x)], &[("y", &rounded([2, 6], &y))])
        .constant("scale", &scale)
        .constant("bias", &bias)
        .node(
            Node::new("LayerNormalization", ["x", "scale", "bias"], ["y"])
                .int("axis", -1)
                .float("epsilon", 1e-5),
        )
        .within(TOLERANCE)
        .check(engine)
}

/// A row with mean 0 and variance 1.
fn normalize(row: &[f64]) -> Vec<f64> {
    let count: f64 = row.iter().map(|_| 1.0).sum();
    let mean = row.iter().sum::<f64>() / count;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    row.iter().map(|x| (x - mean) / (variance + 1e-5).sqrt()).collect()
}

fn softmax(engine: &dyn Engine) -> Result<(), String> {
    // The second row overflows unless its largest element is taken off first.
    let x = tensor([2, 3], &[0.1_f32, -0.5, 2.0, 1000.0, 999.0, -1000.0]);
    let of_row = |row: &[f64]| {
        let largest = row.iter().copied().fold(f64::MIN, f64::max);
        let sum: f64 = row.iter().map(|x| (x - largest).exp()).sum();
        row.iter().map(|x| (x - largest).exp() / sum).collect::<Vec<_>>()
    };
    let y: Vec<f64> = numbers(&x).chunks(3).flat_map(of_row).collect();
    Trial::new(&[("x", &x)], &[("y", &rounded([2, 3], &y))])
        .node(Node::new("Softmax", ["x"], ["y"]).int("axis", -1))
        .within(TOLERANCE)
        .check(engine)
}

/// Channels in and out, and the side of the square picture.
const CONV: (usize, usize, usize) = (2, 3, 4);

/// One element of a 3x3 convolution that sees zeros around the picture.
fn conv_at(picture: &[f64], weights: &[f64], out: usize, row: usize, column: usize) -> f64 {
    let (channels, _, side) = CONV;
    let mut sum = 0.0;
    for channel in 0..channels {
        for (y, x) in (0..3).flat_map(|y| (0..3).map(move |x| (y, x))) {
            // Shifted by one, so that the border in front needs no negative numbers.
            let (at_row, at_column) = (row + y, column + x);
            if (1..=side).contains(&at_row) && (1..=side).contains(&at_column) {
                let weight = weights[((out * channels + channel) * 3 + y) * 3 + x];
                sum += picture[(channel * side + at_row - 1) * side + at_column - 1] * weight;
            }
        }
    }
    sum
}

fn conv_batchnorm_relu(engine: &dyn Engine) -> Result<(), String> {
    let (channels, outs, side) = CONV;
    let (x, w) = (wave([1, channels, side, side], 3.1), wave([outs, channels, 3, 3], 3.2));
    let (scale, bias, mean) = (wave([outs], 3.3), wave([outs], 3.4), wave([outs], 3.5));
    let variance = tensor([outs], &[0.5_f32, 1.0, 2.0]);
    let [scales, biases, means, variances] = [&scale, &bias, &mean, &variance].map(numbers);
    let (picture, weights) = (numbers(&x), numbers(&w));
    let at = |index: usize| {
        let (out, row, column) = (index / (side * side), index / side % side, index % side);
        let centred = conv_at(&picture, &weights, out, row, column) - means[out];
        (centred / (variances[out] + 1e-5).sqrt() * scales[out] + biases[out]).max(0.0)
    };
    let y: Vec<f64> = (0..outs * side * side).map(at).collect();
    Trial::new(&[("x", &x)], &[("y", &rounded([1, outs, side, side], &y))])
        .constant("w", &w)
        .constant("scale", &scale)
        .constant("bias", &bias)
        .constant("mean", &mean)
        .constant("variance", &variance)
        .node(Node::new("Conv", ["x", "w"], ["c"]).ints("pads", [1, 1, 1, 1]))
        .node(
            Node::new("BatchNormalization", ["c", "scale", "bias", "mean", "variance"], ["n"])
                .float("epsilon", 1e-5),
        )
        .node(Node::new("Relu", ["n"], ["y"]))
        .within(TOLERANCE)
        .check(engine)
}
