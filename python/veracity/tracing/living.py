"""Which classes of the user's have objects that running functions can reach."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator
from types import FrameType, FunctionType, MethodType
from typing import Any

from veracity.tracing.classes import is_users
from veracity.tracing.operations import owner_of_file

#: Functions, objects and entries of one container that are looked at.
MOST_FRAMES, MOST_OBJECTS, MOST_ENTRIES = 8, 5000, 64
_USER = 0


def classes_around(innermost: FrameType) -> set[str]:
    """Return the names of classes that have objects: only their methods may be called."""
    waiting = collections.deque(_variables(innermost))
    seen: set[int] = set()
    found: set[str] = set()
    while waiting and len(seen) < MOST_OBJECTS:
        value = waiting.popleft()
        if id(value) not in seen:
            seen.add(id(value))
            kind = value if isinstance(value, type) else type(value)
            found.update(one.__name__ for one in kind.__mro__)
            waiting.extend(_held_by(value))
    return found


def _variables(innermost: FrameType) -> Iterator[Any]:
    frame: FrameType | None = innermost
    for _ in range(MOST_FRAMES):
        if frame is None:
            return
        if owner_of_file(frame.f_code.co_filename) == _USER:
            yield from list(frame.f_locals.values())
            # A class of the file has no objects for being there.
            yield from [one for one in list(frame.f_globals.values()) if not isinstance(one, type)]
        frame = frame.f_back


def _held_by(value: Any) -> Iterator[Any]:
    """Give what an object holds."""
    kind = type(value)
    if issubclass(kind, dict):
        yield from itertools.islice(value.values(), MOST_ENTRIES)
    elif issubclass(kind, list | tuple | set | collections.deque):
        yield from itertools.islice(value, MOST_ENTRIES)
    elif issubclass(kind, FunctionType):
        yield from (cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell))
    elif issubclass(kind, MethodType):
        yield value.__self__
    elif is_users(kind) or hasattr(value, "_modules"):
        yield from list(getattr(value, "__dict__", {}).values())


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
