"""What a walk knows while it goes on, and what it does when the value reaches something."""

# ruff: noqa: D102, D107 - methods are named after what they walk

from __future__ import annotations

import ast
from typing import Any

from veracity.tracing.flow.task import (
    HELD,
    PYTHON,
    Decided,
    Outcome,
    Taint,
    Task,
    has_marks,
    openings_of,
    parameters_of,
)


class Walking:
    """The walk over one function."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.names = task.names
        self.tainted = dict(task.tainted)
        self.control = task.control
        self.is_around = task.around is not None
        self.closed = not task.is_node and not self.is_around and has_marks(task.scope)
        #: The marks that begin nodes, of a function that runs outside of them at first.
        self.openings = openings_of(task.scope) if self.closed else frozenset()
        #: Whether a node has begun since the tick did.
        self.has_begun = False
        #: Whether the innermost loop runs every node.
        self.loop_is_tick = False
        self.outcome = Outcome()
        self.aliases: dict[str, str] = {}
        self.outer: set[str] = set()
        self.loop_cut: Taint | None = None
        #: Calls of which nobody uses the result.
        self.unused: set[ast.Call] = set()
        #: How many blocks around this statement catch exceptions.
        self.guards = 0
        arguments = getattr(task.scope, "args", None)
        self.parameters = {one.arg for one in parameters_of(arguments)} if arguments else set()

    return_cut: Taint | None = None

    captured: ast.expr | None = None

    def decide(self, taint: Taint, node: ast.AST, by: str = "", memory: Any = None) -> None:
        if not self.closed and not self.task.of_array and not self.is_around:
            raise Decided(taint, getattr(node, "lineno", taint.line), by, memory)

    def raise_(self, taint: Taint, by: str = PYTHON) -> None:
        self.outcome.raised_by.add(by)
        if self.outcome.raised is None:
            self.outcome.raised = taint

    def may_raise(self, taint: Taint | None, node: ast.AST, by: str = PYTHON) -> None:
        """An operation that is not defined for every value may raise, where that is caught."""
        if taint is not None and self.guards and not self.task.of_array:
            self.raise_(Taint("exception", getattr(node, "lineno", taint.line)), by)

    def tainted_around(self, name: str) -> Taint | None:
        """Return the taint of a variable that belongs to a scope around the function."""
        return None if name in self.names.own else self.tainted.get("@" + name)

    def cut(self, taint: Taint) -> None:
        """The rest of the function runs or does not run because of the value."""
        self.control = self.control or taint

    def holds_nodes(self, body: list[ast.stmt]) -> bool:
        """Say whether all nodes of a function begin in a block.

        Whatever decides whether the block runs decides whether there is a tick, and nothing else.
        """
        if not self.openings or not self.closed:
            return False
        inside = {node for statement in body for node in ast.walk(statement)}
        return self.openings <= inside

    def is_before_nodes(self) -> bool:
        """Say whether no node has begun yet: what follows runs if and only if they do."""
        return bool(self.openings) and self.closed and not self.has_begun

    def keep(self, key: str, taint: Taint) -> None:
        self.tainted[key] = taint
        known = self.outcome.kept.get(key)
        if known is None or (known.what == "value" and self.is_around):  # a choice says more
            self.outcome.kept[key] = taint

    def of_control(self, taint: Taint | None, what: str, node: ast.stmt | ast.expr) -> Taint | None:
        """Return what runs because of the value; what an array decides is heard by itself."""
        if taint is None or taint.what == HELD or self.task.of_array:
            return None
        return Taint(what, node.lineno)

    def reach_call(self, node: ast.AST, taint: Taint | None) -> None:
        """Of a walk around nodes: whether a call is made depends on the value."""
        around = self.task.around
        if around is not None and taint is not None and node in around.calls:
            reached = around.later.get(node, around.calls[node])
            self.outcome.decided_calls.setdefault(taint, set()).update(reached)

    # What the layers above do

    def do_other(self, statement: ast.stmt) -> None:
        """Walk the expressions of a statement."""
        raise NotImplementedError

    def run(self) -> Outcome:
        """Walk the function."""
        raise NotImplementedError

    def block(self, statements: list[ast.stmt]) -> None:
        """Walk statements."""
        raise NotImplementedError

    def value(self, node: ast.expr | None) -> Taint | None:
        """Return what an expression owes to the value."""
        raise NotImplementedError

    def call(self, node: ast.Call, *, discarded: bool) -> Taint | None:
        """Return what a call makes of the value."""
        raise NotImplementedError

    def branches(self, blocks: list[list[ast.stmt]], taint: Taint | None) -> None:
        """Walk blocks of which one runs."""
        raise NotImplementedError
