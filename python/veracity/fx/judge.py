"""Decides whether two tensors are the same computation, rounded differently.

A difference may be as large as some roundings of the largest value. A larger one is excused only if
float64 shows that the original itself rounds so badly there: then the candidate may be four times
as far from float64, and no more. Integers and bools must be equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

#: Roundings of the largest value that may be added, by size of the type in bytes.
_UNITS = {1: 8.0, 2: 8.0, 4: 64.0, 8: 64.0}
#: How much worse than the original the candidate may be, against float64.
_WORSE = 4.0


@dataclass(frozen=True)
class Difference:
    """How far a candidate is from the original.

    Attributes:
        verdict: `"proved"`, `"disproved"`, or `"not_comparable"` if no value of the original is
            finite.
        largest: Largest absolute difference; infinite if one side alone is not finite.
        allowed: What was allowed.
        scale: Largest value of the original.
        problem: What is wrong, or why nothing can be said.
    """

    verdict: str
    largest: float
    allowed: float
    scale: float
    problem: str = ""


def compare(
    original: torch.Tensor,
    candidate: torch.Tensor,
    *,
    tolerance: float | None = None,
    noise: float = 0.0,
    finite: bool = True,
    float64: Callable[[], torch.Tensor | None] = lambda: None,
) -> Difference:
    """Compare a candidate with the original.

    Args:
        original: What it should be.
        candidate: What it is.
        tolerance: Largest absolute difference; without one, it follows from the type.
        noise: By how much the original differs from itself.
        finite: Whether values are compared; else only where they are not finite.
        float64: Gives the same value computed in float64, if that is possible; called when needed.
    """
    if (original.shape, original.dtype) != (candidate.shape, candidate.dtype):
        return _differs(f"{_form(candidate)} instead of {_form(original)}")
    if original.device != candidate.device:
        return _differs(f"is on {candidate.device} instead of {original.device}")
    if not original.numel():
        return Difference("proved", 0.0, 0.0, 0.0)  # same type, same shape, nothing in it
    if not original.dtype.is_floating_point:
        return _exact(original, candidate)
    scale = float(original.detach().abs().max())
    if math.isfinite(scale) and torch.equal(original, candidate):
        return Difference("proved", 0.0, _allowed(original.dtype, scale, tolerance), scale)
    left, right = original.detach().double(), candidate.detach().double()
    shown = left.isfinite()
    if not torch.equal(shown, right.isfinite()):
        return _differs("one side alone is not finite")
    if not finite:
        return Difference("proved", 0.0, 0.0, 0.0)
    if not torch.equal(
        left.nan_to_num(0.0, 1.0, -1.0)[~shown], right.nan_to_num(0.0, 1.0, -1.0)[~shown]
    ):
        return _differs("infinities differ in sign, or one is NaN")
    if not shown.any():
        return Difference("not_comparable", 0.0, 0.0, 0.0, "no value of the original is finite")
    return _judged(original.dtype, left, right, shown, tolerance, noise, float64)


def _allowed(dtype: torch.dtype, scale: float, tolerance: float | None) -> float:
    if tolerance is not None:
        return tolerance
    found = torch.finfo(dtype)
    return _UNITS[dtype.itemsize] * found.eps / 2 * scale + found.tiny


def _judged(
    dtype: torch.dtype,
    left: torch.Tensor,
    right: torch.Tensor,
    shown: torch.Tensor,
    tolerance: float | None,
    noise: float,
    float64: Callable[[], torch.Tensor | None],
) -> Difference:
    largest = _largest(left, right, shown)
    scale = float(left[shown].abs().max())
    unit = torch.finfo(dtype).eps / 2
    allowed = _allowed(dtype, scale, tolerance) + noise
    if largest > allowed and tolerance is None and _excused(left, right, shown, float64(), unit):
        allowed = largest
    return _verdict(largest, allowed, scale)


def _verdict(largest: float, allowed: float, scale: float) -> Difference:
    if largest <= allowed:
        return Difference("proved", largest, allowed, scale)
    problem = f"differs by {largest:.3g}, allowed are {allowed:.3g}"
    return Difference("disproved", largest, allowed, scale, problem)


def _excused(
    left: torch.Tensor,
    right: torch.Tensor,
    shown: torch.Tensor,
    reference: torch.Tensor | None,
    unit: float,
) -> bool:
    """Return whether the original's own rounding explains the difference.

    An original that is farther from float64 than half of its digits is not near it at all, for
    another reason than rounding, and excuses nothing.
    """
    if reference is None or reference.shape != left.shape:
        return False
    wide = reference.double().to(left.device)
    both = shown & wide.isfinite()
    if not torch.equal(both, shown):
        return False
    own = _largest(left, wide, shown)
    near = own <= math.sqrt(unit) * float(left[shown].abs().max())
    return near and _largest(right, wide, shown) <= _WORSE * own


def _largest(left: torch.Tensor, right: torch.Tensor, shown: torch.Tensor) -> float:
    return float((left[shown] - right[shown]).abs().max()) if bool(shown.any()) else 0.0


def _exact(original: torch.Tensor, candidate: torch.Tensor) -> Difference:
    if torch.equal(original, candidate):
        scale = float(original.abs().max()) if original.dtype.is_complex else float(original.max())
        return Difference("proved", 0.0, 0.0, scale)
    return _differs(f"{int((original != candidate).sum())} elements of {original.dtype} differ")


def _differs(problem: str) -> Difference:
    return Difference("disproved", math.inf, 0.0, 0.0, problem)


def _form(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
