"""The base of every transformation of a `torch.fx` graph: call, mark, audit, sign, undo.

A transformation changes the graph module that it is given and returns it. It never changes modules
that this graph shares with the model it was traced from: those are replaced by changed copies.
Whether it keeps what it declares is for `veracity.fx.validate` to find out.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from torch.fx import GraphModule, Node

from veracity.errors import refuse
from veracity.fx import marks
from veracity.fx.marks import Declined, Mark
from veracity.fx.signature import as_int, digest


class Transformation(ABC):
    """A change of a graph module.

    Attributes:
        preserves_computation: Whether the outputs stay the same, up to rounding.
        version: Goes into the signature; to be raised when the same parameters do something else.
    """

    preserves_computation: bool = False
    version: int = 1

    @abstractmethod
    def transform(self, graph_module: GraphModule) -> GraphModule:
        """Change the graph module in place and return it."""

    def __call__(self, graph_module: GraphModule, lint_and_recompile: bool = True) -> GraphModule:
        """Transform a graph module.

        Args:
            graph_module: What to transform, in place.
            lint_and_recompile: Whether to check the graph and make its code anew afterwards.

        Returns:
            The transformed graph module.
        """
        self._forget_declined(graph_module)
        return self._finish(self.transform(graph_module), lint_and_recompile)

    def signature_parameters(self) -> Mapping[str, object]:
        """Return what tells this transformation from others of its class: its attributes."""
        return dict(vars(self))

    @property
    def signature_digest(self) -> str:
        """The sha256 of class, version and parameters; the same in every process."""
        return digest(type(self), self.version, self.signature_parameters())

    @property
    def signature(self) -> int:
        """The first eight bytes of the digest, as a number."""
        return as_int(self.signature_digest)

    def mark_as_transformed(
        self, node: Node, *, removed: tuple[str, ...] = (), record: Any = None
    ) -> None:
        """Say that this transformation changed a node.

        Args:
            node: The node.
            removed: Names of nodes that no longer exist because of it.
            record: Plain data that `reverse` needs; it must not be changed afterwards.
        """
        marks.add(node, Mark(self.signature_digest, type(self).__name__, removed, record))

    def transformed(self, node: Node) -> bool:
        """Return whether this transformation changed the node."""
        return bool({mark.digest for mark in marks.marks_of(node)} & self._digests())

    def get_transformed_nodes(self, graph_module: GraphModule) -> list[Node]:
        """Return the nodes that this transformation changed, in the order of the graph."""
        digests = self._digests()
        marks.existing_companion(graph_module)
        return [
            node
            for node in graph_module.graph.nodes
            if any(mark.digest in digests for mark in marks.marks_of(node))
        ]

    def removed_nodes(self, graph_module: GraphModule) -> list[str]:
        """Return the names of the nodes that this transformation removed."""
        digests = self._digests()
        return [
            name
            for node in self.get_transformed_nodes(graph_module)
            for mark in marks.marks_of(node)
            if mark.digest in digests
            for name in mark.removed
        ]

    def declined(self, graph_module: GraphModule) -> list[Declined]:
        """Return the matches that the last call left alone, with the reason of each."""
        known = marks.existing_companion(graph_module)
        found = known.declined if known is not None else {}
        return [one for key in sorted(self._digests()) for one in found.get(key, ())]

    def decline(self, graph_module: GraphModule, node: Node, reason: str) -> None:
        """Say why a match was left alone."""
        known = marks.companion(graph_module).declined
        key = self.signature_digest
        known[key] = (*known.get(key, ()), Declined(node.name, reason))

    def _digests(self) -> set[str]:
        """Return the signatures whose marks are this transformation's."""
        return {self.signature_digest}

    def _forget_declined(self, graph_module: GraphModule) -> None:
        known = marks.existing_companion(graph_module)
        if known is not None:
            known.declined.pop(self.signature_digest, None)

    def _finish(self, graph_module: object, lint_and_recompile: bool) -> GraphModule:
        if not isinstance(graph_module, GraphModule):
            raise refuse(
                "VER1301",
                f"{type(self).__name__} returned {type(graph_module).__name__} "
                "instead of a graph module",
                hints=("`transform` and `reverse` end with `return graph_module`",),
            )
        marks.companion(graph_module)
        if lint_and_recompile:
            graph_module.graph.lint()
            graph_module.recompile()
        return graph_module


class ReversibleTransformation(Transformation):
    """A change of a graph module that can be undone."""

    @abstractmethod
    def reverse(self, graph_module: GraphModule) -> GraphModule:
        """Undo the change in place and return the graph module."""

    def __call__(
        self, graph_module: GraphModule, lint_and_recompile: bool = True, reverse: bool = False
    ) -> GraphModule:
        """Transform a graph module, or undo that.

        Args:
            graph_module: What to transform, in place.
            lint_and_recompile: Whether to check the graph and make its code anew afterwards.
            reverse: Whether to undo the transformation.

        Returns:
            The graph module.
        """
        self._forget_declined(graph_module)
        changed = self.reverse(graph_module) if reverse else self.transform(graph_module)
        return self._finish(changed, lint_and_recompile)

    def mark_as_restored(self, node: Node) -> None:
        """Take this transformation's mark off a node.

        Raises:
            TransformError: The node does not have it. It is a `ValueError`.
        """
        marks.remove(node, self.signature_digest)

    def _record(self, node: Node) -> Any:
        """Return what this transformation wrote down about a node."""
        mark = marks.find(node, self.signature_digest)
        return None if mark is None else mark.record

    def _cannot_reverse(self, node: Node, found: str) -> Exception:
        return refuse(
            "VER1307",
            f"{type(self).__name__} cannot be undone here: {found}",
            location=node.name,
            hints=("undo later transformations first, the latest of them at the beginning",),
        )


class DeepCopy(ReversibleTransformation):
    """Goes on with a copy, in both directions, so that what was given stays as it is."""

    preserves_computation = True

    def transform(self, graph_module: GraphModule) -> GraphModule:
        """Return a copy that shares nothing."""
        clone = copy.deepcopy(graph_module)
        for node in clone.graph.nodes:
            for mark in marks.marks_of(node):
                marks.add(node, mark)  # shows them in `node.transformations` of the copy too
        return clone

    def reverse(self, graph_module: GraphModule) -> GraphModule:
        """Return a copy that shares nothing."""
        return self.transform(graph_module)


class LintAndRecompile(ReversibleTransformation):
    """Checks the graph and makes its code anew."""

    preserves_computation = True

    def transform(self, graph_module: GraphModule) -> GraphModule:
        """Check the graph and make its code anew."""
        graph_module.graph.lint()
        graph_module.recompile()
        return graph_module

    def reverse(self, graph_module: GraphModule) -> GraphModule:
        """Check the graph and make its code anew."""
        return self.transform(graph_module)
