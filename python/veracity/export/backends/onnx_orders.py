"""Operations on order and on running values that ONNX has no operators for.

Running products and maxima are made by doubling: after `k` steps each place holds what the `2^k`
places up to it hold together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

#: What torch takes for an operation that is to stay.
_AS_IT_IS = cast(Tensor, NotImplemented)
#: Pairs of values and boundaries that are compared at once.
_MOST_PAIRS = 1 << 22

# Places in an order


def searchsorted(
    boundaries: Tensor,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Do what `torch.searchsorted` does: count the boundaries below each value."""
    values = values if isinstance(values, Tensor) else torch.full((), values)
    if values.numel() * boundaries.shape[-1] > _MOST_PAIRS:
        return _AS_IT_IS
    if sorter is not None:
        boundaries = boundaries.gather(-1, sorter)
    if boundaries.dim() > 1:
        boundaries = boundaries.unsqueeze(-2)
    compared = values.unsqueeze(-1)
    # NaN lies behind all of them, as it does for torch.
    reached = boundaries > compared if right or side == "right" else boundaries >= compared
    found = (~reached).to(torch.int32).sum(-1, dtype=torch.int32)
    return found if out_int32 else found.long()  # type: ignore[no-any-return]


def bucketize(
    values: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Do what `torch.bucketize` does."""
    return searchsorted(boundaries, values, out_int32=out_int32, right=right)


def _at(values: Tensor, dim: int, position: int, *, keepdim: bool) -> tuple[Tensor, Tensor]:
    if values.dim() == 0:
        return values.clone(), torch.zeros((), dtype=torch.int64)
    ordered, places = values.sort(dim)
    found = (ordered.narrow(dim, position, 1), places.narrow(dim, position, 1))
    return found if keepdim else (found[0].squeeze(dim), found[1].squeeze(dim))


def sort_stable(
    values: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    """Do what a stable `torch.sort` does: ONNX keeps equal values in their order anyway."""
    return torch.sort(values, dim, descending)


def argsort_stable(
    values: Tensor, *, stable: bool, dim: int = -1, descending: bool = False
) -> Tensor:
    """Do what a stable `torch.argsort` does."""
    return sort_stable(values, dim=dim, descending=descending)[1]


def sort_rows(values: Tensor) -> Tensor:
    """Do what `torch.msort` does."""
    return sort_stable(values, dim=0)[0]


def roll(values: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    """Do what `torch.roll` does, which without dimensions moves through all values."""
    if dims:
        return _AS_IT_IS
    return values.flatten().roll(shifts[0], 0).reshape(values.shape)


def kthvalue(values: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Do what `torch.kthvalue` does; of equal values, the index of the first."""
    return _at(values, dim, k - 1, keepdim=keepdim)


def _with_nan(found: Tensor, values: Tensor, dim: int, *, keepdim: bool) -> Tensor:
    """Give NaN where one is among the values."""
    if not values.is_floating_point() or values.dim() == 0:
        return found
    count = values.isnan().float().sum(dim, keepdim=keepdim)
    return torch.where(count > 0, torch.nan, found)


def median(values: Tensor) -> Tensor:
    """Do what `torch.median` does to all values: the lower one of two in the middle."""
    flat = values.flatten()
    found, _ = _at(flat, 0, (flat.shape[0] - 1) // 2, keepdim=False)
    return _with_nan(found, flat, 0, keepdim=False)


def median_along(values: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Do what `torch.median` does along a dimension."""
    if values.dim() == 0:
        return _at(values, dim, 0, keepdim=keepdim)
    found, places = _at(values, dim, (values.shape[dim] - 1) // 2, keepdim=keepdim)
    return _with_nan(found, values, dim, keepdim=keepdim), places


def nanmedian(values: Tensor) -> Tensor:
    """Do what `torch.nanmedian` does to all values."""
    return nanmedian_along(values.flatten(), 0)[0]


def nanmedian_along(values: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Do what `torch.nanmedian` does along a dimension: NaN is not counted."""
    if values.dim() == 0 or not values.is_floating_point():
        return median_along(values, dim, keepdim)
    missing = values.isnan()
    ordered, places = torch.where(missing, torch.inf, values).sort(dim)
    count = (~missing).float().sum(dim, keepdim=True)
    middle = ((count - 1).clamp(min=0) / 2).floor().long()
    found = torch.where(count == 0, torch.nan, ordered.gather(dim, middle))
    index = places.gather(dim, middle)
    return (found, index) if keepdim else (found.squeeze(dim), index.squeeze(dim))


# Running values


def _shifted(values: Tensor, dim: int, by: int, filled: Any) -> Tensor:
    """Move values along a dimension, and fill what becomes free."""
    shape = list(values.shape)
    shape[dim] = by
    free = torch.full(shape, filled, dtype=values.dtype, device=values.device)
    return torch.cat([free, values.narrow(dim, 0, values.shape[dim] - by)], dim)


def _doublings(size: int) -> list[int]:
    return [1 << k for k in range(max(size - 1, 0).bit_length())]


def cumprod(values: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Do what `torch.cumprod` does."""
    if dtype is None:
        is_whole = not values.is_floating_point() and not values.is_complex()
        dtype = torch.int64 if is_whole else values.dtype
    found = values.to(dtype)
    for by in _doublings(found.shape[dim] if found.dim() else 1):
        found = found * _shifted(found, dim, by, 1)
    return found


def _running(
    values: Tensor, dim: int, is_better: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Keep the best value so far and its index, of equal ones the last."""
    if values.dim() == 0:
        return values.clone(), torch.zeros((), dtype=torch.int64)
    size = values.shape[dim]
    shape = [size if one == dim % values.dim() else 1 for one in range(values.dim())]
    places = torch.arange(size, device=values.device).reshape(shape).expand(values.shape)
    numbers = places
    for by in _doublings(size):
        earlier, place = _shifted(values, dim, by, 0), _shifted(places, dim, by, 0)
        worse = is_better(earlier, values) & (numbers >= by)
        if values.is_floating_point():
            worse = worse | (earlier.isnan() & ~values.isnan() & (numbers >= by))
        values, places = torch.where(worse, earlier, values), torch.where(worse, place, places)
    return values, places


def cummax(values: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Do what `torch.cummax` does: NaN stays once it came."""
    return _running(values, dim, torch.gt)


def cummin(values: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Do what `torch.cummin` does: NaN stays once it came."""
    return _running(values, dim, torch.lt)


_ATEN = torch.ops.aten
#: Operations of torch, and what is computed instead.
TABLE: dict[Any, Callable[..., Any]] = {
    _ATEN.searchsorted.Tensor: searchsorted,
    _ATEN.searchsorted.Scalar: searchsorted,
    _ATEN.bucketize.Tensor: bucketize,
    _ATEN.bucketize.Scalar: bucketize,
    _ATEN.sort.stable: sort_stable,
    _ATEN.argsort.stable: argsort_stable,
    _ATEN.msort.default: sort_rows,
    _ATEN.kthvalue.default: kthvalue,
    _ATEN.median.default: median,
    _ATEN.median.dim: median_along,
    _ATEN.nanmedian.default: nanmedian,
    _ATEN.nanmedian.dim: nanmedian_along,
    _ATEN.cumprod.default: cumprod,
    _ATEN.cummax.default: cummax,
    _ATEN.cummin.default: cummin,
}
