"""Calls of modules: what each was given and gave in eager mode, and which part of a program it is.

A call counts if no other module was called inside of it. That is seen while the module runs, not
read off its structure: torch computes a whole layer of attention in one piece when it can. Hooks
would keep it from doing so, so there are none. Values are copied when they are seen; what is
written in place later does not reach the copies.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils._pytree import tree_leaves

from veracity.drift import reference

#: What a program holds: not computed, and never given by a caller.
_STATE = ("PARAMETER", "BUFFER", "CONSTANT_TENSOR", "CUSTOM_OBJ", "TOKEN")


@dataclass
class Call:
    """One call of a module in eager mode.

    Attributes:
        module: The module.
        path: Where it is in the model.
        number: How many calls of it there were before.
        given: The tensors that it was given, and its buffers as they were then.
        gave: The tensors that it gave.
        is_passing: Whether all that it gave is what it was given or holds.
    """

    module: nn.Module
    path: str
    number: int
    given: list[Tensor] = field(default_factory=list)
    gave: list[Tensor] = field(default_factory=list)
    is_passing: bool = False

    @property
    def label(self) -> str:
        """The path; from the second call on with its number."""
        return self.path if self.number == 0 else f"{self.path}#{self.number + 1}"


@dataclass
class Part:
    """The part of a program that is one call.

    Attributes:
        call: The call.
        nodes: The nodes, in order.
        inputs: Nodes before it whose values it reads, but for what the program holds.
        outputs: Nodes of it whose values are read behind it.
    """

    call: Call
    nodes: list[fx.Node]
    inputs: list[fx.Node]
    outputs: list[fx.Node]


# In eager mode


@dataclass
class _Frame:
    call: Call | None
    is_leaf: bool = True


def record(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[Call], list[Tensor]]:
    """Run a module; return its calls, in order, and the tensors that it gives."""
    calls: list[Call] = []
    own_args, own_kwargs = reference.own_arguments(args, kwargs)
    with reference.unchanged(model), torch.no_grad(), _watched(model, calls):
        found = model(*own_args, **own_kwargs)
    return calls, _Copies().of(found)


@contextmanager
def _watched(model: nn.Module, calls: list[Call]) -> Iterator[None]:
    paths = {id(module): path for path, module in model.named_modules()}
    counts: dict[int, int] = {}
    frames: list[_Frame] = []
    copies = _Copies()
    kind: Any = nn.Module
    original, thread = kind.__call__, threading.get_ident()

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        path = paths.get(id(module), "")
        if threading.get_ident() != thread or not path:
            return original(module, *args, **kwargs)
        if frames:
            # What was copied of a module around others is of no use.
            frames[-1].is_leaf, frames[-1].call = False, None
        number = counts[id(module)] = counts.get(id(module), -1) + 1
        given = copies.of((args, kwargs)) + copies.of(list(module.buffers()))
        frames.append(_Frame(Call(module, path, number, given)))
        try:
            result = original(module, *args, **kwargs)
        finally:
            frame = frames.pop()
        if frame.call is not None:
            frame.call.gave = copies.of(result)
            frame.call.is_passing = all(_passes(each, frame.call) for each in frame.call.gave)
            calls.append(frame.call)
        return result

    kind.__call__ = call
    try:
        yield
    finally:
        kind.__call__ = original


def _passes(value: Tensor, call: Call) -> bool:
    known = [*call.given, *call.module.parameters()]
    return any(same(value, each) for each in known)


def same(ours: Tensor, theirs: Tensor) -> bool:
    """Whether two tensors are equal, element by element, and of one type."""
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and torch.equal(ours, theirs)


class _Copies:
    """Copies of tensors; one that has not changed since is not copied again.

    Most calls are given what the call before gave: this halves what is held.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Tensor], Tensor]] = {}

    def of(self, tree: Any) -> list[Tensor]:
        """Return copies of the tensors in a structure, in its order."""
        return [self._of(leaf) for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]

    def _of(self, value: Tensor) -> Tensor:
        known = self._known.get(id(value))
        # Another tensor may have got the number of one that is gone.
        if known is not None and known[0]() is value and same(known[1], value):
            return known[1]
        found = value.detach().clone()
        self._known[id(value)] = (weakref.ref(value), found)
        return found


# In a program


def parts(exported: Any, model: nn.Module, calls: Sequence[Call]) -> list[Part]:
    """Find the part of each call. Calls that have none, or that cannot be told apart, are left out.

    Exporters number the calls of a module, but not those that leave nothing behind: where the
    counts differ, nobody knows which call is which.
    """
    stretches = _stretches(exported, model)
    by_module: dict[int, list[Call]] = {}
    for call in calls:
        by_module.setdefault(id(call.module), []).append(call)
    held = state_names(exported)
    found: list[Part] = []
    for module, ours in by_module.items():
        theirs = stretches.get(module, [])
        if len(theirs) == len(ours):
            found += [_part(call, nodes, held) for call, nodes in zip(ours, theirs, strict=True)]
    return found


def state_names(exported: Any) -> frozenset[str]:
    """Return the names of the inputs that are what a program holds."""
    specs = exported.graph_signature.input_specs
    return frozenset(spec.arg.name for spec in specs if spec.kind.name in _STATE)


def module_path(node: fx.Node) -> str:
    """Return the path of the module that a node stands in."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return str(stack[-1][0]) if stack else ""


def _stretches(exported: Any, model: nn.Module) -> dict[int, list[list[fx.Node]]]:
    """Return the nodes of each call of each module, by the module."""
    modules = {path: id(each) for path, each in model.named_modules(remove_duplicate=False)}
    calls: dict[tuple[int, str], list[fx.Node]] = {}
    for node in exported.graph.nodes:
        for key, (path, *_) in (node.meta.get("nn_module_stack") or {}).items():
            if path in modules:
                calls.setdefault((modules[path], key), []).append(node)
    found: dict[int, list[list[fx.Node]]] = {}
    for (module, _), nodes in calls.items():
        found.setdefault(module, []).append(nodes)
    return found


def _part(call: Call, nodes: list[fx.Node], held: frozenset[str]) -> Part:
    inside = set(nodes)
    read = dict.fromkeys(each for node in nodes for each in node.all_input_nodes)
    inputs = [
        node
        for node in read
        if node not in inside and node.op != "get_attr" and node.name not in held
    ]
    tensors = [node for node in nodes if isinstance(node.meta.get("val"), Tensor)]
    outputs = [node for node in tensors if any(user not in inside for user in node.users)]
    # What is written in place may be read under the name that it had before.
    return Part(call, nodes, inputs, outputs or tensors[-1:])
