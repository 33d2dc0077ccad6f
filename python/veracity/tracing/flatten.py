"""Nested values as named leaves, and back.

A leaf is a torch tensor, a NumPy array, or anything that is no container; what a leaf is worth is
for others to say. Containers are walked in their own order: dicts and other mappings, lists,
tuples, named tuples, dataclasses, and objects that look like a TensorDict (`items()` and
`batch_size`). Names are the parts of the path joined by `_`. A container that contains itself is
refused.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from veracity.errors import refuse
from veracity.semantics import is_tensor

#: Deepest nesting that is walked: deeper is a loop, or no data.
_MAX_DEPTH = 64


class Leaf(NamedTuple):
    """A value inside of nested containers, with its name."""

    name: str
    value: Any


def flatten(named: Mapping[str, Any], *, location: str = "") -> list[Leaf]:
    """Return every leaf of named values, in order.

    Args:
        named: Values by name; the name is the first part of the names of their leaves.
        location: `file:line` of the user's code, for refusals.
    """
    leaves: list[Leaf] = []
    for name, value in named.items():
        if not isinstance(name, str):
            kind = type(name).__name__
            message = f"the name {name!r} of a value is of type {kind}, not str"
            raise refuse("VER0902", message, location=location)
        _walk(name, value, leaves, 0, location)
    _refuse_collisions([leaf for leaf in leaves if is_tensor(leaf.value)], location)
    return leaves


def rebuild(named: Mapping[str, Any], replace: Callable[[str, Any], Any]) -> dict[str, Any]:
    """Return the same structure with every leaf replaced by `replace(name, leaf)`.

    Containers without a changed leaf are handed back as they are; the others are copied, never
    changed in place.
    """
    return {name: _rebuilt(name, value, replace) for name, value in named.items()}


def _walk(name: str, value: Any, leaves: list[Leaf], depth: int, location: str) -> None:
    children = _children(value)
    if children is None:
        leaves.append(Leaf(name, value))
        return
    if depth == _MAX_DEPTH:
        message = f"{name[:80]!r} is nested more than {_MAX_DEPTH} levels deep"
        raise refuse("VER0902", message, location=location)
    for key, child in children:
        _walk(f"{name}_{key}", child, leaves, depth + 1, location)


def _refuse_collisions(leaves: list[Leaf], location: str) -> None:
    seen: set[str] = set()
    for name, _ in leaves:
        if name in seen:
            raise refuse(
                "VER0903",
                f"two values are called {name!r} once their names are flattened",
                location=location,
                hints=("rename one of the keys that lead there",),
            )
        seen.add(name)


def _children(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """Return what a container holds by key, or `None` for a leaf."""
    if is_tensor(value) or isinstance(value, str | bytes):
        return None
    if isinstance(value, Mapping) or _is_tensor_dict(value):
        return list(value.items())
    if _is_named_tuple(value):
        return list(zip(value._fields, value, strict=True))
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(each.name, getattr(value, each.name)) for each in dataclasses.fields(value)]
    return None


def _rebuilt(name: str, value: Any, replace: Callable[[str, Any], Any]) -> Any:
    children = _children(value)
    if children is None:
        return replace(name, value)
    old = dict(children)
    new = {key: _rebuilt(f"{name}_{key}", child, replace) for key, child in old.items()}
    if all(new[key] is old[key] for key in old):
        return value
    return _like(value, new)


def _like(value: Any, children: dict[Any, Any]) -> Any:
    """Return a container of the same kind with other content."""
    if _is_named_tuple(value):
        return type(value)._make(children.values())
    if isinstance(value, list | tuple):
        return _sequence(value, list(children.values()))
    is_dataclass = dataclasses.is_dataclass(value)
    if not is_dataclass and not hasattr(value, "__setitem__"):
        return dict(children)  # a read-only mapping
    # A copy keeps what a constructor would not take: defaults, batch sizes, frozen fields.
    made = copy.copy(value)
    for key, child in children.items():
        if is_dataclass:
            object.__setattr__(made, key, child)
        else:
            made[key] = child
    return made


def _sequence(value: list[Any] | tuple[Any, ...], items: list[Any]) -> Any:
    if type(value) in (list, tuple):
        return type(value)(items)
    if isinstance(value, list):
        made = copy.copy(value)
        made[:] = items
        return made
    return tuple(items)


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields") and hasattr(value, "_make")


def _is_tensor_dict(value: Any) -> bool:
    return callable(getattr(type(value), "items", None)) and hasattr(value, "batch_size")
