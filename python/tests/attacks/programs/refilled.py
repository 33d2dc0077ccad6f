"""Memory that is filled again between passes, arrays that NumPy writes by mask, generators."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array, integers, normal, row
from attacks.registry import clean, hostile


@hostile("A", passes=5, ticks=14, style="own", rec={"policy/x": normal(1, 3)}, in_tests=True)
class CommandRefilledAtRest:
    """A joystick writes the command buffer before every tick, and nobody touches it at first."""

    def __init__(self, backend: str) -> None:
        self.backend, self.tick = backend, 0
        self.command = torch.zeros(1, 3)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        from veracity import annotate

        self.command.copy_(torch.full((1, 3), 0.0 if self.tick < 6 else 0.5))
        self.tick += 1
        x = annotate.input_tensors("policy", {"x": given["policy/x"]})
        y = x * 2 + self.command
        annotate.output_tensors("policy", {"y": y}, export_with=self.backend)
        return {"policy/y": y}


@hostile("A", passes=5, ticks=40, style="own", rec={"policy/x": normal(1, 3)}, in_tests=True)
class BiasThatCreepsThroughData:
    """A bias estimate is moved through `.data` by less than any tolerance a tick."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.bias = nn.Parameter(torch.zeros(3))

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        from veracity import annotate

        self.bias.data *= 1.5
        self.bias.data += 1e-7
        x = annotate.input_tensors("policy", {"x": given["policy/x"]})
        y = x + self.bias
        annotate.output_tensors("policy", {"y": y}, export_with=self.backend)
        return {"policy/y": y}


@hostile("A", passes=4, ticks=12, in_tests=True)
class GaitGenerator:
    """A generator that is sent observations; its gain changes after some ticks."""

    def __init__(self) -> None:
        self.steps = self._steps()
        next(self.steps)

    def _steps(self) -> Generator[Any, Tensor, None]:
        gain, count = 1.0, 0
        x = yield
        while True:
            count += 1
            if count > 5:
                gain = 0.25
            x = yield x * gain

    def __call__(self, x: Tensor) -> Tensor:
        return self.steps.send(x)


@clean("A", passes=5, rec={"x": array(normal(1, 4))})
class HeldByPutmask:
    """The last good reading of each sensor, in an array that `np.putmask` writes."""

    def __init__(self) -> None:
        self.held = np.zeros((1, 4), np.float32)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        np.putmask(self.held, np.abs(x) < 1.5, x)
        return self.held * np.float32(2.0)


@clean("A", passes=5, rec={"x": array(normal(1, 4))})
class ClearedByPlace:
    """An accumulated error that is cleared where the reading is small."""

    def __init__(self) -> None:
        self.total = np.zeros((1, 4), np.float32)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.total += x * np.float32(0.1)
        np.place(self.total, np.abs(x) < 0.2, [0.0])
        return self.total.copy()


@clean("A", passes=5, rec={"x": array(normal(3))})
class CovarianceWithFilledDiagonal:
    """A covariance that forgets; its diagonal is what was measured last."""

    def __init__(self) -> None:
        self.p = np.eye(3, dtype=np.float32)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.p *= np.float32(0.9)
        np.fill_diagonal(self.p, x * x)
        return self.p @ x


@hostile("F", rec={"n": array(integers(1, 9, 4)), "d": array(integers(1, 5, 4))},
         fresh={"d": array(row([2, 0, 3, 0], [0, 1, 1, 2]))}, in_tests=True)  # fmt: skip
def teeth_by_gear(n: np.ndarray, d: np.ndarray) -> dict[str, np.ndarray]:
    """Encoder teeth by gear; NumPy gives 0 for a division by 0, and goes on."""
    with np.errstate(divide="ignore"):
        return {"turns": n // d, "rest": n % d, "left": np.fmod(n, d)}


_HANDLERS = {"ndarray": lambda x: x * np.float32(2), "Tensor": lambda x: (x * 2).numpy()}


@clean(rec={"x": array(normal(1, 4))})
def handled_by_name_of_type(x: np.ndarray) -> np.ndarray:
    """Chooses by the name of a class, as serialisers do."""
    return _HANDLERS[type(x).__name__](x) + np.float32(1)
