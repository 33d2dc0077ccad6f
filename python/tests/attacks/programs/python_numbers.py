"""Numbers of Python that change from pass to pass: counters, phases, clocks, indices, tables."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import random
import time
import types

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import fixed, normal, uniform
from attacks.registry import hostile


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class StepCounter:
    """A counter as int that scales the output."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.n += 1
        return x * min(1.0, self.n / 8)


@hostile("A", rec={"x": normal(1, 3)}, passes=3)
class SoftStartThatWaits:
    """A ramp that begins after the recorded passes."""

    def __init__(self) -> None:
        self.ticks = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.ticks += 1
        gain = 0.0 if self.ticks < 6 else 1.0
        return x.tanh() + gain * x


@hostile("A", rec={"x": normal(1, 2)}, passes=5)
class PhaseAsFloat:
    """A gait phase as a Python float."""

    def __init__(self) -> None:
        self.phase = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        self.phase = (self.phase + 0.02) % 1.0
        clock = torch.tensor(
            [[math.sin(2 * math.pi * self.phase), math.cos(2 * math.pi * self.phase)]]
        )
        return torch.cat([x, clock], -1)


@hostile("A", rec={"x": normal(2)}, passes=4)
class WallClock:
    """The time of day in seconds, as a slow wave."""

    def __call__(self, x: Tensor) -> Tensor:
        time.sleep(0.002)
        return x + math.sin(time.time() * 3.0)


@hostile("A", rec={"x": normal(2)}, passes=3)
class SinceStart:
    """Time since the start, beyond a delay that recording does not reach."""

    def __init__(self) -> None:
        self.t0 = time.perf_counter()

    def __call__(self, x: Tensor) -> Tensor:
        elapsed = time.perf_counter() - self.t0
        return x * (1.0 + (elapsed * 1e3) % 7.0)


@hostile("A", rec={"x": normal(3)}, passes=4)
class RingIndex:
    """A ring buffer with an int as its index."""

    def __init__(self) -> None:
        self.ring = torch.zeros(5, 3)
        self.at = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.ring[self.at] = x
        self.at = (self.at + 1) % 5
        return self.ring.mean(0) + x


@hostile("A", rec={"x": normal(4)}, passes=3)
class GaitTable:
    """A table of gaits that is walked through, whose first rows are alike."""

    table = ([1.0, 1.0, 1.0, 1.0],) * 4 + ([0.0, 1.0, 0.0, 1.0],) * 4

    def __init__(self) -> None:
        self.k = 0

    def __call__(self, x: Tensor) -> Tensor:
        legs = torch.tensor(self.table[self.k % 8])
        self.k += 1
        return x * legs


@hostile("A", rec={"x": normal(2)}, passes=4)
def generator_of_gains():
    """A generator that is asked for a gain every tick."""
    gains = itertools.cycle([0.5, 0.5, 0.5, 0.5, 2.0])

    def step(x: Tensor) -> Tensor:
        return x * next(gains)

    return step


def _decaying():
    eps = 1.0
    while True:
        yield eps
        eps *= 0.9


@hostile("A", rec={"x": normal(2)}, passes=3, in_tests=True)
def annealed_exploration():
    """A generator function that decays."""
    schedule = _decaying()

    def step(x: Tensor) -> Tensor:
        return x + next(schedule) * 0.3

    return step


class _Config:
    calls = 0


@hostile("A", rec={"x": normal(2)}, passes=4)
def class_attribute_counter():
    """A counter on a class, that decides after ten."""
    _Config.calls = 0

    def step(x: Tensor) -> Tensor:
        _Config.calls += 1
        return x if _Config.calls <= 8 else -x

    return step


_HITS = 0


@hostile("A", rec={"x": normal(2)}, passes=4)
def global_counter_every_third():
    """Holds its output two of three ticks with a number in a global."""
    global _HITS
    _HITS = 0

    def step(x: Tensor) -> Tensor:
        global _HITS
        _HITS += 1
        return x * 2.0 if _HITS % 7 else x * 0.0

    return step


@dataclasses.dataclass
class _Command:
    speed: float = 0.4
    age: int = 0


@hostile("A", rec={"x": normal(1, 4)}, passes=5)
class CommandThatAges:
    """A dataclass whose number falls when the command is old."""

    def __init__(self) -> None:
        self.cmd = _Command()
        self.net = nn.Linear(5, 2)

    def __call__(self, x: Tensor) -> Tensor:
        self.cmd.age += 1
        speed = self.cmd.speed if self.cmd.age < 7 else 0.0
        return self.net(torch.cat([x, torch.full((1, 1), speed)], 1))


@hostile("A", rec={"x": normal(2)}, passes=3)
def partial_with_a_box():
    """`functools.partial` over a namespace that changes."""
    box = types.SimpleNamespace(offset=0.0)

    def shifted(state: types.SimpleNamespace, x: Tensor) -> Tensor:
        out = x + state.offset
        state.offset = 0.0 if state.offset == 0.0 and x.numel() > 9 else state.offset
        box.ticks = getattr(box, "ticks", 0) + 1
        if box.ticks == 5:
            state.offset = 1.5
        return out

    moved = functools.partial(shifted, box)
    return lambda *a: moved(*a)


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class DecimatedPolicy:
    """Decimation: the network runs every fourth tick, its action is held between."""

    def __init__(self) -> None:
        self.net = nn.Linear(3, 2)
        self.i = 0
        self.action = torch.zeros(1, 2)

    def __call__(self, x: Tensor) -> Tensor:
        if self.i % 4 == 0:
            self.action = self.net(x)
        self.i += 1
        return self.action + 0.0 * x[:, :2]


