"""Where source begins a session: what is around that is no part of what runs from tick to tick."""

from __future__ import annotations

import ast

from veracity.tracing.flow.task import last_name
from veracity.tracing.resolving import Names

_HOME, _NAMES = "veracity.lifecycle", ("start", "session")
_CHOICES = (ast.If, ast.IfExp, ast.Match, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def begins_session(outer: ast.AST, names: Names) -> bool:
    """Say whether a statement begins a session each time it runs.

    A loop over backends does, and so does a `try` around all of a recording. A loop over ticks
    that starts recording at one of them does not.
    """
    return any(
        isinstance(node, ast.Call) and _begins(node, names) and not _is_chosen(node, outer)
        for node in ast.walk(outer)
    )


def _begins(call: ast.Call, names: Names) -> bool:
    if last_name(call.func) not in _NAMES:
        return False
    called = names.callable_of(call.func)
    named = getattr(called, "__module__", ""), getattr(called, "__name__", "")
    return named[0] == _HOME and named[1] in _NAMES


def _is_chosen(node: ast.AST, outer: ast.AST) -> bool:
    above = getattr(node, "parent", None)
    while above is not None and above is not outer:
        if isinstance(above, _CHOICES):
            return True
        above = getattr(above, "parent", None)
    return False
