"""State without annotation that moves: it has to become feedback by itself, and be proved."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import flags, integers, normal, uniform
from attacks.registry import ALL, clean


@clean("A", rec={"obs": normal(1, 6)}, backends=ALL, in_tests=True)
class Memory(nn.Module):
    """rsl_rl's recurrent module: the hidden state starts as None."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(6, 8)
        self.head = nn.Linear(8, 2)
        self.hidden_state = None

    def forward(self, obs: Tensor) -> Tensor:
        out, self.hidden_state = self.rnn(obs.unsqueeze(0), self.hidden_state)
        return self.head(out.squeeze(0))


@clean("A", rec={"obs": normal(1, 5)}, passes=5)
class LstmPair(nn.Module):
    """A tuple of states that starts as None."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 7, num_layers=2)
        self.out = nn.Linear(7, 3)
        self.hidden = None

    def forward(self, obs: Tensor) -> Tensor:
        y, self.hidden = self.lstm(obs.unsqueeze(0), self.hidden)
        return self.out(y[0])


@clean("A", rec={"x": normal(2, 4)}, backends=("jit", "onnx"))
class CellState(nn.Module):
    """`self.h = h_new` from zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 6)
        self.h = torch.zeros(2, 6)

    def forward(self, x: Tensor) -> Tensor:
        h_new = self.cell(x, self.h)
        self.h = h_new
        return h_new.tanh()


@clean("A", rec={"x": normal(1, 4)}, passes=6)
class LstmCellList(nn.Module):
    """Layers whose states lie in a list of tuples."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.LSTMCell(4, 5), nn.LSTMCell(5, 5)])
        self.states = [(torch.zeros(1, 5), torch.zeros(1, 5)) for _ in self.cells]

    def forward(self, x: Tensor) -> Tensor:
        for i, cell in enumerate(self.cells):
            h, c = cell(x, self.states[i])
            self.states[i] = (h, c)
            x = h
        return x * 2


@clean("A", rec={"obs": normal(1, 3)}, passes=7)
class DequeHistory:
    """A deque of the last four observations, filled with zeros."""

    def __init__(self) -> None:
        self.buf = collections.deque([torch.zeros(1, 3) for _ in range(4)], maxlen=4)
        self.net = nn.Linear(12, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        self.buf.append(obs)
        return self.net(torch.cat(list(self.buf), dim=-1))


@clean("A", rec={"obs": normal(1, 3)}, passes=7)
class ListHistory:
    """A list that is cut at its front."""

    def __init__(self) -> None:
        self.past = [torch.zeros(1, 3)] * 3
        self.net = nn.Linear(9, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        self.past = [*self.past[1:], obs]
        return self.net(torch.cat(self.past, -1)).relu()


@clean("A", rec={"obs": normal(1, 3)}, passes=6, backends=("jit", "onnx", "pt2"), in_tests=True)
class RollBuffer:
    """legged_gym's history: roll, then write the newest."""

    def __init__(self) -> None:
        self.hist = torch.zeros(1, 5, 3)
        self.enc = nn.Linear(15, 4)

    def __call__(self, obs: Tensor) -> Tensor:
        self.hist = torch.roll(self.hist, -1, dims=1)
        self.hist[:, -1] = obs
        return self.enc(self.hist.flatten(1))


@clean("A", rec={"obs": normal(1, 3)}, passes=5)
class CatBuffer:
    """The history as a cat of what is left and what is new."""

    def __init__(self) -> None:
        self.hist = torch.zeros(1, 12)

    def __call__(self, obs: Tensor) -> Tensor:
        self.hist = torch.cat([self.hist[:, 3:], obs], dim=1)
        return self.hist.view(1, 4, 3).mean(1)


@clean("A", rec={"vel": normal(1, 2)}, passes=5, in_tests=True)
class GaitClock:
    """A phase as a 0-dim tensor with `+=`."""

    def __init__(self) -> None:
        self.phase = torch.tensor(0.0)

    def __call__(self, vel: Tensor) -> Tensor:
        self.phase += 0.02 * 1.7
        self.phase %= 1.0
        clock = torch.stack(
            [torch.sin(2 * torch.pi * self.phase), torch.cos(2 * torch.pi * self.phase)]
        )
        return torch.cat([vel, clock.unsqueeze(0)], -1)


