//! Compares tensors: by name, those of two files or two of the same meaning.

use std::path::Path;

use serde::Serialize;

use veracity_compare::reasons;
pub use veracity_compare::{
    CompareOptions, Judgement, MeasureOptions, compare_named, judge, measure,
};
use veracity_diag::{Diagnostic, Result};
use veracity_results::{Comparison, Measurement, Tolerance};
use veracity_tensor::{TensorView, file};

/// What one comparison of two tensors found.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Whether every element passes.
    pub passed: bool,
    /// What was measured, with percentiles when it did not pass.
    pub measurement: Measurement,
    /// Why it did not pass.
    pub reasons: Vec<Diagnostic>,
}

/// Checks what an exported model computed against what the code computed.
///
/// Integers and truth values must be equal. Refused when shape or dtype differ.
pub fn check_output(
    reference: &TensorView<'_>,
    candidate: &TensorView<'_>,
    tolerance: Tolerance,
    equal_nan: bool,
) -> Result<Checked> {
    let is_float = reference.dtype().is_float();
    let tolerance = if is_float { tolerance } else { Tolerance::EXACT };
    let options = MeasureOptions::new(tolerance);
    let measurement = measure(reference, candidate, &options)?;
    if judge(&measurement, tolerance, equal_nan) == Judgement::Proved {
        return Ok(Checked { passed: true, measurement, reasons: Vec::new() });
    }
    // Percentiles read the tensors again: worth it only when somebody wants to know more.
    let measurement = measure(reference, candidate, &options.with_percentiles())?;
    let reasons = reasons(&measurement, tolerance, equal_nan);
    Ok(Checked { passed: false, measurement, reasons })
}

/// Compares the tensors of two files by name. Files may be `.npz`, `.npy` or `.safetensors`; two
/// `.npy` files hold one tensor each, which are compared whatever the files are called.
pub fn compare_files(
    reference: &Path,
    candidate: &Path,
    options: &CompareOptions,
) -> Result<Comparison> {
    let mut reference_tensors = file::read(reference)?;
    let candidate_tensors = file::read(candidate)?;
    if is_npy(reference)
        && is_npy(candidate)
        && let (Some((_, tensor)), Some(name)) =
            (reference_tensors.pop_first(), candidate_tensors.keys().next())
    {
        reference_tensors.insert(name.clone(), tensor);
    }
    Ok(compare_named(&reference_tensors, &candidate_tensors, options))
}

fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "npy")
}
