"""Tensor-held state that rests while it is recorded."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attacks.draws import either, fixed, flags, integers, normal, row, uniform
from attacks.registry import hostile

calm = uniform(-0.3, 0.3, 1, 3)
storm = either(lambda t: t in (3, 4, 7), uniform(-4, 4, 1, 3), calm)


@hostile("A", rec={"tau": calm}, fresh={"tau": storm}, passes=4)
class ChFaultLatch:
    """An over-torque latch, kept as a flag tensor and written in place."""

    def __init__(self) -> None:
        self.tripped = torch.zeros(1, 3, dtype=torch.bool)

    def __call__(self, tau: Tensor) -> Tensor:
        self.tripped |= tau.abs() > 1.0
        return tau.masked_fill(self.tripped, 0.0)


@hostile("A", rec={"e": calm}, fresh={"e": storm}, passes=5, backends="onnx")
class ChDeadBandIntegral:
    """An integrator with a dead band."""

    def __init__(self) -> None:
        self.integral = torch.zeros(1, 3)

    def __call__(self, e: Tensor) -> Tensor:
        e = torch.where(e.abs() < 0.5, torch.zeros_like(e), e)
        self.integral.add_(0.1 * e).clamp_(-1, 1)
        return e + self.integral


@hostile(
    "A",
    rec={"f": uniform(0, 10, 4)},
    fresh={"f": either(lambda t: t % 5 in (2, 3), uniform(20, 60, 4), uniform(0, 30, 4))},
    passes=4,
)
class ChContactHysteresis:
    """Contact with hysteresis: on above 30 N, off below 15 N."""

    def __init__(self) -> None:
        self.contact = torch.zeros(4)

    def __call__(self, f: Tensor) -> Tensor:
        on, off = (f > 30).float(), (f < 15).float()
        self.contact = torch.maximum(on, self.contact * (1 - off))
        return self.contact * 2.0 + 0.01 * f


@hostile(
    "A",
    rec={"obs": normal(3, 2), "done": fixed([False] * 3)},
    fresh={"done": flags(0.3, 3)},
    passes=4,
)
class ChEnvReset:
    """Air time per environment, reset by indices of those that are done."""

    def __init__(self) -> None:
        self.air_time = torch.zeros(3)

    def reset(self, env_ids: Tensor) -> None:
        self.air_time[env_ids] = 0.5

    def __call__(self, obs: Tensor, done: Tensor) -> Tensor:
        self.air_time += 0.02
        ids = done.nonzero(as_tuple=False).flatten()
        if len(ids) > 0:
            self.reset(ids)
        return obs * self.air_time[:, None]


@hostile("A", rec={"x": normal(1, 2)}, passes=4, ticks=16)
class ChRingByInt:
    """A ring buffer that is written and read at a Python int; the delay is longer than the passes."""

    def __init__(self) -> None:
        self.buf, self.i = torch.zeros(6, 1, 2), 0

    def __call__(self, x: Tensor) -> Tensor:
        delayed = self.buf[self.i].clone()
        self.buf[self.i] = x
        self.i = (self.i + 1) % 6
        return delayed + 0.1 * x


@hostile("A", rec={"x": normal(1, 2)}, passes=4, ticks=12)
class ChDoubleBuffer:
    """Front and back buffers that are swapped by name."""

    def __init__(self) -> None:
        self.front, self.back = torch.zeros(1, 2), torch.zeros(1, 2)
        self.n = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.n += 1
        if self.n > 5:
            self.back.copy_(x)
            self.front, self.back = self.back, self.front
        return x + 0.5 * self.back


@hostile(
    "A",
    rec={"bias": fixed([0.0, 0.0, 0.0]), "gyro": normal(3)},
    fresh={"bias": either(lambda t: t in (2, 6), normal(3), fixed([0.0] * 3)), "gyro": normal(3)},
    passes=4,
)
class ChBiasByData:
    """Calibration is written through .data of a parameter that rests at zero."""

    def __init__(self) -> None:
        self.offset = nn.Parameter(torch.zeros(3), requires_grad=False)

    def __call__(self, bias: Tensor, gyro: Tensor) -> Tensor:
        self.offset.data += bias
        return gyro - self.offset


@hostile("A", rec={"d": uniform(-0.1, 0.1, 2)}, fresh={"d": uniform(-3, 3, 2)}, passes=4)
class ChNumpyView:
    """A NumPy view of a command tensor is written when a stick leaves its dead zone."""

    def __init__(self) -> None:
        self.cmd = torch.zeros(2)
        self.view = self.cmd.numpy()

    def __call__(self, d: Tensor) -> Tensor:
        stick = d.numpy()
        self.view[abs(stick) > 0.5] = 0.7
        return self.cmd * 2.0 + d


@hostile("A", rec={"tgt": calm}, fresh={"tgt": storm}, passes=4)
class ChSlewOut:
    """A slew limiter writes with out= into its memory, which was at the target so far."""

    def __init__(self) -> None:
        self.pos = torch.zeros(1, 3)

    def __call__(self, tgt: Tensor) -> Tensor:
        step = torch.where(tgt.abs() > 0.6, tgt - self.pos, torch.zeros_like(tgt)).clamp(-0.5, 0.5)
        torch.add(self.pos, step, out=self.pos)
        return self.pos + tgt * 0.1


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12, style="module")
class ChBufferSwapped(nn.Module):
    """A standby gain buffer replaces the active one by name in _buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("gain", torch.ones(3))
        self.register_buffer("standby", torch.tensor([0.5, 0.2, 2.0]))
        self.countdown = 6

    def forward(self, x: Tensor) -> Tensor:
        self.countdown -= 1
        if self.countdown == 0:
            b = self._buffers
            b["gain"], b["standby"] = b["standby"], b["gain"]
        return x * self.gain


