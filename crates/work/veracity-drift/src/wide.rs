//! Errors of both sides against a run in float64.

use half::{bf16, f16};
use veracity_compare::{MeasureOptions, measure};
use veracity_diag::{Diagnostic, Result, codes};
use veracity_results::{AgainstFloat64, Tolerance};
use veracity_tensor::{DType, SharedTensor, Tensor, TensorView};

use crate::values::view;

/// How far a value of the original and one of the export are from the same value in float64.
/// `None` when they are not floats, which have no wider form.
pub fn against_float64(
    wide: &TensorView<'_>,
    reference: &SharedTensor,
    candidate: &SharedTensor,
) -> Result<Option<AgainstFloat64>> {
    if wide.dtype() != DType::F64 || !reference.dtype().is_float() {
        return Ok(None);
    }
    let error = |side: &SharedTensor| -> Result<f64> {
        let options = MeasureOptions::new(Tolerance::EXACT);
        let found = measure(wide, &widened(&view(side)?)?.view(), &options)?;
        Ok(if found.non_finite.mismatching > 0 { f64::INFINITY } else { found.max_abs })
    };
    Ok(Some(AgainstFloat64 { reference: error(reference)?, candidate: error(candidate)? }))
}

/// A tensor in half precision as float32, which holds all of its values; `None` for others.
pub(crate) fn float32(view: &TensorView<'_>) -> Option<Tensor> {
    let tensor = view.to_tensor();
    let values: Vec<f32> = match tensor.dtype() {
        DType::F16 => tensor.as_slice::<f16>()?.iter().map(|value| value.to_f32()).collect(),
        DType::BF16 => tensor.as_slice::<bf16>()?.iter().map(|value| value.to_f32()).collect(),
        _ => return None,
    };
    Tensor::from_slice(tensor.shape().clone(), &values).ok()
}

/// A tensor of floats as float64.
pub(crate) fn widened(view: &TensorView<'_>) -> Result<Tensor> {
    let tensor = view.to_tensor();
    let values: Option<Vec<f64>> = match tensor.dtype() {
        DType::F64 => return Ok(tensor),
        DType::F32 => tensor.as_slice::<f32>().map(as_f64),
        DType::F16 => tensor.as_slice::<f16>().map(as_f64),
        DType::BF16 => tensor.as_slice::<bf16>().map(as_f64),
        _ => None,
    };
    let values = values.ok_or_else(|| {
        let message = format!("{} cannot be compared with float64", tensor.dtype());
        Diagnostic::error(codes::DTYPE_UNSUPPORTED, message)
    })?;
    Tensor::from_slice(tensor.shape().clone(), &values)
}

fn as_f64<E: Copy + Into<f64>>(values: &[E]) -> Vec<f64> {
    values.iter().map(|&value| value.into()).collect()
}
