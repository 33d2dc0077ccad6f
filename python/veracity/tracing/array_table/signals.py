"""Signals and statistics: bins, grids, differences, angles, filters, polynomials, covariances."""

from __future__ import annotations

import math
from typing import Any

import torch

from veracity.tracing.array_table.basics import (
    Unmapped,
    absent,
    cast,
    one_axis,
    only_default,
    tensor,
    work_dtype,
)
from veracity.tracing.array_table.making import places_in
from veracity.tracing.array_table.registry import maps


@maps("digitize")
def _digitize(to: Any, x: Any, bins: Any, right: Any = False) -> Any:
    x, bins = tensor(x), tensor(bins)
    common = torch.promote_types(x.dtype, bins.dtype)
    x, bins = cast(x, common), cast(bins, common)
    # Bins that fall are those that rise, counted from the other end. Their order is fixed.
    steps = torch.diff(bins)
    if bool((steps < 0).any()):
        found = places_in(torch.flip(bins, [0]), x, "right" if right else "left")
        return bins.shape[0] - found
    return places_in(bins, x, "left" if right else "right")


@maps("linspace")
def _linspace(
    to: Any, start: Any, stop: Any, num: Any = 50, endpoint: Any = True, retstep: Any = False,
    dtype: Any = None, axis: Any = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    only_default(retstep=retstep)
    wide = to if to.is_floating_point else torch.float64
    first, last = torch.broadcast_tensors(cast(tensor(start), wide), cast(tensor(stop), wide))
    parts = max(num - 1 if endpoint else num, 1)
    places = torch.arange(num, dtype=wide, device="cpu").reshape([num, *[1] * first.dim()])
    made = first + places * ((last - first) / parts)
    if endpoint and num > 1:
        made = torch.cat([made[:-1], last.unsqueeze(0)])
    made = made if to.is_floating_point else torch.floor(made)
    return torch.movedim(made, 0, axis)


@maps("gradient")
def _gradient(to: Any, f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    f = cast(f, to if isinstance(to, torch.dtype) else torch.float64)
    axes = list(range(f.dim())) if absent(axis) else [axis] if isinstance(axis, int) else list(axis)
    axes = [one_axis(one, f.dim()) for one in axes]
    given = list(varargs) or [1.0]
    spacing = given * len(axes) if len(given) == 1 else given
    found = [_slope(f, one, step, edge_order) for one, step in zip(axes, spacing, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _slope(f: torch.Tensor, axis: int, spacing: Any, edge_order: int) -> torch.Tensor:
    """Return central differences inside and one-sided ones at both ends."""
    spacing = tensor(spacing)
    if spacing.dim():
        only_default(edge_order=edge_order != 1)
        steps = torch.diff(cast(spacing, f.dtype))
    else:
        steps = cast(spacing, f.dtype).expand(f.shape[axis] - 1)
    f = torch.movedim(f, axis, -1)
    before, after = steps[:-1], steps[1:]
    inner = (
        f[..., 2:] * before * before
        + f[..., 1:-1] * (after * after - before * before)
        - f[..., :-2] * after * after
    ) / (before * after * (before + after))
    low, high = (f[..., 1] - f[..., 0]) / steps[0], (f[..., -1] - f[..., -2]) / steps[-1]
    if edge_order == 2:
        low = (-1.5 * f[..., 0] + 2.0 * f[..., 1] - 0.5 * f[..., 2]) / steps[0]
        high = (1.5 * f[..., -1] - 2.0 * f[..., -2] + 0.5 * f[..., -3]) / steps[-1]
    joined = torch.cat([low.unsqueeze(-1), inner, high.unsqueeze(-1)], -1)
    return torch.movedim(joined, -1, axis)


@maps("unwrap")
def _unwrap(
    to: Any, p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * math.pi
) -> Any:
    if not to.is_floating_point:
        raise Unmapped("angles that are integers are not supported")
    p, half = cast(p, to), period / 2
    steps = torch.diff(p, dim=axis)
    turned = torch.remainder(steps + half, period) - half
    turned = torch.where((turned == -half) & (steps > 0), cast(half, to), turned)
    change = torch.where(torch.abs(steps) < (half if discont is None else discont),
                         torch.zeros_like(steps), turned - steps)  # fmt: skip
    count = p.shape[axis]
    rest = p.narrow(axis, 1, count - 1) + torch.cumsum(change, axis)
    return torch.cat([p.narrow(axis, 0, 1), rest], axis)


def _full_convolution(a: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return the sums of products of one signal with another that slides over it backwards."""
    padded = torch.nn.functional.pad(a, (v.shape[0] - 1, v.shape[0] - 1))
    return torch.matmul(padded.unfold(0, v.shape[0], 1), torch.flip(v, [0]))


def _part(full: torch.Tensor, mode: Any, longer: int, shorter: int) -> torch.Tensor:
    if mode == "full":
        return full
    if mode == "same":
        return full.narrow(0, (shorter - 1) // 2, longer)
    if mode == "valid":
        return full.narrow(0, shorter - 1, longer - shorter + 1)
    raise Unmapped(f"the argument mode={mode!r} is not supported")


@maps("convolve")
def _convolve(to: Any, a: Any, v: Any, mode: Any = "full") -> Any:
    a, v = (cast(tensor(one), work_dtype(to)).reshape(-1) for one in (a, v))
    a, v = (v, a) if v.shape[0] > a.shape[0] else (a, v)
    return _part(_full_convolution(a, v), mode, a.shape[0], v.shape[0])


@maps("correlate")
def _correlate(to: Any, a: Any, v: Any, mode: Any = "valid") -> Any:
    a, v = (cast(tensor(one), work_dtype(to)).reshape(-1) for one in (a, v))
    if v.shape[0] > a.shape[0]:
        raise Unmapped("the second signal is longer than the first")
    return _part(_full_convolution(a, torch.flip(v, [0])), mode, a.shape[0], v.shape[0])


@maps("polyval")
def _polyval(to: Any, p: Any, x: Any) -> Any:
    p, x = cast(tensor(p), to), cast(tensor(x), to)
    found = torch.zeros_like(x)
    for place in range(p.shape[0]):
        found = found * x + p[place]
    return found


def _covariance(to: Any, m: Any, y: Any, rowvar: Any, ddof: Any) -> torch.Tensor:
    rows = torch.atleast_2d(cast(tensor(m), to))
    rows = rows if rowvar or tensor(m).dim() < 2 else rows.T
    if y is not None:
        more = torch.atleast_2d(cast(tensor(y), to))
        rows = torch.cat([rows, more if rowvar or tensor(y).dim() < 2 else more.T])
    away = rows - torch.mean(rows, 1, keepdim=True)
    found: torch.Tensor = torch.matmul(away, away.T) / (rows.shape[1] - ddof)
    return found


@maps("cov")
def _cov(
    to: Any, m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None,
    fweights: Any = None, aweights: Any = None, *, dtype: Any = None,
) -> Any:  # fmt: skip
    only_default(fweights=fweights, aweights=aweights)
    removed = (0 if bias else 1) if ddof is None else ddof
    return torch.squeeze(_covariance(to, m, y, rowvar, removed))


@maps("corrcoef")
def _corrcoef(to: Any, x: Any, y: Any = None, rowvar: Any = True, **rest: Any) -> Any:
    rest.pop("dtype", None)
    only_default(**rest)
    found = _covariance(to, x, y, rowvar, 1)
    if found.shape[0] == 1:
        return torch.squeeze(found / found)
    spread = torch.sqrt(torch.diagonal(found))
    return torch.clamp(found / spread.unsqueeze(1) / spread.unsqueeze(0), -1, 1)


@maps("ediff1d")
def _ediff1d(to: Any, ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    parts = [torch.diff(tensor(ary).reshape(-1))]
    parts = parts if to_begin is None else [cast(to_begin, to).reshape(-1), *parts]
    parts = parts if to_end is None else [*parts, cast(to_end, to).reshape(-1)]
    return torch.cat(parts)
