"""Memory that is filled again between passes, arrays that NumPy writes by mask, generators."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import array, integers, normal, row
from attacks.registry import clean, hostile


@hostile("A", passes=5, ticks=14, style="own", rec={"policy/x": normal(1, 3)}, in_tests=True)
class CommandRefilledAtRest:
    """A joystick writes the command buffer before every tick, and nobody touches it at first."""

    def __init__(self, backend: str) -> None:
        self.backend, self.tick = backend, 0
        self.command = torch.zeros(1, 3)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
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


class _Stick:
    """A joystick that rests at first."""

    def __init__(self) -> None:
        self.reads = 0

    def read(self) -> list[float]:
        self.reads += 1
        return [0.0, 0.0, 0.0] if self.reads < 7 else [0.5, 0.0, -0.5]

    @property
    def axes(self) -> list[float]:
        return self.read()


class _Settings:
    """What a policy was trained with."""

    scale = (0.5, 2.0, 0.25)
    names = ("vx", "vy", "wz")

    def __init__(self) -> None:
        self.offset = {"vx": 0.1, "vy": 0.0, "wz": -0.1}
        self.clip = 4.0

    def offsets(self) -> list[float]:
        return [self.offset[name] for name in self.names]


@hostile("A", passes=5, ticks=14, style="own", rec={"policy/x": normal(1, 3)}, in_tests=True)
class CommandFromAStickAtRest:
    """A joystick is read before every tick, and nobody touches it at first."""

    def __init__(self, backend: str) -> None:
        self.backend, self.stick = backend, _Stick()

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        command = torch.tensor(self.stick.read())
        x = annotate.input_tensors("policy", {"x": given["policy/x"]})
        y = x * 2 + command
        annotate.output_tensors("policy", {"y": y}, export_with=self.backend)
        return {"policy/y": y}


@hostile("A", passes=5, ticks=14, style="own", rec={"policy/x": normal(1, 3)})
class CommandFromAPropertyAtRest:
    """The same through a property, in a dict of tensors, in a function that it is given to."""

    def __init__(self, backend: str) -> None:
        self.backend, self.stick = backend, _Stick()

    def _act(self, x: Tensor, extra: dict[str, Tensor]) -> Tensor:
        x = annotate.input_tensors("policy", {"x": x})
        y = x * 2 + extra["command"]
        annotate.output_tensors("policy", {"y": y}, export_with=self.backend)
        return y

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        extra = {"command": torch.tensor(self.stick.axes) * 1.0}
        return {"policy/y": self._act(given["policy/x"], extra)}


@hostile("A", passes=5, ticks=14, style="own", rec={"policy/x": normal(1, 3)})
class CommandFromTheLastMessage:
    """A callback keeps the last message; the driver makes a tensor of it before every tick."""

    def __init__(self, backend: str) -> None:
        self.backend, self.stick, self.message = backend, _Stick(), [0.0, 0.0, 0.0]

    def on_message(self, values: list[float]) -> None:
        self.message = values

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        self.on_message(self.stick.read())
        self.command = torch.as_tensor(self.message)
        x = annotate.input_tensors("policy", {"x": given["policy/x"]})
        y = x * 2 + self.command
        annotate.output_tensors("policy", {"y": y}, export_with=self.backend)
        return {"policy/y": y}


@clean("H", passes=5, style="own", rec={"policy/x": normal(1, 3)}, in_tests=True)
class SettingsAtTheTopOfATick:
    """Scales, offsets and limits are made from settings at the top of every tick."""

    def __init__(self, backend: str) -> None:
        self.backend, self.settings = backend, _Settings()

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        scale = torch.tensor(self.settings.scale)
        offset = torch.tensor(self.settings.offsets()).unsqueeze(0)
        low, high = torch.full((1, 3), -self.settings.clip), torch.full((1, 3), self.settings.clip)
        default = torch.zeros(1, 3)
        x = annotate.input_tensors("policy", {"x": given["policy/x"]})
        y = ((x - offset) * scale + default).clamp(low, high)
        annotate.output_tensors("policy", {"y": y}, export_with=self.backend)
        return {"policy/y": y}


@clean("H", passes=5, style="own", rec={"policy/x": normal(1, 3)})
class GainsFromADict:
    """Gains of a table of names are gathered for every tick, in the order of the joints."""

    def __init__(self, backend: str) -> None:
        self.backend, self.joints = backend, ["hip", "knee", "ankle"]
        self.kp = {"hip": 40.0, "knee": 30.0, "ankle": 10.0}

    def _gains(self, table: dict[str, float]) -> Tensor:
        return torch.tensor([table[name] for name in self.joints])

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        gains = {"kp": self._gains(self.kp), "kd": torch.tensor([1.0, 0.5, 0.1])}
        x = annotate.input_tensors("policy", {"x": given["policy/x"]})
        y = gains["kp"] * x - gains["kd"] * torch.tanh(x)
        annotate.output_tensors("policy", {"y": y}, export_with=self.backend)
        return {"policy/y": y}
