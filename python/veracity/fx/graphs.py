"""What several passes need to know about a graph module, and how they may change its modules.

Modules are put in place of others, never changed themselves: leaves are shared with the model that
was traced. Containers that torch did not make for this graph are copied before a child is replaced.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterable
from typing import Any, TypeVar

import torch
from torch import nn
from torch.fx import GraphModule, Node

M = TypeVar("M", bound=nn.Module)

_IN_PLACE_OPERATORS = {
    getattr(operator, name)
    for name in dir(operator)
    if name.startswith("i") and f"__{name}__" in dir(operator)
} | {operator.setitem, operator.delitem}


def called(graph_module: GraphModule, node: object, kind: type[M]) -> M | None:
    """Return the module that a node calls, if it is of exactly this kind."""
    if not isinstance(node, Node) or node.op != "call_module":
        return None
    module = graph_module.get_submodule(str(node.target))
    return module if type(module) is kind else None


def only_input(node: Node) -> Node | None:
    """Return the one input of a call, whether it was given by place or as `input=`."""
    values = [*node.args, *(value for name, value in node.kwargs.items() if name == "input")]
    if len(values) != 1 or len(node.args) + len(node.kwargs) != 1:
        return None
    return values[0] if isinstance(values[0], Node) else None


def set_only_input(node: Node, value: Node) -> None:
    """Give a call another input, the way it had the first."""
    if node.args:
        node.args = (value,)
    else:
        node.kwargs = {"input": value}


def hooked(module: nn.Module) -> bool:
    """Return whether calling the module does more than its `forward`."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(module, name, None) for name in hooks)


class TensorUses:
    """Which nodes use which parameter, under whatever name and through whatever module."""

    def __init__(self, graph_module: GraphModule) -> None:
        """Look at every node once."""
        self._nodes: dict[int, list[Node]] = {}
        for node in graph_module.graph.nodes:
            for tensor in _tensors(graph_module, node):
                self._nodes.setdefault(_identity(tensor), []).append(node)

    def beyond(self, module: nn.Module, nodes: Iterable[Node]) -> list[Node]:
        """Return the nodes that use a parameter of the module and are not among these."""
        known = set(nodes)
        found = {
            node: None
            for tensor in module.parameters()
            for node in self._nodes.get(_identity(tensor), [])
            if node not in known
        }
        return list(found)


def _tensors(graph_module: GraphModule, node: Node) -> list[torch.Tensor]:
    if node.op == "call_module":
        return list(graph_module.get_submodule(str(node.target)).parameters())
    if node.op == "get_attr":
        value: Any = graph_module
        for name in str(node.target).split("."):
            value = getattr(value, name)
        if isinstance(value, nn.Module):
            return list(value.parameters())
        return [value] if isinstance(value, torch.Tensor) else []
    return []


def _identity(tensor: torch.Tensor) -> int:
    """Return where a tensor's data is: two parameters over the same data are tied too."""
    place = tensor.data_ptr() if tensor.device.type != "meta" else 0
    return place or id(tensor)


def calls_of(graph_module: GraphModule, target: str) -> list[Node]:
    """Return the nodes that call the module of this name."""
    nodes = graph_module.graph.nodes
    return [node for node in nodes if node.op == "call_module" and node.target == target]


def epochs(graph_module: GraphModule) -> dict[Node, int]:
    """Return how many operations that may write in place come before each node.

    Between two nodes of one epoch no value changes, so that what one reads the other could read.
    """
    before = 0
    found = {}
    for node in graph_module.graph.nodes:
        found[node] = before
        before += _writes(graph_module, node)
    return found


def _writes(graph_module: GraphModule, node: Node) -> bool:
    if "out" in node.kwargs or node.kwargs.get("inplace"):
        return True
    if node.op == "call_module":
        return bool(getattr(graph_module.get_submodule(str(node.target)), "inplace", False))
    if node.target in _IN_PLACE_OPERATORS:
        return True
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    written = str(name)
    positional = node.op == "call_function" and any(value is True for value in node.args)
    ends = written.endswith("_") and not written.endswith("__")
    return written == "__setitem__" or ends or (positional and _takes_inplace(node.target))


def _takes_inplace(function: Any) -> bool:
    """Return whether a function of torch has a parameter `inplace`, perhaps given by place."""
    code = getattr(function, "__code__", None)
    return code is not None and "inplace" in code.co_varnames[: code.co_argcount]


def parent_and_name(target: str) -> tuple[str, str]:
    """Return the path of the container and the name within; the root's path is empty."""
    parent, _, name = target.rpartition(".")
    return parent, name


def set_module(graph_module: GraphModule, target: str, module: nn.Module) -> None:
    """Put a module at a path of the graph module, and nowhere else."""
    parent, name = parent_and_name(target)
    setattr(own_container(graph_module, parent), name, module)


def remove_module(graph_module: GraphModule, target: str) -> None:
    """Take a module out of the graph module, and of nothing else."""
    parent, name = parent_and_name(target)
    delattr(own_container(graph_module, parent), name)


def remove_if_unused(graph_module: GraphModule, target: str) -> None:
    """Take a module out of the graph module if no node needs it any more."""
    prefix = target + "."
    for node in graph_module.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        used = str(node.target)
        if used == target or used.startswith(prefix) or target.startswith(used + "."):
            return
    remove_module(graph_module, target)


def own_container(graph_module: GraphModule, path: str) -> nn.Module:
    """Return the container at a path, as one that belongs to this graph module alone."""
    container: nn.Module = graph_module
    for name in path.split(".") if path else []:
        child = container.get_submodule(name)
        if type(child) is not nn.Module:  # torch makes plain ones for the graph
            child = _shallow(child)
            setattr(container, name, child)
        container = child
    return container


def _shallow(container: nn.Module) -> nn.Module:
    """Return a container with the same children, whose list of children is its own."""
    clone = copy.copy(container)
    clone._modules = dict(container._modules)
    return clone


def reorder(container: nn.Module, names: tuple[str, ...]) -> None:
    """Give children the order they had, because the order of parameters follows it."""
    children = container._modules
    last = len(names)
    places = {name: place for place, name in enumerate(names)}
    ordered = sorted(children, key=lambda name: places.get(name, last))
    container._modules = {name: children[name] for name in ordered}


def unused_name(container: nn.Module, wanted: str) -> str:
    """Return the wanted name, or one like it that the container does not have."""
    name, number = wanted, 0
    while hasattr(container, name):
        number += 1
        name = f"{wanted}_{number}"
    return name


def _compact(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy that does not keep the strides of what it was cut from."""
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def linear(
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    *,
    trained: bool,
    bias_trained: bool,
    training: bool,
) -> nn.Linear:
    """Return a linear layer with these values."""
    rows, columns = weight.shape
    made = nn.Linear(columns, rows, bias=bias is not None, device="meta")
    made.weight = nn.Parameter(_compact(weight), requires_grad=trained)
    if bias is not None:
        made.bias = nn.Parameter(_compact(bias), requires_grad=bias_trained)
    return made.train(training)
