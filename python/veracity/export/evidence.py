"""What the samples of a node, recorded and fresh, are able to say about its outputs.

An output that was the same on all of them was compared, and what changes it was never tried.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from veracity.errors import Diagnostic
from veracity.export.double import name_of
from veracity.export.fresh import Fresh
from veracity.export.scale import is_large
from veracity.tracing.nodes import Node, Port

#: Functions and methods that take only the shape or the type of their second tensor.
_LIKE_ANOTHER = frozenset({"expand_as", "view_as", "reshape_as", "type_as"})
#: Functions and methods whose result depends on the shape of a tensor and not on its values.
_SHAPE_ONLY = frozenset(
    {
        "zeros_like",
        "ones_like",
        "full_like",
        "empty_like",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_empty",
        "new_tensor",
        "size",
        "numel",
        "dim",
        "getattr",
    }
)


def values_of(node: Node, fresh: Fresh) -> dict[str, torch.Tensor]:
    """Return all values of each output that the model is compared on, along a first axis.

    Large outputs are left out.
    """
    found = {}
    for port in node.outputs:
        name = port.name
        kept = [*node.samples, *fresh.samples]
        given = [one.outputs[name].detach() for one in kept if name in one.outputs]
        if any(map(is_large, given)):
            continue
        given = [one.cpu() for one in given]
        like = given[0] if given else None
        given = [one for one in given if like is not None and one.shape == like.shape]
        stacks = [torch.stack(given)] if given else []
        if fresh.many is not None and name in fresh.many.outputs:
            stacks.append(fresh.many.outputs[name].detach().cpu())
        if stacks:
            found[name] = torch.cat(stacks)
    return found


def port_elements(port: Port) -> int:
    """Return how many elements a port has."""
    return math.prod(port.shape)


def never_moves(
    node: Node, module: fx.GraphModule | None, values: dict[str, torch.Tensor]
) -> list[Diagnostic]:
    """Return a finding for each output that depends on the inputs and never changes.

    Args:
        node: The node.
        module: Its recorded program.
        values: All values of its outputs that are compared, along a first axis.
    """
    if module is None or not any(port_elements(port) for port in node.inputs):
        return []
    depending = depends_on_inputs(module)
    found = []
    for port, depends in zip(node.outputs, depending, strict=True):
        stack = values.get(port.name)
        if not depends or stack is None or stack[:1].numel() == 0 or port.name in node.states:
            continue
        same = (stack == stack[:1]) | (stack.isnan() & stack[:1].isnan())
        if bool(same.all()):
            message = (
                f"`{port.name}` of `{node.name}` is the same on all {len(stack)} samples, recorded "
                "and fresh: nothing is known about what changes it"
            )
            hint = f"record a pass in which `{port.name}` changes"
            found.append(
                Diagnostic("VER1127", "warning", message, node.location, (hint,), node.name)
            )
    return found


def depends_on_inputs(module: fx.GraphModule) -> list[bool]:
    """Say for each result of a program whether a value of an input can change it."""
    moving: set[fx.Node] = set()
    results: list[bool] = []
    for node in module.graph.nodes:
        if node.op == "placeholder":
            moving.add(node)
        elif node.op == "output":
            made = node.args[0]
            listed = [made] if isinstance(made, fx.Node) else list(made)
            results = [one in moving for one in listed]
        elif any(one in moving for one in _read_by(node)):
            moving.add(node)
            # What is written in place is the first argument.
            first: Any = node.args[0] if node.args else None
            if isinstance(first, fx.Node) and str(node.target).rstrip("_") != str(node.target):
                moving.add(first)
    return results


def _read_by(node: fx.Node) -> list[fx.Node]:
    """Return what a call takes the values of; nothing of what it multiplies by zero."""
    name = node.target if isinstance(node.target, str) else name_of(node.target)
    if name in _SHAPE_ONLY:
        return []
    if name in _LIKE_ANOTHER:
        return [one for one in node.args[:1] if isinstance(one, fx.Node)]
    if name in ("mul", "multiply") and any(_is_zero(one) for one in node.args):
        return []  # but for infinities and NaN, which make no other number of it
    return node.all_input_nodes


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and value == 0
