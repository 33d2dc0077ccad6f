"""Memory in tensors, as filters, policies and estimators have it."""

from __future__ import annotations

import collections
import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import flags, integers, normal, uniform
from attacks.registry import ALL, clean


@clean("A", rec={"action": normal(1, 4)}, style="method", backends="onnx")
class BcEmaAction:
    """Exponential smoothing of actions."""

    def __init__(self, alpha: float = 0.3) -> None:
        self.alpha, self.smoothed = alpha, torch.zeros(1, 4)

    def step(self, action: Tensor) -> Tensor:
        self.smoothed = self.alpha * action + (1 - self.alpha) * self.smoothed
        return self.smoothed


@clean("A", rec={"obs": normal(1, 5)}, style="module", backends=("jit", "onnx"), passes=5)
class BcGruHiddenNone(nn.Module):
    """A GRU whose hidden state is None until the first tick."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(5, 8, batch_first=True), nn.Linear(8, 2)
        self.hidden = None

    def forward(self, obs: Tensor) -> Tensor:
        out, self.hidden = self.rnn(obs.unsqueeze(1), self.hidden)
        return self.head(out.squeeze(1))


@clean("A", rec={"obs": normal(1, 5)}, backends="jit", passes=5)
class BcLstmLazyState(nn.Module):
    """An LSTM policy: zeros are made in the first tick, by the size of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(5, 6, num_layers=2), nn.Linear(6, 2)
        self.state: tuple[Tensor, Tensor] | None = None

    def forward(self, obs: Tensor) -> Tensor:
        if self.state is None:
            zeros = torch.zeros(2, obs.shape[0], 6)
            self.state = (zeros, zeros.clone())
        out, self.state = self.rnn(obs[None], self.state)
        return self.head(out[0])


