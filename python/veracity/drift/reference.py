"""Runs an exported program and hands over each value while it is there.

A value is copied by whoever takes it, at the moment when it was computed: no later write can reach
the copy, and the program's own values are freed as soon as nothing reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils._pytree import tree_leaves, tree_map

Take = Callable[[str, Tensor], None]
_NARROW = (torch.float32, torch.float16, torch.bfloat16)


class Reference(fx.Interpreter):
    """Runs a program as it is."""

    def __init__(self, exported: Any, wanted: frozenset[str], take: Take) -> None:
        """Prepare to hand the wanted values to `take`, by their names."""
        super().__init__(exported.graph_module)
        self._wanted = wanted
        self._take = take

    def run_node(self, n: fx.Node) -> Any:
        """Run one node and hand over its value."""
        result = super().run_node(n)
        if n.name in self._wanted and isinstance(result, Tensor):
            self._take(n.name, result.detach().contiguous())
        return result


class Wide(Reference):
    """Runs a program in float64. Weights are widened where they are used, never all at once."""

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one call on wide arguments."""
        return super().call_function(target, tree_map(_wide, args), tree_map(_wide, kwargs))


def interpret(
    kind: type[Reference],
    exported: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    wanted: frozenset[str],
    take: Take,
) -> None:
    """Run a program once."""
    flat = exported._graph_module_flat_inputs(args, dict(kwargs))
    with torch.no_grad():
        kind(exported, wanted, take).run(*flat)


def eager_outputs(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Tensor]:
    """Return the tensors that the module itself gives. It is left as it was."""
    with unchanged(model), torch.no_grad():
        # Arguments may be written to.
        args, kwargs = tree_map(_own, (args, dict(kwargs)))
        found = tree_leaves(model(*args, **kwargs))
    return [each.detach().clone() for each in found if isinstance(each, Tensor)]


def own_arguments(
    args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return copies of the arguments, which a program may write to."""
    own_args, own_kwargs = tree_map(_own, (args, dict(kwargs)))
    return own_args, own_kwargs


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Leave buffers and random numbers as they were."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.random.fork_rng(devices=[]):
        yield
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name in buffers:
                buffer.copy_(buffers[name])


def _own(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _wide(value: Any) -> Any:
    if isinstance(value, Tensor) and value.dtype in _NARROW:
        return value.double()
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value
