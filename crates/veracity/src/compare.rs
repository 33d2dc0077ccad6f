//! Compares named tensors of two files.

use std::path::Path;

pub use veracity_compare::{
    CompareOptions, Judgement, MeasureOptions, compare_named, judge, measure,
};
use veracity_diag::Result;
use veracity_results::Comparison;
use veracity_tensor::file;

/// Compares the tensors of two files by name. Files may be `.npz`, `.npy` or `.safetensors`.
pub fn compare_files(
    reference: &Path,
    candidate: &Path,
    options: &CompareOptions,
) -> Result<Comparison> {
    Ok(compare_named(&file::read(reference)?, &file::read(candidate)?, options))
}
