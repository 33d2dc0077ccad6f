"""What a NumPy index is as a torch index.

Two differences are bridged. torch has no negative steps, so a reversed axis is told beside the key:
it shows the same elements, read backwards. And NumPy lets an integer beside an index array take
part in the indexing, while torch removes its axis first, so such an integer becomes an array here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import torch

from veracity.tracing.array_table import Unmapped


class BasicKey(NamedTuple):
    """A key that shows a part of an array.

    Attributes:
        key: For torch.
        reversed_axes: Axes of the result that are read backwards.
    """

    key: tuple[Any, ...]
    reversed_axes: tuple[int, ...]


class AdvancedKey(NamedTuple):
    """A key that picks elements into a new array.

    Attributes:
        key: For torch.
        extra_axis: An axis of length 1 in torch's result that NumPy's does not have.
        ragged: Whether the shape of the result depends on elements.
    """

    key: tuple[Any, ...]
    extra_axis: int | None
    ragged: bool


def items_of(key: Any, rank: int) -> list[Any]:
    """Return one item for each axis and each new axis; `...` is written out."""
    items = list(key) if isinstance(key, tuple) else [key]
    used = sum(_axes_used(item) for item in items)
    dots = [place for place, item in enumerate(items) if item is Ellipsis]
    place = dots[0] if dots else len(items)
    items[place : place + len(dots)] = [slice(None)] * (rank - used)
    return items


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    if _is_truth(item):
        return 0
    if isinstance(item, list):
        item = numpy.asarray(item, dtype=None if item else numpy.intp)
    mask = isinstance(item, numpy.ndarray) and item.dtype == numpy.bool_
    return item.ndim if mask else 1


def is_basic(items: list[Any]) -> bool:
    """Whether a key shows a part of the array without copying."""
    return all(item is None or isinstance(item, slice) or _is_integer(item) for item in items)


# By type, not by `isinstance`: traced scalars say that they are numbers.
def _is_integer(item: Any) -> bool:
    return issubclass(type(item), int | numpy.integer) and type(item) is not bool


def _is_truth(item: Any) -> bool:
    return issubclass(type(item), bool | numpy.bool_)


def basic_key(items: list[Any], shape: tuple[int, ...], reversed_axes: tuple[int, ...]) -> BasicKey:
    """Return the key for an array that shows a tensor with some axes read backwards."""
    key: list[Any] = []
    backwards: list[int] = []
    axis = 0
    for item in items:
        position = len(key) - sum(isinstance(done, int) for done in key)
        if item is None:
            key.append(None)
            continue
        mirrored = axis in reversed_axes
        if isinstance(item, slice):
            step, turned = _slice(item, shape[axis], mirrored)
            key.append(step)
            backwards += [position] * turned
        else:
            index = operator.index(item) % shape[axis]
            key.append(shape[axis] - 1 - index if mirrored else index)
        axis += 1
    return BasicKey(tuple(key), tuple(backwards))


def _slice(item: slice, count: int, mirrored: bool) -> tuple[slice, bool]:
    wanted = range(*item.indices(count))
    if not wanted:
        return slice(0, 0), False
    first, last, step = wanted[0], wanted[-1], wanted.step
    if mirrored:
        first, last, step = count - 1 - first, count - 1 - last, -step
    turned = step < 0 and len(wanted) > 1
    if step < 0:
        first, last, step = last, first, -step
    if (first, last, step) == (0, count - 1, 1):
        return slice(None), turned
    return slice(first, last + 1, None if step == 1 else step), turned


def advanced_key(items: list[Any], tensor_of: Callable[[Any], torch.Tensor]) -> AdvancedKey:
    """Return the key with tensors; `tensor_of` converts an index array."""
    key: list[Any] = []
    picks: list[int] = []
    for item in items:
        if isinstance(item, slice):
            if item.step is not None and operator.index(item.step) < 0:
                raise Unmapped("a negative step beside an index array is not supported")
            key.append(item)
        elif item is None:
            key.append(None)
        elif _is_truth(item):
            raise Unmapped("a single truth value as an index is not supported")
        else:
            picks.append(len(key))
            key.append(operator.index(item) if _is_integer(item) else tensor_of(item))
    tensors = [key[place] for place in picks if isinstance(key[place], torch.Tensor)]
    ragged = any(one.dtype == torch.bool for one in tensors)
    extra = None if ragged else _spread_integers(key, picks, tensors)
    return AdvancedKey(tuple(key), extra, ragged)


def _spread_integers(key: list[Any], picks: list[int], tensors: list[torch.Tensor]) -> int | None:
    """Make every pick an index array of rank 1 or more; return the axis that this adds."""
    single = all(one.dim() == 0 for one in tensors)
    for place in picks:
        pick = key[place]
        if not isinstance(pick, torch.Tensor):
            key[place] = torch.full((1,), pick, dtype=torch.int64, device="cpu")
        elif pick.dim() == 0:
            key[place] = pick.reshape(1)
    if not single:
        return None
    together = picks[-1] - picks[0] == len(picks) - 1
    return picks[0] if together else 0
