"""Folds a batch norm into the linear layer before or behind it.

That is right for inputs of two axes only: with three, the norm goes over another axis than the
layer. Where shapes are known (`torch.fx.passes.shape_prop`), others are left alone; where they are
not, the graph gets an assertion, so that it stops instead of computing something else.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

import torch
from torch import nn
from torch.fx import GraphModule, Node

from veracity.fx import batch_norm, graphs
from veracity.fx.transformation import Transformation

_RANK_MESSAGE = "VER1316: a batch norm was folded for inputs of 2 axes, and this one has others"


@dataclass(frozen=True)
class _Match:
    """A norm next to a layer.

    Attributes:
        norm: The call of the norm.
        layer: The call of the layer.
        source: What the first of them reads.
    """

    norm: Node
    layer: Node
    source: Node

    @property
    def first(self) -> Node:
        """The one whose output the other reads."""
        return self.layer if self.norm in self.layer.users else self.norm


class FuseBatchNorm1dInLinear(Transformation):
    """Folds `BatchNorm1d` into the `Linear` whose output it reads, or that reads its output."""

    preserves_computation = True

    def transform(self, graph_module: GraphModule) -> GraphModule:
        """Fold every norm that can be folded; a norm in training mode is refused."""
        declined: dict[Node, str] = {}
        matches = self._matches(graph_module, declined)
        for node, reason in declined.items():
            self.decline(graph_module, node, reason)
        for match in matches:
            self._fold(graph_module, match)
        return graph_module

    def _matches(self, graph_module: GraphModule, declined: dict[Node, str]) -> list[_Match]:
        """Return what to fold, one match for each norm; nothing is changed yet."""
        epochs = graphs.epochs(graph_module)
        found: dict[Node, _Match] = {}
        for node in graph_module.graph.nodes:
            for match in _candidates(graph_module, node):
                if match.norm in found:
                    continue
                reason = _unfit(graph_module, match, epochs)
                if reason:
                    declined.setdefault(match.norm, reason)
                else:
                    found[match.norm] = match
                    declined.pop(match.norm, None)
        return list(found.values())

    def _fold(self, graph_module: GraphModule, match: _Match) -> None:
        norm = graphs.called(graph_module, match.norm, nn.BatchNorm1d)
        layer = graphs.called(graph_module, match.layer, nn.Linear)
        source = graphs.only_input(match.norm)
        assert norm is not None and layer is not None and source is not None, "matched before"
        fold = _behind if match.first is match.layer else _before
        batch_norm.replace_layer(graph_module, match.layer, fold(layer, norm))
        match.norm.replace_all_uses_with(source)
        graph_module.graph.erase_node(match.norm)
        graphs.remove_if_unused(graph_module, str(match.norm.target))
        self.mark_as_transformed(match.layer, removed=(match.norm.name,))
        if _rank(match.source) is None:
            self._assert_rank(graph_module, match.layer)

    def _assert_rank(self, graph_module: GraphModule, layer: Node) -> None:
        source = graphs.only_input(layer)
        graph = graph_module.graph
        with graph.inserting_before(layer):
            rank = graph.call_method("dim", (source,))
            fits = graph.call_function(operator.eq, (rank, 2))
            stop = graph.call_function(torch._assert, (fits, _RANK_MESSAGE))
        for node in (rank, fits, stop):
            self.mark_as_transformed(node)


def _candidates(graph_module: GraphModule, node: Node) -> list[_Match]:
    """Return the matches whose second call is this node."""
    first = graphs.only_input(node)
    source = graphs.only_input(first) if first is not None else None
    if first is None or source is None:
        return []
    if graphs.called(graph_module, node, nn.BatchNorm1d) is not None:
        behind = graphs.called(graph_module, first, nn.Linear) is not None
        return [_Match(node, first, source)] if behind else []
    if graphs.called(graph_module, node, nn.Linear) is not None:
        before = graphs.called(graph_module, first, nn.BatchNorm1d) is not None
        return [_Match(first, node, source)] if before else []
    return []


def _unfit(graph_module: GraphModule, match: _Match, epochs: dict[Node, int]) -> str:
    """Return why a match must be left alone, or nothing."""
    norm = graphs.called(graph_module, match.norm, nn.BatchNorm1d)
    layer = graphs.called(graph_module, match.layer, nn.Linear)
    assert norm is not None and layer is not None, "candidates are such calls"
    reason = batch_norm.unfit(norm, match.norm, layer)
    if reason:
        return reason
    rank = _rank(match.source)
    behind = match.first is match.layer
    between = layer.out_features if behind else layer.in_features
    if rank not in (None, 2) or norm.num_features != between:
        return "the input has three axes: norm and layer go over different ones"
    if len(match.first.users) > 1:
        return f"{len(match.first.users) - 1} other nodes read `{match.first.name}`"
    if epochs[match.norm] != epochs[match.layer]:
        return "something is written in place between the two"
    return ""


def _rank(node: Node) -> int | None:
    """Return how many axes a value has, if the graph says so."""
    for key in ("val", "example_value", "tensor_meta"):
        shape = getattr(node.meta.get(key), "shape", None)
        if shape is not None:
            return len(shape)
    return None


def _behind(layer: nn.Linear, norm: nn.BatchNorm1d) -> nn.Linear:
    """Return a layer that computes layer, then norm."""
    scale = batch_norm.affine(norm)
    weight = batch_norm.wide(layer.weight) * scale.factor[:, None]
    bias = scale.offset
    if layer.bias is not None:
        bias = bias + scale.factor * batch_norm.wide(layer.bias)
    return _made(layer, weight, bias)


def _before(layer: nn.Linear, norm: nn.BatchNorm1d) -> nn.Linear:
    """Return a layer that computes norm, then layer."""
    scale = batch_norm.affine(norm)
    wide = batch_norm.wide(layer.weight)
    bias = wide @ scale.offset
    if layer.bias is not None:
        bias = bias + batch_norm.wide(layer.bias)
    return _made(layer, wide * scale.factor, bias)


def _made(layer: nn.Linear, weight: torch.Tensor, bias: torch.Tensor) -> nn.Linear:
    like = layer.weight if layer.bias is None else layer.bias
    return batch_norm.with_parameters(
        layer, batch_norm.parameter(weight, layer.weight), batch_norm.parameter(bias, like)
    )
