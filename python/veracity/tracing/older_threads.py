"""What other threads of the user's may tell a node.

A thread that is older than the session is not recorded: it may read a tensor out of an attribute or
a queue, and answer with a flag. So its source is looked at instead, from the functions that it is
in. What it assigns, and what the code of a node reads of that, are the same attributes, variables
and queues.

Threads of libraries, and threads without source, are not looked at.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from veracity.tracing import observers, reached, source
from veracity.tracing.operations import is_own
from veracity.tracing.reached import Reached
from veracity.tracing.resolving import NO_OBJECT, names_of
from veracity.tracing.trail import ClassOf, keep_trail

#: Methods by which a thread tells another something, beside those that fill containers.
_TELLING = frozenset({"set", "clear", "send", "set_result", "set_exception", "notify", "release"})


@dataclass(frozen=True)
class Told:
    """Something that a thread assigns.

    Attributes:
        key: The name that the source has for it: `.name` of an attribute, `@name` of a variable.
        owner: The object of the attribute, where it is known.
    """

    key: str
    owner: Any


def told_by_others() -> list[Told]:
    """Return what the user's other threads may assign."""
    return [told for code in _code_of_others() for scope in code for told in _assigned(scope)]


def are_known() -> bool:
    """Say whether there are other threads of the user's, and there is source for all of them."""
    found = list(_code_of_others())
    return bool(found) and all(found)


def reads(code: list[Reached], told: Told) -> bool:
    """Say whether code reads what a thread assigns: an attribute of what may be one object."""
    if told.key[0] == "@":
        return any(
            isinstance(node, ast.Name) and node.id == told.key[1:]
            for scope, _ in code
            for node in source.own_nodes(scope)
        )
    for scope, names in code:
        for node in source.own_nodes(scope):
            if isinstance(node, ast.Attribute) and node.attr == told.key[1:]:
                owner = names.resolve(node.value)
                if _may_be_one(owner, told.owner):
                    return True
    return False


def _may_be_one(one: Any, other: Any) -> bool:
    if one is NO_OBJECT or other is NO_OBJECT:
        return True
    if isinstance(one, ClassOf) or isinstance(other, ClassOf):
        kinds = [each.kind if isinstance(each, ClassOf) else type(each) for each in (one, other)]
        return kinds[0] is kinds[1]
    return one is other


def _code_of_others() -> Iterator[list[Reached]]:
    here = threading.get_ident()
    for ident, frame in list(sys._current_frames().items()):
        if ident == here:
            continue
        steps = [one for one in keep_trail(frame) if is_own(one.code.co_filename)]
        if steps:
            found: dict[ast.AST, Reached] = {}
            for step in steps:
                for each in reached.from_frame(step.code, names_of(step)):
                    found.setdefault(each[0], each)
            yield list(found.values())


def _assigned(code: Reached) -> Iterator[Told]:
    scope, names = code
    outer = {
        name
        for node in source.own_nodes(scope)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names
    }
    for node in source.own_nodes(scope):
        for target in _targets(node):
            while isinstance(target, ast.Subscript):
                target = target.value
            if isinstance(target, ast.Attribute):
                yield Told(f".{target.attr}", names.resolve(target.value))
            elif isinstance(target, ast.Name) and _is_outer(target, outer, names.own):
                yield Told(f"@{target.id}", NO_OBJECT)


def _is_outer(name: ast.Name, outer: set[str], own: frozenset[str]) -> bool:
    """Say whether a variable belongs to a scope around the function."""
    return name.id in outer or (not isinstance(name.ctx, ast.Store) and name.id not in own)


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    """Give what a statement or call puts something into."""
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from [node.func.value] if node.func.attr in observers.FILLING | _TELLING else []
