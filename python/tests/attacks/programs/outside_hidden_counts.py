"""Counts and modes that hide: in hooks, locals of threads, environments, lengths; and branches that
only have an effect.
"""

from __future__ import annotations

import collections
import enum
import os
import threading

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import normal
from attacks.registry import clean, hostile


@hostile("A", rec={"x": normal(1, 3)}, passes=4, backends=("jit", "onnx"))
class OutsideResetEverySix:
    """The memory is cleared by a method in every sixth tick."""

    def __init__(self) -> None:
        self.t = 0
        self.reset()

    def reset(self) -> None:
        self.h = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        if self.t % 6 == 5:
            self.reset()
        self.t += 1
        self.h = 0.7 * self.h + x
        return self.h * 1.0


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideZeroedLater:
    """The same, in place."""

    def __init__(self) -> None:
        self.t, self.h = 0, torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.t += 1
        self.t == 7 and self.h.zero_()
        self.h = 0.7 * self.h + x
        return self.h * 1.0


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideEvalLater(nn.Module):
    """Dropout is switched on after six ticks, with all of it dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.t, self.drop = 0, nn.Dropout(1.0)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        self.t += 1
        if self.t > 6:
            self.drop.train()
        return x + self.drop(x)


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideGainSetLater:
    """`setattr` in a loop over a schedule."""

    def __init__(self) -> None:
        self.t, self.gain = 0, 1.0
        self.schedule = {7: ("gain", 3.0)}

    def __call__(self, x: Tensor) -> Tensor:
        self.t += 1
        if self.t in self.schedule:
            setattr(self, *self.schedule[self.t])
        return x * self.gain


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideScheduleGet:
    """A dict with a default decides: `get` of the tick."""

    def __init__(self) -> None:
        self.t, self.schedule = 0, {7: 3.0, 8: 4.0}

    def __call__(self, x: Tensor) -> Tensor:
        self.t += 1
        return x * self.schedule.get(self.t, 1.0)


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideLengthOfLog:
    """What was logged is counted, and decides."""

    def __init__(self) -> None:
        self.log: list[float] = []

    def __call__(self, x: Tensor) -> Tensor:
        self.log.append(0.0)
        return x * 2 if len(self.log) > 6 else x


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideThreadLocal:
    def __init__(self) -> None:
        self.local = threading.local()
        self.local.n = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.local.n += 1
        return x if self.local.n < 7 else x * 0


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
def outside_environment():
    os.environ["OUTSIDE_TICK"] = "0"

    def step(x: Tensor) -> Tensor:
        os.environ["OUTSIDE_TICK"] = str(int(os.environ["OUTSIDE_TICK"]) + 1)
        return x if int(os.environ["OUTSIDE_TICK"]) < 7 else -x

    return step


class _Phase(enum.Enum):
    APPROACH, GRASP, LIFT = range(3)


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideStateMachine:
    """A task's phases by the number of ticks in each."""

    def __init__(self) -> None:
        self.phase, self.ticks = _Phase.APPROACH, 0
        self.nets = {phase: nn.Linear(3, 2) for phase in _Phase}

    def __call__(self, x: Tensor) -> Tensor:
        self.ticks += 1
        if self.phase is _Phase.APPROACH and self.ticks >= 5:
            self.phase, self.ticks = _Phase.GRASP, 0
        elif self.phase is _Phase.GRASP and self.ticks >= 3:
            self.phase, self.ticks = _Phase.LIFT, 0
        return self.nets[self.phase](x)


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideMatchStatement:
    def __init__(self) -> None:
        self.n = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.n += 1
        match self.n // 7:
            case 0:
                return x
            case _:
                return x.flip(-1)


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideNumpyCounter:
    """The count is an element of a NumPy array, as gym wrappers have it."""

    def __init__(self) -> None:
        self.lengths = np.zeros(1, dtype=np.int32)

    def __call__(self, x: Tensor) -> Tensor:
        self.lengths += 1
        return x if self.lengths[0] < 7 else x * 3


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideRotatedDeque:
    """Gains that rotate; the first three are equal, and so the recording does not see it."""

    def __init__(self) -> None:
        self.gains = collections.deque([1.0, 1.0, 1.0, 1.0, 1.0, 2.0])

    def __call__(self, x: Tensor) -> Tensor:
        gain = self.gains[0]
        self.gains.rotate(-1)
        return x * gain


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideTriesToday:
    """An exception ends the start-up."""

    def __init__(self) -> None:
        self.left = iter(range(6))

    def __call__(self, x: Tensor) -> Tensor:
        try:
            next(self.left)
        except StopIteration:
            return x * 2
        return x


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
def outside_mutable_default():
    def step(x: Tensor, seen: list[int] = []) -> Tensor:  # noqa: B006
        seen.append(1)
        return x.clamp(-1, 1) if sum(seen) > 6 else x

    step.__defaults__ = ([],)
    return lambda x: step(x)


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
def outside_function_attribute():
    def step(x: Tensor) -> Tensor:
        step.calls += 1
        return x / 2 if step.calls > 6 else x

    step.calls = 0
    return lambda x: step(x)


