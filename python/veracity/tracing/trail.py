"""Where a value left for Python, and who called: kept when it happens, read when the pass ends.

Only what tells functions and methods apart is kept: code, positions, modules, and the objects of
the frames by weak reference. No tensor is held.
"""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any

from veracity.tracing import source
from veracity.tracing.operations import owner_of_file

#: Functions of the user's that are followed from a value outwards.
MOST_FRAMES = 8
_USER, _RECORDER = 0, 3
_KEPT = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)


@dataclass(frozen=True)
class Step:
    """One function of the user's on the way to a value.

    Attributes:
        code: What it runs.
        instruction: Where it is in that, in bytes.
        line: The line of that.
        names: Its variables: functions, modules and classes, and the class of anything else.
        objects: The objects of its variables, as long as others hold them.
        module: The names of its module.
        is_node: Whether the recorder called it: what it returns are the outputs of a node.
    """

    code: CodeType
    instruction: int
    line: int
    names: dict[str, Any]
    objects: dict[str, weakref.ref[Any]]
    module: dict[str, Any]
    is_node: bool


@dataclass(frozen=True)
class ClassOf:
    """A variable of which only the class is known."""

    kind: type


def user_frame() -> FrameType | None:
    """Return the innermost frame of the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and owner_of_file(frame.f_code.co_filename) != _USER:
        frame = frame.f_back
    return frame


def keep_trail(frame: FrameType) -> tuple[Step, ...]:
    """Return the functions of the user's that lead to a frame, the innermost first."""
    steps: list[Step] = []
    current: FrameType | None = frame
    while current is not None and len(steps) < MOST_FRAMES:
        if owner_of_file(current.f_code.co_filename) == _USER:
            steps.append(keep_step(current))
        current = current.f_back
    return tuple(steps)


def keep_step(frame: FrameType) -> Step:
    """Return a function of the user's that is running."""
    local = frame.f_locals
    names: dict[str, Any] = {}
    objects: dict[str, weakref.ref[Any]] = {}
    for name, value in list(local.items()) if local is not frame.f_globals else ():
        known = issubclass(type(value), _KEPT)  # not `isinstance`, which may run code
        names[name] = value if known else ClassOf(type(value))
        try:
            objects[name] = weakref.ref(value)
        except TypeError:  # most classes of Python's own cannot be referred to
            continue
    back = frame.f_back
    is_node = back is not None and owner_of_file(back.f_code.co_filename) == _RECORDER
    return Step(
        frame.f_code,
        source.instruction_of(frame),
        frame.f_lineno,
        names,
        objects,
        frame.f_globals,
        is_node and "__torch_function__" not in (back.f_code.co_name if back else ""),
    )
