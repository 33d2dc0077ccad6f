//! Weights as they are after a batch norm was folded into the convolution before it.

use veracity_onnx::{Attribute, NodeFacts};
use veracity_tensor::{DType, Tensor};

use crate::causes::slice::Slice;

/// ONNX's own, for a batch norm that does not say.
const DEFAULT_EPSILON: f64 = 1e-5;

/// Weight and bias of each convolution of a slice with the batch norm behind it folded in. Only
/// float32, and only where everything is constant.
pub(crate) fn folded_batch_norm(slice: &Slice) -> Vec<Tensor> {
    let nodes = slice.model.nodes();
    let norms = nodes.iter().enumerate().filter(|(_, node)| node.op_type == "BatchNormalization");
    norms
        .filter_map(|(position, norm)| {
            let conv = nodes.iter().find(|node| node.outputs.first() == norm.inputs.first())?;
            let epsilon = slice.model.attributes(position).get("epsilon").map(Attribute::text);
            let epsilon = epsilon.and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_EPSILON);
            (conv.op_type == "Conv").then(|| folded(slice, conv, norm, epsilon))?
        })
        .flatten()
        .collect()
}

fn folded(slice: &Slice, conv: &NodeFacts, norm: &NodeFacts, epsilon: f64) -> Option<[Tensor; 2]> {
    let numbers = |name: Option<&String>| -> Option<Vec<f32>> {
        let tensor = slice.constant(name?)?;
        (tensor.dtype() == DType::F32).then(|| tensor.as_slice::<f32>().map(<[f32]>::to_vec))?
    };
    let [scale, shift, mean, variance] = [1, 2, 3, 4].map(|input| numbers(norm.inputs.get(input)));
    let (scale, shift, mean, variance) = (scale?, shift?, mean?, variance?);
    let weight = slice.constant(conv.inputs.get(1)?)?;
    let bias = numbers(conv.inputs.get(2)).unwrap_or_else(|| vec![0.0; scale.len()]);
    let lists = [&shift, &mean, &variance, &bias];
    let channels = *weight.shape().dims().first()?;
    if channels != scale.len() || lists.iter().any(|list| list.len() != channels) {
        return None;
    }
    let factors: Vec<f64> = scale
        .iter()
        .zip(&variance)
        .map(|(&scale, &variance)| f64::from(scale) / (f64::from(variance) + epsilon).sqrt())
        .collect();
    let elements = weight.as_slice::<f32>()?;
    let width = (elements.len() / channels.max(1)).max(1);
    let scaled: Vec<f32> = elements
        .chunks(width)
        .zip(&factors)
        .flat_map(|(channel, factor)| {
            channel.iter().map(move |&one| narrow(f64::from(one) * factor))
        })
        .collect();
    let shifted: Vec<f32> = (0..channels)
        .map(|i| {
            let centred = f64::from(bias[i]) - f64::from(mean[i]);
            narrow(centred * factors[i] + f64::from(shift[i]))
        })
        .collect();
    let bias = Tensor::from_slice([channels], &shifted).ok()?;
    Some([Tensor::from_slice(weight.shape().clone(), &scaled).ok()?, bias])
}

#[expect(clippy::cast_possible_truncation, reason = "weights are float32")]
fn narrow(value: f64) -> f32 {
    value as f32
}
