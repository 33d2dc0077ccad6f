//! Made-up values of pictures may be smaller than the real ones.
//!
//! The real values show that a rewrite is right for the sizes that occur. Unpleasant ones are about
//! numbers; where every node treats each place of a picture alike, a corner of it shows as much
//! and costs a fraction.

use veracity_onnx::{Node, Weight};
use veracity_tensor::{Shape, Tensor};

use super::run::Values;
use super::window::{Side, Window};

/// Places of a picture along an axis that are left: more than most kernels cover.
const LEFT: usize = 8;

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

/// Whether a corner of what a window is given shows as much as all of it.
pub(super) fn may_crop(window: &Window, values: &Values) -> bool {
    let is_picture = |name: &String| {
        values.get(name).is_some_and(|value| {
            let dims = value.shape().dims();
            value.dtype().is_float() && dims.len() == 4 && (dims[2] == 1) == (dims[3] == 1)
        })
    };
    let mut sizes = window.given.iter().filter_map(|name| values.get(name)).map(|value| {
        let dims = value.shape().dims();
        (dims.get(2).copied(), dims.get(3).copied())
    });
    let large = sizes.clone().find(|size| *size != (Some(1), Some(1)));
    window.given.iter().all(is_picture)
        && large.is_some_and(|(height, _)| height > Some(LEFT))
        && sizes.all(|size| size == (Some(1), Some(1)) || Some(size) == large)
        && treats_alike(&window.before)
        && treats_alike(&window.after)
}

fn treats_alike(side: &Side) -> bool {
    // A constant that differs from place to place belongs to the size that it was made for.
    let same_everywhere = |weight: &Weight| {
        let dims = weight.dims();
        weight.elements() == 1 || (dims.len() >= 3 && dims[dims.len() - 2..] == [1, 1])
    };
    let fits = |node: &Node| {
        if node.is("Conv") {
            return covers_little(node, side);
        }
        if node.is("BatchNormalization") {
            return true;
        }
        node.reads_itself().filter_map(|name| side.weights.get(name)).all(same_everywhere)
    };
    let alike = |node: &Node| node.op_domain().is_empty() && ALIKE.contains(&node.op_type());
    side.nodes.iter().all(|node| alike(node) && fits(node))
}

/// Whether the kernel of a convolution fits into what is left.
fn covers_little(node: &Node, side: &Side) -> bool {
    let kernel = node.input(1).and_then(|name| side.weights.get(name)).map(Weight::dims);
    let step = node.ints_of("dilations").and_then(|all| all.iter().max().copied()).unwrap_or(1);
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    let fits = |size: &usize| size.saturating_sub(1).saturating_mul(step) < LEFT;
    kernel.is_some_and(|dims| dims.len() == 4 && dims[2..].iter().all(fits))
}

/// The corner of a picture, as zeros to be filled.
pub(super) fn corner(picture: &Tensor) -> Option<Tensor> {
    let mut dims = picture.shape().dims().to_vec();
    for size in dims.iter_mut().skip(2) {
        *size = (*size).min(LEFT);
    }
    Some(Tensor::zeros(picture.dtype(), Shape::new(dims)?))
}
