"""Products of vectors and matrices, and parts of matrices."""

from __future__ import annotations

from typing import Any

import numpy
import torch

from veracity.tracing.array_table.basics import Unmapped, all_axes, cast, work_dtype
from veracity.tracing.array_table.registry import maps


@maps("dot")
def _dot(to: Any, a: Any, b: Any) -> Any:
    a, b = cast(a, to), cast(b, to)
    if a.dim() == 0 or b.dim() == 0:
        return torch.mul(a, b)
    if b.dim() > 2:
        return torch.tensordot(a, b, dims=([a.dim() - 1], [b.dim() - 2]))
    return torch.matmul(a, b)


@maps("vdot")
def _vdot(to: Any, a: Any, b: Any, /) -> Any:
    return torch.vdot(cast(a, to).reshape(-1), cast(b, to).reshape(-1))


@maps("inner")
def _inner(to: Any, a: Any, b: Any, /) -> Any:
    return torch.inner(cast(a, to), cast(b, to))


@maps("outer", "linalg.outer")
def _outer(to: Any, a: Any, b: Any) -> Any:
    return torch.outer(cast(a, to).reshape(-1), cast(b, to).reshape(-1))


@maps("kron")
def _kron(to: Any, a: Any, b: Any) -> Any:
    return torch.kron(cast(a, to), cast(b, to))


@maps("tensordot", "linalg.tensordot")
def _tensordot(to: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = cast(a, to), cast(b, to)
    if issubclass(type(axes), int | numpy.integer):
        return torch.tensordot(a, b, dims=int(axes))
    return torch.tensordot(a, b, dims=(all_axes(axes[0], a.dim()), all_axes(axes[1], b.dim())))


@maps("einsum")
def _einsum(to: Any, *operands: Any, optimize: Any = False, dtype: Any = None) -> Any:
    if not isinstance(operands[0], str):
        raise Unmapped("einsum with lists of axes is not supported")
    return torch.einsum(operands[0], *[cast(one, to) for one in operands[1:]])


@maps("cross", "linalg.cross")
def _cross(
    to: Any, a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a = torch.movedim(cast(a, to), axisa, -1)
    b = torch.movedim(cast(b, to), axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise Unmapped("cross products of vectors of two elements are not supported")
    return torch.movedim(torch.linalg.cross(a, b, dim=-1), -1, axisc)


@maps("trace", "linalg.trace")
def _trace(
    to: Any, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None
) -> Any:
    return torch.sum(cast(torch.diagonal(a, offset, axis1, axis2), work_dtype(to)), -1)


@maps("diagonal", "linalg.diagonal")
def _diagonal(to: Any, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    return torch.diagonal(a, offset, axis1, axis2)


@maps("diag")
def _diag(to: Any, v: Any, k: Any = 0) -> Any:
    return torch.diag(v, k)


@maps("tril")
def _tril(to: Any, m: Any, k: Any = 0) -> Any:
    return torch.tril(m, k)


@maps("triu")
def _triu(to: Any, m: Any, k: Any = 0) -> Any:
    return torch.triu(m, k)
