"""Writes as the older ONNX exporter can translate them: a new tensor with the part replaced.

`torch.export` turns a write through a view into `slice_scatter` and its like, for which that
exporter has no symbols. Shapes are fixed, so each is a concatenation or a scatter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


@functools.cache
def table() -> dict[Any, Callable[..., torch.Tensor]]:
    """Return what `run_decompositions` shall replace."""
    aten = torch.ops.aten
    return {
        aten.slice_scatter.default: slice_scatter,
        aten.select_scatter.default: select_scatter,
        aten.diagonal_scatter.default: diagonal_scatter,
        aten.copy.default: copy,
        aten.fill.Scalar: fill,
        aten.fill.Tensor: fill,
        aten.zero.default: zero,
        aten.lift_fresh_copy.default: torch.clone,
    }


def slice_scatter(
    base: torch.Tensor,
    part: torch.Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> torch.Tensor:
    """Return `base` with `base[start:end:step]` along `dim` replaced by `part`."""
    size = base.size(dim)
    first, last, _ = slice(start, end, step).indices(size)
    if step == 1:
        before = base.narrow(dim, 0, first)
        after = base.narrow(dim, max(first, last), size - max(first, last))
        return torch.cat([before, part.to(base.dtype), after], dim)
    shape = [1] * base.dim()
    shape[dim] = -1
    index = torch.arange(first, last, step, device=base.device).reshape(shape)
    return base.scatter(dim, index.expand(part.shape), part.to(base.dtype))


def select_scatter(base: torch.Tensor, part: torch.Tensor, dim: int, index: int) -> torch.Tensor:
    """Return `base` with `base[index]` along `dim` replaced by `part`."""
    index = index % base.size(dim)
    return slice_scatter(base, part.unsqueeze(dim), dim, index, index + 1)


def diagonal_scatter(
    base: torch.Tensor, part: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> torch.Tensor:
    """Return `base` with a diagonal replaced by `part`."""
    first, second = dim1 % base.dim(), dim2 % base.dim()
    moved = torch.movedim(base, (first, second), (-2, -1))
    rows, columns = moved.shape[-2:]
    row = torch.arange(rows, device=base.device).reshape(-1, 1)
    column = torch.arange(columns, device=base.device).reshape(1, -1)
    # The part, laid out so that each row finds its element.
    place = (row if offset >= 0 else row + offset).clamp(0, max(part.shape[-1] - 1, 0))
    spread = part.index_select(-1, place.reshape(-1)).unsqueeze(-1)
    mixed = torch.where(column - row == offset, spread.to(base.dtype), moved)
    return torch.movedim(mixed, (-2, -1), (first, second))


def copy(base: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Return `source` in the shape and element type of `base`."""
    return source.to(base.dtype).expand(base.shape).clone()


def fill(base: torch.Tensor, value: Any) -> torch.Tensor:
    """Return a tensor like `base` that holds `value` everywhere."""
    if isinstance(value, torch.Tensor):
        return value.to(base.dtype).expand(base.shape).clone()
    return torch.full_like(base, value)


def zero(base: torch.Tensor) -> torch.Tensor:
    """Return a tensor like `base` that holds zeros."""
    return torch.zeros_like(base)
