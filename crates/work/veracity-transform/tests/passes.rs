//! The rules of every pass, one file each.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

#[path = "passes/cast_like.rs"]
mod cast_like;
#[path = "passes/constants.rs"]
mod constants;
#[path = "passes/dead_code.rs"]
mod dead_code;
#[path = "passes/divide_by_power_of_two.rs"]
mod divide_by_power_of_two;
#[path = "passes/divide_to_multiply.rs"]
mod divide_to_multiply;
#[path = "passes/fold_constants.rs"]
mod fold_constants;
#[path = "passes/fold_if.rs"]
mod fold_if;
#[path = "passes/fold_shapes.rs"]
mod fold_shapes;
#[path = "passes/fuse_affine.rs"]
mod fuse_affine;
#[path = "passes/fuse_batch_norm.rs"]
mod fuse_batch_norm;
#[path = "passes/fuse_gelu.rs"]
mod fuse_gelu;
#[path = "passes/fuse_hard_swish.rs"]
mod fuse_hard_swish;
#[path = "passes/fuse_layer_norm.rs"]
mod fuse_layer_norm;
#[path = "passes/fuse_matmul_add.rs"]
mod fuse_matmul_add;
#[path = "passes/fuse_pad.rs"]
mod fuse_pad;
#[path = "passes/fuse_rms_norm.rs"]
mod fuse_rms_norm;
#[path = "passes/inline_functions.rs"]
mod inline_functions;
#[path = "passes/made.rs"]
mod made;
#[path = "passes/merge_clips.rs"]
mod merge_clips;
#[path = "passes/merge_concats.rs"]
mod merge_concats;
#[path = "passes/merge_projections.rs"]
mod merge_projections;
#[path = "passes/merge_repeats.rs"]
mod merge_repeats;
#[path = "passes/merge_reshapes.rs"]
mod merge_reshapes;
#[path = "passes/merge_slices.rs"]
mod merge_slices;
#[path = "passes/merge_squeezes.rs"]
mod merge_squeezes;
#[path = "passes/merge_transposes.rs"]
mod merge_transposes;
#[path = "passes/no_ops.rs"]
mod no_ops;
#[path = "passes/push_batch_norm.rs"]
mod push_batch_norm;
#[path = "passes/reshape_before_transpose.rs"]
mod reshape_before_transpose;
#[path = "passes/share_computations.rs"]
mod share_computations;
#[path = "passes/share_constants.rs"]
mod share_constants;
#[path = "passes/transpose_to_reshape.rs"]
mod transpose_to_reshape;
#[path = "passes/unsqueeze_after_transpose.rs"]
mod unsqueeze_after_transpose;