@clean("A", rec={"x": normal(3)}, passes=4, backends=("jit", "onnx"), in_tests=True)
class TensorCounter:
    """A step counter in a tensor of int64."""

    def __init__(self) -> None:
        self.steps = torch.zeros(1, dtype=torch.long)

    def __call__(self, x: Tensor) -> Tensor:
        self.steps = self.steps + 1
        return x * torch.clamp(self.steps.float() / 5.0, max=1.0)


@clean("A", rec={"a": normal(1, 4)}, passes=4, in_tests=True)
class ActionFilter:
    """A low pass over actions."""

    def __init__(self) -> None:
        self.y = torch.zeros(1, 4)

    def __call__(self, a: Tensor) -> Tensor:
        self.y = 0.8 * self.y + 0.2 * a
        return self.y.clamp(-1, 1)


@clean("A", rec={"a": normal(1, 4)}, passes=5)
class Butterworth:
    """Second order, states in a dict."""

    def __init__(self) -> None:
        self.s = {k: torch.zeros(1, 4) for k in ("x1", "x2", "y1", "y2")}

    def __call__(self, a: Tensor) -> Tensor:
        s = self.s
        y = 0.0675 * a + 0.1349 * s["x1"] + 0.0675 * s["x2"] + 1.143 * s["y1"] - 0.4128 * s["y2"]
        self.s = {"x1": a, "x2": s["x1"], "y1": y, "y2": s["y1"]}
        return y * 1.5


@clean("A", rec={"z": normal(1, 2)}, passes=5, in_tests=True)
class KalmanFilter:
    """Position and velocity with a covariance."""

    def __init__(self) -> None:
        self.x = torch.zeros(2, 1)
        self.p = torch.eye(2)
        self.f = torch.tensor([[1.0, 0.1], [0.0, 1.0]])
        self.r = 0.5 * torch.eye(2)

    def __call__(self, z: Tensor) -> Tensor:
        x = self.f @ self.x
        p = self.f @ self.p @ self.f.T + 0.01 * torch.eye(2)
        k = p @ torch.linalg.inv(p + self.r)
        self.x = x + k @ (z.T - x)
        self.p = (torch.eye(2) - k) @ p
        return self.x.T.clone()


@clean("A", rec={"gyro": normal(1, 3), "acc": normal(1, 3, s=0.2)}, passes=6)
class ComplementaryFilter:
    """An IMU integrator."""

    def __init__(self) -> None:
        self.rp = torch.zeros(1, 2)

    def __call__(self, gyro: Tensor, acc: Tensor) -> Tensor:
        acc = acc + torch.tensor([0.0, 0.0, 9.81])
        from_acc = torch.stack(
            [torch.atan2(acc[:, 1], acc[:, 2]), torch.atan2(-acc[:, 0], acc[:, 2])], -1
        )
        self.rp = 0.98 * (self.rp + 0.01 * gyro[:, :2]) + 0.02 * from_acc
        return self.rp * 57.3


@clean("A", rec={"q": normal(1, 3), "target": normal(1, 3)}, passes=4)
class PidController:
    """Integral and last error."""

    def __init__(self) -> None:
        self.i = torch.zeros(1, 3)
        self.e = torch.zeros(1, 3)

    def __call__(self, q: Tensor, target: Tensor) -> Tensor:
        e = target - q
        self.i = (self.i + e * 0.01).clamp(-0.5, 0.5)
        d = (e - self.e) / 0.01
        self.e = e
        return 20 * e + 3 * self.i + 0.05 * d


@dataclasses.dataclass
class _Estimate:
    mean: Tensor
    count: Tensor


@clean("A", rec={"x": normal(4)}, passes=5)
class RunningMean:
    """A dataclass of states."""

    def __init__(self) -> None:
        self.est = _Estimate(torch.zeros(4), torch.zeros(()))

    def __call__(self, x: Tensor) -> Tensor:
        self.est.count = self.est.count + 1
        self.est.mean = self.est.mean + (x - self.est.mean) / self.est.count
        return x - self.est.mean


@clean("A", rec={"x": normal(4)}, passes=4)
def closure_low_pass():
    """A closure with `nonlocal`."""
    held = torch.zeros(4)

    def step(x: Tensor) -> Tensor:
        nonlocal held
        held = held.lerp(x, 0.25)
        return held + x

    return step


