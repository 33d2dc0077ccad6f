//! A batch normalisation becomes part of the layer before it.
//!
//! In inference a normalisation multiplies each channel by `scale / sqrt(var + epsilon)` and adds
//! `bias - mean * that`, all of which is constant. Needs: nothing else reads the layer, all
//! parameters are constants, one for each output channel, and the normalisation does not learn. For
//! products the normalised axis, the second one, must be the last one as well: two axes.

use veracity_onnx::{Node, NodeId, Patch};

use super::layer::{Affine, Layer};
use super::support::{Match, float_constant};
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

/// Refuses a normalisation that computes or hands out statistics of its input.
fn only_infers(view: &View<'_>, node: &Node) -> Result<(), String> {
    let opset = view.opset();
    let set = |name: &str, otherwise: i64| node.int_of(name).unwrap_or(otherwise) != 0;
    if set("training_mode", 0) || (opset < 7 && !set("is_test", 0)) {
        return Err("it is in training mode".to_owned());
    }
    if node.outputs().iter().skip(1).any(|output| !output.is_empty()) {
        return Err("it gives statistics as well".to_owned());
    }
    if opset < 9 && !set("spatial", 1) {
        return Err("it has statistics for each activation".to_owned());
    }
    Ok(())
}

/// What the normalisation does to each channel.
fn parameters(view: &View<'_>, node: &Node, channels: usize) -> Result<Affine, String> {
    let vector = |index: usize, what: &str| {
        let name = node.input(index).ok_or_else(|| format!("it has no {what}"))?;
        let Some((weight, _)) = float_constant(view, name) else {
            return Err(format!("its {what} {name:?} is not a constant"));
        };
        let elements = weight.floats().filter(|all| all.len() == channels);
        elements.ok_or_else(|| format!("its {what} {name:?} is not one number for each channel"))
    };
    let (scale, bias) = (vector(1, "scale")?, vector(2, "bias")?);
    let (mean, variance) = (vector(3, "mean")?, vector(4, "variance")?);
    let epsilon = f64::from(node.float_of("epsilon").unwrap_or(1e-5));
    let spread = |variance: &f64| (variance + epsilon).sqrt();
    if variance.iter().map(spread).any(|spread| !spread.is_finite() || spread <= 0.0) {
        return Err("a variance is not positive".to_owned());
    }
    let factors: Vec<f64> = scale
        .iter()
        .zip(variance.iter().map(spread))
        .map(|(scale, spread)| scale / spread)
        .collect();
    let parts = bias.iter().zip(&mean).zip(&factors);
    let shifts = parts.map(|((bias, mean), factor)| bias - mean * factor).collect();
    Ok(Affine { factors, shifts })
}
