"""Dtypes, tensors and arguments as NumPy and torch call them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy
import torch

Expression = Callable[..., Any]


def words(text: str) -> tuple[str, ...]:
    """Return the words of a list that is easier to read as text."""
    return tuple(text.split())


class Unmapped(Exception):  # noqa: N818 (not an error of the user's code; it is turned into one)
    """There is no torch expression for this call; the text says why."""


DTYPES: dict[numpy.dtype[Any], torch.dtype] = {
    numpy.dtype(name): getattr(torch, name)
    for name in words(
        "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 "
        "float16 float32 float64 complex64 complex128"
    )
}


# torch stores these but does not compute with them. Every operation of an unsigned loop is exact
# in the wider signed type, and the cast back wraps as NumPy wraps.
WORK_DTYPES: dict[torch.dtype, torch.dtype] = {torch.uint16: torch.int32, torch.uint32: torch.int64}


def torch_dtype(dtype: Any) -> torch.dtype:
    """Return torch's name for a NumPy dtype."""
    try:
        return DTYPES[numpy.dtype(dtype)]
    except KeyError:
        raise Unmapped(f"torch has no dtype {numpy.dtype(dtype)}") from None


def work_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which torch computes for this one."""
    return WORK_DTYPES.get(dtype, dtype)


# Held from before a session puts its own in their places.
_new_tensor = torch.tensor


_new_array = numpy.asarray


def cast(value: Any, dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor of a dtype, without a step when it already is one."""
    if isinstance(value, torch.Tensor):
        return value if value.dtype == dtype else value.to(dtype)
    if _holds_tensors(value):
        return torch.stack([cast(one, dtype) for one in value])
    return _new_tensor(value, dtype=dtype, device="cpu")


def tensor(value: Any) -> torch.Tensor:
    """Return a number, or a sequence of numbers and tensors, as NumPy would convert it."""
    if isinstance(value, torch.Tensor):
        return value
    if _holds_tensors(value):
        each = [tensor(one) for one in value]
        common = functools.reduce(torch.promote_types, [one.dtype for one in each])
        return torch.stack([cast(one, common) for one in each])
    array = _new_array(value)
    return _new_tensor(array.tolist(), dtype=torch_dtype(array.dtype), device="cpu")


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_holds_tensors(one) for one in value)
    return isinstance(value, torch.Tensor)


def absent(value: Any) -> bool:
    """Whether an optional argument of NumPy was left out."""
    return value is None or value is getattr(numpy, "_NoValue", None)


def only_default(**values: Any) -> None:
    """Refuse arguments that were given and are not supported."""
    for name, value in values.items():
        if not absent(value) and value is not False:
            raise Unmapped(f"the argument {name}={value!r} is not supported")


def c_order(order: Any) -> None:
    """Refuse an order of memory that is not the usual one."""
    if order not in (None, "C", "K", "A"):
        raise Unmapped(f"the argument order={order!r} is not supported")


def one_axis(axis: Any, rank: int) -> int:
    """Return an axis counted from the front."""
    number = operator.index(axis)
    return number + rank if number < 0 else number


def all_axes(axis: Any, rank: int) -> list[int]:
    """Return the axes that NumPy means by `axis=`, counted from the front."""
    if absent(axis):
        return list(range(rank))
    each = axis if isinstance(axis, tuple | list) else (axis,)
    return [one_axis(one, rank) for one in each]
