"""Arrays made of others: filled, broadcast, repeated, taken, padded."""

from __future__ import annotations

from typing import Any

import numpy
import torch

from veracity.tracing.array_table.basics import (
    Expression,
    Unmapped,
    absent,
    cast,
    one_axis,
    only_default,
    tensor,
)
from veracity.tracing.array_table.registry import maps


def _filled(value: float) -> Expression:
    def filled(
        to: Any, a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None,
        *, device: Any = None,
    ) -> Any:  # fmt: skip
        sizes = tuple(a.shape) if absent(shape) else shape
        sizes = sizes if isinstance(sizes, tuple | list) else (sizes,)
        return torch.full(sizes, value, dtype=to, device="cpu")

    return filled


maps("zeros_like", "empty_like")(_filled(0))


maps("ones_like")(_filled(1))


@maps("full_like")
def _full_like(
    to: Any, a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: Any = True,
    shape: Any = None, *, device: Any = None,
) -> Any:  # fmt: skip
    sizes = tuple(a.shape) if absent(shape) else shape
    return cast(fill_value, to).expand(sizes).clone()


@maps("copy")
def _copy(to: Any, a: Any, order: Any = "K", subok: Any = False) -> Any:
    return torch.clone(a)


@maps("real")
def _real(to: Any, val: Any) -> Any:
    return torch.real(val) if val.is_complex() else val


@maps("imag")
def _imag(to: Any, val: Any) -> Any:
    return torch.imag(val) if val.is_complex() else torch.zeros_like(val)


@maps("angle")
def _angle(to: Any, z: Any, deg: Any = False) -> Any:
    only_default(deg=deg)
    return torch.angle(z)


@maps("broadcast_to")
def _broadcast_to(to: Any, array: Any, shape: Any, subok: Any = False) -> Any:
    return torch.broadcast_to(array, shape if isinstance(shape, tuple | list) else (shape,))


@maps("broadcast_arrays")
def _broadcast_arrays(to: Any, *args: Any, subok: Any = False) -> Any:
    each = [tensor(one) for one in args]
    shape = numpy.broadcast_shapes(*[tuple(one.shape) for one in each])
    return [torch.broadcast_to(one, shape) for one in each]


def _at_least(expression: Expression) -> Expression:
    def at_least(to: Any, *arys: Any) -> Any:
        each = [expression(tensor(one)) for one in arys]
        return each[0] if len(each) == 1 else each

    return at_least


maps("atleast_1d")(_at_least(torch.atleast_1d))


maps("atleast_2d")(_at_least(torch.atleast_2d))


maps("atleast_3d")(_at_least(torch.atleast_3d))


@maps("tile")
def _tile(to: Any, A: Any, reps: Any) -> Any:  # noqa: N803 (NumPy's name)
    return torch.tile(A, tuple(reps) if isinstance(reps, tuple | list) else (reps,))


@maps("repeat")
def _repeat(to: Any, a: Any, repeats: Any, axis: Any = None) -> Any:
    counts = repeats if isinstance(repeats, int | torch.Tensor) else tensor(repeats)
    return torch.repeat_interleave(a, counts, axis)


def _positions(indices: Any, count: int) -> torch.Tensor:
    """Return indices as positions from the front."""
    indices = cast(tensor(indices), torch.int64)
    return torch.where(indices < 0, indices + count, indices)


@maps("take")
def _take(to: Any, a: Any, indices: Any, axis: Any = None, mode: Any = "raise") -> Any:
    if mode != "raise":
        raise Unmapped(f"the argument mode={mode!r} is not supported")
    a, along = (a.reshape(-1), 0) if axis is None else (a, one_axis(axis, a.dim()))
    where = _positions(indices, a.shape[along])
    found = torch.index_select(a, along, where.reshape(-1))
    return found.reshape([*a.shape[:along], *where.shape, *a.shape[along + 1 :]])


