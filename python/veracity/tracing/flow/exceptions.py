"""Exceptions because of the value: raised, caught, and swallowed."""

# ruff: noqa: D102 - methods are named after what they walk

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import replace

from veracity.tracing import observers
from veracity.tracing.begun import begins_session
from veracity.tracing.flow.branches import Branches
from veracity.tracing.flow.task import (
    PYTHON,
    TORCH,
    WARNING,
    Decided,
    Taint,
    Task,
    last_name,
    parameters_of,
)
from veracity.tracing.resolving import Names

LOOPS = (ast.For, ast.AsyncFor, ast.While)
_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))  # since Python 3.11
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
#: Contexts of torch that only look.
_WATCHING = frozenset({"record_function", "profile", "emit_nvtx", "range", "stream", "schedule"})


class Exceptions(Branches):
    """Exceptions."""

    def do_raise(self, statement: ast.Raise) -> None:
        self.do_other(statement)
        if self.control is not None:
            taint = replace(self.control, what="exception")
            if self.is_answer(statement):
                self.decide(taint, statement)
            self.raise_(taint, _raised_class(statement) or PYTHON)

    def is_answer(self, statement: ast.Raise) -> bool:
        """Say whether an exception tells Python something, which catches it and goes on.

        `hasattr` and `getattr` take an `AttributeError` for an answer, loops a `StopIteration` and,
        of `__getitem__`, an `IndexError`.
        """
        name = _raised_class(statement)
        of_items = name == "IndexError" and getattr(self.task.scope, "name", "") == "__getitem__"
        return of_items or name in ("AttributeError", "StopIteration", "StopAsyncIteration")

    def do_assert(self, statement: ast.Assert) -> None:
        taint = self.value(statement.test)
        if taint is not None or self.control is not None:
            self.raise_(Taint("exception", statement.lineno), "AssertionError")

    def do_with(self, statement: ast.With | ast.AsyncWith) -> None:
        catches = False
        outside = self.control
        for item in statement.items:
            taint = self.value(item.context_expr)
            if taint is not None and self.changes_torch(item.context_expr, taint):
                self.control = self.control or self.of_control(taint, "branch", statement)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, taint)
            catches = catches or self.names.swallows(item.context_expr)
            name = last_name(getattr(item.context_expr, "func", item.context_expr))
            if name in ("redirect_stdout", "redirect_stderr") and self.outcome.raised is None:
                self.captured = item.context_expr
        before = set(self.outcome.raised_by)
        if catches:
            self.guarded(statement.body, [], [], statement.items)
        else:
            self.block(statement.body)
        warned = WARNING in self.outcome.raised_by - before
        for item in statement.items if warned else ():
            if last_name(getattr(item.context_expr, "func", item.context_expr)) == "catch_warnings":
                self.fill(item)
        self.captured, self.control = None, outside or self.return_cut

    do_asyncwith = do_with

    def changes_torch(self, context: ast.expr, taint: Taint) -> bool:
        """Say whether what a block computes depends on a context that the value chose or set."""
        if taint.what == "branch":
            return True
        made = context.func if isinstance(context, ast.Call) else context
        called = self.names.callable_of(made)
        name = last_name(made)
        return observers.module_of(called).startswith("torch") and name not in _WATCHING

    def do_try(self, statement: ast.Try) -> None:
        handlers = [one for one in statement.handlers if _goes_on(one)]
        catches = bool(handlers) or _swallows(statement.finalbody)
        # Around all of a recording it catches what ends that.
        if catches and not begins_session(statement, self.names):
            self.guarded(statement.body, handlers, statement.orelse)
        else:
            self.block(statement.body)
            self.block(statement.orelse)
            for handler in statement.handlers:
                self.branches([handler.body, []], None)
        self.block(statement.finalbody)

    do_trystar = do_try

    def guarded(
        self,
        body: list[ast.stmt],
        handlers: list[ast.ExceptHandler],
        orelse: list[ast.stmt],
        contexts: list[ast.withitem] | None = None,
    ) -> None:
        """Walk a block whose exceptions are caught: one because of the value is a decision."""
        raised_before, self.outcome.raised = self.outcome.raised, None
        by_before, self.outcome.raised_by = self.outcome.raised_by, set()
        self.guards += 1
        self.block(body)
        self.guards -= 1
        raised, self.outcome.raised = self.outcome.raised, raised_before
        by, self.outcome.raised_by = self.outcome.raised_by, by_before
        if raised is not None and handlers and not any(_may_catch(one, by) for one in handlers):
            self.outcome.raised = self.outcome.raised or raised  # it goes further out
            self.outcome.raised_by |= by
            raised = None
        if raised is None:
            self.block(orelse)
            self.branches([*(one.body for one in handlers), []], None)
            return
        if self.openings & {node for one in body for node in ast.walk(one)}:
            raise Decided(raised, raised.line)  # the program goes on without the node's outputs
        if self.task.around is not None:
            self.skips_calls(body, raised)
        for name in [*_assigned(body), *(one.name for one in handlers if one.name)]:
            self.assign_name(name, raised)
        for target in _assigned_parts(body):
            self.assign(target, raised)
        for item in contexts or ():
            self.leave(item, raised)
        self.branches([orelse, *(one.body for one in handlers)], raised)

    def leave(self, item: ast.withitem, raised: Taint) -> None:
        """Walk what a context does with an exception that it catches."""
        found = self.names.leaving(item.context_expr)
        if found is None:
            return
        scope, names = found
        given = parameters_of(scope.args)[1:] if isinstance(scope, ast.FunctionDef) else []
        task = Task(scope, names, tainted={one.arg: raised for one in given})
        outcome = type(self)(
            replace(task, depth=self.task.depth + 1, around=self.task.around)
        ).run()
        for key, taint in outcome.kept.items():
            self.keep(key, taint)
        if outcome.kept and item.optional_vars is not None:
            self.assign(item.optional_vars, raised)

    def fill(self, item: ast.withitem) -> None:
        """Warnings are kept in a list, as many as there were."""
        if item.optional_vars is not None:
            self.assign(item.optional_vars, self.outcome.raised)

    def skips_calls(self, body: list[ast.stmt], raised: Taint) -> None:
        """An exception that is caught skips the calls behind it."""
        for node in (node for statement in body for node in ast.walk(statement)):
            if getattr(node, "lineno", 0) > raised.line:
                self.reach_call(node, raised)


