//! Made-up values of pictures may be smaller than the real ones.
//!
//! The real values show that a rewrite is right for the sizes that occur. Unpleasant ones are about
//! numbers; where every node treats each place of a picture alike, a corner of it shows as much
//! and costs a fraction.

use veracity_onnx::{Node, Weight};
use veracity_tensor::{Shape, Tensor};

use super::run::Values;
use super::window::{Side, Window};

/// Most places of a picture along an axis that are left: where more are needed, it stays whole.
const MOST: usize = 8;

/// Elements that are left if that many fit: enough for every kind of numbers.
const ENOUGH: usize = 256;

/// Operators that treat each place alike, whatever the size of the picture.
const ALIKE: [&str; 21] = [
    "Conv",
    "BatchNormalization",
    "Relu",
    "LeakyRelu",
    "PRelu",
    "Elu",
    "Clip",
    "HardSwish",
    "HardSigmoid",
    "Sigmoid",
    "Tanh",
    "Softplus",
    "Abs",
    "Neg",
    "Identity",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Max",
    "Min",
];

/// Places along each axis of a corner that shows as much as all of what a window is given; `None`
/// where only the whole does. They are more than the largest kernel covers: it moves, and is not at
/// the border everywhere.
pub(super) fn size_of_corner(window: &Window, values: &Values) -> Option<usize> {
    let given: Vec<&Tensor> =
        window.given.iter().map(|name| Some(values.get(name)?.as_ref())).collect::<Option<_>>()?;
    if !given.iter().all(|value| is_picture(value)) {
        return None;
    }
    let size = |value: &Tensor| value.shape().dims()[2..].to_vec();
    let is_point = |value: &Tensor| size(value) == [1, 1];
    let mut large = given.iter().filter(|value| !is_point(value));
    let first = large.next()?;
    if large.any(|other| size(other) != size(first)) {
        return None;
    }
    let channels = given.iter().map(|value| product(&value.shape().dims()[..2])).min()?;
    let covered = most_covered(&window.before)?.max(most_covered(&window.after)?);
    let is_enough = |left: usize| left == MOST || channels * left * left >= ENOUGH;
    let shows_all = |left: &usize| *left > covered && is_enough(*left);
    let left = (2..=MOST).find(shows_all)?;
    size(first).iter().all(|size| *size > left).then_some(left)
}

fn is_picture(value: &Tensor) -> bool {
    let dims = value.shape().dims();
    value.dtype().is_float() && dims.len() == 4 && (dims[2] == 1) == (dims[3] == 1)
}

fn product(dims: &[usize]) -> usize {
    dims.iter().product()
}

/// Places along an axis that a node of a side looks at together, at most; `None` where places are not
/// treated alike.
fn most_covered(side: &Side) -> Option<usize> {
    side.nodes.iter().map(|node| covered(node, side)).try_fold(1, |most, one| Some(most.max(one?)))
}

fn covered(node: &Node, side: &Side) -> Option<usize> {
    // A constant that differs from place to place belongs to the size that it was made for.
    let same_everywhere = |weight: &Weight| {
        let dims = weight.dims();
        weight.elements() == 1 || (dims.len() >= 3 && dims[dims.len() - 2..] == [1, 1])
    };
    if !node.op_domain().is_empty() || !ALIKE.contains(&node.op_type()) {
        return None;
    }
    match node.op_type() {
        "Conv" => covered_by_kernel(node, side),
        "BatchNormalization" => Some(1),
        _ => {
            let mut constants = node.reads_itself().filter_map(|name| side.weights.get(name));
            constants.all(same_everywhere).then_some(1)
        }
    }
}

fn covered_by_kernel(node: &Node, side: &Side) -> Option<usize> {
    let dims = side.weights.get(node.input(1)?).map(Weight::dims).filter(|dims| dims.len() == 4)?;
    let step = node.ints_of("dilations").and_then(|all| all.iter().max().copied()).unwrap_or(1);
    let step = usize::try_from(step).ok()?;
    let along = |size: &usize| size.saturating_sub(1).saturating_mul(step).saturating_add(1);
    dims[2..].iter().map(along).max()
}

/// A corner of a picture, as zeros to be filled.
pub(super) fn corner(picture: &Tensor, left: usize) -> Option<Tensor> {
    let mut dims = picture.shape().dims().to_vec();
    for size in dims.iter_mut().skip(2) {
        *size = (*size).min(left);
    }
    Some(Tensor::zeros(picture.dtype(), Shape::new(dims)?))
}