@hostile(
    "A",
    rec={"idx": fixed([1]), "x": uniform(0.5, 1, 1)},
    fresh={"idx": integers(0, 4, 1)},
    passes=4,
)
class ChTableWrite:
    """A learned table is written at an index from data, where it held that already."""

    def __init__(self) -> None:
        self.table = torch.ones(4)

    def __call__(self, idx: Tensor, x: Tensor) -> Tensor:
        self.table[idx] = self.table[idx] * (1.0 + 0.5 * (idx != 1).float())
        return self.table * x


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12, style="module", backends="pt2")
class ChTargetNetwork(nn.Module):
    """A Polyak target that is synchronised every seven steps, equal before that."""

    def __init__(self) -> None:
        super().__init__()
        self.online, self.target = nn.Linear(3, 2), nn.Linear(3, 2)
        self.n = 0

    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        if self.n % 7 == 0:
            for t, o in zip(self.target.parameters(), self.online.parameters()):
                t.data.lerp_(o.data, 0.8)
        return self.target(x)


@hostile(
    "A",
    rec={"z": normal(1, 4), "seen": fixed([True] * 4)},
    fresh={"z": normal(1, 4), "seen": flags(0.5, 4)},
    passes=4,
)
class ChHoldLast:
    """Missed markers keep their last value, through a list of tensors."""

    def __init__(self) -> None:
        self.last = [torch.zeros(1) for _ in range(4)]

    def __call__(self, z: Tensor, seen: Tensor) -> Tensor:
        for i in range(4):
            if seen[i]:
                self.last[i] = z[:, i]
        return torch.cat(self.last)


@hostile("A", rec={"x": uniform(0.0, 0.5, 2)}, fresh={"x": uniform(0, 2, 2)}, passes=4)
class ChPeakHold:
    """A peak detector above a floor, kept in a dict of tensors."""

    def __init__(self) -> None:
        self.stats = {"peak": torch.ones(2)}

    def __call__(self, x: Tensor) -> Tensor:
        self.stats["peak"] = torch.maximum(self.stats["peak"], x)
        return x / self.stats["peak"]


@hostile("A", rec={"act": normal(1, 3)}, passes=4, ticks=12)
class ChAliasedAction:
    """The previous action is kept by reference, and scaled in place from the sixth tick on."""

    def __init__(self) -> None:
        self.prev, self.t = torch.zeros(1, 3), 0

    def __call__(self, act: Tensor) -> Tensor:
        out = 0.8 * act + 0.2 * self.prev
        self.prev = out
        self.t += 1
        if self.t > 5:
            self.prev *= 0.5
        return out + 0.0


@hostile("A", rec={"k": row([0], [0]), "x": normal(1, 3)}, fresh={"k": integers(0, 3, 1)}, passes=4)
class ChRollByData:
    """A history that is rolled by the number of frames that were lost."""

    def __init__(self) -> None:
        self.hist = torch.arange(4.0)

    def __call__(self, k: Tensor, x: Tensor) -> Tensor:
        self.hist = self.hist.roll(int(k))
        return x * self.hist[0] + self.hist[1]


@hostile(
    "A",
    rec={"h": fixed([0.0]), "x": normal(1, 3)},
    fresh={"h": row([0.0], [0.0], [1.0], [0.0])},
    passes=5,
)
class ChHomingSet:
    """Homing: the zero is taken over with set_ when the switch closes."""

    def __init__(self) -> None:
        self.zero = torch.zeros(1, 3)

    def __call__(self, h: Tensor, x: Tensor) -> Tensor:
        self.zero.set_(torch.lerp(self.zero, x, h))
        return x - self.zero
