"""The functions of the user's that the code of a node may run, found by looking at its source.

Calls are followed from function to function as far as their objects can be found without running
anything: functions, methods, objects that can be called, modules of torch, properties.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch

from veracity.tracing import resolving, source
from veracity.tracing.resolving import NO_OBJECT, Method, Names
from veracity.tracing.source import Scope

#: Functions that are looked at for one node, at most.
MOST_SCOPES = 200

Reached = tuple[Scope, Names]


def from_function(function: Any, first: Any = NO_OBJECT) -> list[Reached]:
    """Return a function and all it may run; `first` is its first argument, where that is known."""
    found = _of_callable(function, first)
    return [] if found is None else _all_from(found)


def from_frame(code: CodeType, names: Names) -> list[Reached]:
    """Return a running function and all it may run."""
    scope = resolving._definition(code) or _module_scope(code)
    return [] if scope is None else _all_from((scope, names))


def _module_scope(code: CodeType) -> Scope | None:
    return source.tree_of(code.co_filename) if code.co_name == "<module>" else None


def _all_from(root: Reached) -> list[Reached]:
    found, seen = [root], {root[0]}
    for scope, names in found:
        for further in _calls(scope, names):
            if further[0] not in seen and len(found) < MOST_SCOPES:
                seen.add(further[0])
                found.append(further)
    return found


def _calls(scope: Scope, names: Names) -> Iterator[Reached]:
    for node in source.own_nodes(scope):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node is not scope:
            yield node, resolving.names_in(node, names).inside(dict(names._local))
        elif isinstance(node, ast.Call):
            yield from _called(names.callable_of(node.func), names)
            yield from _applied(node, names)
            for argument in node.args:  # a function may be handed on and called elsewhere
                handed = names.resolve(argument)
                if isinstance(handed, FunctionType | MethodType):
                    yield from _called(handed, names)
        elif isinstance(node, ast.Attribute):
            yield from _property(node, names)


def _applied(node: ast.Call, names: Names) -> Iterator[Reached]:
    """Give what a function of autograd's computes, which is called by another name."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "apply":
        return
    owner = names.resolve(node.func.value)
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
        yield from _called(vars(owner).get("forward", NO_OBJECT), names)


def _called(called: Any, names: Names) -> Iterator[Reached]:
    if called is None or called is NO_OBJECT:
        return
    first = NO_OBJECT
    if isinstance(called, Method):
        called, first = called.function, names.resolve(called.owner)
    if isinstance(called, torch.nn.Module):
        yield from _run_by_torch(called)
    found = _of_callable(called, first)
    if found is not None:
        yield found
    elif isinstance(called, FunctionType):
        yield from _in_lambda(called)


def _run_by_torch(module: torch.nn.Module) -> Iterator[Reached]:
    """Give what torch calls in a module: the blocks inside of it, parametrizations and hooks."""
    for part in itertools.islice(torch.nn.Module.modules(module), MOST_SCOPES):
        for called in ([] if part is module else [part]) + hooks_of(part):
            found = _of_callable(called, NO_OBJECT)
            if found is not None:
                yield found


def hooks_of(module: torch.nn.Module) -> list[Any]:
    """Return the functions that torch calls around the `forward` of a module."""
    held = vars(module)
    kinds = ("_forward_pre_hooks", "_forward_hooks")
    return [hook for kind in kinds for hook in list((held.get(kind) or {}).values())]


def _in_lambda(function: FunctionType) -> Iterator[Reached]:
    """Give the functions that a function without source of its own holds or names."""
    named = [function.__globals__.get(name) for name in function.__code__.co_names]
    for one in [*named, *closed_over(function)]:
        if callable(one) and one is not function:
            found = _of_callable(one, NO_OBJECT)
            if found is not None:
                yield found


def closed_over(function: FunctionType) -> list[Any]:
    """Return what a function holds of the functions around it; `None` where that is not filled."""
    return [_content(cell) for cell in function.__closure__ or ()]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _property(node: ast.Attribute, names: Names) -> Iterator[Reached]:
    owner = names.resolve(node.value)
    if owner is NO_OBJECT or isinstance(owner, type):
        return
    found = resolving._attribute(owner, node.attr)
    if not isinstance(found, property | functools.cached_property):
        return  # it is not asked for anything: that may run code of the user's
    getter = found.fget if isinstance(found, property) else found.func
    if getter is not None:
        reached = _of_callable(getter, owner)
        if reached is not None:
            yield reached


def _of_callable(called: Any, first: Any) -> Reached | None:
    if isinstance(called, functools.partial):
        return _of_callable(called.func, NO_OBJECT)
    if isinstance(called, staticmethod):
        called = called.__func__
    if isinstance(called, MethodType):
        called, first = called.__func__, called.__self__
    if not isinstance(called, FunctionType) and not isinstance(called, type):
        name = "forward" if isinstance(called, torch.nn.Module) else "__call__"
        wrapped = getattr(called, "__wrapped__", None)
        found = resolving._in_class(type(called), name)
        if isinstance(found, FunctionType):
            called, first = found, called
        elif isinstance(wrapped, FunctionType):
            called = wrapped
    if not isinstance(called, FunctionType):
        return None
    found = Names({}, {}, {}, frozenset()).source_of(called)
    if found is None:
        return None
    scope, names, _ = found
    parameters = getattr(getattr(scope, "args", None), "args", [])
    if first is not NO_OBJECT and parameters:
        names = names.inside({parameters[0].arg: first})
    return scope, names
