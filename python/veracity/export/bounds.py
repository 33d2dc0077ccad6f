"""What counts as equal for one output, for all of its elements or for each.

A bound *says nothing* about values that it accepts zeros for: an export with every weight negated,
or that computes nothing at all, would pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

#: More runs of elements than this are too many to write down.
MAX_PARTS = 256


@dataclass(frozen=True, eq=False)
class Bound:
    """What counts as equal for one output: `|found - wanted| <= atol + rtol |wanted|`.

    Attributes:
        atol: Absolute tolerance; the largest, where elements differ.
        rtol: Relative tolerance; the largest, where elements differ.
        atols: Of each element, in float64, where they differ by orders of magnitude.
        rtols: Of each element, if there are `atols`.
    """

    atol: float
    rtol: float
    atols: torch.Tensor | None = None
    rtols: torch.Tensor | None = None

    def limit(self, wanted: torch.Tensor, share: float = 1.0) -> torch.Tensor:
        """Return this share of what is allowed at these values, which may be a stack of samples."""
        if self.atols is None or self.rtols is None:
            return share * self.rtol * wanted.abs() + share * self.atol
        size = wanted.abs().double()
        return share * (self.rtols.to(size.device) * size + self.atols.to(size.device))

    def finest(self) -> float:
        """Return the smallest relative tolerance."""
        return self.rtol if self.rtols is None else float(self.rtols.min())

    def json(self) -> dict[str, float]:
        """Return the pair as proofs hold it."""
        return {"atol": self.atol, "rtol": self.rtol}

    def parts(self) -> list[dict[str, Any]]:
        """Return the runs of elements that share a pair; none where all do."""
        if self.atols is None or self.rtols is None:
            return []
        return [
            {"elements": count, "tolerance": {"atol": atol, "rtol": rtol}}
            for count, atol, rtol in runs(self.atols, self.rtols)
        ]


def runs(atols: torch.Tensor, rtols: torch.Tensor) -> list[tuple[int, float, float]]:
    """Return how many elements in a row share a pair of tolerances.

    What repeats itself along the first axes is written down once.
    """
    for axis in range(atols.dim()):
        rows = [value.reshape(-1, *value.shape[axis:]) for value in (atols, rtols)]
        if all(bool((row == row[:1]).all()) for row in rows):
            atols, rtols = rows[0][0], rows[1][0]
    found: list[tuple[int, float, float]] = []
    for pair in zip(atols.flatten().tolist(), rtols.flatten().tolist(), strict=True):
        if found and found[-1][1:] == pair:
            found[-1] = (found[-1][0] + 1, *pair)
        else:
            found.append((1, *pair))
    return found


def differs(want: torch.Tensor, got: torch.Tensor, bound: Bound, share: float) -> bool:
    """Say whether two values are further apart than this share of what counts as equal."""
    if want.shape != got.shape or want.dtype != got.dtype:
        return True
    got = got.to(want.device)
    if not want.is_floating_point():
        return not torch.equal(want, got)
    if is_near(want, got, bound, share):
        return False
    return not bool(near(want, got, bound, share).all())


def near(want: torch.Tensor, got: torch.Tensor, bound: Bound, share: float) -> torch.Tensor:
    """Say for each element whether it is near; NaN is near NaN, infinities are near themselves."""
    wide, other = want.double(), got.double()
    close = (other - wide).abs() <= bound.limit(wide, share)
    return close | (wide == other) | (wide.isnan() & other.isnan())


def is_near(want: torch.Tensor, got: torch.Tensor, bound: Bound, share: float) -> bool:
    """Say whether all of two floats are near each other, and finite. Quick; `differs` is exact."""
    if not want.is_floating_point() or want.shape != got.shape or want.device != got.device:
        return False
    return bool(((got - want).abs() <= bound.limit(want, share)).all())


def near_rows(want: torch.Tensor, got: torch.Tensor, bound: Bound, share: float) -> torch.Tensor:
    """Say for each sample of two stacks whether all of its elements are near each other."""
    if not want.is_floating_point():
        return (want == got).reshape(want.shape[0], -1).all(1)
    return near(want, got, bound, share).reshape(want.shape[0], -1).all(1)
