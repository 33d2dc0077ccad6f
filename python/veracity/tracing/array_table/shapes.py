"""Joining, splitting and turning arrays; the elements stay what they are."""

from __future__ import annotations

import operator
from typing import Any

import numpy
import torch

from veracity.tracing.array_table.basics import Expression, all_axes, c_order, cast, tensor
from veracity.tracing.array_table.registry import maps


def each_of(values: Any, to: torch.dtype | None) -> list[torch.Tensor]:
    """Return a sequence of arrays as tensors, in one dtype if one is given."""
    if isinstance(values, torch.Tensor):
        values = list(torch.unbind(values))
    return [tensor(value) if to is None else cast(tensor(value), to) for value in values]


@maps("concatenate", "concat")
def _concatenate(
    to: Any, arrays: Any, /, axis: Any = 0, *, dtype: Any = None, casting: Any = None
) -> Any:
    each = each_of(arrays, to)
    return torch.cat([one.reshape(-1) for one in each]) if axis is None else torch.cat(each, axis)


@maps("stack")
def _stack(to: Any, arrays: Any, axis: Any = 0, *, dtype: Any = None, casting: Any = None) -> Any:
    return torch.stack(each_of(arrays, to), axis)


def _stacked(expression: Expression) -> Expression:
    def stacked(to: Any, tup: Any, *, dtype: Any = None, casting: Any = None) -> Any:
        return expression(each_of(tup, to))

    return stacked


maps("vstack", "row_stack")(_stacked(torch.vstack))


maps("hstack")(_stacked(torch.hstack))


maps("dstack")(_stacked(torch.dstack))


maps("column_stack")(_stacked(torch.column_stack))


@maps("append")
def _append(to: Any, arr: Any, values: Any, axis: Any = None) -> Any:
    return _concatenate(to, (arr, values), axis=axis)


@maps("split", "array_split")
def _split(to: Any, ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    if issubclass(type(indices_or_sections), int | numpy.integer):
        return list(torch.tensor_split(ary, int(indices_or_sections), axis))
    cuts = [operator.index(cut) for cut in indices_or_sections]
    return list(torch.tensor_split(ary, cuts, axis))


@maps("hsplit")
def _hsplit(to: Any, ary: Any, indices_or_sections: Any) -> Any:
    return _split(to, ary, indices_or_sections, 0 if ary.dim() == 1 else 1)


@maps("vsplit")
def _vsplit(to: Any, ary: Any, indices_or_sections: Any) -> Any:
    return _split(to, ary, indices_or_sections, 0)


@maps("squeeze")
def _squeeze(to: Any, a: Any, axis: Any = None) -> Any:
    return torch.squeeze(a) if axis is None else torch.squeeze(a, tuple(all_axes(axis, a.dim())))


@maps("expand_dims")
def _expand_dims(to: Any, a: Any, axis: Any) -> Any:
    count = len(axis) if isinstance(axis, tuple | list) else 1
    for one in sorted(all_axes(axis, a.dim() + count)):
        a = a.unsqueeze(one)
    return a


@maps("reshape")
def _reshape(
    to: Any,
    a: Any,
    /,
    shape: Any = None,
    order: Any = "C",
    *,
    newshape: Any = None,
    copy: Any = None,
) -> Any:
    c_order(order)
    shape = newshape if shape is None else shape
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    return torch.reshape(a, [operator.index(size) for size in sizes])


@maps("ravel")
def _ravel(to: Any, a: Any, order: Any = "C") -> Any:
    c_order(order)
    return torch.reshape(a, (-1,))


@maps("transpose", "permute_dims")
def _transpose(to: Any, a: Any, axes: Any = None) -> Any:
    order = list(reversed(range(a.dim()))) if axes is None else all_axes(tuple(axes), a.dim())
    return a.permute(order)


@maps("matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(to: Any, x: Any, /) -> Any:
    return x.transpose(-2, -1)


@maps("swapaxes")
def _swapaxes(to: Any, a: Any, axis1: Any, axis2: Any) -> Any:
    return a.transpose(axis1, axis2)


@maps("moveaxis")
def _moveaxis(to: Any, a: Any, source: Any, destination: Any) -> Any:
    return torch.movedim(a, tuple(all_axes(source, a.dim())), tuple(all_axes(destination, a.dim())))


@maps("flip")
def _flip(to: Any, m: Any, axis: Any = None) -> Any:
    return torch.flip(m, all_axes(axis, m.dim()))


@maps("flipud")
def _flipud(to: Any, m: Any) -> Any:
    return torch.flip(m, [0])


@maps("fliplr")
def _fliplr(to: Any, m: Any) -> Any:
    return torch.flip(m, [1])


@maps("rot90")
def _rot90(to: Any, m: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    return torch.rot90(m, k, list(axes))


@maps("roll")
def _roll(to: Any, a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return torch.roll(a, shift)
    axes = all_axes(axis, a.dim())
    shifts = list(shift) if isinstance(shift, tuple | list) else [shift] * len(axes)
    return torch.roll(a, shifts, axes)
