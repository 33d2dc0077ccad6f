"""What the user's source says about a line: whether a value that left there was only looked at."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator

_SHOWN_BY = {"debug", "info", "warning", "warn", "error", "critical", "exception", "log"}


def only_looks(location: str) -> bool:
    """Say whether the statement at `file:line` makes nothing of a value.

    It asserts, raises, prints or logs: the export does not do that, and computes the same. A call
    that may keep what it is given does not count.
    """
    file, _, line = location.rpartition(":")
    statement = _statement(file, int(line)) if line.isdigit() else None
    if isinstance(statement, ast.Assert):
        return True
    if isinstance(statement, ast.If):
        only_raises = all(isinstance(inner, ast.Raise) for inner in statement.body)
        return only_raises and not statement.orelse
    return isinstance(statement, ast.Expr) and _shows(statement.value)


def _shows(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    called = value.func
    if isinstance(called, ast.Name):
        return called.id == "print"
    if not isinstance(called, ast.Attribute) or called.attr not in _SHOWN_BY:
        return False
    owner = called.value
    name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
    return "log" in name.lower()


def _statement(file: str, line: int) -> ast.stmt | None:
    """Return the innermost statement whose own lines, not those of its body, hold this one."""
    found = None
    for statement in _statements(file):
        last = statement.end_lineno or statement.lineno
        if isinstance(statement, ast.If):
            last = statement.test.end_lineno or statement.lineno
        if statement.lineno <= line <= last and (not found or statement.lineno >= found.lineno):
            found = statement
    return found


@functools.lru_cache(maxsize=64)
def _statements(file: str) -> list[ast.stmt]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return []
    return list(_all_statements(tree))


def _all_statements(tree: ast.AST) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            yield node
