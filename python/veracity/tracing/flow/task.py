"""What a walk is about, and what comes of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from veracity.tracing import observers
from veracity.tracing.resolving import Names
from veracity.tracing.source import Scope, own_nodes

#: Who raises: an operation of torch, Python (`raise`, `assert`, `1 / x`), or a warning.
TORCH, PYTHON, WARNING = "torch", "python", "warning"
_LOOPS = (
    *(ast.For, ast.AsyncFor, ast.While),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
#: What a logger owes to the values that it was given: asking whether there is one tells nothing.
HELD = "held"
#: Whether outputs are new, or those of an earlier tick.
KEPT = "kept"


@dataclass(frozen=True)
class Taint:
    """What something owes to the value: `what` is the first construct that it decided."""

    what: str
    line: int


class Decided(Exception):  # noqa: N818 - it ends a walk, and is no error
    """The value decides something that the export computes."""

    def __init__(self, taint: Taint, line: int, by: str = "", memory: Any = None) -> None:
        """Say what it decides, on which line it is sure, who is given it, or what holds it."""
        super().__init__(taint.what)
        self.taint, self.line, self.by, self.memory = taint, line, by, memory


@dataclass
class Outcome:
    """What leaves a function.

    Attributes:
        returned: The taint of what it returns.
        raised: The taint of an exception that it may raise.
        raised_by: Who raises it: `TORCH`, `PYTHON`, `WARNING`, or the name of a class.
        parameters: Parameters whose objects were changed.
        kept: Attributes, by `.name`, and variables of outer scopes, by `@name`, that hold it.
        met: Whether the walk came to an expression that gives the value.
        logged: The taint of what was given to `logging`.
        logs_because: Why `logging` was called, where the value decided that.
        decided_calls: Of a walk around nodes: the nodes that run because of the value, by what
            decides it.
        decided_inputs: Of a walk around nodes: the nodes, or `node/port` where that is known, whose
            inputs are made of the value.
    """

    returned: Taint | None = None
    raised: Taint | None = None
    raised_by: set[str] = field(default_factory=set)
    parameters: dict[str, Taint] = field(default_factory=dict)
    kept: dict[str, Taint] = field(default_factory=dict)
    met: bool = False
    logged: Taint | None = None
    logs_because: Taint | None = None
    decided_calls: dict[Taint, set[str]] = field(default_factory=dict)
    decided_inputs: dict[Taint, set[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Around:
    """The calls in a function that lead to nodes.

    Attributes:
        calls: The nodes that each of them leads to.
        nodes: The names of all nodes.
        later: Of a call that itself begins several nodes, one after the other: all but the first.
    """

    calls: dict[ast.AST, set[str]]
    nodes: frozenset[str]
    later: dict[ast.AST, set[str]] = field(default_factory=dict)

    def order(self, body: list[ast.stmt]) -> list[str]:
        """Return the nodes that a block runs, in the order of the source."""
        # A block that never ran is known by the names of what it calls.
        known = {last_name(getattr(one, "func", one)): nodes for one, nodes in self.calls.items()}
        inside = [node for one in body for node in ast.walk(one) if isinstance(node, ast.Call)]
        inside.sort(key=lambda node: (node.lineno, node.col_offset))
        return [name for node in inside for name in sorted(known.get(last_name(node.func), ()))]

    def holds_all(self, body: list[ast.stmt]) -> bool:
        """Say whether a block runs every node each time."""
        inside = [node for statement in body for node in ast.walk(statement)]
        if any(node in self.later and not _in_loop(node, body) for node in inside):
            return False
        found: set[str] = set().union(*(self.calls.get(node, set()) for node in inside))
        return found >= self.nodes


def _in_loop(node: ast.AST | None, body: list[ast.stmt]) -> bool:
    """Say whether something in a block stands in a loop of that block."""
    while node is not None and node not in body:
        if isinstance(node, _LOOPS):
            return True
        node = getattr(node, "parent", None)
    return isinstance(node, _LOOPS)


@dataclass
class Task:
    """A function to walk.

    Attributes:
        scope: Its source.
        names: What its names stand for.
        sources: Expressions that give the value.
        raising: Expressions that may raise because of the value.
        tainted: Variables and attributes that hold it at the start.
        control: Whether the function runs because of the value.
        is_node: Whether what it returns are the outputs of a node.
        depth: How many calls deep it is.
        opens: Whether a node is known to be open where the value is.
        of_array: Whether the value is an array that records: only other libraries are asked for.
        unread: Tensors and arrays that nothing reads but what the source shows.
        around: Of a walk around nodes: the calls that lead to them. Nothing is decided in it but
            which of them are made.
    """

    scope: Scope
    names: Names
    sources: dict[ast.AST, Taint] = field(default_factory=dict)
    raising: dict[ast.AST, Taint] = field(default_factory=dict)
    tainted: dict[str, Taint] = field(default_factory=dict)
    control: Taint | None = None
    is_node: bool = False
    depth: int = 0
    opens: bool = True
    of_array: bool = False
    unread: tuple[Any, ...] = ()
    around: Around | None = None


def has_marks(scope: Scope) -> bool:
    """Say whether a function begins or ends nodes itself."""
    return any(
        isinstance(node, ast.Call) and last_name(node.func) in observers.MARKS
        for node in own_nodes(scope)
    )


def openings_of(scope: Scope) -> frozenset[ast.AST]:
    """Return the calls of a function that begin nodes."""
    return frozenset(
        node
        for node in own_nodes(scope)
        if isinstance(node, ast.Call) and last_name(node.func) in observers.MARKS_IN
    )


def last_name(node: ast.AST) -> str:
    """Return the name of a variable, or the last one of a path."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def first(taints: Iterable[Taint | None]) -> Taint | None:
    """Return the first taint there is."""
    return next((one for one in taints if one is not None), None)


def parameters_of(arguments: ast.arguments) -> list[ast.arg]:
    """Return all parameters of a function."""
    extra = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra]
