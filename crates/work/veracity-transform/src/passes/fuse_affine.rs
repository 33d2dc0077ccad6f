//! Multiplying or shifting the channels of a layer by constants becomes part of the layer.
//!
//! Needs: nothing else reads the layer, and the other operand is a constant that is one number, or
//! one for each output channel and the same everywhere else. It may not make the result larger:
//! no axis more than the layer has, and none longer than the layer's. A product has no bias, so only
//! multiplying is folded into it; `fuse-matmul-add` sees to the rest.

use veracity_onnx::{Node, NodeId, Patch};

use super::layer::{Affine, Layer};
use super::support::{Match, float_constant};
use crate::{Class, Found, Pass, View};

/// Folds channel-wise arithmetic with constants into the layers before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct FuseAffine;

impl Pass for FuseAffine {
    fn name(&self) -> &'static str {
        "fuse-affine"
    }

    fn class(&self) -> Class {
        Class::ExactReal
    }

    fn about(&self) -> &'static str {
        "folds Mul, Div, Add and Sub of channels by constants into Conv, ConvTranspose, Gemm and MatMul"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.graph().nodes() {
            if ["Mul", "Div", "Add", "Sub"].iter().any(|op| node.is(op)) {
                found.settle(id, into_layer(view, id, node));
            }
        }
    }
}

fn into_layer(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let (Some(left), Some(right), Some(value)) = (node.input(0), node.input(1), node.output(0))
    else {
        return Ok(None);
    };
    let (given, constant, constant_first) =
        match (float_constant(view, left), float_constant(view, right)) {
            (None, Some((weight, _))) => (left, weight, false),
            (Some((weight, _)), None) => (right, weight, true),
            _ => return Ok(None),
        };
    // A constant divided by a layer is not linear in it.
    if constant_first && node.is("Div") {
        return Ok(None);
    }
    let sums = node.is("Add") || node.is("Sub");
    if view.producer_of(given, "MatMul").is_some() && sums {
        return Ok(None);
    }
    let Some(layer) = Layer::before(view, given)? else { return Ok(None) };
    if view.opset() < 7 {
        return Err("arithmetic before opset 7 has its own rules of broadcasting".to_owned());
    }
    let dims = constant.dims();
    let elements = constant.floats().ok_or("the elements of a constant cannot be read")?;
    let numbers = by_channel(view, &layer, &dims, &elements)?;
    let affine = affine(node.op_type(), constant_first, numbers)?;
    let reason = format!("{value:?} is an affine function of the channels of {given:?}");
    layer.fold(view, Patch::because(reason).remove(id), &affine, value).map(Some)
}

/// The constant as one number for each channel.
fn by_channel(
    view: &View<'_>,
    layer: &Layer<'_>,
    dims: &[usize],
    elements: &[f64],
) -> Result<Vec<f64>, String> {
    let rank = layer.rank(view);
    // The channels are the second axis of images and the last one of products.
    let from_end = match rank {
        _ if !layer.is_convolution() => 1,
        Some(rank) => rank - 1,
        None => return Err("the number of axes is not known".to_owned()),
    };
    let fits = match rank {
        Some(rank) => dims.len() <= rank,
        // One axis is there in any case.
        None => dims.len() <= 1,
    };
    if !fits {
        return Err("the constant may have more axes than the layer".to_owned());
    }
    let channel_axis = dims.len().checked_sub(from_end);
    let others = dims.iter().enumerate().filter(|(index, _)| Some(*index) != channel_axis);
    if others.clone().any(|(_, dim)| *dim != 1) {
        return Err("the constant differs along another axis than the channels".to_owned());
    }
    match elements {
        [one] => Ok(vec![*one; layer.channels]),
        all if all.len() == layer.channels => Ok(all.to_vec()),
        all => Err(format!("{} constants for {} channels", all.len(), layer.channels)),
    }
}

fn affine(operator: &str, constant_first: bool, numbers: Vec<f64>) -> Result<Affine, String> {
    if numbers.iter().any(|number| !number.is_finite()) {
        return Err("a constant is not finite".to_owned());
    }
    let zeros = vec![0.0; numbers.len()];
    let all = |number: f64| vec![number; numbers.len()];
    Ok(match (operator, constant_first) {
        ("Mul", _) => Affine { factors: numbers, shifts: zeros },
        ("Div", _) if numbers.contains(&0.0) => return Err("it divides by 0".to_owned()),
        ("Div", _) => {
            Affine { factors: numbers.iter().map(|one| 1.0 / one).collect(), shifts: zeros }
        }
        ("Sub", true) => Affine { factors: all(-1.0), shifts: numbers },
        ("Sub", false) => {
            Affine { factors: all(1.0), shifts: numbers.iter().map(|one| -one).collect() }
        }
        _ => Affine { factors: all(1.0), shifts: numbers },
    })
}
