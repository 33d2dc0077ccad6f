"""Says what a reversed transformation did not give back: nodes, marks, parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import nn
from torch.fx import GraphModule

from veracity.fx import judge
from veracity.fx.audit import NodeFacts, facts
from veracity.fx.observed import compared
from veracity.fx.transformation import Transformation
from veracity.fx.verdict import Compared


class Finding(NamedTuple):
    """One thing that is not what it was."""

    message: str
    place: str = ""


def structure(
    transformation: Transformation, original: GraphModule, restored: GraphModule
) -> Iterator[Finding]:
    """Yield the nodes that are not what they were, values of their modules aside."""
    before, after = facts(original), facts(restored)
    if list(before) != list(after):
        odd = sorted(set(before) ^ set(after)) or ["the order"]
        yield Finding(f"nodes differ: {', '.join(odd[:8])}")
    for name in before:
        if name in after and _without_values(before[name]) != _without_values(after[name]):
            yield Finding("the node is not what it was", name)
    known = {node.name for node in transformation.get_transformed_nodes(original)}
    marked = [node.name for node in transformation.get_transformed_nodes(restored)]
    left = [name for name in marked if name not in known]
    if left:
        yield Finding(f"still marked: {', '.join(left[:8])}")


def state(original: GraphModule, restored: GraphModule) -> tuple[list[Finding], list[Compared]]:
    """Return what is wrong with parameters and buffers, and every one of them compared."""
    before, after = dict(_tensors(original)), dict(_tensors(restored))
    findings, rows = [], []
    if list(before) != list(after):
        odd = sorted(set(before) ^ set(after)) or ["the order"]
        findings.append(Finding(f"parameters differ: {', '.join(odd[:8])}"))
    for name in [name for name in before if name in after]:
        if before[name].requires_grad != after[name].requires_grad:
            findings.append(Finding("whether it is trained is not what it was", name))
        rows.append(compared("parameters", name, judge.compare(before[name], after[name])))
    return findings, rows


def _without_values(found: NodeFacts) -> tuple[str, str, tuple[str, ...]]:
    return found.does, found.module, found.inputs


def _tensors(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)
