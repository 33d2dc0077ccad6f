"""Clean code in the habits of many hands: integrators, ports of one name, watchers, helpers."""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
import logging
import sys
import time
import typing

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import array, flags, integers, normal, uniform
from attacks.registry import clean

three = ("jit", "onnx", "pt2")
log = logging.getLogger(__name__)


@clean("A", rec={"v": normal(1, 3)}, passes=5, backends=three)
class DeadReckoning:
    def __init__(self) -> None:
        self.position = torch.zeros(1, 3)

    def __call__(self, v: Tensor) -> Tensor:
        self.position = self.position + v * 0.02
        return self.position


@clean("A", rec={"x": normal(2)}, passes=4)
class RunningTotal:
    def __init__(self) -> None:
        self.total = torch.zeros(2)

    def __call__(self, x: Tensor) -> Tensor:
        total = self.total + x
        self.total = total
        return total


@clean("A", rec={"x": normal(1, 4)}, passes=5, backends=three)
class ResidualState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 4)
        self.h = torch.zeros(1, 4)

    def forward(self, x: Tensor) -> Tensor:
        self.h = torch.tanh(self.net(x) + self.h)
        return self.h


@clean("A", rec={"x": normal(3)}, passes=5)
class PeakHold:
    def __init__(self) -> None:
        self.peak = torch.full((3,), -1e3)

    def __call__(self, x: Tensor) -> Tensor:
        self.peak = torch.maximum(self.peak, x)
        return self.peak


@clean("A", rec={"x": normal(3), "reset": flags(0.3, 1)}, passes=6)
class ResettableIntegral:
    def __init__(self) -> None:
        self.s = torch.zeros(3)

    def __call__(self, x: Tensor, reset: Tensor) -> Tensor:
        self.s = torch.where(reset, torch.zeros(3), self.s + x)
        return self.s


@clean("A", rec={"a": uniform(-1, 1, 1, 2)}, passes=5)
class StrangeRateLimiter:
    def __init__(self) -> None:
        self.last = torch.zeros(1, 2)

    def __call__(self, a: Tensor) -> Tensor:
        self.last = self.last + (a - self.last).clamp(-0.1, 0.1)
        return self.last


@clean("A", rec={"x": normal(2)}, passes=5)
class SecondOrder:
    """A biquad with a tuple of states."""

    def __init__(self) -> None:
        self.z = (torch.zeros(2), torch.zeros(2))

    def __call__(self, x: Tensor) -> Tensor:
        a, b = self.z
        y = 0.2 * x + a
        self.z = (0.4 * x + 0.5 * y + b, 0.2 * x - 0.1 * y)
        return y


@clean(rec={"x": normal(1, 3)}, passes=3, backends=three)
def same_name_in_and_out(x: Tensor) -> dict[str, Tensor]:
    return {"x": x.clamp(-1, 1)}


@clean(rec={"q": normal(1, 3), "dq": normal(1, 3)}, passes=3, backends=three)
def joint_state_normalised(q: Tensor, dq: Tensor) -> dict[str, Tensor]:
    return {"q": q * 2.0, "dq": dq * 0.05, "obs": torch.cat([q, dq], -1)}


class Observation(typing.NamedTuple):
    q: Tensor
    goal: Tensor


@dataclasses.dataclass
class Command:
    torque: Tensor
    stiff: Tensor


@clean(rec={"q": normal(1, 3), "goal": normal(1, 3)}, passes=3)
class TypedInterfaces:
    def __init__(self) -> None:
        self.net = nn.Linear(6, 3)

    def act(self, obs: Observation) -> Command:
        torque = self.net(torch.cat(obs, -1))
        return Command(torque=torque, stiff=torque.abs() * 0.1)

    def __call__(self, q: Tensor, goal: Tensor) -> dict[str, Tensor]:
        return dataclasses.asdict(self.act(Observation(q, goal)))


@clean(rec={"x": normal(1, 4)}, passes=4)
class ProfiledPolicy:
    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.stats: dict[str, list[float]] = collections.defaultdict(list)

    def timed(name):
        def wrap(function):
            @functools.wraps(function)
            def inner(self, *args):
                began = time.monotonic()
                try:
                    return function(self, *args)
                finally:
                    self.stats[name].append(time.monotonic() - began)

            return inner

        return wrap

    @timed("net")
    def __call__(self, x: Tensor) -> Tensor:
        return self.net(x)


@clean(rec={"x": normal(1, 4)}, passes=4)
class JsonLog:
    def __init__(self) -> None:
        self.net, self.lines = nn.Linear(4, 2), []

    def __call__(self, x: Tensor) -> Tensor:
        y = self.net(x)
        self.lines.append(json.dumps({"t": len(self.lines), "action": y.squeeze(0).tolist()}))
        return y


