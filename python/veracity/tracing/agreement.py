"""Whether two values of one computation are the same up to rounding.

Used while recording, where a program is run beside the code it was made from, in the same torch on
the same device. What counts is the scale of the value: a difference of 1e-6 is rounding beside a
position of kilometres, and everything in a torque of 1e-7.
"""

from __future__ import annotations

import torch

#: Relative to the element itself.
RELATIVE = 1e-4
#: Relative to the largest element: sums cancel, and what is left has the error of what was summed.
OF_LARGEST = 1e-5


def same_value(got: torch.Tensor, want: torch.Tensor) -> bool:
    """Say whether two tensors are equal up to rounding; NaN equals NaN."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if not (got.dtype.is_floating_point or got.dtype.is_complex):
        return torch.equal(got, want)
    if got.numel() == 0 or torch.equal(got, want):
        return True
    finite = want.abs()[torch.isfinite(want)]
    largest = float(finite.max()) if finite.numel() else 0.0
    close = torch.allclose(got, want, rtol=RELATIVE, atol=OF_LARGEST * largest, equal_nan=True)
    return bool(close)
