"""The statements of a function, one after the other."""

# ruff: noqa: D102 - methods are named after what they walk

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from veracity.tracing import observers
from veracity.tracing.flow.exceptions import Exceptions
from veracity.tracing.flow.task import Outcome, Task
from veracity.tracing.resolving import Local


def walk(task: Task) -> Outcome:
    """Walk a function; raises `Decided`."""
    return Statements(task).run()


class Statements(Exceptions):
    """The whole walk."""

    def run(self) -> Outcome:
        self.block(self.task.scope.body)
        return self.outcome

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            method: Callable[[Any], None] = getattr(
                self, "do_" + type(statement).__name__.lower(), self.do_other
            )
            method(statement)

    def do_other(self, statement: ast.stmt) -> None:
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self.value(child)

    def do_functiondef(self, statement: ast.FunctionDef) -> None:
        self.names.define(statement.name, Local(statement, self.names))

    do_asyncfunctiondef = do_functiondef

    def do_classdef(self, statement: ast.ClassDef) -> None:
        self.block([one for one in statement.body if not isinstance(one, ast.FunctionDef)])

    def do_import(self, statement: ast.stmt) -> None:
        """Nothing of a value is in it."""

    do_importfrom = do_import

    def do_global(self, statement: ast.Global | ast.Nonlocal) -> None:
        self.outer.update(statement.names)

    do_nonlocal = do_global

    def do_expr(self, statement: ast.Expr) -> None:
        value = statement.value
        method = value.func if isinstance(value, ast.Call) else None
        if (
            isinstance(method, ast.Attribute)
            and value not in self.task.sources
            and method.attr not in observers.VERBS
        ):
            self.write_memory(method.value)
        if isinstance(value, ast.Call):
            self.unused.add(value)
        if self.control is not None and isinstance(value, ast.Call):
            self.reach_call(value, self.control)
            self.call(value, discarded=True)
        else:
            self.value(value)

    def do_assign(self, statement: ast.Assign) -> None:
        taint = self.value(statement.value)
        for target in statement.targets:
            self.assign(target, taint, statement.value)

    def do_annassign(self, statement: ast.AnnAssign) -> None:
        if statement.value is not None:
            self.assign(statement.target, self.value(statement.value), statement.value)

    def do_augassign(self, statement: ast.AugAssign) -> None:
        taint = self.value(statement.value)
        target = statement.target
        before = self.read(target)
        if taint is not None:
            self.write_shared(target, taint)
        self.assign(target, taint or before)

    def do_delete(self, statement: ast.Delete) -> None:
        if self.control is not None:
            for target in statement.targets:
                self.change(target, self.control)

    def do_return(self, statement: ast.Return) -> None:
        taint = None if statement.value is None else self.value(statement.value)
        is_nothing = statement.value is None or (
            isinstance(statement.value, ast.Constant) and statement.value.value is None
        )
        taint = taint or (None if is_nothing else self.control)
        if taint is not None:
            if self.task.is_node:
                self.decide(taint, statement)
            if not self.closed:
                self.outcome.returned = self.outcome.returned or taint
        if self.control is not None:
            self.cut(self.control)
            self.return_cut = self.control