@maps("take_along_axis")
def _take_along_axis(to: Any, arr: Any, indices: Any, axis: Any = -1) -> Any:
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    return torch.take_along_dim(arr, _positions(indices, arr.shape[axis]), axis)


@maps("diff")
def _diff(
    to: Any, a: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None
) -> Any:
    ends = [None if absent(one) else cast(tensor(one), to) for one in (prepend, append)]
    a = cast(a, to) if any(one is not None for one in ends) else a
    along = one_axis(axis, a.dim())
    shape = [1 if place == along else size for place, size in enumerate(a.shape)]
    first, last = (one.expand(shape) if one is not None and one.dim() == 0 else one for one in ends)
    return torch.diff(a, n, axis, first, last)


@maps("trapezoid", "trapz")
def _trapezoid(to: Any, y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    y = cast(y, to)
    return torch.trapezoid(y, dx=dx, dim=axis) if x is None else torch.trapezoid(y, x, dim=axis)


@maps("meshgrid")
def _meshgrid(
    to: Any, *xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy"
) -> Any:
    only_default(sparse=sparse)
    each = [tensor(one).reshape(-1) for one in xi]
    swapped = indexing == "xy" and len(each) > 1
    places = [1, 0, *range(2, len(each))] if swapped else list(range(len(each)))
    shape = [each[place].shape[0] for place in places]
    return [
        each[which]
        .reshape([-1 if places[axis] == which else 1 for axis in range(len(each))])
        .expand(shape)
        for which in range(len(each))
    ]


#: Longer tables are searched by an operation that ONNX does not have.
_SHORT_TABLE = 4096


def places_in(table: torch.Tensor, values: torch.Tensor, side: str) -> torch.Tensor:
    """Return where values belong in a sorted table: how many of its elements lie before."""
    if table.dim() != 1 or table.shape[0] > _SHORT_TABLE:
        return torch.searchsorted(table.contiguous(), values, side=side)
    each = values.unsqueeze(-1)
    # NaN lies behind all of them, as it does for NumPy.
    reached = table >= each if side == "left" else table > each
    return torch.sum(torch.logical_not(reached), -1)


@maps("searchsorted")
def _searchsorted(to: Any, a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    only_default(sorter=sorter)
    a, v = tensor(a), tensor(v)
    common = torch.promote_types(a.dtype, v.dtype)
    return places_in(cast(a, common), cast(v, common), side)


@maps("pad")
def _pad(
    to: Any,
    array: Any,
    pad_width: Any,
    mode: Any = "constant",
    constant_values: Any = 0,
    **rest: Any,
) -> Any:
    only_default(**rest)
    if mode not in ("constant", "edge") or not isinstance(constant_values, int | float):
        raise Unmapped("only padding with one constant or with the edge is supported")
    widths = numpy.broadcast_to(numpy.asarray(pad_width), (array.dim(), 2))
    if mode == "edge":
        for axis, (before, after) in enumerate(widths.tolist()):
            size = array.shape[axis]
            where = torch.arange(-before, size + after, device="cpu").clamp(0, size - 1)
            array = torch.index_select(array, axis, where)
        return array
    flat = [int(width) for pair in widths[::-1] for width in pair]
    return torch.nn.functional.pad(array, flat, value=constant_values)


@maps("interp")
def _interp(
    to: Any, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    only_default(period=period)
    x, xp, fp = (cast(one, torch.float64) for one in (x, xp, fp))
    last = xp.shape[0] - 1
    upper = places_in(xp, x.reshape(-1), "right").clamp(1, max(last, 1))
    lower = upper - 1
    slope = (fp[upper] - fp[lower]) / (xp[upper] - xp[lower])
    inside = (fp[lower] + slope * (x.reshape(-1) - xp[lower])).reshape(x.shape)
    below = fp[0] if left is None else cast(left, torch.float64)
    above = fp[last] if right is None else cast(right, torch.float64)
    return torch.where(x < xp[0], below, torch.where(x > xp[last], above, inside))
