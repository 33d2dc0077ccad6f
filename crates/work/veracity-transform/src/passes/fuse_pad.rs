//! Padding that a node is given becomes padding that it does itself.
//!
//! `Conv` pads with 0, and so does `AveragePool`, whose zeros count when it is told so. Needs: the
//! value that is padded with is exactly 0, spatial axes alone are padded and none is cut, and nothing
//! else reads the padded value. A pool that rounds its output up would see the difference.
//!
//! `MaxPool` is left alone: a window of nothing but -inf or NaN gives -inf when it was padded with
//! -inf before, and the lowest finite number when ONNX Runtime pads itself.

use veracity_onnx::{Node, NodeId, Patch};

use super::support::{Match, axis, float_constant, integers, read_once};
use crate::{Class, Found, Pass, View};

/// Moves padding into `Conv` and `AveragePool`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FusePad;

impl Pass for FusePad {
    fn name(&self) -> &'static str {
        "fuse-pad"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "moves padding into Conv and AveragePool"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.graph().nodes() {
            if ["Conv", "MaxPool", "AveragePool"].iter().any(|op| node.is(op)) {
                found.settle(id, with_padding(view, id, node));
            }
        }
    }
}

fn with_padding(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let Some(given) = node.input(0) else { return Ok(None) };
    let Some((pad_id, pad)) = view.producer_of(given, "Pad") else { return Ok(None) };
    let Some(source) = pad.input(0) else { return Ok(None) };
    if node.is("MaxPool") {
        return Err("engines do not agree on what MaxPool pads with".to_owned());
    }
    read_once(view, given)?;
    if node.input(1) == Some(given) || node.input(2) == Some(given) {
        return Err(format!("{given:?} is read twice"));
    }
    let rank = rank(view, node).ok_or("the number of its axes is not known")?;
    let added = padding(view, pad, rank)?;
    let own = own_padding(node, rank - 2)?;
    pads_with_zero(view, pad)?;
    let mut changed = node.clone().without("auto_pad").with_input(0, source);
    if node.is("AveragePool") {
        changed = pool(view, node, changed, &own, &added)?;
    }
    let pads: Vec<i64> = own.iter().zip(&added).map(|(own, added)| own + added).collect();
    let reason = format!("{given:?} is {source:?} with padding");
    let patch = Patch::because(reason).remove(pad_id).change(id, changed.ints("pads", pads));
    Ok(Some(patch))
}

/// Number of axes of what the node takes: batch, channels, and those of its kernel.
fn rank(view: &View<'_>, node: &Node) -> Option<usize> {
    let spatial = match node.ints_of("kernel_shape") {
        Some(kernel) => Some(kernel.len()),
        None => view.rank(node.input(1)?)?.checked_sub(2),
    };
    spatial.filter(|spatial| *spatial > 0).map(|spatial| spatial + 2)
}

/// What a `Pad` adds to the spatial axes: all beginnings, then all ends.
fn padding(view: &View<'_>, pad: &Node, rank: usize) -> Result<Vec<i64>, String> {
    if pad.string_of("mode").unwrap_or("constant") != "constant" {
        return Err("the padding repeats elements".to_owned());
    }
    if view.opset() < 2 {
        return Err("Pad before opset 2 has other attributes".to_owned());
    }
    let given = integers(view, pad, "pads", 1)?.ok_or("the padding has no sizes")?;
    let axes: Vec<usize> = match integers(view, pad, "axes", 3)? {
        Some(listed) => {
            listed.iter().map(|&one| axis(one, Some(rank))).collect::<Result<_, _>>()?
        }
        None => (0..rank).collect(),
    };
    if given.len() != 2 * axes.len() {
        return Err("the padding has another number of axes".to_owned());
    }
    let mut pads = vec![0; 2 * (rank - 2)];
    for (index, axis) in axes.iter().enumerate() {
        let (begin, end) = (given[index], given[index + axes.len()]);
        if begin < 0 || end < 0 {
            return Err("the padding cuts off elements".to_owned());
        }
        match axis.checked_sub(2) {
            Some(spatial) => {
                pads[spatial] += begin;
                pads[spatial + rank - 2] += end;
            }
            None if begin == 0 && end == 0 => {}
            None => return Err("the padding adds to the batch or the channels".to_owned()),
        }
    }
    Ok(pads)
}

/// What the node pads itself.
fn own_padding(node: &Node, spatial: usize) -> Result<Vec<i64>, String> {
    let zeros = vec![0; 2 * spatial];
    match node.string_of("auto_pad").unwrap_or("NOTSET") {
        "NOTSET" => {
            let own = node.ints_of("pads").map_or(zeros, <[i64]>::to_vec);
            if own.len() == 2 * spatial && own.iter().all(|one| *one >= 0) {
                Ok(own)
            } else {
                Err("its own padding is not as long as its axes".to_owned())
            }
        }
        "VALID" => Ok(zeros),
        other => Err(format!("its own padding is {other}")),
    }
}

/// Refuses to pad with anything but 0, which has a sign.
fn pads_with_zero(view: &View<'_>, pad: &Node) -> Result<(), String> {
    let value = match (pad.float_of("value"), pad.input(2)) {
        (Some(value), _) => f64::from(value),
        (None, None) => 0.0,
        (None, Some(name)) => float_constant(view, name)
            .and_then(|(weight, _)| weight.number())
            .ok_or_else(|| format!("it is padded with {name:?}, which is no float constant"))?,
    };
    if value.to_bits() == 0 { Ok(()) } else { Err(format!("it is padded with {value}")) }
}

/// What holds for pools on top; the node with the attributes that it needs.
fn pool(
    view: &View<'_>,
    node: &Node,
    changed: Node,
    own: &[i64],
    added: &[i64],
) -> Result<Node, String> {
    if node.int_of("ceil_mode").unwrap_or(0) != 0 {
        return Err("it rounds its output up".to_owned());
    }
    if node.ints_of("dilations").is_some_and(|all| all.iter().any(|one| *one != 1)) {
        return Err("its kernel has gaps".to_owned());
    }
    let kernel = node.ints_of("kernel_shape").ok_or("its kernel has no shape")?;
    let sums = own.iter().zip(added).map(|(own, added)| own + added);
    if sums.zip(kernel.iter().cycle()).any(|(pad, size)| pad >= *size) {
        return Err("the padding is as large as its kernel".to_owned());
    }
    if view.opset() < 7 {
        return Err("AveragePool before opset 7 does not count padding".to_owned());
    }
    let counts = node.int_of("count_include_pad").unwrap_or(0) != 0;
    if !counts && own.iter().any(|one| *one != 0) {
        return Err("it does not count its own padding".to_owned());
    }
    Ok(changed.int("count_include_pad", 1))
}
