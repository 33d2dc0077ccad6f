"""Where the code says that a state begins, beside what the first recorded pass found in it.

A bundle begins from what was there when recording began. Code that ran before, to warm up, has left
something else there than it begins from by itself: `self.y = torch.zeros(4)`. Only fills with one
number are known, and only where nothing but the function that reads the state changes it later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from veracity.tracing import constancy, names, source
from veracity.tracing.constancy import Reader
from veracity.tracing.flow.task import last_name
from veracity.tracing.operations import words
from veracity.tracing.source import Scope

#: Calls that fill a tensor with one number.
_FILLS = dict.fromkeys(words("zeros zeros_like new_zeros"), 0.0)
_FILLS |= dict.fromkeys(words("ones ones_like new_ones"), 1.0)
#: Calls that fill it with their second argument, or, as a method of a tensor, too.
_FULL = words("full full_like new_full")
#: Calls that keep what a tensor is filled with.
_KEEPING = words("to clone float double half cpu cuda contiguous detach unsqueeze expand repeat")


@dataclass
class _Said:
    """What the code assigns to a state, besides the function that reads it.

    Attributes:
        values: The expressions.
        files: The file of each.
        is_changed: Whether it is changed in ways that no expression shows.
    """

    values: list[ast.expr] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    is_changed: bool = False

    def note(self, value: ast.expr | None, file: str) -> None:
        if value is None:
            self.is_changed = True
        else:
            self.values.append(value)
            self.files.append(file)


def other_than(
    initial: Sequence[torch.Tensor],
    wanted: names.Wanted,
    read_at: str,
    *,
    older: bool = False,
) -> tuple[str, str] | None:
    """Return what the code fills a state with, and `file:line`, if it begins with something else.

    Args:
        initial: What the first pass read, and where a value is under way for longer, those after.
        wanted: What says whether a value is the state.
        read_at: `file:line` where it is read.
        older: Whether that was there before the session, so that `None` is something else.
    """
    try:
        holder = next(iter(constancy.holders(wanted)), None)
        said = _of_shared_variable(read_at) if holder is None else _said(*holder, read_at)
    except Exception:  # any: what code looks like is up to the user, and this is no proof
        return None
    if said is None or said.is_changed or not said.values:
        return None
    if not all(_is_other(initial, value, older) for value in said.values):
        return None
    file, value = said.files[0], said.values[0]
    return source.text_of(file, value), f"{file}:{value.lineno}"


def _is_other(initial: Sequence[torch.Tensor], value: ast.expr, older: bool) -> bool:
    """Say whether an expression is known to give something else than a state began with."""
    if isinstance(value, ast.Constant) and value.value is None:
        return older
    if isinstance(value, ast.Tuple | ast.List):
        return all(_is_other(initial, one, older) for one in value.elts)
    number = _fill(value)
    return number is not None and not any(bool((one == number).all()) for one in initial)


def _said(reader: Reader, name: str, held: Any, path: str, read_at: str) -> _Said | None:
    if not path:
        return _of_variable(name, reader.scope)
    *way, attribute = path.partition("[")[0].removeprefix(".").split(".")
    if not path.startswith(".") or not all(map(str.isidentifier, (*way, attribute))):
        return None
    for one in way:
        held = getattr(held, one)
    files = {source.file_of(reader.scope), constancy.file_of_class(type(held))} - {""}
    return _of_attribute(attribute, type(held), files, read_at)


def _of_attribute(attribute: str, kind: type, files: set[str], read_at: str) -> _Said:
    found = _Said()
    for file in sorted(files):
        tree = source.tree_of(file)
        for scope in source.scopes(tree) if tree is not None else ():
            found.is_changed |= _begins_by(scope, read_at)
            if _holds_line(scope, read_at) or _has_its_own(scope, attribute, kind):
                continue
            for value in _assigned_to(scope, attribute):
                found.note(value, file)
            found.is_changed |= constancy.is_changed(scope, attribute)
    return found


def _has_its_own(scope: Scope, attribute: str, kind: type) -> bool:
    """Say whether a function is a method of another class, and means an attribute of that one."""
    around = getattr(scope, "parent", None)
    if not isinstance(around, ast.ClassDef) or isinstance(scope, ast.Module) or not scope.args.args:
        return False
    owners = [
        node.value
        for node in source.own_nodes(scope)
        if isinstance(node, ast.Attribute) and node.attr == attribute
    ]
    me = scope.args.args[0].arg
    is_mine = all(isinstance(one, ast.Name) and one.id == me for one in owners)
    return is_mine and all(one.__name__ != around.name for one in kind.__mro__)


def _begins_by(scope: Scope, read_at: str) -> bool:
    """Say whether setting up an object calls it: what it begins with is what that left."""
    if getattr(scope, "name", "") not in constancy.SETTING_UP:
        return False
    tree = source.tree_of(source.file_of(scope))
    reading = {
        getattr(one, "name", "")
        for one in (source.scopes(tree) if tree else ())
        if _holds_line(one, read_at)
    }
    called = [one for one in source.own_nodes(scope) if isinstance(one, ast.Call)]
    return any(last_name(one.func) in {"self", *reading} for one in called)


def _holds_line(scope: Scope, location: str) -> bool:
    file, _, line = location.rpartition(":")
    if isinstance(scope, ast.Module) or file != source.file_of(scope):
        return False
    return scope.lineno <= int(line) <= (scope.end_lineno or scope.lineno)


def _assigned_to(scope: Scope, attribute: str) -> Iterator[ast.expr | None]:
    """Give what a function assigns to an attribute; none where no expression says it."""
    for node in source.own_nodes(scope):
        for target, value in constancy.targets(node):
            for one, part in _parts(target, value):
                if isinstance(one, ast.Attribute) and one.attr == attribute:
                    yield part
        if isinstance(node, ast.Call) and last_name(node.func) in ("register_buffer", "setattr"):
            given = [one for one in node.args if not isinstance(one, ast.Name)]
            if given and isinstance(given[0], ast.Constant) and given[0].value == attribute:
                yield given[1] if len(given) > 1 else None


def _parts(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value
        return
    parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
    same = len(parts) == len(target.elts)
    for number, one in enumerate(target.elts):
        yield from _parts(one, parts[number] if same else None)


def _of_shared_variable(read_at: str) -> _Said | None:
    """Return what the only variable on a line is assigned that belongs to a function around."""
    file, _, line = read_at.rpartition(":")
    tree = source.tree_of(file)
    scopes = [one for one in source.scopes(tree) if _holds_line(one, read_at)] if tree else []
    if not scopes:
        return None
    scope = max(scopes, key=lambda one: getattr(one, "lineno", 0))
    outer = _outer_names(scope)
    read = {
        node.id
        for node in source.own_nodes(scope)
        if isinstance(node, ast.Name) and node.lineno == int(line) and node.id in outer
    }
    return _of_variable(read.pop(), scope) if len(read) == 1 else None


def _of_variable(name: str, scope: Scope) -> _Said:
    """Return what a variable is assigned outside of loops, where the function it belongs to is."""
    found = _Said()
    while name in _outer_names(scope) or not _is_assigned(scope, name):
        if isinstance(scope, ast.Module):
            return found
        scope = source.scope_of(getattr(scope, "origin", scope))
    for node in source.own_nodes(scope):
        for target, value in constancy.targets(node):
            for one, part in constancy.pairs(target, value):
                if one == name and not constancy.in_loop(node):
                    found.note(part, source.file_of(scope))
    found.is_changed |= constancy.is_changed(scope, name)
    return found


def _outer_names(scope: Scope) -> set[str]:
    """Return the variables of others that a function assigns."""
    outer = [one for one in source.own_nodes(scope) if isinstance(one, ast.Global | ast.Nonlocal)]
    return {name for one in outer for name in one.names}


def _is_assigned(scope: Scope, name: str) -> bool:
    return any(
        one == name
        for node in source.own_nodes(scope)
        for target, value in constancy.targets(node)
        for one, _ in constancy.pairs(target, value)
    )


def _fill(value: ast.expr) -> float | None:
    """Return the number that an expression fills a tensor with; none where it does not say."""
    if not isinstance(value, ast.Call):
        return None
    called = last_name(value.func)
    if called in _FILLS:
        return _FILLS[called]
    if called in _FULL:
        given = value.args[1:2] or [one.value for one in value.keywords if one.arg == "fill_value"]
        return _number(given[0]) if given else None
    if called in _KEEPING and isinstance(value.func, ast.Attribute):
        return _fill(value.func.value)
    return None


def _number(node: ast.expr) -> float | None:
    try:
        found = ast.literal_eval(node)
    except ValueError:
        return None
    return float(found) if isinstance(found, bool | int | float) else None
