"""What expressions owe to the value."""

# ruff: noqa: D102 - methods are named after what they walk

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from veracity.tracing.flow.calls import Calls
from veracity.tracing.flow.task import HELD, TORCH, Taint, first


class Expressions(Calls):
    """Expressions."""

    def value(self, node: ast.expr | None) -> Taint | None:
        """Return what an expression owes to the value."""
        if node is None:
            return None
        source = self.met(node)
        raising = self.task.raising.get(node)
        self.reach_call(node, self.control)
        if self.task.opens and (source is not None or raising is not None):
            self.closed = False  # it was seen inside of a node
        if raising is not None:
            self.raise_(raising, TORCH)
        method: Callable[[Any], Taint | None] = getattr(
            self, "of_" + type(node).__name__.lower(), self.of_other
        )
        found = method(node)
        if source is None:
            return found
        if isinstance(node, ast.Call):
            self.may_raise(source, node, "ArithmeticError")  # `int(x)` does for infinities
            self.may_raise(source, node, "ValueError")  # and for NaN
            if source.what != "answer" and self.takes_in(node):
                return None
            self.change_by_source(node, source)
        return found or source

    def of_other(self, node: ast.expr) -> Taint | None:
        found = [self.value(one) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        return first(found)

    def of_constant(self, node: ast.Constant) -> Taint | None:
        return None

    def of_name(self, node: ast.Name) -> Taint | None:
        return self.tainted.get(node.id) or self.tainted_around(node.id)

    def of_attribute(self, node: ast.Attribute) -> Taint | None:
        found = self.value(node.value)
        if found is not None and found.what == HELD:
            found = replace(found, what="value")
        return found or self.tainted.get("." + node.attr)

    def of_compare(self, node: ast.Compare) -> Taint | None:
        found = self.of_other(node)
        if found is not None and found.what == HELD:
            return None
        return found

    def of_subscript(self, node: ast.Subscript) -> Taint | None:
        index = self.value(node.slice)
        taint = self.value(node.value)
        self.may_raise(index or taint, node)
        return taint or (None if index is None else replace(index, what="index"))

    def of_namedexpr(self, node: ast.NamedExpr) -> Taint | None:
        taint = self.value(node.value)
        self.assign(node.target, taint, node.value)
        return taint

    def of_ifexp(self, node: ast.IfExp) -> Taint | None:
        taint = self.value(node.test)
        if taint is not None:
            outside = self.control
            self.control = self.control or self.of_control(taint, "branch", node)
            self.value(node.body)
            self.value(node.orelse)
            self.control = outside
            return Taint("branch", node.lineno)
        return first([self.value(node.body), self.value(node.orelse)])

    def of_boolop(self, node: ast.BoolOp) -> Taint | None:
        outside = self.control
        found = self.task.sources.get(node)  # of `x > 1 and act()` Python asks the whole
        for one in node.values:
            here = self.value(one)
            found = found or here
            self.control = outside or self.of_control(found, "branch", node)
        self.control = outside
        return found and replace(found, what="branch")

    def of_binop(self, node: ast.BinOp) -> Taint | None:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
            self.may_raise(right, node)
        return left or right

    def of_lambda(self, node: ast.Lambda) -> Taint | None:
        return self.value(node.body)

    def comprehension(self, node: Any) -> Taint | None:
        found: list[Taint | None] = []
        for part in node.generators:
            taint = self.value(part.iter)
            self.assign(part.target, taint)
            tests = first([self.value(one) for one in part.ifs])
            found += [tests and replace(tests, what="filter"), taint]
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return first([*(self.value(one) for one in values), *found])

    of_listcomp = of_setcomp = of_dictcomp = of_generatorexp = comprehension

    def of_yield(self, node: ast.Yield | ast.YieldFrom | ast.Await) -> Taint | None:
        taint = self.value(node.value) or self.control
        if taint is not None and not isinstance(node, ast.Await):
            self.outcome.returned = self.outcome.returned or taint
        return taint

    of_yieldfrom = of_await = of_yield

    def of_call(self, node: ast.Call) -> Taint | None:
        return self.call(node, discarded=False)
