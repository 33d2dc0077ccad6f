"""Calls that look at data while they run, written so that they do not.

`torch.quantile` checks its fractions, `torch.linalg.lstsq` gives shapes that depend on the rank,
`torch.combinations` selects by a mask: `torch.export` refuses all three, though their results have
fixed shapes in programs that people write.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Do what `torch.quantile` does: NaN where one is among the values."""
    return _quantile(input, q, dim, keepdim, interpolation, counts_nan=True)


def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Do what `torch.nanquantile` does: NaN is not counted."""
    return _quantile(input, q, dim, keepdim, interpolation, counts_nan=False)


def _quantile(
    values: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, *, counts_nan: bool
) -> Tensor:
    fractions = q if isinstance(q, Tensor) else torch.full((), q, dtype=values.dtype)
    shape = [1] * values.dim()
    rows = values.flatten() if dim is None else values.movedim(dim, -1)
    missing = rows.isnan()
    ordered = torch.where(missing, torch.inf, rows).sort(-1).values
    present = (~missing).to(values.dtype).sum(-1, keepdim=True)
    ranks = fractions.reshape(-1) * (present - 1).clamp(min=0)
    found = _INTERPOLATIONS[interpolation](ordered, ranks)
    unknown = present < rows.shape[-1] if counts_nan else present == 0
    found = torch.where(unknown, torch.nan, found).movedim(-1, 0)
    if keepdim:
        found = found.reshape(-1, *shape) if dim is None else found.unsqueeze(dim % len(shape) + 1)
    return found if fractions.dim() else found.squeeze(0)


def _between(ordered: Tensor, ranks: Tensor) -> Tensor:
    below = ranks.floor()
    return torch.lerp(_at(ordered, below), _at(ordered, ranks.ceil()), ranks - below)


def _midpoint(ordered: Tensor, ranks: Tensor) -> Tensor:
    # The middle of a value and itself is itself.
    low, high = _at(ordered, ranks.floor()), _at(ordered, ranks.ceil())
    return torch.lerp(low, high, torch.full_like(ranks, 0.5))


def _at(ordered: Tensor, ranks: Tensor) -> Tensor:
    """Pick by whole numbers in floats: not every engine makes indices of those."""
    places = torch.arange(ordered.shape[-1], dtype=ordered.dtype, device=ordered.device)
    picked = torch.where(places == ranks.unsqueeze(-1), ordered.unsqueeze(-2), 0.0)
    return picked.sum(-1)


_INTERPOLATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "linear": _between,
    "lower": lambda ordered, ranks: _at(ordered, ranks.floor()),
    "higher": lambda ordered, ranks: _at(ordered, ranks.ceil()),
    "nearest": lambda ordered, ranks: _at(ordered, ranks.round()),
    "midpoint": _midpoint,
}


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Do what `torch.combinations` does, with the indices as a constant."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = list(choose(range(input.shape[0]), r))
    places = torch.tensor(chosen, dtype=torch.int64, device=input.device).reshape(-1, r)
    return input[places]


def covariance(
    input: Tensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None
) -> Tensor:
    """Do what `torch.cov` does; weights are left to torch."""
    if fweights is not None or aweights is not None:
        return torch.cov(input, correction=correction, fweights=fweights, aweights=aweights)
    rows = input.reshape(-1, input.shape[-1] if input.dim() else 1)
    apart = rows - rows.mean(1, keepdim=True)
    found = apart @ apart.mT / max(rows.shape[1] - correction, 0)
    return found.squeeze()


def correlation(input: Tensor) -> Tensor:
    """Do what `torch.corrcoef` does."""
    found = covariance(input)
    if found.dim() == 0:
        return found / found
    apart = input - input.mean(1, keepdim=True)
    sizes = ((apart * apart).sum(1) / max(input.shape[1] - 1, 0)).sqrt()
    return (found / sizes.unsqueeze(1) / sizes.unsqueeze(0)).clip(-1, 1)


def distances(input: Tensor, p: float = 2.0) -> Tensor:
    """Do what `torch.pdist` does: how far every two rows are apart."""
    pairs = list(itertools.combinations(range(input.shape[0]), 2))
    left, right = (
        torch.tensor([pair[side] for pair in pairs], dtype=torch.int64, device=input.device)
        for side in (0, 1)
    )
    found: Tensor = torch.linalg.vector_norm(input[left] - input[right], p, dim=-1)
    return found


def least_squares(
    input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Do what `torch.linalg.lstsq` does, by the pseudo-inverse in float64."""
    is_vector = input.dim() - 1 == b.dim() and b.shape == input.shape[:-1]
    matrix, right = input.double(), (b.unsqueeze(-1) if is_vector else b).double()
    least = torch.finfo(input.dtype).eps * max(input.shape[-2:]) if rcond is None else rcond
    solution = torch.linalg.pinv(matrix, rtol=least) @ right
    rows, columns = input.shape[-2:]
    rest = (matrix @ solution - right).square().sum(-2)
    lengths = torch.linalg.svdvals(matrix)
    rank = (lengths > least * lengths[..., :1]).sum(-1)
    return (
        (solution.squeeze(-1) if is_vector else solution).to(input.dtype),
        rest.to(input.dtype) if rows > columns else input.new_empty(0),
        rank,
        input.new_empty(0),
    )
