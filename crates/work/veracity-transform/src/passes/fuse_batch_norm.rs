//! A batch normalisation becomes part of the layer before it.
//!
//! In inference a normalisation multiplies each channel by `scale / sqrt(var + epsilon)` and adds
//! `bias - mean * that`, all of which is constant. Needs: nothing else reads the layer, all
//! parameters are constants, one for each output channel, and the normalisation does not learn. For
//! products the normalised axis, the second one, must be the last one as well: two axes.

use veracity_onnx::{Node, NodeId, Patch};

use super::batch_norm::{only_infers, parameters};
use super::layer::Layer;
use super::support::Match;
use crate::{Class, Found, Pass, View};

/// Folds batch normalisations into the layers before them.
#[derive(Clone, Copy, Debug, Default)]
pub struct FuseBatchNorm;

impl Pass for FuseBatchNorm {
    fn name(&self) -> &'static str {
        "fuse-batch-norm"
    }

    fn class(&self) -> Class {
        Class::ExactReal
    }

    fn about(&self) -> &'static str {
        "folds BatchNormalization into Conv, ConvTranspose, Gemm and MatMul"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("BatchNormalization") {
            found.settle(id, into_layer(view, id, node));
        }
    }
}

fn into_layer(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let (Some(given), Some(value)) = (node.input(0), node.output(0)) else { return Ok(None) };
    let Some(layer) = Layer::before(view, given)? else { return Ok(None) };
    only_infers(view, node)?;
    if !layer.is_convolution() && layer.rank(view) != Some(2) {
        return Err("the product is not known to have 2 axes".to_owned());
    }
    let affine = parameters(view, node, layer.channels)?;
    let reason = format!("{value:?} is an affine function of the channels of {given:?}");
    layer.fold(view, Patch::because(reason).remove(id), &affine, value).map(Some)
}