@hostile("A", rec={"x": normal(1, 3)}, passes=3)
class WarmStart:
    """Zeros for the first ticks, then the policy; recorded when warm-up has not ended."""

    def __init__(self) -> None:
        self.net = nn.Linear(3, 3)
        self.left = 4

    def __call__(self, x: Tensor) -> Tensor:
        if self.left > 0:
            self.left -= 1
            return x * 0.0
        return self.net(x)


@hostile("A", rec={"x": normal(2)}, passes=4)
def random_of_python():
    """`random.random` in a node."""

    def step(x: Tensor) -> Tensor:
        return x + random.random()

    return step


@hostile("B", rec={"x": normal(2)}, passes=4)
def dither_of_torch():
    """Noise of torch in a node."""
    return lambda *a: a[0] + 0.1 * torch.randn(2)


@hostile("B", rec={"x": normal(2)}, passes=3)
def noise_of_numpy():
    """A generator of NumPy."""
    rng = np.random.default_rng(3)

    def step(x: Tensor) -> Tensor:
        return x * torch.from_numpy(rng.normal(size=2).astype(np.float32))

    return step


@hostile("B", rec={"x": normal(1, 8)}, passes=3)
class DropoutLeftOn(nn.Module):
    """A network that nobody put into eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@hostile("A", rec={"x": normal(4, 8)}, passes=4)
class BatchNormLeftOn(nn.Module):
    """Batch statistics that move: nobody put it into eval mode, and its output uses them later."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.out = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.norm(x)) + self.norm.running_mean.mean()


@hostile("A", style="own", rec={"n/x": normal(3)}, passes=4)
def flag_that_differs_between_calls(backend: str):
    """A flag of a method that is another in a later episode."""
    count = 0

    @annotate.method("n", export_with=backend)
    def act(x: Tensor, deterministic: bool) -> Tensor:
        y = x.tanh() if deterministic else x * 2.0
        return y

    def step(given):
        nonlocal count
        count += 1
        return {"n/y": act(given["n/x"], count < 6)}

    return step


@hostile("A", style="own", rec={"n/x": normal(3)}, passes=4, in_tests=True)
def gain_that_differs_between_calls(backend: str):
    """A number of a method that changes in every call."""
    gains = itertools.count(1)

    @annotate.method("n", export_with=backend)
    def scale(x: Tensor, gain: float) -> Tensor:
        y = x * gain
        return y

    return lambda given: {"n/y": scale(given["n/x"], 0.5 * next(gains))}


@hostile("A", style="own", rec={"n/x": normal(1, 3)}, passes=3)
def mode_as_text(backend: str):
    """A string of a method that picks a path."""
    modes = itertools.chain(["stand"] * 5, itertools.repeat("walk"))

    @annotate.method("n", export_with=backend)
    def controller(x: Tensor, mode: str = "stand") -> Tensor:
        if mode == "walk":
            u = x * 3.0
        else:
            u = x.clamp(-0.1, 0.1)
        return u

    return lambda given: {"n/u": controller(given["n/x"], mode=next(modes))}


@hostile("A", rec={"x": normal(2)}, passes=12)
class LateGain:
    """A gain that changes between passes that are looked at closely."""

    def __init__(self) -> None:
        self.gain = 1.0
        self.n = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.n += 1
        if self.n == 10:
            self.gain = 3.0
        return x * self.gain


@hostile("A", rec={"x": normal(2)}, passes=6)
class ListOfSetPoints:
    """A list that is popped: way points."""

    def __init__(self) -> None:
        self.points = [[0.0, 0.0]] * 6 + [[1.0, -1.0]] * 8

    def __call__(self, x: Tensor) -> Tensor:
        target = torch.tensor(self.points.pop(0) if self.points else [1.0, -1.0])
        return target - x


@hostile("A", rec={"x": fixed([0.2, 0.4])}, fresh={"x": uniform(0.5, 2.0, 2)}, passes=5)
class TimeOutInSteps:
    """Counts ticks of stillness in an int; reset by a tensor that Python looks at."""

    def __init__(self) -> None:
        self.still = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.still = self.still + 1 if x.norm().item() < 1.0 else 0
        return x * (0.0 if self.still > 20 else 1.0) + float(self.still == 0)


@hostile("A", rec={"x": normal(2)}, passes=4)
class ExponentOfTicks:
    """A discount in a float that gets smaller."""

    def __init__(self) -> None:
        self.discount = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        self.discount *= 0.97
        return torch.mul(x, self.discount)


@hostile("A", rec={"x": normal(2)}, passes=4)
class SineOfSteps:
    """A counter that goes through NumPy."""

    def __init__(self) -> None:
        self.i = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.i += 1
        return x + torch.as_tensor(np.sin(0.3 * self.i), dtype=torch.float32)


@hostile("A", rec={"x": normal(2)}, passes=4, backends=("onnx", "pt2"))
class ShapeGrows:
    """A history that is averaged while it grows."""

    def __init__(self) -> None:
        self.past: list[Tensor] = []

    def __call__(self, x: Tensor) -> Tensor:
        self.past.append(x)
        return torch.stack(self.past).mean(0)


@hostile("A", rec={"x": normal(2)}, passes=1, in_tests=True)
class OnePassCounter:
    """One pass of a counter."""

    def __init__(self) -> None:
        self.k = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.k += 1
        return x * self.k