@clean("A", rec={"obs": normal(3)}, passes=6, backends=("jit", "pt2"))
class BcDequePrefilled:
    """The last five observations, zeros at first, stacked and mixed."""

    def __init__(self) -> None:
        self.history = collections.deque([torch.zeros(3) for _ in range(5)], maxlen=5)
        self.net = nn.Linear(15, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        self.history.append(obs)
        return self.net(torch.stack(list(self.history)).flatten())


@clean("A", rec={"obs": normal(2, 3)}, backends="onnx", style="method", passes=5)
class BcRolledHistory:
    """A history that is rolled, and its newest row written."""

    def __init__(self) -> None:
        self.buffer = torch.zeros(2, 4, 3)

    def step(self, obs: Tensor) -> Tensor:
        self.buffer = torch.roll(self.buffer, shifts=-1, dims=1)
        self.buffer[:, -1] = obs
        return self.buffer.reshape(2, -1)


@clean("A", rec={"freq": uniform(1.0, 3.0, 1)}, backends=ALL, passes=4)
class BcPhaseSinCos:
    """A phase that wraps, offset for each leg, as sine and cosine."""

    def __init__(self) -> None:
        self.phase = torch.zeros(1)
        self.offsets = torch.tensor([0.0, 0.5, 0.5, 0.0])

    def __call__(self, freq: Tensor) -> Tensor:
        self.phase = torch.remainder(self.phase + 0.02 * freq, 1.0)
        angle = 2 * math.pi * (self.phase + self.offsets)
        return torch.cat([torch.sin(angle), torch.cos(angle)])


@clean("A", rec={"u": normal(1, 2)}, backends="pt2", passes=6)
class BcActuatorDelay:
    """A delay line of three ticks that is shifted by `cat`."""

    def __init__(self) -> None:
        self.line = torch.zeros(3, 2)

    def __call__(self, u: Tensor) -> Tensor:
        delayed = self.line[:1]
        self.line = torch.cat([self.line[1:], u], 0)
        return delayed


@clean("A", rec={"speed": uniform(0, 1, 1)}, backends=("jit", "onnx"), passes=6)
class BcGaitTable:
    """A table of contacts, indexed by a tick count in a tensor."""

    def __init__(self) -> None:
        self.table = torch.tensor([[1.0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]])
        self.tick = torch.zeros(1, dtype=torch.long)

    def __call__(self, speed: Tensor) -> Tensor:
        contact = self.table[self.tick % self.table.shape[0]]
        self.tick = self.tick + 1
        return contact * speed


@clean("A", rec={"x": normal(3), "trigger": flags(0.3, 3)}, backends="jit", passes=5)
class BcCountdown:
    """A trigger holds the output for some ticks, per channel."""

    def __init__(self) -> None:
        self.left = torch.zeros(3)

    def __call__(self, x: Tensor, trigger: Tensor) -> Tensor:
        self.left = torch.where(
            trigger, torch.full_like(self.left, 3.0), (self.left - 1).clamp(min=0)
        )
        return torch.where(self.left > 0, torch.zeros_like(x), x)


@clean("A", rec={"z": normal(4)}, backends="onnx", passes=5)
class BcAlphaBeta:
    """Alpha-beta filters of four channels."""

    def __init__(self) -> None:
        self.x, self.v = torch.zeros(4), torch.zeros(4)

    def __call__(self, z: Tensor) -> dict:
        predicted = self.x + 0.02 * self.v
        residual = z - predicted
        self.x = predicted + 0.5 * residual
        self.v = self.v + 0.1 / 0.02 * residual
        return {"position": self.x, "velocity": self.v}


@clean("A", rec={"x": normal(2)}, backends="jit", passes=5)
class BcBiquadSections:
    """Second-order sections one after another, each with its delays in a list."""

    SECTIONS = ((0.1, 0.2, 0.1, -0.5, 0.2), (1.0, -0.4, 1.0, -0.3, 0.1), (0.5, 0.5, 0.0, 0.1, 0.0))

    def __init__(self) -> None:
        self.delays = [[torch.zeros(2), torch.zeros(2)] for _ in self.SECTIONS]

    def __call__(self, x: Tensor) -> Tensor:
        for (b0, b1, b2, a1, a2), delay in zip(self.SECTIONS, self.delays):
            y = b0 * x + delay[0]
            delay[0] = b1 * x - a1 * y + delay[1]
            delay[1] = b2 * x - a2 * y
            x = y
        return x


@clean("A", rec={"u": normal(2, s=0.3), "z": normal(2)}, backends="jit", passes=4)
class BcUnicycleEkf:
    """An extended Kalman filter of a unicycle that measures its position."""

    def __init__(self) -> None:
        self.x, self.P = torch.zeros(3), 0.1 * torch.eye(3)
        self.Q, self.R, self.H = 0.01 * torch.eye(3), 0.2 * torch.eye(2), torch.eye(2, 3)

    def __call__(self, u: Tensor, z: Tensor) -> Tensor:
        v, w = u.unbind()
        th = self.x[2]
        x = self.x + 0.1 * torch.stack([v * th.cos(), v * th.sin(), w])
        jac = torch.eye(3)
        jac[0, 2], jac[1, 2] = -0.1 * v * th.sin(), 0.1 * v * th.cos()
        p = jac @ self.P @ jac.mT + self.Q
        s = self.H @ p @ self.H.mT + self.R
        gain = torch.linalg.solve(s, self.H @ p).mT
        self.x = x + gain @ (z - self.H @ x)
        self.P = (torch.eye(3) - gain @ self.H) @ p
        return self.x


@clean("A", rec={"ref": normal(3), "y": normal(3)}, backends="onnx", style="method", passes=5)
class BcPidBackCalculation:
    """A PID with anti-windup by back-calculation and a filtered derivative."""

    def __init__(self) -> None:
        self.i, self.d, self.last = torch.zeros(3), torch.zeros(3), torch.zeros(3)

    def step(self, ref: Tensor, y: Tensor) -> Tensor:
        error = ref - y
        self.d = 0.8 * self.d + 0.2 * (error - self.last) / 0.05
        raw = 2.0 * error + self.i + 0.1 * self.d
        u = raw.clamp(-1.5, 1.5)
        self.i = self.i + 0.05 * (0.4 * error + 0.9 * (u - raw))
        self.last = error
        return u


@clean("A", rec={"q": normal(1, 6)}, style="module", backends=("pt2", "jit"), passes=4)
class BcEncoderVelocity(nn.Module):
    """Velocities from encoders: the last position is a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(1, 6))
        self.register_buffer("velocity", torch.zeros(1, 6), persistent=False)
        self.net = nn.Linear(12, 3)

    def forward(self, q: Tensor) -> Tensor:
        self.velocity.mul_(0.7).add_(0.3 * (q - self.last) * 50)
        self.last.copy_(q)
        return self.net(torch.cat([q, 0.05 * self.velocity], -1))


@clean("A", rec={"target": normal(3)}, backends="jit", passes=5)
class BcSecondOrderActuator:
    """An actuator of second order, four substeps a tick."""

    def __init__(self) -> None:
        self.q, self.dq = torch.zeros(3), torch.zeros(3)

    def __call__(self, target: Tensor) -> tuple:
        for _ in range(4):
            acc = 400.0 * (target - self.q) - 2 * 0.7 * 20.0 * self.dq
            self.dq = self.dq + 0.005 * acc
            self.q = self.q + 0.005 * self.dq
        return self.q, self.dq


@clean("A", rec={"fl": normal(3), "fr": normal(3), "rl": normal(3)}, backends="onnx", passes=4)
class BcStateByLeg:
    """A dict of integrators by the names of legs."""

    def __init__(self) -> None:
        self.position = {leg: torch.zeros(3) for leg in ("fl", "fr", "rl")}

    def __call__(self, fl: Tensor, fr: Tensor, rl: Tensor) -> dict:
        for leg, velocity in {"fl": fl, "fr": fr, "rl": rl}.items():
            self.position[leg] = 0.99 * self.position[leg] + 0.01 * velocity
        return {f"{leg}_pos": p for leg, p in self.position.items()}


class _OnePole:
    __slots__ = ("alpha", "y")

    def __init__(self, alpha: float, size: int) -> None:
        self.alpha, self.y = alpha, torch.zeros(size)

    def __call__(self, x: Tensor) -> Tensor:
        self.y = torch.lerp(self.y, x, self.alpha)
        return self.y


@clean("A", rec={"acc": normal(3), "gyro": normal(3)}, backends=("jit", "onnx"), passes=4)
class BcSlotsFilters:
    """Filters with slots: a band is the difference of two."""

    def __init__(self) -> None:
        self.fast, self.slow, self.rate = _OnePole(0.6, 3), _OnePole(0.05, 3), _OnePole(0.3, 3)

    def __call__(self, acc: Tensor, gyro: Tensor) -> Tensor:
        return torch.cat([self.fast(acc) - self.slow(acc), self.rate(gyro)])


@clean("A", rec={"v": normal(2)}, backends="pt2", passes=4)
class BcPropertyState:
    """The pose behind a property with a setter that wraps the heading."""

    def __init__(self) -> None:
        self._pose = torch.zeros(3)

    @property
    def pose(self) -> Tensor:
        return self._pose

    @pose.setter
    def pose(self, value: Tensor) -> None:
        heading = torch.atan2(torch.sin(value[2:]), torch.cos(value[2:]))
        self._pose = torch.cat([value[:2], heading])

    def __call__(self, v: Tensor) -> Tensor:
        c, s = torch.cos(self.pose[2]), torch.sin(self.pose[2])
        self.pose = self.pose + 0.1 * torch.stack([v[0] * c, v[0] * s, v[1]])
        return self.pose


@dataclasses.dataclass(frozen=True)
class _Belief:
    mean: Tensor
    var: Tensor

    def update(self, z: Tensor) -> _Belief:
        gain = self.var / (self.var + 0.5)
        return dataclasses.replace(
            self, mean=self.mean + gain * (z - self.mean), var=(1 - gain) * self.var + 0.02
        )


@clean("A", rec={"z": normal(5)}, backends="jit", style="method", passes=5)
class BcReplacedBelief:
    """A frozen belief that is replaced in every tick."""

    def __init__(self) -> None:
        self.belief = _Belief(torch.zeros(5), torch.ones(5))

    def step(self, z: Tensor) -> Tensor:
        self.belief = self.belief.update(z)
        return self.belief.mean / self.belief.var.sqrt()


class _HistoryMixin:
    def __init__(self, *args, horizon: int = 3, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.horizon = horizon
        self.reset()

    def reset(self) -> None:
        self.past = [torch.zeros(1, 2) for _ in range(self.horizon)]

    def forward(self, obs: Tensor) -> Tensor:
        action = super().forward(torch.cat([obs, *self.past], -1))
        self.past = [*self.past[1:], action]
        return action


class _Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@clean("A", rec={"obs": normal(1, 4)}, style="module", backends="jit", passes=6)
class BcMixinHistory(_HistoryMixin, _Base):
    """Past actions come from a mixin around the policy's `forward`."""


@clean("A", rec={"obs": normal(1, 4)}, backends=("jit", "onnx"), passes=6)
class BcTemporalEnsemble(nn.Module):
    """ACT's temporal ensembling: overlapping chunks of actions, weighted by age."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 8)
        self.register_buffer("chunks", torch.zeros(4, 4, 2))
        self.register_buffer("weights", torch.exp(-0.1 * torch.arange(4.0)))

    def forward(self, obs: Tensor) -> Tensor:
        shifted = torch.cat([self.chunks[:, 1:], torch.zeros(4, 1, 2)], 1)
        self.chunks = torch.cat([self.net(obs).view(1, 4, 2), shifted[:-1]], 0)
        return (self.weights[:, None] * self.chunks[:, 0]).sum(0) / self.weights.sum()


@clean("A", rec={"x": normal(3)}, backends="jit", passes=6)
class BcRingMean:
    """A moving average: a ring with its write position in a tensor."""

    def __init__(self) -> None:
        self.ring, self.at = torch.zeros(4, 3), torch.zeros(1, dtype=torch.int64)

    def __call__(self, x: Tensor) -> Tensor:
        self.ring = self.ring.index_copy(0, self.at, x[None])
        self.at = (self.at + 1) % 4
        return self.ring.mean(0)


@clean("A", rec={"frame": integers(0, 256, 1, 8, 8, dtype=torch.uint8)}, backends="onnx", passes=5)
class BcFrameStack(nn.Module):
    """Three stacked grey frames and a small encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.frames = torch.zeros(1, 3, 8, 8)
        self.net = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 2)
        )

    def forward(self, frame: Tensor) -> Tensor:
        self.frames = torch.cat([self.frames[:, 1:], frame.float().unsqueeze(1) / 255], 1)
        return self.net(self.frames)


