//! Layers with weights and what is folded into them.

use super::{Made, Pattern, Value, signed};

pub(super) const PATTERNS: &[(&str, Pattern)] = &[
    ("convolution", convolution),
    ("convolution and normalization", normalized_convolution),
    ("convolution and affine", affine_convolution),
    ("padded convolution", padded_convolution),
    ("transposed convolution", transposed_convolution),
    ("normalization before", normalization_before),
    ("normalization alone", normalization),
    ("pool", pool),
    ("matrix", matrix),
    ("gemm", gemm),
    ("gemm and normalization", normalized_gemm),
    ("projections", projections),
];

fn image(made: &mut Made) -> Option<Value> {
    made.pick(|dims| dims.len() == 4 && dims[2] >= 3 && dims[3] >= 3 && dims[1] < 16)
}

/// A convolution with the same number of channels out, with or without groups and bias.
fn convolve(made: &mut Made, value: &Value, padding: i64) -> (String, Vec<usize>) {
    let channels = value.dims[1];
    let groups = if made.rng.one_in(3) { channels } else { 1 };
    let weight = made.matrix(&[channels, channels / groups, 3, 3]);
    let mut inputs = vec![value.name.clone(), weight];
    if made.rng.one_in(2) {
        inputs.push(made.matrix(&[channels]));
    }
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let name = made.op_with("Conv", &inputs, |node| {
        node.ints("pads", [padding; 4]).int("group", signed(groups)).ints("kernel_shape", [3, 3])
    });
    let shrunk = |size: usize| size + 2 * usize::try_from(padding).unwrap() - 2;
    let dims = vec![value.dims[0], channels, shrunk(value.dims[2]), shrunk(value.dims[3])];
    (name, dims)
}

/// Batch normalization with parameters of its own.
fn normalize(made: &mut Made, value: &str, channels: usize) -> String {
    let scale = made.weight(&[channels], |rng| 1.0 + 0.5 * rng.number());
    let (bias, mean) = (made.matrix(&[channels]), made.matrix(&[channels]));
    let variance = made.weight(&[channels], |rng| 1.0 + 0.9 * rng.number());
    let inputs = [value, &scale, &bias, &mean, &variance];
    made.op_with("BatchNormalization", &inputs, |node| node.float("epsilon", 1e-3))
}

fn convolution(made: &mut Made) -> bool {
    let Some(value) = image(made) else { return false };
    let (name, dims) = convolve(made, &value, 1);
    made.give(name, &dims)
}

fn normalized_convolution(made: &mut Made) -> bool {
    let Some(value) = image(made) else { return false };
    let (name, dims) = convolve(made, &value, 1);
    let name = normalize(made, &name, dims[1]);
    made.give(name, &dims)
}

/// A scale and an offset for each channel, in either order.
fn affine_convolution(made: &mut Made) -> bool {
    let Some(value) = image(made) else { return false };
    let (mut name, dims) = convolve(made, &value, 0);
    for _ in 0..2 {
        let op_type = *made.rng.choose(&["Mul", "Add", "Sub", "Div"]);
        let constant = match made.rng.below(3) {
            0 => made.weight(&[], |rng| 1.5 + rng.number()),
            _ => made.weight(&[dims[1], 1, 1], |rng| 1.5 + rng.number()),
        };
        let swapped = made.rng.one_in(3) && op_type != "Div";
        let inputs = if swapped { [&constant, &name] } else { [&name, &constant] };
        name = made.op(op_type, &inputs.map(String::as_str));
    }
    made.give(name, &dims)
}

fn padded_convolution(made: &mut Made) -> bool {
    let Some(value) = image(made) else { return false };
    let pads = made.ints(&[0, 0, 1, 0, 0, 0, 1, 2]);
    let fill = *made.rng.choose(&[0.0, 0.0, 1.0]);
    let fill = made.number(fill);
    let padded = made.op("Pad", &[&value.name, &pads, &fill]);
    let dims = vec![value.dims[0], value.dims[1], value.dims[2] + 2, value.dims[3] + 2];
    let (name, dims) = convolve(made, &Value { name: padded, dims }, 0);
    made.give(name, &dims)
}

