"""Merges linear layers that read the same value into one, and takes them apart again.

Each layer keeps its name in the record, so that its weights come back under it whatever became of
the graph in between. Layers whose parameters something else uses as well are left alone: merged,
they would no longer be tied.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule, Node

from veracity.fx import graphs
from veracity.fx.transformation import ReversibleTransformation


@dataclass(frozen=True)
class _Part:
    """One layer within the merged one."""

    target: str
    start: int
    stop: int
    has_bias: bool
    bias_trained: bool
    training: bool


@dataclass(frozen=True)
class _Merged:
    """Written down at the merged call."""

    columns: int
    parts: tuple[_Part, ...]
    orders: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class _Slice:
    """Written down at what was a call of one layer."""

    target: str
    by_name: bool


class MergeLinears(ReversibleTransformation):
    """Turns linear layers over the same input into one layer and a slice for each."""

    preserves_computation = True

    def transform(self, graph_module: GraphModule) -> GraphModule:
        """Merge wherever two layers or more read the same value."""
        for nodes in self._groups(graph_module):
            self._merge(graph_module, nodes)
        return graph_module

    def reverse(self, graph_module: GraphModule) -> GraphModule:
        """Take every merged layer apart."""
        marked = [(n, self._record(n)) for n in self.get_transformed_nodes(graph_module)]
        merged = [(node, record) for node, record in marked if isinstance(record, _Merged)]
        for node, record in marked:
            if _orphaned(node, record, [call for call, _ in merged]):
                raise self._cannot_reverse(node, "the merged layer is no longer there")
        for node, record in merged:
            self._check(graph_module, node, record)
        for node, record in merged:
            self._split(graph_module, node, record)
        return graph_module

    def _groups(self, graph_module: GraphModule) -> list[list[Node]]:
        uses = graphs.TensorUses(graph_module)
        epochs = graphs.epochs(graph_module)
        groups: dict[Hashable, list[Node]] = {}
        for node in graph_module.graph.nodes:
            layer = graphs.called(graph_module, node, nn.Linear)
            source = graphs.only_input(node) if layer is not None else None
            if layer is None or source is None:
                continue
            key = (source, epochs[node], layer.weight.dtype, layer.weight.device, _trained(layer))
            groups.setdefault(key, []).append(node)
        return [
            kept
            for nodes in groups.values()
            if _layers(nodes) > 1 and _layers(kept := self._fit(graph_module, uses, nodes)) > 1
        ]

    def _fit(
        self, graph_module: GraphModule, uses: graphs.TensorUses, nodes: list[Node]
    ) -> list[Node]:
        """Return the nodes that can be merged, and say why the others cannot."""
        kept = []
        for node in nodes:
            layer = graph_module.get_submodule(str(node.target))
            others = uses.beyond(layer, [one for one in nodes if one.target == node.target])
            if graphs.hooked(layer):
                self.decline(graph_module, node, "the layer has hooks")
            elif others:
                self.decline(graph_module, node, f"`{others[0].name}` uses its parameters too")
            else:
                kept.append(node)
        return kept

    def _merge(self, graph_module: GraphModule, nodes: list[Node]) -> None:
        targets = list(dict.fromkeys(str(node.target) for node in nodes))
        layers = [_linear_at(graph_module, target) for target in targets]
        record = _Merged(
            layers[0].in_features, _parts(targets, layers), _orders(graph_module, targets)
        )
        parent, _ = graphs.parent_and_name(targets[0])
        container = graphs.own_container(graph_module, parent)
        wanted = "-".join(graphs.parent_and_name(target)[1] for target in targets) + "-merged"
        name = graphs.unused_name(container, wanted)
        setattr(container, name, _joined(layers))
        path = f"{parent}.{name}" if parent else name
        source = graphs.only_input(nodes[0])
        with graph_module.graph.inserting_before(nodes[0]):
            merged = graph_module.graph.call_module(path, (source,))
        self.mark_as_transformed(merged, record=record)
        spans = {part.target: slice(part.start, part.stop) for part in record.parts}
        for node in nodes:
            self._to_slice(node, merged, spans[str(node.target)])
        for target in targets:
            graphs.remove_module(graph_module, target)

    def _to_slice(self, node: Node, merged: Node, span: slice) -> None:
        record = _Slice(str(node.target), by_name=not node.args)
        node.op, node.target = "call_function", operator.getitem
        index: Any = (Ellipsis, span)
        node.args, node.kwargs = (merged, index), {}
        self.mark_as_transformed(node, record=record)

    def _check(self, graph_module: GraphModule, merged: Node, record: _Merged) -> None:
        """Refuse to take apart what is no longer what was put together."""
        layer = graphs.called(graph_module, merged, nn.Linear)
        rows = record.parts[-1].stop
        if layer is None or layer.weight.shape != (rows, record.columns):
            raise self._cannot_reverse(merged, "the merged layer was changed since")
        if graphs.only_input(merged) is None:
            raise self._cannot_reverse(merged, "the call of the merged layer was changed since")
        if any(part.has_bias for part in record.parts) and layer.bias is None:
            raise self._cannot_reverse(merged, "the merged layer lost its bias since")
        if len(graphs.calls_of(graph_module, str(merged.target))) > 1:
            raise self._cannot_reverse(merged, "the merged layer is called elsewhere too")
        for part in record.parts:
            parent, name = graphs.parent_and_name(part.target)
            if hasattr(graph_module.get_submodule(parent), name):
                raise self._cannot_reverse(merged, f"something else is at `{part.target}`")
        self._slices(merged, record)

    def _split(self, graph_module: GraphModule, merged: Node, record: _Merged) -> None:
        path = str(merged.target)
        layer, source = _linear_at(graph_module, path), graphs.only_input(merged)
        for part in record.parts:
            graphs.set_module(graph_module, part.target, _restored(layer, part))
        for node, written in self._slices(merged, record):
            node.op, node.target = "call_module", written.target
            node.args = () if written.by_name else (source,)
            node.kwargs = {"input": source} if written.by_name else {}
            self.mark_as_restored(node)
        graph_module.graph.erase_node(merged)
        graphs.remove_module(graph_module, path)
        for parent, names in record.orders:
            graphs.reorder(graphs.own_container(graph_module, parent), names)

    def _slices(self, merged: Node, record: _Merged) -> list[tuple[Node, _Slice]]:
        """Return the users of a merged call, which must all still be the slices that were made."""
        spans = {part.target: slice(part.start, part.stop) for part in record.parts}
        found = []
        for node in merged.users:
            written = self._record(node)
            fits = isinstance(written, _Slice) and node.target is operator.getitem
            if not fits or node.args != (merged, (Ellipsis, spans[written.target])):
                raise self._cannot_reverse(node, "what reads the merged layer was changed since")
            found.append((node, written))
        return found


def _orphaned(node: Node, record: object, merged: list[Node]) -> bool:
    """Return whether a slice has lost the call that it reads."""
    return isinstance(record, _Slice) and (not node.args or node.args[0] not in merged)


def _restored(layer: nn.Linear, part: _Part) -> nn.Linear:
    rows = slice(part.start, part.stop)
    return graphs.linear(
        layer.weight[rows],
        layer.bias[rows] if part.has_bias else None,
        trained=layer.weight.requires_grad,
        bias_trained=part.bias_trained,
        training=part.training,
    )


def _layers(nodes: list[Node]) -> int:
    return len({node.target for node in nodes})


def _trained(layer: nn.Linear) -> tuple[bool, bool]:
    trained = layer.weight.requires_grad
    return trained, trained if layer.bias is None else layer.bias.requires_grad


def _linear_at(graph_module: GraphModule, target: str) -> nn.Linear:
    layer = graph_module.get_submodule(target)
    assert isinstance(layer, nn.Linear), "groups hold linear layers only"
    return layer


def _parts(targets: list[str], layers: list[nn.Linear]) -> tuple[_Part, ...]:
    parts, start = [], 0
    for target, layer in zip(targets, layers, strict=True):
        stop = start + layer.out_features
        _, bias_trained = _trained(layer)
        has_bias = layer.bias is not None
        parts.append(_Part(target, start, stop, has_bias, bias_trained, layer.training))
        start = stop
    return tuple(parts)


def _orders(
    graph_module: GraphModule, targets: list[str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    parents = dict.fromkeys(graphs.parent_and_name(target)[0] for target in targets)
    return tuple((path, tuple(graph_module.get_submodule(path)._modules)) for path in parents)


def _joined(layers: list[nn.Linear]) -> nn.Linear:
    """Return one layer with the rows of all; a layer without bias adds zeros if others have one."""
    bias = None
    if any(layer.bias is not None for layer in layers):
        bias = torch.cat(
            [
                layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias
                for layer in layers
            ]
        )
    trained, bias_trained = _trained(layers[0])
    return graphs.linear(
        torch.cat([layer.weight for layer in layers]),
        bias,
        trained=trained,
        bias_trained=bias_trained,
        training=layers[0].training,
    )
