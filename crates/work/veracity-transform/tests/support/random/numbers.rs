//! Bounds, divisions and constants that are computed.

use super::{Made, Pattern};

pub(super) const PATTERNS: &[(&str, Pattern)] = &[
    ("clips", clips),
    ("relu and clip", relu_and_clip),
    ("min and max", min_and_max),
    ("division", division),
    ("constants", constants),
    ("scales", scales),
];

fn clips(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let bounds = [made.number(-1.0), made.number(2.0), made.number(-0.5), made.number(3.0)];
    let once = made.op("Clip", &[&value.name, &bounds[0], &bounds[1]]);
    let name = match made.rng.below(3) {
        0 => made.op("Clip", &[&once, "", &bounds[3]]),
        1 => made.op("Clip", &[&once, &bounds[2]]),
        _ => made.op("Clip", &[&once, &bounds[2], &bounds[3]]),
    };
    made.give(name, &value.dims)
}

fn relu_and_clip(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let (low, high) = (made.number(0.0), made.number(6.0));
    let name = if made.rng.one_in(2) {
        let once = made.op("Relu", &[&value.name]);
        made.op("Clip", &[&once, &low, &high])
    } else {
        let once = made.op("Clip", &[&value.name, "", &high]);
        let twice = made.op("Relu", &[&once]);
        made.op("Relu", &[&twice])
    };
    made.give(name, &value.dims)
}

fn min_and_max(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let (low, high) = (made.number(-1.0), made.number(1.0));
    let above = made.op("Max", &[&value.name, &low]);
    let name = made.op("Min", &[&high, &above]);
    made.give(name, &value.dims)
}

fn division(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let by = *made.rng.choose(&[2.0, 4.0, 3.0, 0.1, -8.0]);
    let by = made.number(by);
    let name = made.op("Div", &[&value.name, &by]);
    made.give(name, &value.dims)
}

/// Sums and products of constants, in front of a value.
fn constants(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let width = value.dims[value.dims.len() - 1];
    let (one, two) = (made.matrix(&[width]), made.matrix(&[1]));
    let sum = made.op("Add", &[&one, &two]);
    let root = made.op("Abs", &[&sum]);
    let shape = made.ints(&[1, -1]);
    let row = made.op("Reshape", &[&root, &shape]);
    let flat = made.ints(&[-1]);
    let row = made.op("Reshape", &[&row, &flat]);
    let name = made.op("Add", &[&value.name, &row]);
    made.give(name, &value.dims)
}

/// Two factors one after the other.
fn scales(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let (more, less) = (made.number(1.5), made.number(0.25));
    let once = made.op("Mul", &[&value.name, &more]);
    let name = made.op("Mul", &[&less, &once]);
    made.give(name, &value.dims)
}