@clean(rec={"x": normal(1, 4)}, passes=4)
def printed_to_stderr(x: Tensor) -> Tensor:
    y = x.tanh()
    sys.stderr.write(f"action {y.numpy().round(2)}\n")
    return y


@clean(rec={"x": normal(1, 4)}, passes=5)
class KeepsTheWorst:
    """The worst observation is kept for a report after the run."""

    def __init__(self) -> None:
        self.worst, self.at = None, -1
        self.tick = 0

    def __call__(self, x: Tensor) -> Tensor:
        y = x * 0.5
        if self.worst is None or x.norm() > self.worst.norm():
            self.worst, self.at = x.clone(), self.tick
        self.tick += 1
        return y


@clean(rec={"x": normal(1, 4)}, passes=5)
class EmaForLogs:
    def __init__(self) -> None:
        self.mean = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        y = x.sigmoid()
        self.mean = 0.9 * self.mean + 0.1 * y.mean().item()
        log.info("mean %.3f", self.mean)
        return y


@clean(rec={"x": normal(1, 4)}, passes=4)
def clipped_and_told(x: Tensor) -> Tensor:
    y = x * 3
    over = (y.abs() > 2).float().mean()
    if over > 0.5:
        log.warning("more than half of the outputs are clipped: %.0f %%", 100 * over.item())
    else:
        log.debug("fine")
    return y.clamp(-2, 2)


@clean(rec={"x": normal(1, 4)}, passes=4)
def finite_or_error(x: Tensor) -> Tensor:
    if not torch.isfinite(x).all():
        raise ValueError(f"bad observation {x}")
    y = x.exp()
    np.testing.assert_equal(y.shape, (1, 4))
    return y


@clean(rec={"x": array(normal(5))}, passes=4)
def array_checked(x: np.ndarray) -> np.ndarray:
    assert x.dtype == np.float32 and x.shape == (5,)
    if np.isnan(x).any():
        raise FloatingPointError("nan")
    return np.tanh(x) * np.float32(2)


@clean(rec={"x": array(normal(5))}, passes=3)
def numpy_errstate(x: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(x) > 1e-6, np.sin(x) / x, np.float32(1))


@clean(rec={"x": array(normal(3, 4))}, passes=3)
def numpy_stacked(x: np.ndarray) -> np.ndarray:
    parts = [x[:, :2].sum(axis=1), x.max(axis=1), np.hypot(x[:, 0], x[:, 1])]
    return np.stack(parts, axis=-1).astype(np.float32).ravel()


@clean(rec={"x": normal(2, 3, 4)}, passes=3, backends=three)
def rearranged(x: Tensor) -> Tensor:
    y = x.permute(0, 2, 1).reshape(2, 12).unflatten(1, (3, 4))
    return torch.cat([y.flip(-1), torch.roll(y, 1, 1), y.movedim(0, 1).transpose(0, 1)], -1)


@clean(rec={"x": normal(1, 6)}, passes=3, style="module", backends=three)
class Inherited(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(6, 8), nn.PReLU(), nn.Linear(8, 4), nn.Hardswish())


@clean(rec={"x": normal(1, 6)}, passes=3)
class SharedWeights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enc = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.enc(x).relu(), self.enc.weight.T)


@clean(rec={"x": normal(1, 6)}, passes=3)
class CompiledLater(nn.Module):
    """`torch.jit.script` around a helper without branches."""

    def __init__(self) -> None:
        super().__init__()
        self.helper = torch.jit.script(nn.Sequential(nn.Linear(6, 4), nn.Softsign()))

    def forward(self, x: Tensor) -> Tensor:
        return self.helper(x) * 2


@clean(rec={"x": normal(1, 6)}, passes=3)
class CheckpointedPolicy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(6, 2)
        stored = {k: v * 0.5 for k, v in self.net.state_dict().items()}
        self.net.load_state_dict(stored)

    @torch.inference_mode()
    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@clean(rec={"tokens": integers(0, 20, 1, 7)}, passes=4, backends=three)
class LanguageGoal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8, padding_idx=0)
        self.rnn = nn.GRU(8, 8, batch_first=True, bidirectional=True)

    def forward(self, tokens: Tensor) -> Tensor:
        h, _ = self.rnn(self.embed(tokens))
        keep = (tokens != 0).unsqueeze(-1)
        return (h * keep).sum(1) / keep.sum(1).clamp(min=1)


@clean(rec={"x": normal(1, 4)}, passes=3, session={"max_cached_io": 2})
def bounded_cache(x: Tensor) -> Tensor:
    return x.square()
