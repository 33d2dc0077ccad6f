"""Decides whether two tensors are the same computation, rounded differently.

The rule is that of `veracity drift`: an element may be off by some roundings of itself, and by four
times what it moves when everything that it is computed from is moved by as many. That is what a sum
of large terms that cancel is entitled to; a small value beside a mask of -1e9 is not. Never more
than as many roundings of the largest value, unless float64 shows that the original itself rounds so
badly in that element. Integers and bools must be equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

#: Roundings that may be added, by size of the type in bytes.
_UNITS = {1: 8.0, 2: 8.0, 4: 64.0, 8: 64.0}
#: How much farther roundings may bring an element than moving its terms does, or than the original
#: is from float64: partial sums are rounded as well.
_SLACK = 4.0
#: Part of the largest value that the original may be away from float64 by rounding: half of the
#: digits of single precision.
_NEAR = 2.0**-12


@dataclass(frozen=True)
class Wide:
    """A value of the original in float64.

    Attributes:
        value: The value.
        moved: How far each element moves when all that it is computed from moves by `step`.
    """

    value: torch.Tensor
    moved: torch.Tensor


@dataclass(frozen=True)
class Difference:
    """How far a candidate is from the original.

    Attributes:
        verdict: `"proved"`, `"disproved"`, or `"not_comparable"` if no value of the original is
            finite.
        largest: Largest absolute difference; infinite if one side alone is not finite.
        allowed: What was allowed of the element that takes the most of it.
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
    float64: Callable[[], Wide | None] = lambda: None,
) -> Difference:
    """Compare a candidate with the original.

    Args:
        original: What it should be.
        candidate: What it is.
        tolerance: Largest absolute difference; without one, it follows from the type.
        noise: By how much the original differs from itself.
        finite: Whether values are compared; else only where they are not finite.
        float64: Gives the same value in float64, if that is possible; called when needed.
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


def step(dtype: torch.dtype) -> float:
    """Return the part of itself that a value may be off by."""
    return _UNITS[dtype.itemsize] * torch.finfo(dtype).eps / 2


def _allowed(dtype: torch.dtype, scale: float, tolerance: float | None) -> float:
    return tolerance if tolerance is not None else step(dtype) * scale + torch.finfo(dtype).tiny


def _judged(
    dtype: torch.dtype,
    left: torch.Tensor,
    right: torch.Tensor,
    shown: torch.Tensor,
    tolerance: float | None,
    noise: float,
    float64: Callable[[], Wide | None],
) -> Difference:
    error = torch.where(shown, (left - right).abs(), 0.0)
    scale = float(left[shown].abs().max())
    most = _allowed(dtype, scale, tolerance) + noise
    budget = torch.full_like(left, most)
    if tolerance is None:
        own = step(dtype) * left.abs() + torch.finfo(dtype).tiny + noise
        if bool((error > torch.minimum(own, budget)).any()):
            wide = float64()
            fits = wide is not None and wide.value.shape == left.shape
            budget = (
                _moving(left, right, shown, own, budget, wide)
                if wide and fits
                else (torch.minimum(_of_row(dtype, left, shown) + noise, budget))
            )
    return _verdict(error, budget, scale)


def _verdict(error: torch.Tensor, budget: torch.Tensor, scale: float) -> Difference:
    largest = float(error.max())
    excess = error / budget.clamp(min=math.ulp(0.0))
    worst = int(excess.argmax())
    allowed = float(budget.flatten()[worst])
    if bool((error <= budget).all()):
        return Difference("proved", largest, allowed, scale)
    found = float(error.flatten()[worst])
    place = [int(one) for one in torch.unravel_index(torch.tensor(worst), error.shape)]
    at = f" at {place}" if error.dim() else ""
    problem = f"differs by {found:.3g}{at}, allowed are {allowed:.3g}"
    return Difference("disproved", largest, allowed, scale, problem)


def _moving(
    left: torch.Tensor,
    right: torch.Tensor,
    shown: torch.Tensor,
    own: torch.Tensor,
    most: torch.Tensor,
    wide: Wide,
) -> torch.Tensor:
    """Return what each element may be off, by how far its terms move it."""
    value, moved = wide.value.double().to(left.device), wide.moved.double().to(left.device)
    moved = torch.where(moved.isfinite(), moved, 0.0)
    budget = torch.minimum(own + _SLACK * moved, most)
    # An original that is farther from float64 than half of its digits is not near it at all, for
    # another reason than rounding, and excuses nothing.
    distance = (left - value).abs()
    near = value.isfinite() & (distance <= _NEAR * left[shown].abs().max())
    excused = near & ((right - value).abs() <= _SLACK * (distance + moved))
    return torch.where(excused, torch.maximum(budget, (left - right).abs()), budget)


def _of_row(dtype: torch.dtype, left: torch.Tensor, shown: torch.Tensor) -> torch.Tensor:
    """Return roundings of the largest value of each row: where nothing better can be computed."""
    size = torch.where(shown, left.abs(), 0.0)
    size = size.amax(-1, keepdim=True).expand_as(left) if left.dim() else size
    return step(dtype) * size + torch.finfo(dtype).tiny


def _exact(original: torch.Tensor, candidate: torch.Tensor) -> Difference:
    if torch.equal(original, candidate):
        scale = float(original.abs().max()) if original.dtype.is_complex else float(original.max())
        return Difference("proved", 0.0, 0.0, scale)
    return _differs(f"{int((original != candidate).sum())} elements of {original.dtype} differ")


def _differs(problem: str) -> Difference:
    return Difference("disproved", math.inf, 0.0, 0.0, problem)


def _form(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