fn transposed_convolution(made: &mut Made) -> bool {
    let Some(value) = image(made) else { return false };
    let channels = value.dims[1];
    let weight = made.matrix(&[channels, 3, 2, 2]);
    let name = made.op("ConvTranspose", &[&value.name, &weight]);
    let dims = vec![value.dims[0], 3, value.dims[2] + 1, value.dims[3] + 1];
    let name = normalize(made, &name, 3);
    made.give(name, &dims)
}

fn normalization_before(made: &mut Made) -> bool {
    let Some(value) = image(made) else { return false };
    let name = normalize(made, &value.name, value.dims[1]);
    let padding = *made.rng.choose(&[0, 1]);
    let (name, dims) = convolve(made, &Value { name, dims: value.dims }, padding);
    made.give(name, &dims)
}

fn normalization(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims.len() > 1) else { return false };
    let name = normalize(made, &value.name, value.dims[1]);
    made.give(name, &value.dims)
}

fn pool(made: &mut Made) -> bool {
    let Some(value) = image(made) else { return false };
    if made.rng.one_in(2) {
        let name = made.op("GlobalAveragePool", &[&value.name]);
        return made.give(name, &[value.dims[0], value.dims[1], 1, 1]);
    }
    let op_type = *made.rng.choose(&["MaxPool", "AveragePool"]);
    let name = made.op_with(op_type, &[&value.name], |node| node.ints("kernel_shape", [2, 2]));
    made.give(name, &[value.dims[0], value.dims[1], value.dims[2] - 1, value.dims[3] - 1])
}

/// A product with a matrix, and a bias on either side of the sum.
fn matrix(made: &mut Made) -> bool {
    let fits = |dims: &[usize]| dims.len() > 1 && dims[dims.len() - 1] < 64;
    let Some(value) = made.pick(fits) else { return false };
    let (last, mut dims) = (value.dims.len() - 1, value.dims);
    let width = 4 + made.rng.below(4);
    let weight = made.matrix(&[dims[last], width]);
    dims[last] = width;
    let product = made.op("MatMul", &[&value.name, &weight]);
    let bias = made.matrix(&[width]);
    let inputs = if made.rng.one_in(2) { [&product, &bias] } else { [&bias, &product] };
    let name = made.op("Add", &inputs.map(String::as_str));
    made.give(name, &dims)
}

fn multiply(made: &mut Made) -> Option<(String, Vec<usize>)> {
    let value = made.pick(|dims| dims.len() == 2 && dims[1] < 128)?;
    let width = 4 + made.rng.below(4);
    let transposed = made.rng.one_in(2);
    let dims = if transposed { [width, value.dims[1]] } else { [value.dims[1], width] };
    let (weight, bias) = (made.matrix(&dims), made.matrix(&[width]));
    let alpha = *made.rng.choose(&[1.0, 0.5]);
    let inputs = [value.name.as_str(), &weight, &bias];
    let inputs = if made.rng.one_in(3) { &inputs[..2] } else { &inputs[..] };
    let name = made.op_with("Gemm", inputs, |node| {
        node.int("transB", i64::from(transposed)).float("alpha", alpha)
    });
    Some((name, vec![value.dims[0], width]))
}

fn gemm(made: &mut Made) -> bool {
    let Some((name, dims)) = multiply(made) else { return false };
    made.give(name, &dims)
}

fn normalized_gemm(made: &mut Made) -> bool {
    let Some((name, dims)) = multiply(made) else { return false };
    let name = normalize(made, &name, dims[1]);
    made.give(name, &dims)
}

/// Queries, keys and values, and what attention makes of them.
fn projections(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims.len() == 3 && dims[2] < 32) else { return false };
    let with_bias = made.rng.one_in(2);
    let mut project = |width: usize| {
        let weight = made.matrix(&[value.dims[2], width]);
        let product = made.op("MatMul", &[&value.name, &weight]);
        if !with_bias {
            return product;
        }
        let bias = made.matrix(&[width]);
        made.op("Add", &[&product, &bias])
    };
    let (queries, keys, values) = (project(4), project(4), project(5));
    let keys = made.op_with("Transpose", &[&keys], |node| node.ints("perm", [0, 2, 1]));
    let scores = made.op("MatMul", &[&queries, &keys]);
    let factor = made.number(0.5);
    let scores = made.op("Mul", &[&scores, &factor]);
    let weights = made.op_with("Softmax", &[&scores], |node| node.int("axis", -1));
    let name = made.op("MatMul", &[&weights, &values]);
    made.give(name, &[value.dims[0], value.dims[1], 5])
}
