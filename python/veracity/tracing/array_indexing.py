"""Reading and writing parts of traced arrays."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy
import torch

from veracity.tracing import array_keys, arrays
from veracity.tracing.array_operations import (
    array_of_items,
    first_line,
    never,
    overlay,
    own,
    settle,
    tell_of,
    traced_target,
    without_torch,
    write,
)
from veracity.tracing.array_table import Unmapped, cast
from veracity.tracing.array_unfollowed import refused_in, unfollowed
from veracity.tracing.arrays import (
    State,
    is_traced,
    map_leaves,
    only_constants,
    operand,
    overlap,
    plain,
    plain_array,
    reading_tensor,
    refusal,
    same_place,
    shown,
    state_of,
    taint,
    traced_in,
    wrap,
)


def _items(value: Any, key: Any) -> list[Any]:
    """Return the items of a key; lists become arrays, which stay traced."""
    each = key if isinstance(key, tuple) else (key,)
    each = tuple(
        array_of_items(one, None if one else numpy.intp) if isinstance(one, list) else one
        for one in each
    )
    return array_keys.items_of(each, value.ndim)


def _index_tensor(item: Any) -> torch.Tensor:
    if not is_traced(item) and not isinstance(item, numpy.ndarray):
        raise Unmapped(f"an index of the type {type(item).__name__} is not supported")
    found: torch.Tensor = operand(item)
    return found if found.dtype == torch.bool else cast(found, torch.int64)


def _listed(key: Any) -> Any:
    return list(key) if isinstance(key, list) else key


def _plain_key(key: Any) -> Any:
    return plain(_listed(key))


def get_item(self: Any, key: Any) -> Any:
    """Read a part."""
    if not arrays.active():
        return plain_array(self)[_plain_key(key)]
    if only_constants(self, key):
        return without_torch(operator.getitem, (self, _listed(key)), {}, stays=True)
    expected = plain_array(self)[_plain_key(key)]
    held = refused_in(self, key)
    if held is not None:
        return unfollowed(expected, held[0], [self, *traced_in(key)])
    try:
        items = _items(self, key)
        if array_keys.is_basic(items):
            return _part(self, items, expected)
        found = array_keys.advanced_key(items, _index_tensor)
        got = reading_tensor(self)[found.key]
        got = got if found.extra_axis is None else got.squeeze(found.extra_axis)
    except (RuntimeError, TypeError, ValueError, IndexError, Unmapped) as error:
        raise refusal("this index", first_line(error)) from error
    operands = [self, *traced_in(key)]
    derived = not only_constants(operands, key)
    ragged = found.ragged or any(state_of(one).ragged for one in operands)
    if not isinstance(expected, numpy.ndarray) or not overlap(expected, plain_array(self)):
        return settle("this index", expected, got, operands, derived, ragged)
    return _frozen(settle("this index", expected.copy(), got, operands, derived, ragged), expected)


def _frozen(result: Any, shown: Any) -> Any:
    """Return a copy in place of a view that torch does not have: where it lies is not fixed."""
    state_of(result).memory.frozen = (plain_array(result), shown)
    numpy.ndarray.setflags(result, write=False)
    return result


def _part(self: Any, items: list[Any], expected: Any) -> Any:
    """Return a part that a basic key shows: a view, or a copy of one element."""
    state = state_of(self)
    key, reversed_axes = array_keys.basic_key(items, plain_array(self).shape, state.reversed_axes)
    got = state.tensor[key]
    # A part of a scalar (`x[None]`) is a new array.
    if isinstance(expected, numpy.generic) or not arrays.is_array(self):
        return own(torch.clone(got), expected, state.memory.derived)
    if not same_place(numpy.flip(expected, reversed_axes) if reversed_axes else expected, got):
        return wrap(expected, shown(expected, state))
    return wrap(expected, State(got, reversed_axes, state.memory, state.ragged))


def set_item(self: Any, key: Any, value: Any) -> None:
    """Write a part."""
    values = plain_array(self)
    if not arrays.active():
        values[_plain_key(key)] = plain(value)
        return
    if state_of(self).memory.frozen is not None:
        raise refusal("this assignment", "it writes into a part that a traced number picked")
    if not values.flags.writeable:
        raise ValueError("assignment destination is read-only")
    if only_constants(self, key, value):
        values[_plain_key(key)] = plain(value)
        tell_of(self)
        return
    taint("this assignment", state_of(self).memory)
    expected = values.copy()
    expected[_plain_key(key)] = plain(value)
    operands = [self, *traced_in(key, value)]
    try:
        state = state_of(self)
        new = cast(map_leaves(value, operand), state.tensor.dtype)
        items = _items(self, key)
        if array_keys.is_basic(items):
            _set_part(self, items, new)
        else:
            _set_picked(self, key, items, new)
    except (RuntimeError, TypeError, ValueError, IndexError, Unmapped) as error:
        raise refusal("this assignment", first_line(error)) from error
    overlay("this assignment", self, expected, operands)


def _set_part(self: Any, items: list[Any], new: torch.Tensor) -> None:
    state = state_of(self)
    shape = plain_array(self).shape
    key, reversed_axes = array_keys.basic_key(items, shape, state.reversed_axes)
    if reversed_axes:
        sizes = [len(range(*item.indices(count))) for item, count in _kept_axes(items, shape)]
        new = torch.flip(new.expand(sizes), reversed_axes)
    state.tensor[key] = new


def _kept_axes(items: list[Any], shape: tuple[int, ...]) -> Iterator[tuple[slice, int]]:
    axis = 0
    for item in items:
        if item is None:
            yield slice(None), 1
            continue
        if isinstance(item, slice):
            yield item, shape[axis]
        axis += 1


def _set_picked(self: Any, key: Any, items: list[Any], new: torch.Tensor) -> None:
    found = array_keys.advanced_key(items, _index_tensor)
    if found.extra_axis is not None:
        sizes = plain_array(self)[_plain_key(key)].shape
        new = new.expand(sizes).unsqueeze(found.extra_axis)
    state = state_of(self)
    if state.reversed_axes:
        whole = reading_tensor(self)
        whole[found.key] = new
        write(self, whole)
    else:
        state.tensor[found.key] = new


def add_at(ufunc: Any, name: str, target: Any, key: Any, *values: Any) -> None:
    """Add to picked elements, as often as they are picked."""
    if ufunc is not numpy.add or len(values) != 1:
        raise refusal(name, "it is not in the table")
    target = traced_target(target)
    taint(name, state_of(target).memory)
    expected = plain_array(target).copy()
    numpy.add.at(expected, _plain_key(key), plain(values[0]))
    operands = [target, *traced_in(key, values)]
    try:
        items = _items(target, key)
        while items and isinstance(items[-1], slice) and items[-1] == slice(None):
            items.pop()
        found = array_keys.advanced_key(items, _index_tensor)
        if found.extra_axis is not None or not all(map(torch.is_tensor, found.key)):
            never()
        whole = reading_tensor(target)
        new = cast(map_leaves(values[0], operand), whole.dtype)
        write(target, whole.index_put(found.key, new, accumulate=True))
    except (RuntimeError, TypeError, ValueError, IndexError, Unmapped) as error:
        raise refusal(name, first_line(error)) from error
    overlay(name, target, expected, operands)
