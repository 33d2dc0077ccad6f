"""Tolerances that know the scale of what they judge.

The defaults, rtol 1e-3 and atol 1e-5, are as large as values around 1e-7, and larger than what
changes in values around 300. Where that is so they are made finer, element by element:

    atol = min(1e-5, max(1e-3 scale, rounding))
    rtol = min(1e-3, max(1e-2 spread / scale, 16 eps))

`scale` is the largest recorded value of the element, `spread` what it moved by; fresh values stand
in where nothing, or too little, was recorded. `rounding` comes from runs in float64 with noise in
the place of rounding errors (`double.rounding`). They are never made wider than the defaults.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from veracity.export.bounds import MAX_PARTS, Bound, near, runs

#: What LEAPP takes.
DEFAULT = Bound(1e-5, 1e-3)
#: Share of the scale of an element that is allowed.
SHARE = 1e-3
#: Share of what an element moves by that is allowed.
SPREAD_SHARE = 1e-2
#: Fewer recorded values of an element say little about its scale.
ENOUGH = 3
#: Tolerances of elements that differ by less are one tolerance.
ALIKE = 30.0
#: Larger outputs have one tolerance.
MAX_ELEMENTS = 1 << 20


def is_large(value: torch.Tensor) -> bool:
    """Say whether an output is too large to be looked at element by element."""
    return value.numel() > MAX_ELEMENTS


def fitted(
    recorded: torch.Tensor,
    fresh: torch.Tensor | None,
    rounding: Callable[[], torch.Tensor | None],
) -> Bound:
    """Return the tolerance of an output of floats, no wider than the defaults.

    Args:
        recorded: Its recorded values, along a first axis.
        fresh: Its values on fresh inputs, along a first axis.
        rounding: Gives what rounding moves each element by; asked only when it matters.
    """
    if recorded.numel() == 0:
        return DEFAULT
    if recorded.shape[0] >= ENOUGH and _is_plain(recorded):
        return DEFAULT
    eps = float(torch.finfo(recorded.dtype).eps)
    scale, spread = _scale_and_spread(recorded, fresh, eps)
    atols = (SHARE * scale).clamp(max=DEFAULT.atol)
    # What was never anything but zero has no scale; its neighbours have.
    atols[scale == 0] = float(atols.max()) or DEFAULT.atol
    share = torch.where(scale > 0, SPREAD_SHARE * spread / scale, DEFAULT.rtol)
    share[spread == 0] = DEFAULT.rtol
    rtols = share.clamp(16 * eps, max(DEFAULT.rtol, 16 * eps)).clamp(max=DEFAULT.rtol)
    if bool((atols == DEFAULT.atol).all()) and bool((rtols == DEFAULT.rtol).all()):
        return DEFAULT
    moved = rounding()
    floor = 64 * eps * scale if moved is None else moved
    atols = torch.maximum(atols, floor.to(atols)).clamp(max=DEFAULT.atol)
    return of_elements(atols, rtols)


def _is_plain(recorded: torch.Tensor) -> bool:
    """Say whether the defaults do for every element, by what was recorded alone."""
    low, high = recorded.amin(0), recorded.amax(0)
    size = torch.maximum(high.abs(), low.abs())
    fine = (SHARE * size >= DEFAULT.atol) & (SPREAD_SHARE * (high - low) >= DEFAULT.rtol * size)
    return bool((fine & size.isfinite()).all())


def _scale_and_spread(
    recorded: torch.Tensor, fresh: torch.Tensor | None, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    scale, spread = _extent(recorded)
    if fresh is None or fresh.shape[0] == 0:
        return scale, spread if recorded.shape[0] >= ENOUGH else torch.zeros_like(spread)
    drawn_scale, drawn_spread = _extent(fresh)
    if recorded.shape[0] < ENOUGH:
        return torch.maximum(scale, drawn_scale), drawn_spread
    # What moved by a few roundings has not moved.
    still = spread <= 64 * eps * scale
    return torch.where(scale == 0, drawn_scale, scale), torch.where(still, drawn_spread, spread)


def _extent(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the largest size of each element, and what it moved by."""
    wide = values.detach().cpu().double()
    wide = torch.where(wide.isfinite(), wide, torch.zeros_like(wide))
    return wide.abs().amax(0), wide.amax(0) - wide.amin(0)


def of_elements(atols: torch.Tensor, rtols: torch.Tensor) -> Bound:
    """Return one tolerance where elements are alike, else one of each order of magnitude."""
    widest = Bound(float(atols.max()), float(rtols.max()))
    if float(atols.max()) <= ALIKE * float(atols.min()) and float(rtols.max()) <= ALIKE * float(
        rtols.min()
    ):
        return widest
    atols, rtols = _by_decade(atols), _by_decade(rtols)
    for pair in ((atols, rtols), *(_alike_along(axis, atols, rtols) for axis in _axes(atols))):
        if len(runs(*pair)) <= MAX_PARTS:
            return Bound(widest.atol, widest.rtol, *pair)
    return widest


def _axes(value: torch.Tensor) -> list[int]:
    """Return the axes that may tell elements apart, the last one first."""
    return [axis for axis in reversed(range(value.dim())) if value.shape[axis] > 1]


def _alike_along(
    axis: int, atols: torch.Tensor, rtols: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the largest at each place of an axis, for all that lies there."""
    others = [number for number in range(atols.dim()) if number != axis]
    if not others:
        return atols, rtols
    return (
        atols.amax(others, keepdim=True).expand_as(atols),
        rtols.amax(others, keepdim=True).expand_as(rtols),
    )


def _by_decade(values: torch.Tensor) -> torch.Tensor:
    """Return the largest value of each order of magnitude, for all values of that order."""
    order = values.log10().floor()
    rounded = values.clone()
    for one in order.unique():
        rounded[order == one] = values[order == one].max()
    return rounded


def surely_judges(values: torch.Tensor, bound: Bound) -> bool:
    """Say whether some element moves by far more than is allowed. Quick; `unjudged` is exact."""
    low, high = values.amin(0), values.amax(0)
    size = float(torch.maximum(high.abs(), low.abs()).max())
    return float((high - low).max()) > 4 * (bound.atol + bound.rtol * size)


def unjudged(values: torch.Tensor, bound: Bound) -> torch.Tensor:
    """Say for each element whether a bound says nothing about it.

    That is so if zeros, or the mean of its values, would pass in its place on every sample, and it
    was not always zero.

    Args:
        values: All values of an output that are compared, along a first axis.
        bound: What counts as equal.
    """
    wide = values.detach().cpu().double()
    wide = torch.where(wide.isfinite(), wide, torch.zeros_like(wide))
    # Elements that never move have no mean but themselves.
    moves = (wide != wide[:1]).any(0)
    zeros = near(wide, torch.zeros_like(wide), bound, 1).all(0)
    mean = wide.mean(0, keepdim=True).expand_as(wide)
    same = near(wide, mean, bound, 1).all(0) & moves
    return (zeros | same) & (wide != 0).any(0)
