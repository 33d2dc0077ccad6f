"""Functions of modules that act differently on traced values while a session lasts.

A patch replaces the attribute of a module; callers that hold the function itself are not reached.
Everything is put back by `PatchSet.uninstall`, which only touches what still is ours.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType, TracebackType
from typing import Any

from veracity._places import user_line
from veracity.errors import VeracityError, refuse
from veracity.semantics import is_tensor

#: Deepest nesting of arguments that is searched for traced values.
_MAX_DEPTH = 32


@dataclass(frozen=True)
class FunctionPatch:
    """A function of a module and what to call in its place for traced values.

    Attributes:
        module: The module that holds the function.
        function_name: Its name there.
        replacement: Called with the same arguments when one of them is traced.
    """

    module: ModuleType
    function_name: str
    replacement: Callable[..., Any]


class PatchSet:
    """The patches of one session. Checked as a whole before anything is changed."""

    def __init__(
        self, patches: Iterable[FunctionPatch] | None, is_traced: Callable[[Any], bool]
    ) -> None:
        """Check the patches.

        Args:
            patches: What to patch.
            is_traced: Says whether one value belongs to a node that is being recorded.
        """
        self._patches = _checked(patches)
        self._is_traced = is_traced
        self._installed: list[tuple[FunctionPatch, Any, Any]] = []

    def install(self) -> None:
        """Put every replacement in place, or none."""
        try:
            for patch in self._patches:
                original = getattr(patch.module, patch.function_name)
                dispatcher = _dispatcher(original, patch.replacement, self._is_traced)
                setattr(patch.module, patch.function_name, dispatcher)
                self._installed.append((patch, original, dispatcher))
        except BaseException:
            self.uninstall()
            raise

    def uninstall(self) -> None:
        """Put the functions back. What somebody else has put there since stays."""
        while self._installed:
            patch, original, dispatcher = self._installed.pop()
            if getattr(patch.module, patch.function_name, None) is dispatcher:
                setattr(patch.module, patch.function_name, original)

    def __enter__(self) -> PatchSet:
        """Install."""
        self.install()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Uninstall, whatever happened."""
        self.uninstall()


def any_traced(values: Any, is_traced: Callable[[Any], bool]) -> bool:
    """Say whether a traced value is anywhere in nested values."""
    return _search(values, is_traced, 0, set())


def _dispatcher(
    original: Callable[..., Any], replacement: Callable[..., Any], is_traced: Callable[[Any], bool]
) -> Callable[..., Any]:
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        chosen = replacement if any_traced((args, kwargs), is_traced) else original
        return chosen(*args, **kwargs)

    # A builtin or a class has not every attribute that `wraps` copies; it skips those.
    return functools.wraps(original)(dispatch)


def _search(value: Any, is_traced: Callable[[Any], bool], depth: int, seen: set[int]) -> bool:
    if is_tensor(value):
        return is_traced(value)
    if isinstance(value, str | bytes | int | float | type) or value is None:
        return False
    if depth == _MAX_DEPTH or id(value) in seen:
        return False
    children: Iterable[Any]
    if isinstance(value, Mapping):
        children = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        children = value
    elif dataclasses.is_dataclass(value):
        children = [getattr(value, each.name, None) for each in dataclasses.fields(value)]
    else:
        return is_traced(value)
    seen.add(id(value))
    return any(_search(child, is_traced, depth + 1, seen) for child in children)


def _checked(patches: Iterable[FunctionPatch] | None) -> list[FunctionPatch]:
    if patches is None:
        return []
    if isinstance(patches, FunctionPatch):
        patches = [patches]
    try:
        listed = list(patches)
    except TypeError:
        raise _wrong_type(f"patches are a list, not {type(patches).__name__}") from None
    seen: set[tuple[int, str]] = set()
    for patch in listed:
        _check(patch)
        target = (id(patch.module), patch.function_name)
        if target in seen:
            raise _wrong_value(f"{_target(patch)} is patched twice")
        seen.add(target)
    return listed


def _check(patch: Any) -> None:
    if not isinstance(patch, FunctionPatch):
        raise _wrong_type(f"a patch is a FunctionPatch, not {type(patch).__name__}")
    if not isinstance(patch.module, ModuleType):
        kind = type(patch.module).__name__
        raise _wrong_type(f"`module` of a patch is a module, not {kind}")
    if not isinstance(patch.function_name, str) or not patch.function_name:
        raise _wrong_value(f"a patch of {patch.module.__name__} names no function")
    if not hasattr(patch.module, patch.function_name):
        raise _wrong_value(f"there is no {_target(patch)}")
    if not callable(getattr(patch.module, patch.function_name)):
        raise _wrong_type(f"{_target(patch)} cannot be called")
    if not callable(patch.replacement):
        raise _wrong_type(f"the replacement for {_target(patch)} cannot be called")


def _target(patch: FunctionPatch) -> str:
    return f"{patch.module.__name__}.{patch.function_name}"


def _wrong_type(message: str) -> VeracityError:
    # A patch of the wrong type is what an annotation of the wrong type is: a TypeError.
    return refuse("VER0902", message, location=user_line())


def _wrong_value(message: str) -> VeracityError:
    return refuse("VER0925", message, location=user_line())
