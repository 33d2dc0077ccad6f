"""Sorting, selecting, clipping and rounding."""

from __future__ import annotations

from typing import Any

import torch

from veracity.tracing.array_table.basics import (
    Unmapped,
    absent,
    cast,
    only_default,
    tensor,
    work_dtype,
)
from veracity.tracing.array_table.registry import maps


@maps("sort")
def _sort(
    to: Any, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    only_default(order=order)
    a, along = (a.reshape(-1), 0) if axis is None else (a, axis)
    return torch.sort(a, along).values


@maps("argsort")
def _argsort(
    to: Any, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    only_default(order=order)
    a, along = (a.reshape(-1), 0) if axis is None else (a, axis)
    return torch.argsort(a, dim=along, stable=True)


@maps("where")
def _where(to: Any, condition: Any, /, *choices: Any) -> Any:
    condition = cast(tensor(condition), torch.bool)
    if not choices:
        return torch.nonzero(condition, as_tuple=True)
    return torch.where(condition, cast(choices[0], to), cast(choices[1], to))


@maps("select")
def _select(to: Any, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = cast(default, to)
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = torch.where(cast(condition, torch.bool), cast(choice, to), result)
    return result


@maps("nonzero")
def _nonzero(to: Any, a: Any) -> Any:
    return torch.nonzero(a, as_tuple=True)


@maps("flatnonzero")
def _flatnonzero(to: Any, a: Any) -> Any:
    return torch.nonzero(a.reshape(-1)).reshape(-1)


@maps("argwhere")
def _argwhere(to: Any, a: Any) -> Any:
    return torch.nonzero(a)


@maps("unique")
def _unique(to: Any, ar: Any, **rest: Any) -> Any:
    rest.pop("equal_nan", None)
    only_default(**rest)
    return torch.unique(ar, sorted=True)


@maps("clip")
def _clip_function(
    to: Any, a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Any:
    work = work_dtype(to)
    low = min if absent(a_min) else a_min
    high = max if absent(a_max) else a_max
    a = cast(a, work)
    if not any(isinstance(bound, torch.Tensor) for bound in (low, high)):
        return torch.clamp(a, None if absent(low) else low, None if absent(high) else high)
    a = a if absent(low) else torch.maximum(a, cast(low, work))
    return a if absent(high) else torch.minimum(a, cast(high, work))


@maps("round", "around")
def _round(to: Any, a: Any, decimals: Any = 0) -> Any:
    return torch.round(cast(a, to), decimals=decimals)


@maps("fix")
def _fix(to: Any, x: Any) -> Any:
    return torch.trunc(x)


@maps("sinc")
def _sinc(to: Any, x: Any) -> Any:
    return torch.sinc(cast(x, to))


@maps("nan_to_num")
def _nan_to_num(
    to: Any, x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    if not copy:
        raise Unmapped("the argument copy=False is not supported")
    return torch.nan_to_num(x, nan, posinf, neginf)


@maps("isclose")
def _isclose(
    to: Any, a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False
) -> Any:
    common = torch.promote_types(tensor(a).dtype, tensor(b).dtype)
    common = common if common.is_floating_point else torch.float64
    return torch.isclose(cast(a, common), cast(b, common), rtol, atol, equal_nan)
