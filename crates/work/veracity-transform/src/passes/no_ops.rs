//! Takes out nodes that hand on what they are given: the same elements, in the same shape, of the
//! same type, bit for bit.
//!
//! What a node does to shapes is judged by what is known about its input and output: sizes must be
//! the same numbers or the same names. Arithmetic with a neutral element counts only where it keeps
//! every bit: adding 0.0 turns -0.0 into 0.0, subtracting it does not.

use veracity_onnx::{Dim, Node, NodeId, Patch, Weight};
use veracity_tensor::DType;

use super::witnesses::witnesses;
use crate::{Class, Found, Pass, View};

/// Since when the ranges of `Slice` are inputs.
const SLICE_INPUT_SINCE: i64 = 10;
/// Since when the sizes of `Pad` are an input.
const PAD_INPUT_SINCE: i64 = 11;
/// Since when `Dropout` can be told to train; before 7 it was told not to.
const DROPOUT_TRAINS_SINCE: i64 = 12;
const DROPOUT_RESTS_SINCE: i64 = 7;
/// Since when operands are stretched as NumPy does.
const BROADCAST_SINCE: i64 = 7;

/// Takes out nodes that hand on what they are given.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveNoOps;

impl Pass for RemoveNoOps {
    fn name(&self) -> &'static str {
        "remove-no-ops"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "takes out nodes that hand on what they are given"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.graph().nodes() {
            if node.op_domain().is_empty() {
                found.settle(id, without(view, id, node));
            }
        }
    }
}

/// The patch that takes a node out, when it hands on one of its inputs.
fn without(view: &View<'_>, id: NodeId, node: &Node) -> Result<Option<Patch>, String> {
    let Some(index) = handed_on(view, node)? else { return Ok(None) };
    let (Some(given), Some(value)) = (node.input(index), node.output(0)) else { return Ok(None) };
    if node.outputs().iter().skip(1).any(|other| is_used(view, other)) {
        return Err("another of its outputs is read".to_owned());
    }
    let graph = view.graph();
    if graph.is_output(value) && (graph.producer(given).is_none() || graph.is_output(given)) {
        return Err(format!("the output {value:?} of the model needs a node of its own"));
    }
    let mut patch =
        Patch::because(format!("{value:?} is {given:?}")).remove(id).replace(value, given);
    // What it was told to do shows that it does nothing.
    for told in node.inputs().iter().skip(1).filter(|name| *name != given) {
        patch.context.extend(witnesses(view, told));
    }
    patch.context.sort_unstable();
    patch.context.dedup();
    Ok(Some(patch))
}

fn is_used(view: &View<'_>, value: &str) -> bool {
    !value.is_empty()
        && (view.graph().is_output(value) || view.graph().readers(value).next().is_some())
}

/// Which input the node hands on.
fn handed_on(view: &View<'_>, node: &Node) -> Result<Option<usize>, String> {
    let hands_on = match node.op_type() {
        "Identity" => true,
        "Dropout" => is_resting(view, node)?,
        "Cast" => node.dtype_of("to").is_some_and(|to| Some(to) == dtype(view, node, 0)),
        "CastLike" => dtype(view, node, 0).is_some_and(|own| Some(own) == dtype(view, node, 1)),
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Expand" | "Tile" => {
            keeps_sizes(view, node)
        }
        "Transpose" => keeps_sizes(view, node) && keeps_order(view, node),
        "Slice" => keeps_sizes(view, node) && steps_forward(view, node)?,
        "Pad" => pads_nothing(view, node),
        "Concat" | "Sum" | "Max" | "Min" => node.inputs().len() == 1,
        "Split" => node.outputs().len() == 1,
        "Add" | "Mul" | "Sub" | "Div" => return neutral(view, node),
        _ => false,
    };
    Ok(hands_on.then_some(0))
}

fn dtype(view: &View<'_>, node: &Node, index: usize) -> Option<DType> {
    view.dtype(node.input(index)?)
}

/// Whether the output has the sizes of the first input, by number or by name.
fn keeps_sizes(view: &View<'_>, node: &Node) -> bool {
    let sizes = |name: Option<&str>| {
        view.dims(name?).filter(|dims| dims.iter().all(|dim| *dim != Dim::Unknown))
    };
    let (before, after) = (sizes(node.input(0)), sizes(node.output(0)));
    before.is_some() && before == after
}

/// Whether axes change places only with axes of size 1.
fn keeps_order(view: &View<'_>, node: &Node) -> bool {
    let Some(dims) = node.input(0).and_then(|name| view.dims(name)) else { return false };
    let reversed: Vec<i64> = (0..).take(dims.len()).collect::<Vec<_>>().into_iter().rev().collect();
    let order = node.ints_of("perm").map_or(reversed, <[i64]>::to_vec);
    let size = |axis: i64| dims.get(usize::try_from(axis).ok()?);
    let long: Vec<i64> =
        order.into_iter().filter(|&axis| size(axis) != Some(&Dim::Fixed(1))).collect();
    long.is_sorted()
}