_TRAIL: dict[str, Tensor] = {}


@clean("A", rec={"x": normal(2)}, passes=4)
def state_in_a_global():
    """A dict of the module."""
    _TRAIL["v"] = torch.zeros(2)

    def step(x: Tensor) -> Tensor:
        _TRAIL["v"] = 0.9 * _TRAIL["v"] + x
        return _TRAIL["v"].sin()

    return step


@clean("A", rec={"x": normal(3)}, passes=4, style="method")
class MethodWithState:
    """`annotate.method` on a method that keeps a tensor."""

    def __init__(self) -> None:
        self.v = torch.zeros(3)

    def step(self, x: Tensor) -> Tensor:
        self.v = self.v * 0.5 + x
        out = self.v.tanh()
        return out


@clean("A", rec={"x": normal(1, 4)}, passes=4, style="module")
class FollowedBuffers(nn.Module):
    """`annotate.module` with buffers that are replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.register_buffer("h", torch.zeros(1, 4))

    def forward(self, x: Tensor) -> Tensor:
        self.h = self.cell(x, self.h)
        return self.h - 0.5


@clean("A", rec={"x": normal(1, 4)}, passes=4, in_tests=True)
class BufferInPlace(nn.Module):
    """A buffer written in place and followed by nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("h", torch.full((1, 4), 0.3))

    def forward(self, x: Tensor) -> Tensor:
        self.h.mul_(0.7).add_(x)
        return self.h.sigmoid()


@clean("A", rec={"x": normal(3), "reset": flags(0.3, 1)}, passes=6)
class ResetByMask:
    """A state that a flag sets to zero, as environments do."""

    def __init__(self) -> None:
        self.acc = torch.zeros(3)

    def __call__(self, x: Tensor, reset: Tensor) -> Tensor:
        self.acc = torch.where(reset, torch.zeros_like(self.acc), self.acc) + x
        return self.acc * 0.5


@clean("A", rec={"pos": normal(1, 3)}, passes=4)
class FiniteDifference:
    """Velocity from the last position."""

    def __init__(self) -> None:
        self.prev = torch.zeros(1, 3)

    def __call__(self, pos: Tensor) -> Tensor:
        v = (pos - self.prev) * 50
        self.prev = pos
        return v


@clean("A", rec={"c": flags(0.5, 1, 4)}, passes=6)
class AirTime:
    """Contacts that change."""

    def __init__(self) -> None:
        self.t = torch.zeros(1, 4)

    def __call__(self, c: Tensor) -> Tensor:
        self.t = torch.where(c, torch.zeros_like(self.t), self.t + 0.02)
        return self.t * 10


@clean("A", rec={"x": normal(2)}, passes=5)
class ArrayState:
    """NumPy code with a state, as simulators have it."""

    def __init__(self) -> None:
        self.v = np.zeros(2, np.float32)

    def __call__(self, x: Tensor) -> Tensor:
        a = x.numpy()
        self.v = np.float32(0.9) * self.v + np.float32(0.1) * a
        return torch.from_numpy(np.tanh(self.v))


@clean("A", rec={"i": integers(0, 4, 1)}, passes=6)
class VisitCounter:
    """How often each of four was seen."""

    def __init__(self) -> None:
        self.seen = torch.zeros(4)

    def __call__(self, i: Tensor) -> Tensor:
        self.seen = self.seen.index_add(0, i, torch.ones(1))
        return self.seen / self.seen.sum()


@clean("A", rec={"x": normal(1, 2)}, passes=5)
class WarmedUp:
    """A state that is not at its zero when recording begins, in both instances alike."""

    def __init__(self) -> None:
        self.h = torch.zeros(1, 2)
        for k in range(5):
            self(torch.full((1, 2), 0.1 * k))

    def __call__(self, x: Tensor) -> Tensor:
        self.h = 0.7 * self.h + x
        return self.h * 1.0


@clean("A", rec={"x": uniform(0.5, 2.0, 3)}, passes=5)
class PeakDetector:
    """A maximum that leaks."""

    def __init__(self) -> None:
        self.peak = torch.zeros(3)

    def __call__(self, x: Tensor) -> Tensor:
        self.peak = torch.maximum(self.peak * 0.95, x)
        return x / self.peak
