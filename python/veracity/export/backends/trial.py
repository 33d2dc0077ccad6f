"""Runs a model beside the module it was made from.

This is no proof, which needs recorded samples: it finds exporters that put a value of the examples
into the model, and operations that are translated wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import fx

from veracity.errors import refuse
from veracity.export.backends.contract import Ports

Tensors = list[torch.Tensor]


def check(
    module: fx.GraphModule, ports: Ports, run: Callable[[Tensors], Iterable[torch.Tensor]]
) -> None:
    """Refuse a model that gives other results than the module, on the examples or on variants.

    A module that draws random numbers cannot be compared in this way, and passes.
    """
    for inputs in variants(ports.examples):
        expected, found = results(module, inputs), list(run(inputs))
        for name, want, got in zip(ports.outputs, expected, found, strict=True):
            if not agree(want, got) and is_reproducible(module, ports):
                raise refuse(
                    "VER1005",
                    f"the model of node '{ports.node}' gives another '{name}' than the node",
                    hints=("the exporter translates an operation wrongly: try another one",),
                )


def is_reproducible(module: fx.GraphModule, ports: Ports) -> bool:
    """Tell whether the module gives the same results twice; one that draws numbers does not."""
    first, second = (results(module, ports.examples) for _ in range(2))
    return all(map(agree, first, second))


def require_reproducible(module: fx.GraphModule, ports: Ports) -> None:
    """Refuse a module whose models cannot be checked."""
    if not is_reproducible(module, ports):
        raise refuse("VER1006", f"node '{ports.node}' gives other results each time")


def variants(examples: Tensors) -> list[Tensors]:
    """Return the examples and two sets of inputs like them.

    Numbers are scaled and negated; integers and masks are only reversed, since they may be indices.
    """
    return [
        examples,
        [_changed(example, 0.75) for example in examples],
        [_changed(example, -0.5) for example in examples],
    ]


def _changed(example: torch.Tensor, factor: float) -> torch.Tensor:
    if example.is_floating_point() or example.is_complex():
        return example * factor + 0.01
    return example.flip(0) if example.dim() else example


def results(module: torch.nn.Module, inputs: Tensors) -> tuple[torch.Tensor, ...]:
    """Run a module on copies of the inputs."""
    with torch.no_grad():
        found = module(*(given.detach().clone() for given in inputs))
    return found if isinstance(found, tuple) else (found,)


def agree(want: torch.Tensor, got: torch.Tensor) -> bool:
    """Compare shape, element type and values: a wrong operation is told from some roundings."""
    want, got = want.detach().cpu(), got.detach().cpu()
    if want.shape != got.shape or want.dtype != got.dtype:
        return False
    rtol, atol = 1e-3, 1e-5
    if want.dtype in (torch.float16, torch.bfloat16):
        rtol = 16 * torch.finfo(want.dtype).eps
        finite = want[want.isfinite()].abs()
        atol = rtol * float(finite.max()) if finite.numel() else 0.0
    return torch.allclose(want, got, rtol=rtol, atol=atol, equal_nan=True)
