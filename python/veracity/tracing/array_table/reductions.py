"""Sums, means, extremes and what else makes one number of many."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from veracity.tracing.array_table.basics import (
    Expression,
    Unmapped,
    absent,
    all_axes,
    cast,
    one_axis,
    only_default,
    tensor,
    work_dtype,
)
from veracity.tracing.array_table.registry import maps


def _initial(initial: Any, where: Any) -> None:
    only_default(initial=initial)
    if not absent(where) and where is not True:
        raise Unmapped("the argument where= of a reduction is not supported")


def _reduced(
    apply: Callable[[torch.Tensor, list[int]], torch.Tensor], a: Any, axis: Any, keepdims: Any
) -> torch.Tensor:
    a = tensor(a)
    axes = all_axes(axis, a.dim())
    result = apply(a, axes) if axes else a.clone()
    for one in sorted(axes) if not absent(keepdims) and keepdims else ():
        result = result.unsqueeze(one)
    return result


def _one_by_one(
    apply: Callable[[torch.Tensor, int], torch.Tensor],
) -> Callable[[torch.Tensor, list[int]], torch.Tensor]:
    def over(a: torch.Tensor, axes: list[int]) -> torch.Tensor:
        for one in sorted(axes, reverse=True):
            a = apply(a, one)
        return a

    return over


@maps("sum")
def _sum(
    to: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: Any = None,
    initial: Any = None,
    where: Any = None,
) -> Any:
    _initial(initial, where)
    to = work_dtype(to)
    return _reduced(lambda x, axes: torch.sum(cast(x, to), axes), a, axis, keepdims)


@maps("prod")
def _prod(
    to: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: Any = None,
    initial: Any = None,
    where: Any = None,
) -> Any:
    _initial(initial, where)
    to = work_dtype(to)
    product = _one_by_one(lambda x, one: torch.prod(x, one))
    return _reduced(lambda x, axes: product(cast(x, to), axes), a, axis, keepdims)


@maps("mean")
def _mean(
    to: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None, where: Any = None
) -> Any:
    _initial(None, where)
    return _reduced(lambda x, axes: torch.mean(cast(x, to), axes), a, axis, keepdims)


def _spread(expression: Expression) -> Expression:
    def spread(
        to: Any,
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        ddof: Any = 0,
        keepdims: Any = None,
        where: Any = None,
        mean: Any = None,
        correction: Any = None,
    ) -> Any:
        _initial(None, where)
        only_default(mean=mean)
        removed = ddof if absent(correction) else correction
        return _reduced(
            lambda x, axes: expression(cast(x, to), axes, correction=removed), a, axis, keepdims
        )

    return spread


maps("std")(_spread(torch.std))


maps("var")(_spread(torch.var))


def _extreme(expression: Expression) -> Expression:
    def extreme(
        to: Any,
        a: Any,
        axis: Any = None,
        keepdims: Any = None,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        _initial(initial, where)
        work = work_dtype(to)
        return _reduced(lambda x, axes: expression(cast(x, work), axes), a, axis, keepdims)

    return extreme


maps("min", "amin")(_extreme(torch.amin))


maps("max", "amax")(_extreme(torch.amax))


@maps("ptp")
def _ptp(to: Any, a: Any, axis: Any = None, keepdims: Any = None) -> Any:
    return _reduced(lambda x, axes: torch.amax(x, axes) - torch.amin(x, axes), a, axis, keepdims)


def _position(expression: Expression) -> Expression:
    def position(to: Any, a: Any, axis: Any = None, keepdims: Any = None) -> Any:
        a = cast(a, torch.uint8) if a.dtype == torch.bool else a
        kept = not absent(keepdims) and bool(keepdims)
        if absent(axis):
            found = expression(a.reshape(-1))
            return found.reshape([1] * a.dim()) if kept else found
        return expression(a, one_axis(axis, a.dim()), keepdim=kept)

    return position


maps("argmin")(_position(torch.argmin))


maps("argmax")(_position(torch.argmax))


def _truth(expression: Callable[[torch.Tensor, int], torch.Tensor]) -> Expression:
    def truth(to: Any, a: Any, axis: Any = None, keepdims: Any = None, where: Any = None) -> Any:
        _initial(None, where)
        over = _one_by_one(expression)
        as_bool = lambda x: x if x.dtype == torch.bool else x.ne(0)  # noqa: E731
        result = _reduced(lambda x, axes: over(as_bool(x), axes), a, axis, keepdims)
        return as_bool(result)

    return truth


maps("any")(_truth(lambda x, one: torch.any(x, one)))


maps("all")(_truth(lambda x, one: torch.all(x, one)))


def _first(pair: Any) -> Any:
    return pair[0]


def running(expression: Expression) -> Expression:
    """Return an expression that accumulates along an axis, or over all elements."""

    def accumulate(to: Any, a: Any, axis: Any = None, dtype: Any = None) -> Any:
        a = cast(a, work_dtype(to))
        return (
            expression(a.reshape(-1), 0) if absent(axis) else expression(a, one_axis(axis, a.dim()))
        )

    return accumulate


maps("cumsum")(running(torch.cumsum))


maps("cumprod")(running(torch.cumprod))


running_maximum = running(lambda x, one: _first(torch.cummax(x, one)))


running_minimum = running(lambda x, one: _first(torch.cummin(x, one)))


@maps("count_nonzero")
def _count_nonzero(to: Any, a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return _reduced(lambda x, axes: torch.sum(x.ne(0), axes), a, axis, keepdims)


@maps("nansum")
def _nansum(to: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Any:
    return _reduced(lambda x, axes: torch.nansum(cast(x, to), axes), a, axis, keepdims)


@maps("nanmean")
def _nanmean(to: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Any:
    return _reduced(lambda x, axes: torch.nanmean(cast(x, to), axes), a, axis, keepdims)


def _nan_extreme(expression: Expression, filler: float) -> Expression:
    def extreme(to: Any, a: Any, axis: Any = None, keepdims: Any = None) -> Any:
        def over(x: torch.Tensor, axes: list[int]) -> torch.Tensor:
            missing = torch.isnan(x)
            found = expression(torch.where(missing, cast(filler, x.dtype), x), axes)
            every = _one_by_one(lambda y, one: torch.all(y, one))(missing, axes)
            return torch.where(every, cast(math.nan, x.dtype), found)

        return _reduced(over, a, axis, keepdims)

    return extreme


maps("nanmin")(_nan_extreme(torch.amin, math.inf))


maps("nanmax")(_nan_extreme(torch.amax, -math.inf))


@maps("average")
def _average(
    to: Any, a: Any, axis: Any = None, weights: Any = None, returned: Any = False, **rest: Any
) -> Any:
    only_default(returned=returned, **rest)
    a = cast(a, to)
    if absent(weights):
        return _mean(to, a, axis)
    weights = cast(weights, to)
    if weights.shape != a.shape:
        if weights.dim() != 1 or not isinstance(axis, int):
            raise Unmapped("weights of several axes are not supported")
        tail = a.dim() - 1 - one_axis(axis, a.dim())
        weights = weights.reshape(-1, *[1] * tail).expand(a.shape)
    axes = all_axes(axis, a.dim())
    return torch.sum(a * weights, axes) / torch.sum(weights, axes)


@maps("median")
def _median(
    to: Any, a: Any, axis: Any = None, overwrite_input: Any = False, keepdims: Any = False
) -> Any:
    only_default(overwrite_input=overwrite_input, keepdims=keepdims)
    a = cast(a, to)
    a, along = (a.reshape(-1), 0) if absent(axis) else (a, one_axis(axis, a.dim()))
    ordered = torch.sort(a, along).values
    count = a.shape[along]
    return torch.mean(ordered.narrow(along, (count - 1) // 2, 2 - count % 2), along)


def _quantile_of(parts: float) -> Expression:
    def quantile(
        to: Any, a: Any, q: Any, axis: Any = None, overwrite_input: Any = False, **rest: Any
    ) -> Any:
        method = rest.pop("method", "linear")
        only_default(overwrite_input=overwrite_input, **rest)
        if isinstance(axis, tuple | list):
            raise Unmapped("quantiles over several axes are not supported")
        wanted = cast(q, to) / parts
        along = None if absent(axis) else one_axis(axis, a.dim())
        return torch.quantile(cast(a, to), wanted, along, interpolation=method)

    return quantile


maps("quantile")(_quantile_of(1))


maps("percentile")(_quantile_of(100))
