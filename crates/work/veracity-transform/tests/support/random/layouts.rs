//! What moves elements without changing them.

use super::{BATCH, Made, Pattern, signed};

pub(super) const PATTERNS: &[(&str, Pattern)] = &[
    ("transposes", transposes),
    ("an axis of size 1 that moves", moved_unit),
    ("heads", heads),
    ("reshape", reshape),
    ("reshape by shape", reshape_by_shape),
    ("flatten", flatten),
    ("squeeze", squeeze),
    ("slices", slices),
    ("gather", gather),
    ("split", split),
    ("concat", concat),
    ("expand", expand),
    ("pad", pad),
    ("constant of shape", constant_of_shape),
    ("sizes as numbers", sizes_as_numbers),
];

/// One or two transpositions, some of which undo each other.
fn transposes(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims.len() == 4) else { return false };
    let forth = [0_usize, 2, 3, 1];
    let back = [[0_usize, 3, 1, 2], [0, 1, 2, 3], [0, 2, 1, 3]];
    let back = *made.rng.choose(&back);
    let perm = |axes: [usize; 4]| axes.map(signed);
    let once = made.op_with("Transpose", &[&value.name], |node| node.ints("perm", perm(forth)));
    let dims = forth.map(|axis| value.dims[axis]);
    let name = if made.rng.one_in(3) { made.op("Relu", &[&once]) } else { once };
    let twice = made.op_with("Transpose", &[&name], |node| node.ints("perm", perm(back)));
    made.give(twice, &back.map(|axis| dims[axis]))
}

/// An axis of size 1 comes, and moves past a longer one.
fn moved_unit(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims.len() == 3) else { return false };
    let first = made.ints(&[1]);
    let wider = made.op("Unsqueeze", &[&value.name, &first]);
    let name = made.op_with("Transpose", &[&wider], |node| node.ints("perm", [0, 2, 1, 3]));
    made.give(name, &[value.dims[0], value.dims[1], 1, value.dims[2]])
}

/// The last axis in two halves, which change places with the one before, and an axis of size 1;
/// some of them change back.
fn heads(made: &mut Made) -> bool {
    let fits = |dims: &[usize]| dims.len() == 3 && dims[2].is_multiple_of(2);
    let Some(value) = made.pick(fits) else { return false };
    let half = value.dims[2] / 2;
    let shape = made.ints(&[0, signed(value.dims[1]), 2, signed(half)]);
    let apart = made.op("Reshape", &[&value.name, &shape]);
    let turned = made.op_with("Transpose", &[&apart], |node| node.ints("perm", [0, 2, 1, 3]));
    let first = made.ints(&[1]);
    let name = made.op("Unsqueeze", &[&turned, &first]);
    if value.dims[1].is_multiple_of(2) {
        let back = made.op_with("Transpose", &[&name], |node| node.ints("perm", [0, 1, 3, 2, 4]));
        return made.give(back, &[value.dims[0], 1, value.dims[1], 2, half]);
    }
    made.give(name, &[value.dims[0], 1, 2, value.dims[1], half])
}

fn reshape(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims.len() == 3 && dims[0] == BATCH) else { return false };
    let all: usize = value.dims[1..].iter().product();
    let flat = made.ints(&[0, -1]);
    let mut name = made.op("Reshape", &[&value.name, &flat]);
    let mut dims = vec![BATCH, all];
    if made.rng.one_in(2) {
        let back: Vec<i64> =
            [0].into_iter().chain(value.dims[1..].iter().map(|&dim| signed(dim))).collect();
        let back = made.ints(&back);
        name = made.op("Reshape", &[&name, &back]);
        dims = value.dims;
    }
    made.give(name, &dims)
}

/// The first size is taken from the shape, the others are constants.
fn reshape_by_shape(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims.len() > 2) else { return false };
    let shape = made.op("Shape", &[&value.name]);
    let zero = made.int(0);
    let first = made.op_with("Gather", &[&shape, &zero], |node| node.int("axis", 0));
    let axes = made.ints(&[0]);
    let first = made.op("Unsqueeze", &[&first, &axes]);
    let rest = made.ints(&[-1]);
    let wanted = made.op_with("Concat", &[&first, &rest], |node| node.int("axis", 0));
    let name = made.op("Reshape", &[&value.name, &wanted]);
    let all: usize = value.dims[1..].iter().product();
    made.give(name, &[value.dims[0], all])
}

fn flatten(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims.len() > 1) else { return false };
    let name = made.op_with("Flatten", &[&value.name], |node| node.int("axis", 1));
    let all: usize = value.dims[1..].iter().product();
    made.give(name, &[value.dims[0], all])
}

fn squeeze(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims.len() < 4) else { return false };
    let axis = *made.rng.choose(&[1_i64, -1]);
    let chosen = made.ints(&[axis]);
    let wider = made.op("Unsqueeze", &[&value.name, &chosen]);
    let name = if made.rng.one_in(2) { made.op("Abs", &[&wider]) } else { wider };
    let name = made.op("Squeeze", &[&name, &chosen]);
    made.give(name, &value.dims)
}

