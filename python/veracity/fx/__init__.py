"""Changes `torch.fx` graphs, says which nodes each change touched, undoes it, and checks it.

Importing this package imports torch; importing `veracity` does not import this package.
"""

from veracity.fx.compose import compose
from veracity.fx.conv_batch_norm import FuseBatchNorm2dInConv2d
from veracity.fx.fuse_bias import FuseBiasInLinear
from veracity.fx.linear_batch_norm import FuseBatchNorm1dInLinear
from veracity.fx.marks import Declined
from veracity.fx.merge_linears import MergeLinears
from veracity.fx.transformation import ReversibleTransformation, Transformation
from veracity.fx.true_div import ChangeTrueDivToMulByInverse
from veracity.fx.validate import validate
from veracity.fx.verdict import Validation

__all__ = [
    "ChangeTrueDivToMulByInverse",
    "Declined",
    "FuseBatchNorm1dInLinear",
    "FuseBatchNorm2dInConv2d",
    "FuseBiasInLinear",
    "MergeLinears",
    "ReversibleTransformation",
    "Transformation",
    "Validation",
    "compose",
    "validate",
]
