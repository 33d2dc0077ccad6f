//! A batch normalisation becomes part of the layer after it.
//!
//! For one that follows no layer, or one that others read. Needs: the layer alone reads the normalised
//! value, all parameters are constants, one for each input channel, and the normalisation does not
//! learn. Padding is added after the normalisation and would be shifted with the rest, so that a
//! convolution with padding is left alone unless the normalisation only scales.

use veracity_onnx::{Node, NodeId, Patch};

use super::batch_norm::{only_infers, parameters};
use super::layer::Layer;
use super::support::{Match, read_once};
use crate::{Class, Found, Pass, View};

/// Folds batch normalisations into the layers after them.
#[derive(Clone, Copy, Debug, Default)]
pub struct PushBatchNorm;

impl Pass for PushBatchNorm {
    fn name(&self) -> &'static str {
        "push-batch-norm"
    }

    fn class(&self) -> Class {
        Class::ExactReal
    }

    fn about(&self) -> &'static str {
        "folds BatchNormalization into the Conv, Gemm or MatMul after it"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("BatchNormalization") {
            found.settle(id, into_layer(view, id, node));
        }
    }
}

fn into_layer(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let (Some(source), Some(value)) = (node.input(0), node.output(0)) else { return Ok(None) };
    let Some((layer_id, follower)) = view.graph().readers(value).next().and_then(|reader| {
        Some((reader, view.graph().node(reader)?)).filter(|(_, node)| node.input(0) == Some(value))
    }) else {
        return Ok(None);
    };
    let Some(layer) = Layer::of(view, layer_id, follower)? else { return Ok(None) };
    read_once(view, value)?;
    only_infers(view, node)?;
    if follower.inputs().iter().skip(1).any(|other| other == value) {
        return Err(format!("{value:?} is read twice"));
    }
    if follower.is("MatMul") && view.rank(source) != Some(2) {
        return Err("the product is not known to have 2 axes".to_owned());
    }
    if follower.int_of("transA").unwrap_or(0) != 0 {
        return Err("the product reads the channels as rows".to_owned());
    }
    let affine = parameters(view, node, layer.input_channels()?)?;
    if affine.shifts.iter().any(|shift| *shift != 0.0) && pads(follower) {
        return Err("padding is not normalised".to_owned());
    }
    let reason = format!("{value:?} is an affine function of the channels of {source:?}");
    layer.take_in(view, Patch::because(reason).remove(id), &affine, source).map(Some)
}

/// Whether a convolution adds zeros around what it takes.
fn pads(node: &Node) -> bool {
    match node.string_of("auto_pad").unwrap_or("NOTSET") {
        "NOTSET" => node.ints_of("pads").is_some_and(|pads| pads.iter().any(|pad| *pad != 0)),
        "VALID" => false,
        _ => true,
    }
}
