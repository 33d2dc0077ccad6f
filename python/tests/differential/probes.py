"""The register of probes: small functions of a tensor, each with something odd in it.

A probe is exported from ONE pass and judged on fresh inputs, because a second pass of the same data
hides most holes. It is either right, or told at the marked line; it is never silently wrong.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from differential.nodes import one_node
from differential.registry import Draw, Same, Script, marked_lines

Compute = Callable[..., Any]


@dataclass(frozen=True)
class Probe:
    """One function and what must become of it.

    Attributes:
        name: Its name.
        compute: The function.
        codes: Codes of which one must be told at the marked line; none: it must come out right, and
            without a word.
        draw: What its input is.
        backends: What it is exported with.
        context: Entered around the tick.
        passes: Ticks that are traced.
    """

    name: str
    compute: Compute
    codes: tuple[str, ...]
    draw: Draw
    backends: tuple[str, ...]
    context: Callable[[], Any]
    passes: int

    def script(self, backend: str) -> Script:
        """Return the probe as a pipeline of one node."""
        return Script(
            name=self.name,
            subject="probe",
            make=lambda api: one_node(api, self.compute, backend),
            inputs={"n/x": self.draw},
            passes=self.passes,
            relation=Same(),
            context=self.context,
        )

    def marked(self) -> tuple[str, set[int]]:
        """Return the file and the lines that a diagnostic may name."""
        return marked_lines(self.compute)


PROBES: dict[str, Probe] = {}


def _register(
    codes: tuple[str, ...],
    draw: Draw = (2, 4),
    backends: tuple[str, ...] = ("jit",),
    context: Callable[[], Any] = torch.no_grad,
    passes: int = 1,
) -> Callable[[Compute], Compute]:
    def register(compute: Compute) -> Compute:
        name = compute.__name__
        if name in PROBES:
            raise ValueError(f"two probes are called {name}")
        PROBES[name] = Probe(name, compute, codes, draw, backends, context, passes)
        return compute

    return register


#: A probe that must come out right.
right = functools.partial(_register, ())
#: A right probe that is tried on every family of backends.
right_everywhere = functools.partial(_register, (), backends=("jit", "onnx", "pt2"))


def told(*codes: str, **options: Any) -> Callable[[Compute], Compute]:
    """Register a probe that must be told with one of the codes."""
    return _register(codes, **options)


def ones_like(x: Tensor) -> Tensor:
    """Return ones made where nothing is odd."""
    return torch.ones(x.shape)