@clean("A", rec={"obs": normal(1, 6)}, backends="jit", passes=5)
class BcSlidingAttention(nn.Module):
    """Keys and values of the last four ticks; the new query attends to them."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(6, 24), nn.Linear(8, 2)
        self.k, self.v = torch.zeros(1, 4, 8), torch.zeros(1, 4, 8)

    def forward(self, obs: Tensor) -> Tensor:
        q, k, v = self.qkv(obs).unsqueeze(1).chunk(3, -1)
        self.k, self.v = torch.cat([self.k[:, 1:], k], 1), torch.cat([self.v[:, 1:], v], 1)
        return self.out(F.scaled_dot_product_attention(q, self.k, self.v).squeeze(1))


@clean("A", rec={"obs": normal(1, 4)}, backends="onnx", passes=4, style="module")
class BcCellStack(nn.Module):
    """GRU cells one above the other, their states in a list of Nones at first."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(4, 6), nn.GRUCell(6, 6)])
        self.h: list[Tensor | None] = [None] * len(self.cells)

    def forward(self, obs: Tensor) -> Tensor:
        x = obs
        for i, cell in enumerate(self.cells):
            self.h[i] = x = cell(x, self.h[i])
        return x


@clean("A", rec={"u": normal(2), "y": normal(2)}, backends="pt2", passes=5)
class BcDisturbanceObserver:
    """A disturbance is estimated from what the model did not foresee, and taken off."""

    def __init__(self) -> None:
        self.A, self.B = (
            torch.tensor([[0.9, 0.1], [0.0, 0.8]]),
            torch.tensor([[0.0, 0.1], [0.2, 0.0]]),
        )
        self.last_y, self.last_u, self.d = torch.zeros(2), torch.zeros(2), torch.zeros(2)

    def __call__(self, u: Tensor, y: Tensor) -> Tensor:
        surprise = y - self.A @ self.last_y - self.B @ self.last_u
        self.d = 0.9 * self.d + 0.1 * surprise
        command = u - self.d
        self.last_y, self.last_u = y, command
        return command


