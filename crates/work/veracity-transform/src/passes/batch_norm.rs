//! What a batch normalisation does to each channel when it does not learn.

use veracity_onnx::Node;

use super::layer::Affine;
use super::support::float_constant;
use crate::View;

/// Refuses a normalisation that computes or hands out statistics of its input.
pub(super) fn only_infers(view: &View<'_>, node: &Node) -> Result<(), String> {
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
pub(super) fn parameters(view: &View<'_>, node: &Node, channels: usize) -> Result<Affine, String> {
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
