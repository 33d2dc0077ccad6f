"""Blocks that run, or do not run, because of the value: branches and loops."""

# ruff: noqa: D102 - methods are named after what they walk

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

import torch

from veracity.tracing import resolving, source
from veracity.tracing.flow.expressions import Expressions
from veracity.tracing.flow.task import KEPT, Taint, last_name

#: Functions that give the entries of what they are given.
_GOING_OVER = frozenset({"enumerate", "zip", "reversed", "sorted", "iter", "list", "tuple", "set"})


class Branches(Expressions):
    """Branches and loops."""

    def do_if(self, statement: ast.If) -> None:
        taint = self.value(statement.test)
        if (self.is_around or self.closed) and source.holds_at_first(statement.test):
            taint = None  # a bundle begins there as well
        taint = self.of_control(taint, "branch", statement)
        self.turn_order([statement.body, statement.orelse], taint)
        self.keep_outputs(statement, taint)
        self.branches([statement.body, statement.orelse], taint)

    def turn_order(self, blocks: list[list[ast.stmt]], taint: Taint | None) -> None:
        """Of a walk around nodes: blocks that run the same nodes in another order are a choice."""
        around = self.task.around
        if around is None or taint is None:
            return
        first, other = (around.order(block) for block in blocks)
        if first != other and set(first) == set(other):
            moved = next(one for one, two in zip(first, other, strict=False) if one != two)
            self.outcome.decided_calls[replace(taint, what="order")] = {moved}

    def keep_outputs(self, statement: ast.If, taint: Taint | None) -> None:
        """Of a walk around nodes: outputs that are used where the nodes did not run are older."""
        around = self.task.around
        if around is None or taint is None or not around.nodes:
            return
        if not around.holds_all(statement.body):
            return
        begin = min(
            getattr(one, "lineno", statement.lineno)
            for one in ast.walk(statement)
            if one in around.calls
        )
        kept = {
            self.root(target)
            for node in ast.walk(statement)
            if isinstance(node, ast.Assign) and (node.end_lineno or node.lineno) >= begin
            for target in node.targets
        }
        used = {
            self.root(node)
            for node in source.own_nodes(self.task.scope)
            if isinstance(node, ast.Name | ast.Attribute)
            and isinstance(node.ctx, ast.Load)
            and node.lineno > (statement.end_lineno or statement.lineno)
        }
        if kept & used - {None}:
            self.outcome.decided_calls[replace(taint, what=KEPT)] = set(around.nodes)

    def do_match(self, statement: ast.Match) -> None:
        taint = self.value(statement.subject)
        for case in statement.cases:
            if case.guard is not None:
                taint = taint or self.value(case.guard)
            if taint is not None:
                for node in ast.walk(case.pattern):
                    name = getattr(node, "name", None) or getattr(node, "rest", None)
                    if isinstance(name, str):
                        self.tainted[name] = taint
        taint = self.of_control(taint, "branch", statement)
        self.branches([case.body for case in statement.cases], taint)

    def branches(self, blocks: list[list[ast.stmt]], taint: Taint | None) -> None:
        """Walk blocks of which one runs."""
        outside = self.control
        before, closed = dict(self.tainted), self.closed
        after: dict[str, Taint] = {}
        still_closed = closed
        cut_before, self.return_cut = self.return_cut, None
        loop_before, self.loop_cut = self.loop_cut, None
        for statements in blocks:
            self.tainted, self.closed = dict(before), closed
            self.control = outside if self.holds_nodes(statements) else outside or taint
            self.block(statements)
            after.update(self.tainted)
            still_closed = still_closed and self.closed
        if not all(blocks):
            after.update(before)
        self.tainted, self.closed, self.control = after, still_closed, outside
        # Whoever left early decides whether the rest runs, which is nothing if that is a tick.
        only_ticks = self.is_before_nodes() and not any(map(self.runs_node_code, blocks))
        if self.return_cut is not None and not only_ticks:
            self.cut(self.return_cut)
        if self.loop_cut is not None and not (self.loop_is_tick and only_ticks):
            self.cut(self.loop_cut)
        self.return_cut = self.return_cut or cut_before
        self.loop_cut = self.loop_cut or loop_before

    def runs_node_code(self, statements: list[ast.stmt]) -> bool:
        """Say whether a block calls what nodes are made of: it may move their states on."""
        if self.holds_nodes(statements):
            return False
        inside = [node for statement in statements for node in ast.walk(statement)]
        calls = [node for node in inside if isinstance(node, ast.Call)]
        for called in (self.names.callable_of(node.func) for node in calls):
            found = self.names.source_of(called)
            if isinstance(called, torch.nn.Module) or (found and resolving.has_run(found[0])):
                return True
        return False

    def do_while(self, statement: ast.While) -> None:
        def test() -> Taint | None:
            return self.of_control(self.value(statement.test), "loop", statement)

        self.after_loop(statement, self.loop(statement.body, test))

    def do_for(self, statement: ast.For | ast.AsyncFor) -> None:
        def step() -> Taint | None:
            taint = self.value(statement.iter)
            self.assign(statement.target, taint)
            self.alias_entries(statement.target, statement.iter)
            what = "value" if taint is None else _of_loop(statement.iter, taint)
            return self.of_control(taint, what, statement)

        self.after_loop(statement, self.loop(statement.body, step))

    do_asyncfor = do_for

    def alias_entries(self, target: ast.expr, iterated: ast.expr) -> None:
        """What a loop changes in an entry, it changes in what it goes over."""
        if isinstance(iterated, ast.Call) and last_name(iterated.func) in _GOING_OVER:
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else []
            paired = last_name(iterated.func) == "zip" and len(parts) == len(iterated.args)
            for part, one in zip(parts if paired else [target] * 9, iterated.args, strict=False):
                self.alias_entries(part, one)
            return
        root = self.root(iterated)
        names = [one.id for one in ast.walk(target) if isinstance(one, ast.Name)]
        if root is not None:
            self.aliases.update({name: root for name in names if name != root})

    def after_loop(self, statement: ast.While | ast.For | ast.AsyncFor, cut: Taint | None) -> None:
        """Walk what runs unless the loop was left early."""
        if cut is None or not statement.orelse:
            self.block(statement.orelse)
        else:
            self.branches([statement.orelse, []], cut)

    def loop(self, body: list[ast.stmt], step: Callable[[], Taint | None]) -> Taint | None:
        """Walk a loop; return why it may be left early."""
        outside = self.control
        cut_before, self.loop_cut = self.loop_cut, None
        around, tick_before = self.task.around, self.loop_is_tick
        self.loop_is_tick = self.holds_nodes(body)
        for _ in range(3):
            before = (dict(self.tainted), self.control, self.closed)
            if self.loop_is_tick or (around is not None and around.holds_all(body)):
                self.control = outside  # whoever left the loop early began no further tick
                self.has_begun = False
            taint = step()
            self.control = self.control or (None if self.loop_is_tick else taint)
            self.block(body)
            self.tainted = before[0] | self.tainted  # it may not have run at all
            if before == (self.tainted, self.control, self.closed):
                break
        self.loop_is_tick = tick_before
        self.control = outside or self.return_cut
        cut, self.loop_cut = self.loop_cut, cut_before
        return cut

    def do_break(self, statement: ast.stmt) -> None:
        if self.control is not None:
            self.loop_cut = replace(self.control, what="loop")

    do_continue = do_break


def _of_loop(iterated: ast.expr, taint: Taint) -> str:
    return "loop" if last_name(getattr(iterated, "func", iterated)) == "range" else taint.what