@clean("A", rec={"goal": normal(3)}, backends="jit", passes=5)
class BcSsmPolicy:
    """A diagonal state-space layer, discretised once."""

    def __init__(self) -> None:
        rate = -torch.exp(torch.linspace(-1, 1, 6))
        self.a = torch.exp(0.1 * rate)
        self.b = ((self.a - 1) / rate)[:, None] * torch.randn(6, 3)
        self.c, self.h = torch.randn(2, 6), torch.zeros(6)

    def __call__(self, goal: Tensor) -> Tensor:
        self.h = self.a * self.h + self.b @ goal
        return F.gelu(self.c @ self.h)


@clean("A", rec={"button": flags(0.5, 2), "x": normal(2)}, backends=("jit", "onnx"), passes=6)
class BcToggle:
    """A button's rising edge toggles a channel."""

    def __init__(self) -> None:
        self.was = torch.zeros(2, dtype=torch.bool)
        self.on = torch.zeros(2, dtype=torch.bool)

    def __call__(self, button: Tensor, x: Tensor) -> Tensor:
        rising = button & ~self.was
        self.on = torch.logical_xor(self.on, rising)
        self.was = button
        return torch.where(self.on, x, -x)


@clean("A", rec={"obs": normal(1, 4)}, backends="jit", passes=4)
class BcScratchOverwritten:
    """A preallocated row of features, every part of it written in each tick."""

    def __init__(self) -> None:
        self.row = torch.empty(1, 12)
        self.net = nn.Linear(12, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        self.row[:, :4] = obs
        self.row[:, 4:8] = obs.sin()
        self.row[:, 8:] = obs.square() * 0.1
        return self.net(self.row)


@clean("A", rec={"x": normal(1, 3)}, backends="onnx", passes=5)
class BcOnlineNormaliser(nn.Module):
    """A normaliser that learns as it runs: count, mean and M2 in buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor(1e-2))
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("m2", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.count = self.count + 1
        delta = x[0] - self.mean
        self.mean = self.mean + delta / self.count
        self.m2 = self.m2 + delta * (x[0] - self.mean)
        return (x - self.mean) / torch.sqrt(self.m2 / self.count + 1e-2)


@clean("A", rec={"obs": normal(1, 4), "done": flags(0.3, 1)}, backends="jit", passes=5)
class BcRssm(nn.Module):
    """A world model's deterministic state that is masked by `done`, and the mode of its latents."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.post, self.actor = nn.GRUCell(10, 8), nn.Linear(12, 6), nn.Linear(14, 2)
        self.embed = nn.Linear(4, 4)
        self.h, self.z = torch.zeros(1, 8), torch.zeros(1, 6)

    def forward(self, obs: Tensor, done: Tensor) -> Tensor:
        keep = (~done).float().unsqueeze(-1)
        e = self.embed(obs)
        self.h = self.cell(torch.cat([self.z * keep, e], -1), self.h * keep)
        self.z = self.post(torch.cat([self.h, e], -1)).view(1, 2, 3).softmax(-1).flatten(1)
        return self.actor(torch.cat([self.h, self.z], -1)).tanh()
