//! Compares named tensors of two files.

use std::path::Path;

pub use veracity_compare::{
    CompareOptions, Judgement, MeasureOptions, compare_named, judge, measure,
};
use veracity_diag::Result;
use veracity_results::Comparison;
use veracity_tensor::file;

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