class _Scheduled(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        _Scheduled.calls += 1
        return x * 2 if _Scheduled.calls > 6 else x * 1

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return grad


@hostile("B", rec={"x": normal(1, 3)}, passes=4)
def outside_counting_function():
    """A custom function of autograd that counts."""
    _Scheduled.calls = 0
    return lambda x: _Scheduled.apply(x)


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.n = nn.Linear(3, 3), 0

    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        return self.net(x) if self.n < 7 else x


@hostile("B", rec={"x": normal(1, 3)}, passes=4)
def outside_count_in_block():
    """A block deep inside of `nn.Sequential` counts its calls."""
    return nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Tanh(), _Block()))


@hostile("B", rec={"x": normal(1, 3)}, passes=4)
class OutsidePreHookWarmup(nn.Module):
    """A pre-hook ramps the input up."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.n = nn.Linear(3, 2), 0
        self.net.register_forward_pre_hook(self._ramp)

    def _ramp(self, module: nn.Module, given: tuple) -> tuple | None:
        self.n += 1
        return (given[0] * 0.5,) if self.n > 6 else None

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@hostile("B", rec={"x": normal(4, 3)}, passes=4)
def outside_count_in_map():
    """A counter in a function that torch calls: `vmap`."""
    n = [0]

    def row(r: Tensor) -> Tensor:
        n[0] += 1
        return r * 2 if n[0] > 6 else r

    return lambda x: torch.func.vmap(row)(x)


# Clean neighbours of the above.


@clean("H", rec={"x": normal(1, 3)}, passes=5)
class OutsideCountsForTheLog(nn.Module):
    """A hook counts and prints; nothing else reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.calls, self.shapes = nn.Linear(3, 2), 0, []
        self.net.register_forward_hook(self._watch)

    def _watch(self, module: nn.Module, given: tuple, out: Tensor) -> None:
        self.calls += 1
        self.shapes.append(tuple(out.shape))
        if self.calls % 3 == 0:
            print(f"{self.calls} calls, last shape {self.shapes[-1]}")

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@clean("H", rec={"x": normal(1, 3)}, passes=5)
class OutsideProgress:
    """A bar of progress, and times per tick for a report."""

    def __init__(self) -> None:
        self.net, self.tick, self.report = nn.Linear(3, 2), 0, {}

    def __call__(self, x: Tensor) -> Tensor:
        y = self.net(x)
        self.tick += 1
        self.report[f"tick_{self.tick}"] = tuple(y.shape)
        print("\rtick", self.tick, end="")
        return y


@clean("A", rec={"x": normal(1, 3)}, passes=5, backends=("jit", "onnx"))
class OutsideClockOut:
    """The phase is given out, too: it depends on the state alone."""

    def __init__(self) -> None:
        self.phase = torch.zeros(1)

    def __call__(self, x: Tensor) -> dict:
        self.phase = torch.remainder(self.phase + 0.1, 1.0)
        return {"y": x * torch.sin(6.28 * self.phase), "phase": self.phase}


@clean("H", rec={"x": normal(1, 3)}, passes=4)
class OutsideLazyGrid:
    """`if self.grid is None`: made in the first tick, of no input."""

    def __init__(self) -> None:
        self.grid: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        if self.grid is None:
            self.grid = torch.linspace(-1.0, 1.0, 5)
        return x.unsqueeze(-1) * self.grid


@clean("H", rec={"x": normal(1, 5, 8)}, passes=4)
class OutsidePositions(nn.Module):
    """Positional encodings that the first call caches by length."""

    def __init__(self) -> None:
        super().__init__()
        self.cache: dict[int, Tensor] = {}
        self.net = nn.Linear(8, 2)

    def _encoding(self, length: int) -> Tensor:
        if length not in self.cache:
            at = torch.arange(length).unsqueeze(1)
            rate = torch.exp(torch.arange(0, 8, 2) * -0.5)
            self.cache[length] = torch.cat([torch.sin(at * rate), torch.cos(at * rate)], -1)
        return self.cache[length]

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x + self._encoding(x.shape[1]))[:, -1]


@clean("A", rec={"policy/x": normal(1, 3)}, passes=5, style="own")
def outside_declared_state(backend: str):
    """State that is declared, over five passes."""
    h = torch.zeros(1, 3)

    def step(given):
        nonlocal h
        x = annotate.input_tensors("policy", {"x": given["policy/x"]})
        h = annotate.state_tensors("policy", {"h": h})
        h = 0.5 * h + x
        annotate.update_state("policy", {"h": h})
        y = h.tanh()
        annotate.output_tensors("policy", {"y": y}, export_with=backend)
        return {"policy/y": y}

    return step


@clean("A", rec={"x": normal(4, 3)}, passes=6, style="module", backends=("jit", "onnx"))
class OutsideMovingAverageModule(nn.Module):
    """A module whose buffer moves, told by `annotate.module`."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.average.mul_(0.9).add_(0.1 * x.mean(0))
        return x - self.average


@clean("A", rec={"x": normal(1, 2)}, passes=6)
class OutsideOutputIsMemory:
    """A filter whose output is its memory, over six passes."""

    def __init__(self) -> None:
        self.y = torch.zeros(1, 2)

    def __call__(self, x: Tensor) -> Tensor:
        self.y = self.y + 0.25 * (x - self.y)
        return self.y


@clean("G", rec={"obs": normal(1, 3), "h": normal(1, 3)}, passes=4, backends=("jit", "onnx", "pt2"))
def outside_names_in_and_out(obs: Tensor, h: Tensor) -> dict:
    """An output has the name of an input."""
    h = torch.tanh(obs + h)
    return {"h": h, "action": h * 2}
