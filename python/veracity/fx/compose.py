"""Makes one transformation of several.

It is applied from left to right and undone from right to left, marks with the signatures of its
parts, and answers for all of them. Two equal compositions have equal signatures.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch.fx import GraphModule

from veracity.errors import refuse
from veracity.fx.transformation import DeepCopy, ReversibleTransformation, Transformation


class Composition(Transformation):
    """Several transformations, one after another."""

    def __init__(self, *transformations: Transformation, inplace: bool = True) -> None:
        """Keep the parts; use `compose` to make one."""
        self.transformations = transformations
        self.inplace = inplace

    @property
    def preserves_computation(self) -> bool:  # type: ignore[override]
        """Whether every part does."""
        return all(part.preserves_computation for part in self.transformations)

    def signature_parameters(self) -> Mapping[str, object]:
        """Return the parts; whether a copy is made does not change what is done."""
        return {"transformations": self.transformations}

    def transform(self, graph_module: GraphModule) -> GraphModule:
        """Apply the parts from left to right."""
        graph_module = self._start(graph_module)
        for part in self.transformations:
            graph_module = part(graph_module, lint_and_recompile=False)
        return graph_module

    def _start(self, graph_module: GraphModule) -> GraphModule:
        return graph_module if self.inplace else DeepCopy().transform(graph_module)

    def _digests(self) -> set[str]:
        return super()._digests().union(*(part._digests() for part in self.transformations))


class ReversibleComposition(Composition, ReversibleTransformation):
    """Several transformations that can all be undone."""

    transformations: tuple[ReversibleTransformation, ...]

    def reverse(self, graph_module: GraphModule) -> GraphModule:
        """Undo the parts from right to left."""
        graph_module = self._start(graph_module)
        for part in reversed(self.transformations):
            graph_module = part(graph_module, lint_and_recompile=False, reverse=True)
        return graph_module


def compose(*transformations: Transformation, inplace: bool = True) -> Transformation:
    """Return one transformation that applies all of these, from left to right.

    Args:
        transformations: The parts.
        inplace: Whether to change the graph module that is given, or a copy of it. This holds for
            `reverse=True` too.

    Returns:
        A `ReversibleTransformation` if every part is one, else a `Transformation`.

    Raises:
        TransformError: There are no parts, or one of them is not a transformation.
    """
    if not transformations:
        raise refuse("VER1301", "there is nothing to compose")
    for part in transformations:
        if not isinstance(part, Transformation):
            raise refuse(
                "VER1301",
                f"{type(part).__name__} is not a transformation",
                hints=("give instances, one by one: `compose(MergeLinears(), ...)`",),
            )
    if all(isinstance(part, ReversibleTransformation) for part in transformations):
        return ReversibleComposition(*transformations, inplace=inplace)
    return Composition(*transformations, inplace=inplace)