/// Whether a slice goes forward, so that one that keeps all sizes takes everything in order.
fn steps_forward(view: &View<'_>, node: &Node) -> Result<bool, String> {
    if view.opset() < SLICE_INPUT_SINCE {
        return Ok(true);
    }
    let Some(steps) = node.input(4) else { return Ok(true) };
    match view.fact(steps).and_then(crate::Fact::ints) {
        None => Err("its steps are not known".to_owned()),
        Some(steps) => Ok(steps.iter().all(|&step| step == 1)),
    }
}

fn pads_nothing(view: &View<'_>, node: &Node) -> bool {
    let pads = if view.opset() < PAD_INPUT_SINCE {
        node.ints_of("pads").map(<[i64]>::to_vec)
    } else {
        node.input(1).and_then(|name| view.fact(name)?.ints())
    };
    pads.is_some_and(|pads| pads.iter().all(|&pad| pad == 0))
}

/// Whether a `Dropout` is not in training.
fn is_resting(view: &View<'_>, node: &Node) -> Result<bool, String> {
    let resting = match (view.opset(), node.input(2)) {
        (..DROPOUT_RESTS_SINCE, _) => node.int_of("is_test").is_some_and(|test| test != 0),
        (..DROPOUT_TRAINS_SINCE, _) | (_, None) => true,
        (_, Some(trains)) => view
            .constant(trains)
            .and_then(Weight::tensor)
            .is_some_and(|flag| flag.bytes().iter().all(|&byte| byte == 0)),
    };
    if resting { Ok(true) } else { Err("it may be in training".to_owned()) }
}

/// Which operand a neutral one leaves as it is.
fn neutral(view: &View<'_>, node: &Node) -> Result<Option<usize>, String> {
    if view.opset() < BROADCAST_SINCE {
        return Ok(None);
    }
    let commutes = matches!(node.op_type(), "Add" | "Mul");
    for (kept, other) in [(0, 1), (1, 0)] {
        let Some(weight) = node.input(other).and_then(|name| view.constant(name)) else { continue };
        let unchanged = kept == 0 || commutes;
        if unchanged && is_neutral(node.op_type(), weight)? {
            let dims = node.input(kept).and_then(|name| view.dims(name));
            return match dims {
                Some(dims) if is_not_stretched(dims, &weight.dims()) => Ok(Some(kept)),
                _ => Err("the neutral constant may change the shape".to_owned()),
            };
        }
    }
    Ok(None)
}

/// Whether an operand of these sizes leaves the other one's sizes alone.
fn is_not_stretched(dims: &[Dim], other: &[usize]) -> bool {
    let aligned = dims.iter().rev().zip(other.iter().rev());
    other.len() <= dims.len()
        && aligned.into_iter().all(|(dim, &size)| size == 1 || *dim == Dim::Fixed(size))
}

fn is_neutral(op: &str, weight: &Weight) -> Result<bool, String> {
    let Some(dtype) = weight.dtype() else { return Ok(false) };
    let number = |number: f64| Weight::from_floats(dtype, &[], &[number]);
    let whole = |number: u8| {
        let mut bytes = vec![0_u8; dtype.size()];
        bytes[0] = number;
        bytes
    };
    let real = |value: f64| {
        number(value).and_then(|one| one.raw().map(|raw| raw.to_vec())).unwrap_or_default()
    };
    match op {
        "Add" if dtype.is_float() => {
            if consists_of(weight, &real(0.0)) {
                return Err("adding 0.0 turns -0.0 into 0.0".to_owned());
            }
            Ok(consists_of(weight, &real(-0.0)))
        }
        "Sub" if dtype.is_float() => Ok(consists_of(weight, &real(0.0))),
        "Mul" | "Div" if dtype.is_float() => Ok(consists_of(weight, &real(1.0))),
        "Add" | "Sub" => Ok(consists_of(weight, &whole(0))),
        _ => Ok(consists_of(weight, &whole(1))),
    }
}

/// Whether every element has these bytes, and there is one.
fn consists_of(weight: &Weight, element: &[u8]) -> bool {
    let all = |bytes: &[u8]| {
        !bytes.is_empty()
            && !element.is_empty()
            && bytes.chunks_exact(element.len()).all(|one| one == element)
    };
    match weight.raw() {
        Some(raw) => all(raw),
        None => weight.tensor().is_some_and(|tensor| all(tensor.bytes())),
    }
}
