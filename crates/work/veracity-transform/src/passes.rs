//! The passes, one file each.
//!
//! Each file states what the pass promises, what it needs to hold before it proposes anything, and
//! why the result is then the same. Its tests are in `tests/passes/`, under the same name: it fires,
//! it leaves alone what only looks like a match (one case for each precondition), a second run finds
//! nothing, and the numbers are right.

mod batch_norm;
mod cast_like;
mod constants;
mod dead_code;
mod divide_by_power_of_two;
mod divide_to_multiply;
mod fold_constants;
mod fold_if;
mod fold_shapes;
mod fuse_affine;
mod fuse_batch_norm;
mod fuse_gelu;
mod fuse_hard_swish;
mod fuse_layer_norm;
mod fuse_matmul_add;
mod fuse_pad;
mod fuse_rms_norm;
mod inline_functions;
mod layer;
mod merge_clips;
mod merge_concats;
mod merge_projections;
mod merge_repeats;
mod merge_reshapes;
mod merge_slices;
mod merge_squeezes;
mod merge_transposes;
mod no_ops;
mod normalization;
mod push_batch_norm;
mod real;
mod reciprocal;
mod reshape_before_transpose;
mod scaling;
mod share_computations;
mod share_constants;
mod support;
mod transpose_to_reshape;
mod unsqueeze_after_transpose;
mod witnesses;

pub use cast_like::ResolveCastLike;
pub use constants::HoldConstants;
pub use dead_code::RemoveDeadCode;
pub use divide_by_power_of_two::DivideByPowerOfTwo;
pub use divide_to_multiply::DivideToMultiply;
pub use fold_constants::FoldConstants;
pub use fold_if::FoldIf;
pub use fold_shapes::FoldShapes;
pub use fuse_affine::FuseAffine;
pub use fuse_batch_norm::FuseBatchNorm;
pub use fuse_gelu::FuseGelu;
pub use fuse_hard_swish::FuseHardSwish;
pub use fuse_layer_norm::FuseLayerNorm;
pub use fuse_matmul_add::FuseMatMulAdd;
pub use fuse_pad::FusePad;
pub use fuse_rms_norm::FuseRmsNorm;
pub use inline_functions::InlineFunctions;
pub use merge_clips::MergeClips;
pub use merge_concats::MergeConcats;
pub use merge_projections::MergeProjections;
pub use merge_repeats::MergeRepeats;
pub use merge_reshapes::MergeReshapes;
pub use merge_slices::MergeSlices;
pub use merge_squeezes::MergeSqueezes;
pub use merge_transposes::MergeTransposes;
pub use no_ops::RemoveNoOps;
pub use push_batch_norm::PushBatchNorm;
pub use reshape_before_transpose::ReshapeBeforeTranspose;
pub use share_computations::ShareComputations;
pub use share_constants::ShareConstants;
pub use transpose_to_reshape::TransposeToReshape;
pub use unsqueeze_after_transpose::UnsqueezeAfterTranspose;

use crate::Pass;

/// Passes that are safe to run unasked, in the order of their value.
pub fn standard() -> Vec<Box<dyn Pass>> {
    vec![
        Box::new(InlineFunctions),
        Box::new(HoldConstants),
        Box::new(ResolveCastLike),
        Box::new(FoldIf),
        Box::new(RemoveNoOps),
        Box::new(FoldShapes),
        Box::new(FoldConstants::default()),
        Box::new(MergeTransposes),
        Box::new(UnsqueezeAfterTranspose),
        Box::new(TransposeToReshape),
        Box::new(ReshapeBeforeTranspose),
        Box::new(MergeSqueezes),
        Box::new(MergeReshapes),
        Box::new(MergeSlices),
        Box::new(MergeConcats),
        Box::new(MergeRepeats),
        // Before passes that would take their patterns apart.
        Box::new(FuseLayerNorm),
        Box::new(FuseRmsNorm),
        Box::new(FuseGelu),
        Box::new(FuseHardSwish),
        Box::new(MergeClips),
        Box::new(FusePad),
        Box::new(FuseBatchNorm),
        Box::new(PushBatchNorm),
        Box::new(FuseAffine),
        Box::new(FuseMatMulAdd),
        Box::new(DivideByPowerOfTwo),
        Box::new(ShareConstants),
        Box::new(ShareComputations),
        Box::new(RemoveDeadCode),
    ]
}

/// Passes that only run when they are asked for.
fn on_demand() -> Vec<Box<dyn Pass>> {
    vec![Box::new(DivideToMultiply), Box::new(MergeProjections)]
}

/// Every pass there is.
pub fn all() -> Vec<Box<dyn Pass>> {
    standard().into_iter().chain(on_demand()).collect()
}
