//! Formulas that have an operator of their own, and some that only look like it.

use super::{Made, Pattern};

pub(super) const PATTERNS: &[(&str, Pattern)] = &[
    ("layer normalization", layer_norm),
    ("root mean square", rms_norm),
    ("gelu by erf", gelu_erf),
    ("gelu by tanh", gelu_tanh),
    ("hard swish", hard_swish),
    ("hard swish by clip", hard_swish_clip),
];

/// `value / sqrt(mean(value * value) + epsilon)`
fn over_root(made: &mut Made, value: &str) -> String {
    let squares = made.op("Mul", &[value, value]);
    let mean = made.reduce("ReduceMean", &squares, &[-1], true);
    let epsilon = made.number(1e-3);
    let above = made.op("Add", &[&mean, &epsilon]);
    let root = made.op("Sqrt", &[&above]);
    if made.rng.one_in(2) {
        return made.op("Div", &[value, &root]);
    }
    let inverse = made.op("Reciprocal", &[&root]);
    made.op("Mul", &[&inverse, value])
}

fn layer_norm(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims[dims.len() - 1] > 2) else { return false };
    let width = value.dims[value.dims.len() - 1];
    let mean = made.reduce("ReduceMean", &value.name, &[-1], true);
    let difference = made.op("Sub", &[&value.name, &mean]);
    let mut name = over_root(made, &difference);
    if made.rng.one_in(8) {
        made.give(difference, &value.dims);
    }
    if !made.rng.one_in(3) {
        let scale = made.matrix(&[width]);
        name = made.op("Mul", &[&name, &scale]);
    }
    if !made.rng.one_in(3) {
        let bias = made.matrix(&[width]);
        name = made.op("Add", &[&bias, &name]);
    }
    made.give(name, &value.dims)
}

fn rms_norm(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims[dims.len() - 1] > 2) else { return false };
    let name = over_root(made, &value.name);
    let scale = made.matrix(&[value.dims[value.dims.len() - 1]]);
    let name = made.op("Mul", &[&scale, &name]);
    made.give(name, &value.dims)
}

/// `x / 2 * (1 + function)` in one of several orders.
fn half_of(made: &mut Made, x: &str, function: &str) -> String {
    let (one, half) = (made.number(1.0), made.number(0.5));
    let sum = made.op("Add", &[function, &one]);
    match made.rng.below(3) {
        0 => {
            let product = made.op("Mul", &[x, &sum]);
            made.op("Mul", &[&product, &half])
        }
        1 => {
            let halved = made.op("Mul", &[x, &half]);
            made.op("Mul", &[&halved, &sum])
        }
        _ => {
            let halved = made.op("Mul", &[&half, &sum]);
            made.op("Mul", &[&halved, x])
        }
    }
}

fn gelu_erf(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let root = made.number(std::f64::consts::SQRT_2);
    let argument = made.op("Div", &[&value.name, &root]);
    let function = made.op("Erf", &[&argument]);
    let name = half_of(made, &value.name, &function);
    made.give(name, &value.dims)
}

fn gelu_tanh(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let slope = made.number(std::f64::consts::FRAC_2_PI.sqrt());
    // One in three has another constant, which makes it something else.
    let cube = *made.rng.choose(&[0.044_715, 0.044_715, 0.05]);
    let (cube, three) = (made.number(cube), made.number(3.0));
    let power = made.op("Pow", &[&value.name, &three]);
    let power = made.op("Mul", &[&cube, &power]);
    let sum = made.op("Add", &[&value.name, &power]);
    let argument = made.op("Mul", &[&sum, &slope]);
    let function = made.op("Tanh", &[&argument]);
    let name = half_of(made, &value.name, &function);
    made.give(name, &value.dims)
}

fn hard_swish(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let slope = *made.rng.choose(&[1.0 / 6.0, 0.2]);
    let gate = made.op_with("HardSigmoid", &[&value.name], |node| {
        node.float("alpha", slope).float("beta", 0.5)
    });
    let name = made.op("Mul", &[&value.name, &gate]);
    made.give(name, &value.dims)
}

fn hard_swish_clip(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let (three, low, six) = (made.number(3.0), made.number(0.0), made.number(6.0));
    let sum = made.op("Add", &[&value.name, &three]);
    let clipped = made.op("Clip", &[&sum, &low, &six]);
    let product = made.op("Mul", &[&clipped, &value.name]);
    let name = made.op("Div", &[&product, &six]);
    made.give(name, &value.dims)
}
