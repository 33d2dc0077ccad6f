"""Interpolation, norms, solving and Fourier transforms."""

from __future__ import annotations

from typing import Any

import torch

from veracity.tracing.array_table.basics import Expression, all_axes, cast, only_default, words
from veracity.tracing.array_table.registry import maps
from veracity.tracing.array_table.shapes import each_of


@maps("linalg.norm")
def _norm(to: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    x = cast(x, torch.complex128 if x.is_complex() and to == torch.float64 else to)
    dims = None if axis is None else tuple(all_axes(axis, x.dim()))
    rank = x.dim() if dims is None else len(dims)
    if ord is None or rank == 1:
        return torch.linalg.vector_norm(x, 2 if ord is None else ord, dims, keepdim=keepdims)
    return torch.linalg.matrix_norm(x, ord, dims or (-2, -1), keepdim=keepdims)


@maps("linalg.vector_norm")
def _vector_norm(
    to: Any, x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2
) -> Any:
    dims = None if axis is None else tuple(all_axes(axis, x.dim()))
    return torch.linalg.vector_norm(cast(x, to), ord, dims, keepdim=keepdims)


@maps("linalg.inv")
def _inverse(to: Any, a: Any) -> Any:
    return torch.linalg.inv(cast(a, to))


@maps("linalg.pinv")
def _pseudo_inverse(to: Any, a: Any, **rest: Any) -> Any:
    only_default(**rest)
    return torch.linalg.pinv(cast(a, to))


@maps("linalg.det")
def _determinant(to: Any, a: Any) -> Any:
    return torch.linalg.det(cast(a, to))


@maps("linalg.solve")
def _solve(to: Any, a: Any, b: Any) -> Any:
    return torch.linalg.solve(cast(a, to), cast(b, to))


@maps("linalg.cholesky")
def _cholesky(to: Any, a: Any, /, *, upper: Any = False) -> Any:
    return torch.linalg.cholesky(cast(a, to), upper=upper)


@maps("linalg.matrix_power")
def _matrix_power(to: Any, a: Any, n: Any) -> Any:
    return torch.linalg.matrix_power(cast(a, to), n)


@maps("linalg.multi_dot")
def _multi_dot(to: Any, arrays: Any) -> Any:
    return torch.linalg.multi_dot(each_of(arrays, to))


def _transform(expression: Expression) -> Expression:
    def transform(to: Any, a: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
        # NumPy transforms in the precision of its result, torch in that of its operand.
        double = to in (torch.float64, torch.complex128)
        exact = {False: torch.float32, True: torch.float64}[double]
        wide = {False: torch.complex64, True: torch.complex128}[double]
        return expression(cast(a, wide if a.is_complex() else exact), n=n, dim=axis, norm=norm)

    return transform


for _name in words("fft ifft rfft irfft hfft ihfft"):
    maps(f"fft.{_name}")(_transform(getattr(torch.fft, _name)))
