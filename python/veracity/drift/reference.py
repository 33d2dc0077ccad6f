"""Runs an exported program and hands over each value while it is there.

A value is copied by whoever takes it, at the moment when it was computed: no later write can reach
the copy, and the program's own values are freed as soon as nothing reads them. A run in float64
keeps step with it, so that neither is held for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils._pytree import tree_leaves, tree_map

from veracity._generators import generators_kept

#: Takes a value by its name, and what it is in float64.
Take = Callable[[str, Tensor, Tensor | None], None]
_NARROW = (torch.float32, torch.float16, torch.bfloat16)


class _Run(fx.Interpreter):
    """Runs a program as it is, a node at a time."""

    def __init__(self, exported: Any, flat: Iterable[Any]) -> None:
        """Prepare to run on flat inputs."""
        super().__init__(exported.graph_module)
        self.args_iter = iter(self.graph.process_inputs(*flat))

    def step(self, node: fx.Node) -> Tensor | None:
        """Run one node and return its value, if that is a tensor; nodes come in their order."""
        result = self.env[node] = self.run_node(node)
        for unread in self.user_to_last_uses.get(node, ()):
            del self.env[unread]
        return result if isinstance(result, Tensor) else None


class _WideRun(_Run):
    """Runs a program in float64. Weights are widened where they are used, never all at once."""

    def __init__(self, exported: Any, flat: Iterable[Any]) -> None:
        """Prepare to run on flat inputs. What is not widened is copied: it may be written to."""
        super().__init__(exported, [each if _is_narrow(each) else _own(each) for each in flat])

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one call on wide arguments."""
        return super().call_function(target, tree_map(_wide, args), tree_map(_wide, kwargs))


def interpret(
    exported: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    wanted: frozenset[str],
    take: Take,
    *,
    float64: bool = False,
) -> str:
    """Run a program once; return why float64 is not known everywhere, if it is not."""
    flat = exported._graph_module_flat_inputs
    run, problem = _Run(exported, flat(args, dict(kwargs))), ""
    wide_run = _WideRun(exported, flat(*own_arguments(args, kwargs))) if float64 else None
    with torch.no_grad():
        for node in exported.graph.nodes:
            value, wide = run.step(node), None
            try:
                wide = wide_run and wide_run.step(node)
            except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
                wide_run, problem = None, str(error).strip().split("\n", 1)[0]
            if value is not None and node.name in wanted:
                take(node.name, _plain(value), _plain(wide) if _is_wide(wide) else None)
    return problem


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
    with generators_kept():
        yield
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name in buffers:
                buffer.copy_(buffers[name])


def _own(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _plain(value: Any) -> Tensor:
    plain: Tensor = value.detach().contiguous()
    return plain


def _is_wide(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.float64


def _is_narrow(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in _NARROW


def _wide(value: Any) -> Any:
    if _is_narrow(value):
        return value.double()
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value
