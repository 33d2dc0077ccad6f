"""Runs a module without leaving a trace in its buffers, its inputs or torch's random numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule, Interpreter, Node
from torch.utils import _pytree as pytree

from veracity._generators import generators_kept
from veracity.fx.inputs import Case


@dataclass(frozen=True)
class Run:
    """What a model gave.

    Attributes:
        outputs: Every value of the output, by its place in it.
        nodes: Tensors of the nodes, by name, if they were asked for.
        error: What was raised instead.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict)
    nodes: Mapping[str, torch.Tensor] = field(default_factory=dict)
    error: str = ""


def run(module: nn.Module, case: Case, seed: int = 0) -> Run:
    """Call a module."""
    # Calling a graph module prints where it raises; its `forward` does not.
    call = module.forward if isinstance(module, GraphModule) else module
    return _guarded(module, case, seed, lambda given: Run(_flat(call(*given.args, **given.kwargs))))


def run_nodes(graph_module: GraphModule, case: Case, seed: int = 0) -> Run:
    """Call a graph module node by node and keep what every node gave."""

    def call(given: Case) -> Run:
        recorder = _Recorder(graph_module)
        result = recorder.run(*_ordered(graph_module, given))
        return Run(_flat(result), recorder.seen)

    return _guarded(graph_module, case, seed, call)


def in_float64(graph_module: GraphModule, case: Case, step: float = 0.0, seed: int = 0) -> Run:
    """Call a copy in float64; what cannot be run so has an error.

    Args:
        graph_module: What is called.
        case: The input.
        step: Part of itself that every float of inputs, parameters and buffers is moved by.
        seed: Decides which go up and which go down.
    """
    generator = torch.Generator().manual_seed(seed)

    def widen(leaf: Any) -> Any:
        if not (isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point):
            return leaf
        return _moved(leaf.double(), step, generator)

    args, kwargs = pytree.tree_map(widen, (case.args, case.kwargs))
    wide = copy.deepcopy(graph_module).double()
    with torch.no_grad():
        for held in [*wide.parameters(), *wide.buffers()]:
            if held.dtype.is_floating_point:
                held.copy_(_moved(held, step, generator))
    return run_nodes(wide, Case(case.name, args, kwargs))


def _moved(value: torch.Tensor, step: float, generator: torch.Generator) -> torch.Tensor:
    if not step:
        return value
    signs = 1 - 2 * torch.randint(0, 2, value.shape, generator=generator).double()
    return value * (1 + step * signs.to(value.device))


def _guarded(module: nn.Module, case: Case, seed: int, call: Callable[[Case], Run]) -> Run:
    args, kwargs = pytree.tree_map(_kept, (case.args, case.kwargs))
    try:
        with torch.no_grad(), _restored(module), generators_kept():
            torch.manual_seed(seed)
            return call(Case(case.name, args, kwargs, case.finite))
    except Exception as raised:  # the model is the caller's: whatever it raises is a finding
        return Run(error=f"{type(raised).__name__}: {raised}".splitlines()[0])


@contextmanager
def _restored(module: nn.Module) -> Iterator[None]:
    """Give buffers back what they held."""
    held = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
    try:
        yield
    finally:
        for buffer, value in held:
            buffer.copy_(value)


class _Recorder(Interpreter):
    """Keeps a copy of each tensor at the moment it is made, before anything writes into it."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.seen: dict[str, torch.Tensor] = {}

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if isinstance(value, torch.Tensor) and n.op != "output":
            self.seen[n.name] = value.detach().clone()
        return value


def _ordered(graph_module: GraphModule, case: Case) -> list[Any]:
    """Return the arguments in the order of the placeholders; torch fills in defaults at the end."""
    nodes = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    given = list(case.args)
    for node in nodes[len(given) :]:
        if node.target not in case.kwargs and not node.args:
            break
        given.append(case.kwargs.get(str(node.target), node.args[0] if node.args else None))
    return given


def _flat(output: Any) -> dict[str, Any]:
    plain = dict(output) if isinstance(output, Mapping) else output
    leaves = pytree.tree_flatten_with_path(plain)[0]
    # A word of Python, which no node can have as its name.
    return {pytree.keystr(path) or "return": _kept(leaf) for path, leaf in leaves}


def _kept(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf
