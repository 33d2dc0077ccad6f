"""What the user's code calls a tensor, found by looking where looking is easy.

Looked at are the variables of the functions that are running and of their modules, and what these
hold: attributes of objects, entries of lists and dicts, parameters and buffers at any depth. A
tensor that nobody holds any more has no name.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch

from veracity.tracing.node import DTYPE_NAMES

#: Functions of the user's that are looked into, the innermost first.
MOST_FRAMES = 8
#: Entries of a container that are looked at.
MOST_ENTRIES = 256
_PLUMBING = {"veracity", "torch", "contextlib", "functools"}

Wanted = Callable[[Any], bool]


def name_of(tensor: torch.Tensor) -> str | None:
    """Return what the running code calls the memory that a tensor shows, such as `self.gain`."""
    if tensor.layout != torch.strided:
        return None
    storage = tensor.untyped_storage()._cdata

    def wanted(value: Any) -> bool:
        return (
            issubclass(type(value), torch.Tensor)
            and value.shape == tensor.shape
            and value.storage_offset() == tensor.storage_offset()
            and value.untyped_storage()._cdata == storage
        )

    return find(wanted)


def described(tensor: torch.Tensor) -> str:
    """Return a tensor in words: its name where the code has one, its dtype and its shape."""
    name = name_of(tensor)
    dtype = DTYPE_NAMES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))
    called = "a tensor" if name is None else f"the tensor `{name}`"
    return f"{called} ({dtype}{list(tensor.shape)})"


def find(wanted: Wanted) -> str | None:
    """Return what the running code calls the first value that is wanted."""
    # Any: what the user's objects do when they are looked at is up to them.
    with contextlib.suppress(Exception):
        frames = list(itertools.islice(_user_frames(), MOST_FRAMES))
        scopes = [frame.f_locals for frame in frames] + [frame.f_globals for frame in frames]
        for scope in scopes:
            for name, value in list(scope.items()):
                found = _path(value, name, wanted)
                if found is not None:
                    return found
    return None


def _user_frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _PLUMBING:
            yield frame
        frame = frame.f_back


def _path(value: Any, name: str, wanted: Wanted) -> str | None:
    if wanted(value):
        return name
    for inner, item in _entries(value):
        if wanted(item):
            return name + inner
        if issubclass(type(item), torch.nn.Module):
            for further, held in _of_module(item):
                if wanted(held):
                    return name + inner + further
        elif type(item) in (tuple, list, dict, collections.deque):  # `self.hidden = (h, c)`
            for further, held in _entries(item):
                if wanted(held):
                    return name + inner + further
    return None


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Give what a value holds, and how one gets there from it."""
    kind = type(value)
    if kind is dict:
        for key, item in itertools.islice(value.items(), MOST_ENTRIES):
            yield f"[{key!r}]", item
    elif kind in (list, tuple, collections.deque):
        for index, item in enumerate(itertools.islice(value, MOST_ENTRIES)):
            yield f"[{index}]", item
    elif issubclass(kind, torch.nn.Module):
        yield from _of_module(value)
    elif not issubclass(kind, type | ModuleType | FunctionType | torch.Tensor):
        held = getattr(value, "__dict__", None)
        if type(held) is dict:
            for attribute, item in list(held.items()):
                yield f".{attribute}", item


def _of_module(module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    for path, part in torch.nn.Module.named_modules(module):
        start = f".{path}" if path else ""
        groups = (vars(part), part._parameters, part._buffers)  # of a script, no plain dicts
        for attribute, item in [pair for group in groups for pair in group.items()]:
            if issubclass(type(item), torch.Tensor):
                yield f"{start}.{attribute}", item