def meets(node: ast.AST, names: Names) -> ast.AST | None:
    """Return the statement of a driver that an exception out of a call meets first.

    That is one that catches it and goes on, or one of `LOOPS`, which it ends; none where it leaves
    the function.
    """
    inner, outer = node, getattr(node, "parent", None)
    while isinstance(outer, ast.AST) and not isinstance(outer, _FUNCTIONS):
        if isinstance(outer, LOOPS):
            return outer
        if isinstance(outer, _TRIES) and inner in outer.body:
            caught = any(_goes_on(one) and _may_catch(one, {TORCH}) for one in outer.handlers)
            if caught or _swallows(outer.finalbody):
                return outer
        contexts = outer.items if isinstance(outer, ast.With | ast.AsyncWith) else []
        if inner not in contexts and any(names.swallows(one.context_expr) for one in contexts):
            return outer
        inner, outer = outer, getattr(outer, "parent", None)
    return None


def _swallows(block: list[ast.stmt]) -> bool:
    """Say whether a `finally` ends an exception by leaving."""
    inside = [node for statement in block for node in ast.walk(statement)]
    return any(isinstance(node, ast.Return | ast.Break | ast.Continue) for node in inside)


def _goes_on(handler: ast.ExceptHandler) -> bool:
    """Say whether the program goes on after a handler."""
    last = handler.body[-1]
    if isinstance(last, ast.Raise):
        return False
    called = last.value if isinstance(last, ast.Expr) else None
    return not (isinstance(called, ast.Call) and last_name(called.func) in ("exit", "_exit"))


#: What comes of the world around a program, and not of a value.
_OF_THE_WORLD = frozenset(
    {
        *(
            "ImportError",
            "ModuleNotFoundError",
            "KeyboardInterrupt",
            "FileNotFoundError",
            "OSError",
        ),
        *("TimeoutError", "ConnectionError", "EOFError", "PermissionError", "SystemExit"),
        *("CancelledError", "Empty", "Full", "timeout", "JSONDecodeError", "NotImplementedError"),
    }
)
#: What torch does not raise because of a value.
_NOT_OF_TORCH = _OF_THE_WORLD | {
    *("AttributeError", "KeyError", "StopIteration", "TypeError", "NameError"),
}


def _may_catch(handler: ast.ExceptHandler, by: set[str]) -> bool:
    """Say whether a handler may get what was raised because of the value."""
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(_catches(last_name(kind), one) for kind in kinds for one in by)


def _catches(name: str, by: str) -> bool:
    if by == PYTHON:
        return name not in _OF_THE_WORLD
    if by == TORCH:
        return name not in _NOT_OF_TORCH
    if by == WARNING:
        return name.endswith("Warning")
    caught, raised = (getattr(builtins, one, None) for one in (name, by))
    if isinstance(raised, type):
        return isinstance(caught, type) and issubclass(raised, caught)
    return name not in _OF_THE_WORLD  # of a class of the user's, it may be a base


def _raised_class(statement: ast.Raise) -> str:
    """Return the class that a statement raises; nothing where it says something else."""
    raised = getattr(statement.exc, "func", statement.exc)
    name = last_name(raised) if raised is not None else ""
    return name if name[:1].isupper() else ""


def _assigned_parts(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """Give the attributes and entries that a block assigns."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
                yield node


def _assigned(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
