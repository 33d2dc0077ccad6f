"""Folds a batch norm into the convolution before it.

The convolution is replaced by a changed copy. Where other calls use it too, the copy gets a name of
its own, and they keep the old one.
"""

from __future__ import annotations

from torch import nn
from torch.fx import GraphModule, Node

from veracity.fx import batch_norm, graphs
from veracity.fx.transformation import Transformation


class FuseBatchNorm2dInConv2d(Transformation):
    """Folds `BatchNorm2d` into the `Conv2d` whose output it alone reads."""

    preserves_computation = True

    def transform(self, graph_module: GraphModule) -> GraphModule:
        """Fold every norm that can be folded; a norm in training mode is refused."""
        for norm, conv in self._matches(graph_module):
            self._fold(graph_module, norm, conv)
        return graph_module

    def _matches(self, graph_module: GraphModule) -> list[tuple[Node, Node]]:
        """Return what to fold; nothing is changed before all of it is known."""
        found = []
        for node in graph_module.graph.nodes:
            norm = graphs.called(graph_module, node, nn.BatchNorm2d)
            source = graphs.only_input(node) if norm is not None else None
            conv = graphs.called(graph_module, source, nn.Conv2d)
            if norm is None or source is None or conv is None:
                continue
            reason = batch_norm.unfit(norm, node, conv)
            if len(source.users) > 1:
                reason = f"{len(source.users) - 1} other nodes read `{source.name}`"
            if reason:
                self.decline(graph_module, node, reason)
            else:
                found.append((node, source))
        return found

    def _fold(self, graph_module: GraphModule, node: Node, source: Node) -> None:
        norm = graphs.called(graph_module, node, nn.BatchNorm2d)
        conv = graphs.called(graph_module, source, nn.Conv2d)
        assert norm is not None and conv is not None, "matched before"
        batch_norm.replace_layer(graph_module, source, folded(conv, norm))
        node.replace_all_uses_with(source)
        graph_module.graph.erase_node(node)
        graphs.remove_if_unused(graph_module, str(node.target))
        self.mark_as_transformed(source, removed=(node.name,))


def folded(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> nn.Conv2d:
    """Return a convolution that computes both."""
    scale = batch_norm.affine(norm)
    bias = scale.offset
    if conv.bias is not None:
        bias = bias + scale.factor * batch_norm.wide(conv.bias)
    weight = batch_norm.wide(conv.weight) * scale.factor[:, None, None, None]
    like = conv.weight if conv.bias is None else conv.bias
    return batch_norm.with_parameters(
        conv, batch_norm.parameter(weight, conv.weight), batch_norm.parameter(bias, like)
    )
