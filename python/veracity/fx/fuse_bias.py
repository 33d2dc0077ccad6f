"""Turns the bias of a linear layer into one more column of its weight, and back.

The input gets a column of ones by padding, which has the type and device of the input. Layers that
read the same value share the padded one, so that they can still be merged.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.fx import GraphModule, Node
from torch.nn import functional

from veracity.fx import graphs
from veracity.fx.transformation import ReversibleTransformation


@dataclass(frozen=True)
class _Fused:
    """Written down at a call of a fused layer."""

    columns: int
    bias_trained: bool


class FuseBiasInLinear(ReversibleTransformation):
    """Moves the bias of every linear layer into its weight."""

    preserves_computation = True

    def transform(self, graph_module: GraphModule) -> GraphModule:
        """Fuse every bias that can be fused."""
        uses = graphs.TensorUses(graph_module)
        calls = {
            str(node.target): graphs.calls_of(graph_module, str(node.target))
            for node in graph_module.graph.nodes
            if graphs.called(graph_module, node, nn.Linear) is not None
        }
        fused = {}
        for target, nodes in calls.items():
            layer = graphs.called(graph_module, nodes[0], nn.Linear)
            if layer is None or layer.bias is None:
                continue
            reason = _unfit(layer, nodes, uses)
            if reason:
                self.decline(graph_module, nodes[0], reason)
                continue
            graphs.set_module(graph_module, target, _with_column(layer))
            record = _Fused(layer.in_features, layer.bias.requires_grad)
            fused.update(dict.fromkeys(nodes, record))
        self._pad_inputs(graph_module, fused)
        return graph_module

    def _pad_inputs(self, graph_module: GraphModule, fused: dict[Node, _Fused]) -> None:
        """Give each fused call the padded input, one for all that read the same value."""
        epochs = graphs.epochs(graph_module)
        pads: dict[tuple[Node, int], Node] = {}
        for node in list(graph_module.graph.nodes):
            if node not in fused:
                continue
            source = graphs.only_input(node)
            assert source is not None, "calls of other forms were declined"
            key = (source, epochs[node])
            if key not in pads:
                pads[key] = self._pad(graph_module, node, source)
            graphs.set_only_input(node, pads[key])
            self.mark_as_transformed(node, record=fused[node])

    def _pad(self, graph_module: GraphModule, node: Node, source: Node) -> Node:
        with graph_module.graph.inserting_before(node):
            pad = graph_module.graph.call_function(
                functional.pad, (source, (0, 1)), {"mode": "constant", "value": 1.0}
            )
        self.mark_as_transformed(pad, record="pad")
        return pad

    def reverse(self, graph_module: GraphModule) -> GraphModule:
        """Give every fused layer its bias back."""
        marked = self.get_transformed_nodes(graph_module)
        calls = [node for node in marked if isinstance(self._record(node), _Fused)]
        pads = [node for node in marked if self._record(node) == "pad"]
        for node in calls:
            self._check(graph_module, node)
        for pad in pads:
            if not set(pad.users) <= set(calls):
                raise self._cannot_reverse(pad, "something else reads the padded input")
        for target in dict.fromkeys(str(node.target) for node in calls):
            self._restore_layer(graph_module, target)
        for node in calls:
            padded = graphs.only_input(node)
            assert padded is not None, "checked above"
            source = padded.args[0]
            assert isinstance(source, Node), "a pad pads a value of the graph"
            graphs.set_only_input(node, source)
            self.mark_as_restored(node)
        for pad in pads:
            graph_module.graph.erase_node(pad)
        return graph_module

    def _check(self, graph_module: GraphModule, node: Node) -> None:
        layer = graphs.called(graph_module, node, nn.Linear)
        pad = graphs.only_input(node)
        if layer is None or layer.bias is not None or pad is None or self._record(pad) != "pad":
            raise self._cannot_reverse(node, "the call of the layer was changed since")
        if layer.weight.shape[1] != self._record(node).columns + 1:
            raise self._cannot_reverse(node, "the weight was changed since")
        unmarked = [
            one
            for one in graphs.calls_of(graph_module, str(node.target))
            if not isinstance(self._record(one), _Fused)
        ]
        if unmarked:
            raise self._cannot_reverse(unmarked[0], "the fused layer is called here too")

    def _restore_layer(self, graph_module: GraphModule, target: str) -> None:
        node = graphs.calls_of(graph_module, target)[0]
        layer = graphs.called(graph_module, node, nn.Linear)
        assert layer is not None, "checked before"
        restored = graphs.linear(
            layer.weight[:, :-1],
            layer.weight[:, -1],
            trained=layer.weight.requires_grad,
            bias_trained=self._record(node).bias_trained,
            training=layer.training,
        )
        graphs.set_module(graph_module, target, restored)


def _unfit(layer: nn.Linear, nodes: list[Node], uses: graphs.TensorUses) -> str:
    """Return why a layer cannot be fused, or nothing."""
    others = uses.beyond(layer, nodes)
    if graphs.hooked(layer):
        return "the layer has hooks"
    if others:
        return f"`{others[0].name}` uses its parameters too"
    if layer.weight.requires_grad != layer.bias.requires_grad:
        return "only one of weight and bias is trained"
    if any(graphs.only_input(node) is None for node in nodes):
        return "the call has other arguments than one input"
    return ""


def _with_column(layer: nn.Linear) -> nn.Linear:
    weight = torch.cat([layer.weight, layer.bias[:, None]], dim=1)
    trained = layer.weight.requires_grad
    return graphs.linear(
        weight, None, trained=trained, bias_trained=trained, training=layer.training
    )
