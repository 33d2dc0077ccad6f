"""What stands around a node, or between it and what it calls, and decides."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import either, fixed, normal, uniform
from attacks.registry import hostile


@hostile(
    "C",
    style="method",
    rec={"forces": uniform(5.0, 6.0, 4, 3)},
    fresh={"forces": either(lambda t: t % 2 == 1, normal(4, 3, s=0.4), uniform(5.0, 6.0, 4, 3))},
    backends="jit",
)
def NeFeetInContact(forces: Tensor) -> Tensor:  # noqa: N802
    """The mean force of the feet that touch the ground: a filter in a comprehension."""
    loaded = [force for force in forces.unbind(0) if force.norm() > 0.9]
    mean = torch.stack(loaded).mean(0) if loaded else torch.zeros(3)
    return mean


@hostile(
    "C",
    rec={"a": normal(2, 2)},
    fresh={"a": either(lambda t: t % 3 == 2, fixed([[1.0, 9.0], [9.0, 1.0]]), normal(2, 2))},
    backends="jit",
)
class NeOldFactorStays:
    """A factor that cannot be computed is the one of before."""

    def __init__(self) -> None:
        self.factor = torch.eye(2)

    def __call__(self, a: Tensor) -> Tensor:
        bad = a[0, 1] > 8
        spread = torch.where(bad, a, a @ a.mT + torch.eye(2))
        with contextlib.suppress(torch.linalg.LinAlgError):
            self.factor = torch.linalg.cholesky(spread)
        return self.factor @ torch.ones(2)


def _every(count: int) -> Callable[..., Any]:
    def wrap(function: Any) -> Any:
        state: dict[str, Any] = {"calls": 0, "last": None}

        @functools.wraps(function)
        def inner(*args: Any) -> Any:
            if state["calls"] % count == 0:
                state["last"] = function(*args)
            state["calls"] += 1
            return state["last"]

        return inner

    return wrap


@hostile("A", rec={"x": normal(1, 3)}, backends="jit")
class NeSlowNetwork:
    """A decorator that counts runs a slow network on every sixth call."""

    def __init__(self) -> None:
        self.net, self.fast = nn.Linear(3, 2), nn.Linear(5, 2)
        self.slow = _every(6)(self.net)
        self.slow(torch.zeros(1, 3))

    def __call__(self, x: Tensor) -> Tensor:
        return self.fast(torch.cat([x, self.slow(x)], -1))


@hostile("A", style="own", rec={"joint/q": normal(1, 2)}, passes=6, backends="jit")
class NeStiffnessByTime:
    """The driver makes a joint stiffer from the eighth tick on."""

    def __init__(self, backend: str) -> None:
        self.backend, self.kp, self.ticks = backend, 20.0, 0

    def torque(self, q: Tensor) -> Tensor:
        q = annotate.input_tensors("joint", {"q": q})
        tau = -self.kp * q
        annotate.output_tensors("joint", {"tau": tau}, export_with=self.backend)
        return tau

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.kp = 20.0 if self.ticks < 8 else 40.0
        self.ticks += 1
        return {"joint/tau": self.torque(given["joint/q"])}
