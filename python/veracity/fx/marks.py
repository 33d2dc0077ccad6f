"""Keeps on each node which transformations changed it, and what is needed to undo them.

Marks are plain data in `node.meta`, so that copies of a graph have them. Pickling a graph module
writes code and traces it again, without `meta`; a `Companion` on the module carries the marks
through. `node.transformations` shows them as numbers, for code that expects that attribute.
Tracing a module anew makes new nodes, which have no marks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch.fx import GraphModule, Node

from veracity.errors import refuse
from veracity.fx.signature import as_int

#: Where marks stand in `node.meta`.
META = "veracity.fx"
_COMPANION = "_veracity_fx"
#: Attributes that torch takes along when it copies a graph module.
_PRESERVED = "_user_preserved_attributes"


@dataclass(frozen=True)
class Mark:
    """That a transformation changed a node.

    Attributes:
        digest: Signature of the transformation.
        transformation: Name of its class.
        removed: Names of the nodes that went into this one.
        record: What is needed to undo it; never changed after it was made, as copies share it.
    """

    digest: str
    transformation: str
    removed: tuple[str, ...] = ()
    record: Any = None


@dataclass(frozen=True)
class Declined:
    """A match that was left alone.

    Attributes:
        node: Name of the node.
        reason: Which precondition does not hold.
        code: Stable code of such a finding.
    """

    node: str
    reason: str
    code: str = "VER1306"


#: (op, target, how many such nodes come before, how many there are, marks)
_Row = tuple[str, str, int, int, tuple[Mark, ...]]


@dataclass
class Companion:
    """What travels with a graph module: matches left alone, and marks while it is pickled."""

    module: GraphModule | None
    declined: dict[str, tuple[Declined, ...]] = field(default_factory=dict)
    pending: tuple[_Row, ...] = ()

    def __reduce__(self) -> tuple[Callable[..., Companion], tuple[Any, ...]]:
        """Write the marks as they are now, by the place of their nodes."""
        rows = self.pending if self.module is None else tuple(_rows(self.module))
        return Companion, (None, self.declined, rows)

    def __deepcopy__(self, memo: dict[int, Any]) -> Companion:
        """Belong to the copy of the module."""
        copied = memo.get(id(self.module)) if self.module is not None else None
        return Companion(copied, dict(self.declined), self.pending)


def companion(graph_module: GraphModule) -> Companion:
    """Return the companion of a module, which gets one if it has none."""
    found = graph_module.__dict__.get(_COMPANION)
    if not isinstance(found, Companion):
        found = Companion(graph_module)
    found.module = graph_module
    graph_module.__dict__[_COMPANION] = found
    graph_module.meta.setdefault(_PRESERVED, {})[_COMPANION] = found
    if found.pending:
        _place(graph_module, found.pending)
        found.pending = ()
    return found


def existing_companion(graph_module: GraphModule) -> Companion | None:
    """Return the companion of a module if it has one; reading marks leaves no trace."""
    found = graph_module.__dict__.get(_COMPANION)
    if not isinstance(found, Companion):
        return None
    return companion(graph_module) if found.pending else found


def marks_of(node: Node) -> tuple[Mark, ...]:
    """Return the marks of a node, the oldest first."""
    if node.graph.owning_module is not None:
        existing_companion(node.graph.owning_module)
    found: tuple[Mark, ...] = node.meta.get(META, ())
    return found


def find(node: Node, digest: str) -> Mark | None:
    """Return the mark that one transformation left on a node."""
    return next((mark for mark in marks_of(node) if mark.digest == digest), None)


def add(node: Node, mark: Mark) -> None:
    """Mark a node; a second mark of the same transformation takes the place of the first."""
    others = tuple(kept for kept in marks_of(node) if kept.digest != mark.digest)
    _write(node, (*others, mark))


def remove(node: Node, digest: str) -> None:
    """Take the mark of one transformation off a node.

    Raises:
        TransformError: The node does not have it.
    """
    if find(node, digest) is None:
        raise refuse(
            "VER1303",
            "the node is not marked by this transformation",
            location=node.name,
            hints=("only what was marked with `mark_as_transformed` can be restored",),
        )
    _write(node, tuple(kept for kept in marks_of(node) if kept.digest != digest))


def _write(node: Node, marks: tuple[Mark, ...]) -> None:
    if marks:
        node.meta[META] = marks
    else:
        node.meta.pop(META, None)
    node.transformations = {as_int(mark.digest) for mark in marks}


def target_text(node: Node) -> str:
    """Return what a node calls, as text that is the same in every process."""
    target: Any = node.target
    if isinstance(target, str):
        return target
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', repr(target))}"


def _numbered(nodes: Iterable[Node]) -> Iterator[tuple[Node, str, int, int]]:
    """Yield each node with its target, its place among nodes like it, and their number."""
    like: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        like.setdefault((node.op, target_text(node)), []).append(node)
    for (_, target), group in like.items():
        for place, node in enumerate(group):
            yield node, target, place, len(group)


def _rows(graph_module: GraphModule) -> Iterator[_Row]:
    for node, target, place, count in _numbered(graph_module.graph.nodes):
        if marks_of(node):
            yield node.op, target, place, count, marks_of(node)


def _place(graph_module: GraphModule, rows: tuple[_Row, ...]) -> None:
    """Give the nodes of a graph that was traced from pickled code their marks back."""
    nodes = {
        (node.op, target, place, count): node
        for node, target, place, count in _numbered(graph_module.graph.nodes)
    }
    for op, target, place, count, marks in rows:
        node = nodes.get((op, target, place, count))
        if node is None:
            raise refuse(
                "VER1304",
                f"no node fits the mark of `{target}`, number {place + 1} of {count}",
                hints=("the graph was changed after loading, before its marks were read",),
            )
        _write(node, marks)
