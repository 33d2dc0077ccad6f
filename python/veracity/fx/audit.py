"""Says what became of each node, and which changes no mark accounts for.

Nodes are told by their names. A node is changed if it does something else, or the same with other
values of its module; a node that only reads from elsewhere is rewired, which the mark of what it
read or reads accounts for. A removed node is accounted for by a record of it, or by the mark of a
node next to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from veracity.fx.marks import target_text
from veracity.fx.signature import tensor_bytes
from veracity.fx.transformation import Transformation


@dataclass(frozen=True)
class NodeFacts:
    """What a node does.

    Attributes:
        does: Operation, target, and arguments without the names of its inputs.
        module: Class and settings of what it calls.
        values: Hash of the tensors of what it calls.
        inputs: Names of the nodes that it reads.
    """

    does: str
    module: str
    values: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Audit:
    """What a transformation did to the nodes of a graph.

    Attributes:
        marked: Nodes that it marked.
        added: Nodes that are new.
        removed: Nodes that are gone.
        changed: Nodes that do something else.
        rewired: Nodes that do the same and read other nodes.
        unmarked: Those of the above that no mark accounts for.
        declined: Matches that were left alone, with the reason.
    """

    marked: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    rewired: tuple[str, ...]
    unmarked: tuple[str, ...]
    declined: Mapping[str, str]


def facts(graph_module: GraphModule) -> dict[str, NodeFacts]:
    """Return what each node does, in the order of the graph."""
    return {node.name: _facts(graph_module, node) for node in graph_module.graph.nodes}


def audit(
    transformation: Transformation, before: Mapping[str, NodeFacts], graph_module: GraphModule
) -> Audit:
    """Compare a transformed graph with what it was."""
    after = facts(graph_module)
    marked = {node.name for node in transformation.get_transformed_nodes(graph_module)}
    added = [name for name in after if name not in before]
    removed = [name for name in before if name not in after]
    differing = [name for name in after if name in before and after[name] != before[name]]
    rewired = [name for name in differing if _only_rewired(before[name], after[name])]
    changed = [name for name in differing if name not in rewired]
    recorded = set(transformation.removed_nodes(graph_module))
    near = _marked_or_near(before, set(removed), marked)
    unmarked = [name for name in (*added, *changed) if name not in marked]
    unmarked += [
        name
        for name in rewired
        if name not in marked and not _accounted(before[name], after[name], set(removed), marked)
    ]
    unmarked += [name for name in removed if name not in recorded and name not in near]
    return Audit(
        tuple(name for name in after if name in marked),
        tuple(added),
        tuple(removed),
        tuple(changed),
        tuple(rewired),
        tuple(unmarked),
        {one.node: one.reason for one in transformation.declined(graph_module)},
    )


def _only_rewired(before: NodeFacts, after: NodeFacts) -> bool:
    same = (before.does, before.module, before.values) == (after.does, after.module, after.values)
    return same and len(before.inputs) == len(after.inputs)


def _accounted(before: NodeFacts, after: NodeFacts, removed: set[str], marked: set[str]) -> bool:
    pairs = zip(before.inputs, after.inputs, strict=True)
    return all(old == new or old in removed or old in marked or new in marked for old, new in pairs)


def _marked_or_near(
    before: Mapping[str, NodeFacts], removed: set[str], marked: set[str]
) -> set[str]:
    """Return the removed nodes that a marked one is next to, perhaps through other removed ones."""
    neighbours: dict[str, set[str]] = {name: set(found.inputs) for name, found in before.items()}
    for name, found in before.items():
        for source in found.inputs:
            neighbours[source].add(name)
    reached: set[str] = set()
    waiting = [name for name in before if name in marked]
    while waiting:
        for name in neighbours[waiting.pop()] & removed - reached:
            reached.add(name)
            waiting.append(name)
    return reached


def _facts(graph_module: GraphModule, node: Node) -> NodeFacts:
    inputs: list[str] = []

    def blank(read: Node) -> str:
        inputs.append(read.name)
        return "%"

    arguments = map_arg((node.args, dict(node.kwargs)), blank)
    does = f"{node.op} {target_text(node)} {arguments!r}"
    module, values = _module_facts(graph_module, node)
    return NodeFacts(does, module, values, tuple(inputs))


def _module_facts(graph_module: GraphModule, node: Node) -> tuple[str, str]:
    if node.op not in ("call_module", "get_attr"):
        return "", ""
    found: Any = graph_module
    for name in str(node.target).split("."):
        found = getattr(found, name)
    if isinstance(found, nn.Module):
        return described(found), state_hash(found)
    return type(found).__name__, _hash([("", found)] if isinstance(found, torch.Tensor) else [])


def described(module: nn.Module) -> str:
    """Return class, settings and mode of a module and all within."""
    return "; ".join(
        f"{name}: {type(part).__qualname__}({part.extra_repr()}) training={part.training}"
        for name, part in module.named_modules()
    )


def state_hash(module: nn.Module) -> str:
    """Return a hash of all parameters and buffers, with their names and what is trained."""
    tensors = [*module.named_parameters(remove_duplicate=False)]
    return _hash([*tensors, *module.named_buffers(remove_duplicate=False)])


def _hash(tensors: Iterable[tuple[str, torch.Tensor]]) -> str:
    digest = hashlib.sha256()
    for name, tensor in tensors:
        head = f"{name} {tensor.dtype} {list(tensor.shape)} {tensor.requires_grad}"
        digest.update(head.encode())
        digest.update(tensor_bytes(tensor))
    return digest.hexdigest()