fn slices(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims.last().is_some_and(|&last| last > 3)) else {
        return false;
    };
    let (start, end, axis) = (made.ints(&[1]), made.ints(&[i64::MAX]), made.ints(&[-1]));
    let once = made.op("Slice", &[&value.name, &start, &end, &axis]);
    let (start, end) = (made.ints(&[0]), made.ints(&[-1]));
    let twice = made.op("Slice", &[&once, &start, &end, &axis]);
    let (last, mut dims) = (value.dims.len() - 1, value.dims);
    dims[last] -= 2;
    made.give(twice, &dims)
}

fn gather(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims.len() > 2 && dims[1] > 1) else { return false };
    if made.rng.one_in(2) {
        let index = made.int(1);
        let name = made.op_with("Gather", &[&value.name, &index], |node| node.int("axis", 1));
        return made.give(name, &[&value.dims[..1], &value.dims[2..]].concat());
    }
    let indices = made.ints(&[0, -1]);
    let name = made.op_with("Gather", &[&value.name, &indices], |node| node.int("axis", 1));
    let mut dims = value.dims;
    dims[1] = 2;
    made.give(name, &dims)
}

/// Two halves, put together again in one order or the other.
fn split(made: &mut Made) -> bool {
    let even = |dims: &[usize]| dims.len() > 1 && dims[1].is_multiple_of(2);
    let Some(value) = made.pick(even) else { return false };
    let half = signed(value.dims[1] / 2);
    let (one, two) = (made.name(), made.name());
    let sizes = made.ints(&[half, half]);
    let node = veracity_onnx::Node::new(
        "Split",
        [value.name.as_str(), sizes.as_str()],
        [one.as_str(), two.as_str()],
    );
    made.push(node.int("axis", 1));
    let order = if made.rng.one_in(2) { [&one, &two] } else { [&two, &one] };
    let order = order.map(String::as_str);
    let name = made.op_with("Concat", &order, |node| node.int("axis", 1));
    made.give(name, &value.dims)
}

fn concat(made: &mut Made) -> bool {
    let small = |dims: &[usize]| dims.iter().product::<usize>() < 400;
    let Some(value) = made.pick(small) else { return false };
    if made.rng.one_in(3) {
        let name = made.op_with("Concat", &[&value.name], |node| node.int("axis", 0));
        return made.give(name, &value.dims);
    }
    let Some(other) = made.pick(|dims| dims == value.dims) else { return false };
    let both = [value.name.as_str(), &other.name];
    let name = made.op_with("Concat", &both, |node| node.int("axis", -1));
    let (last, mut dims) = (value.dims.len() - 1, value.dims);
    dims[last] *= 2;
    made.give(name, &dims)
}

/// To the shape that it has, given by itself or by ones.
fn expand(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let shape = if made.rng.one_in(2) {
        made.op("Shape", &[&value.name])
    } else {
        made.ints(&vec![1; value.dims.len()])
    };
    let name = made.op("Expand", &[&value.name, &shape]);
    made.give(name, &value.dims)
}

/// By nothing, or by one at the end of the last axis.
fn pad(made: &mut Made) -> bool {
    let Some(value) = made.pick(|dims| dims.iter().product::<usize>() < 400) else { return false };
    let mut pads = vec![0_i64; value.dims.len() * 2];
    let mut dims = value.dims;
    if made.rng.one_in(2) {
        *pads.last_mut().unwrap() = 1;
        *dims.last_mut().unwrap() += 1;
    }
    let pads = made.ints(&pads);
    let name = made.op("Pad", &[&value.name, &pads]);
    made.give(name, &dims)
}

/// Ones in the shape of a value, times the value.
fn constant_of_shape(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let one = veracity_onnx::Weight::from_floats(made.float, &[1], &[1.0]).unwrap();
    let shape = made.op("Shape", &[&value.name]);
    let ones = made
        .op_with("ConstantOfShape", &[&shape], |node| node.tensor("value", &one.tensor().unwrap()));
    let name = made.op("Mul", &[&ones, &value.name]);
    made.give(name, &value.dims)
}

/// A size that is read from the shape scales the value.
fn sizes_as_numbers(made: &mut Made) -> bool {
    let Some(value) = made.pick(|_| true) else { return false };
    let shape = made.op("Shape", &[&value.name]);
    let axis = signed(made.rng.below(value.dims.len()));
    let (start, end, first) = (made.ints(&[axis]), made.ints(&[axis + 1]), made.ints(&[0]));
    let size = made.op("Slice", &[&shape, &start, &end, &first]);
    let to = super::code(made.float);
    let size = made.op_with("Cast", &[&size], |node| node.int("to", to));
    let name = made.op("Div", &[&value.name, &size]);
    made.give(name, &value.dims)
}
