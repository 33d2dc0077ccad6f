"""States that rest while they are recorded, and move in the fresh episode."""

from __future__ import annotations

import json
import math
import zlib
from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array, either, fixed, flags, integers, normal, row, uniform
from attacks.registry import hostile


@hostile(
    "A",
    passes=4,
    rec={"q": uniform(-0.5, 0.5, 1, 4)},
    fresh={"q": uniform(-3, 3, 1, 4)},
    backends="jit",
)
class NsLimitLatch:
    """A joint that once left its range stays held; the rows that left are listed by nonzero."""

    def __init__(self) -> None:
        self.held = torch.zeros(4, dtype=torch.bool)
        self.at = torch.zeros(4)

    def __call__(self, q: Tensor) -> Tensor:
        out = q[0].abs() > 2.0
        for joint in (out & ~self.held).nonzero().flatten():
            self.held[joint] = True
            self.at[joint] = q[0, joint]
        return torch.where(self.held, self.at, 0.5 * q[0])


@hostile(
    "A",
    passes=3,
    rec={"z": uniform(0.0, 0.4, 1, 3)},
    fresh={"z": uniform(0.0, 1.0, 1, 3)},
    backends="onnx",
)
class NsSchmittArithmetic:
    """A Schmitt trigger without a branch, of arithmetic alone; it never switched while recorded."""

    def __init__(self) -> None:
        self.on = torch.zeros(1, 3)

    def __call__(self, z: Tensor) -> Tensor:
        rise = (z > 0.7).float()
        stay = (z > 0.3).float() * self.on
        self.on = torch.maximum(rise, stay)
        return z + 2.0 * self.on


class _Good:
    """Keeps the last measurement that is usable."""

    def __init__(self, start: Tensor) -> None:
        self._value = start

    @property
    def value(self) -> Tensor:
        return self._value

    @value.setter
    def value(self, new: Tensor) -> None:
        if np.isfinite(new.numpy()).all():
            self._value = new


@hostile(
    "A",
    passes=4,
    rec={"pose": normal(1, 3)},
    style="method",
    fresh={"pose": either(lambda t: t % 4 == 2, fixed([[float("nan"), 0.0, 1.0]]), normal(1, 3))},
    backends="jit",
)
class NsHoldLastGoodSetter:
    """A setter of a property drops a pose that is not finite, so the older one is given again."""

    def __init__(self) -> None:
        self.good = _Good(torch.zeros(1, 3))

    def step(self, pose: Tensor) -> Tensor:
        self.good.value = pose
        command = self.good.value * 1.5
        return command


@hostile(
    "A",
    passes=4,
    rec={"img": normal(1, 6)},
    fresh={"img": either(lambda t: t % 3 == 0, normal(1, 6), fixed([[1.0, 2, 3, 4, 5, 6]]))},
    backends="jit",
)
class NsFrozenCamera:
    """A frame is stale when its bytes have the checksum of the last one; stale frames are counted."""

    def __init__(self) -> None:
        self.sum = 0
        self.stale = 0

    def __call__(self, img: Tensor) -> Tensor:
        now = zlib.crc32(img.numpy().tobytes())
        self.stale = self.stale + 1 if now == self.sum else 0
        self.sum = now
        return img.mean(dim=1, keepdim=True) * 0.5**self.stale


@hostile(
    "A",
    passes=4,
    rec={"v": uniform(-0.05, 0.05, 1, 3)},
    fresh={"v": uniform(-1, 1, 1, 3)},
    backends="onnx",
)
class NsSlewPython:
    """A rate limiter over Python floats; no channel was limited while recorded."""

    def __init__(self) -> None:
        self.last = [0.0, 0.0, 0.0]

    def __call__(self, v: Tensor) -> Tensor:
        wanted = v[0].tolist()
        self.last = [a + min(max(b - a, -0.2), 0.2) for a, b in zip(self.last, wanted)]
        return v * 0.1 + torch.tensor([self.last])


@hostile(
    "A", passes=5, rec={"u": fixed(torch.zeros(1, 2))}, fresh={"u": normal(1, 2)}, backends="jit"
)
class NsIntegratorAtRest:
    """The robot stands still while it is recorded: an integrator in NumPy scalars stays zero."""

    def __init__(self) -> None:
        self.x = np.float32(0.0)
        self.y = np.float32(0.0)

    def __call__(self, u: Tensor) -> Tensor:
        a = u.numpy()
        self.x = self.x + np.float32(0.1) * a[0, 0]
        self.y = self.y + np.float32(0.1) * a[0, 1]
        return u + torch.tensor([[self.x, self.y]])


@hostile(
    "A",
    passes=4,
    rec={"obs": normal(2, 3), "done": fixed([False, False])},
    fresh={"obs": normal(2, 3), "done": flags(0.3, 2)},
    backends="onnx",
)
class NsDoneIds:
    """legged_gym's reset_idx: nothing happens for an empty list of ids, and none came."""

    def __init__(self) -> None:
        self.last = torch.zeros(2, 3)
        self.length = torch.zeros(2)

    def reset_idx(self, ids: Tensor) -> None:
        if len(ids) == 0:
            return
        self.last[ids] = 0.0
        self.length[ids] = 0.0

    def __call__(self, obs: Tensor, done: Tensor) -> Tensor:
        self.reset_idx(done.nonzero(as_tuple=False).flatten())
        out = obs - self.last + self.length[:, None]
        self.last[:] = obs
        self.length += 1
        return out


@hostile(
    "A",
    passes=4,
    rec={"obs": normal(3, 2), "done": fixed([False, False, False])},
    fresh={"obs": normal(3, 2), "done": flags(0.3, 3)},
    backends="onnx",
)
class NsDoneMaskKeep:
    """A hidden state is multiplied by (1 - done), and restored from a table of starts."""

    def __init__(self) -> None:
        self.start = torch.arange(6.0).view(3, 2)
        self.h = self.start.clone()

    def __call__(self, obs: Tensor, done: Tensor) -> Tensor:
        keep = (~done).float()[:, None]
        self.h = self.h * keep + self.start * (1 - keep)
        self.h = torch.tanh(0.5 * self.h + obs)
        return self.h * 2


@hostile(
    "A", passes=4, rec={"f": uniform(5, 6, 1, 4)}, fresh={"f": uniform(-3, 6, 1, 4)}, backends="jit"
)
class NsDebounceBits:
    """Contacts go through shift registers of Python integers, which are full while recorded."""

    def __init__(self) -> None:
        self.bits = [0b111] * 4

    def __call__(self, f: Tensor) -> Tensor:
        touch = (f[0] > 1.0).tolist()
        self.bits = [(b << 1 | int(c)) & 0b111 for b, c in zip(self.bits, touch)]
        stance = torch.tensor([[float(b.bit_count() >= 2) for b in self.bits]])
        return f * stance


@hostile(
    "A",
    passes=4,
    rec={"hb": integers(1, 2, 1), "cmd": normal(1, 2)},
    fresh={"hb": row([1], [0], [0], [0], [1], [0]), "cmd": normal(1, 2)},
    style="method",
    backends="pt2",
)
class NsWatchdogTensor:
    """A watchdog in an integer tensor: kicked in every recorded tick, starved later."""

    def __init__(self) -> None:
        self.left = torch.tensor([2])

    def step(self, hb: Tensor, cmd: Tensor) -> Tensor:
        self.left = torch.where(hb > 0, torch.tensor([2]), (self.left - 1).clamp(min=0))
        safe = cmd * (self.left > 0)
        return safe


@dataclass(frozen=True)
class _Mode:
    name: str = "cruise"
    since: int = 0
    gains: tuple[float, float] = (1.0, 0.1)


@hostile(
    "A",
    passes=5,
    rec={"d": uniform(2, 4, 1, 1), "v": normal(1, 1)},
    fresh={"d": uniform(0, 4, 1, 1), "v": normal(1, 1)},
    backends="jit",
)
class NsModeMachineFrozen:
    """A frozen dataclass is replaced when a distance, rounded into a text, becomes a known word."""

    WORDS = {"0": "brake", "1": "follow"}

    def __init__(self) -> None:
        self.mode = _Mode()

    def __call__(self, d: Tensor, v: Tensor) -> Tensor:
        key = f"{d.squeeze().numpy():.0f}"
        name = self.WORDS.get(key, self.mode.name)
        if name != self.mode.name:
            self.mode = replace(self.mode, name=name, gains=(0.2, 0.9))
        kp, kd = self.mode.gains
        return kp * d - kd * v


@hostile(
    "A", passes=4, rec={"x": uniform(0, 1, 1, 5)}, fresh={"x": normal(1, 5, s=3.0)}, backends="jit"
)
class NsPeakHold:
    """The largest value ever is kept by Python's max over tensors, starting from a large one."""

    def __init__(self) -> None:
        self.peak = torch.tensor(1.5)

    def __call__(self, x: Tensor) -> Tensor:
        self.peak = max(self.peak, x.max())
        return x / self.peak


@hostile(
    "A", passes=4, rec={"x": uniform(0, 1, 1, 5)}, fresh={"x": normal(1, 5, s=3.0)}, backends="pt2"
)
class NsPeakHoldOut:
    """The same with out=, and a decay that only acts above the floor."""

    def __init__(self) -> None:
        self.peak = torch.full((1, 1), 1.5)
        self.floor = torch.full((1, 1), 1.5)

    def __call__(self, x: Tensor) -> Tensor:
        torch.maximum(self.peak * 0.9, self.floor, out=self.peak)
        torch.maximum(self.peak, x.amax(1, keepdim=True), out=self.peak)
        return x / self.peak


@hostile(
    "A",
    passes=4,
    rec={"id": integers(0, 3, 1), "z": normal(1, 2)},
    fresh={"id": integers(0, 6, 1), "z": normal(1, 2)},
    backends="jit",
)
class NsLandmarks:
    """Landmarks are a dict of tensors by number; those above two are made when they are first seen."""

    def __init__(self) -> None:
        self.map = {number: torch.full((1, 2), float(number)) for number in range(3)}

    def __call__(self, id: Tensor, z: Tensor) -> Tensor:  # noqa: A002
        known = self.map.setdefault(int(id), z)
        return z - known


@hostile(
    "A",
    passes=4,
    rec={"slot": integers(0, 2, 1), "z": normal(1, 3)},
    fresh={"slot": integers(0, 4, 1), "z": normal(1, 3)},
    backends="onnx",
)
class NsTableRowsUnseen:
    """A table is written with a Python counter in a row that the recorded indices never read."""

    def __init__(self) -> None:
        self.table = torch.zeros(4, 3)
        self.n = 0

    def __call__(self, slot: Tensor, z: Tensor) -> Tensor:
        self.n += 1
        self.table[3] = float(self.n)
        return z + self.table.index_select(0, slot)


@hostile(
    "A",
    passes=4,
    rec={"cmd": fixed(torch.zeros(1, 2)), "q": normal(1, 2)},
    fresh={"cmd": normal(1, 2), "q": normal(1, 2)},
    backends="onnx",
)
class NsRampTimesZero:
    """A Python ramp multiplies a command that is zero while recorded."""

    def __init__(self) -> None:
        self.ramp = 0.0

    def __call__(self, cmd: Tensor, q: Tensor) -> Tensor:
        self.ramp = min(self.ramp + 0.1, 1.0)
        return q * 0.5 + self.ramp * cmd


@hostile(
    "A",
    passes=4,
    rec={"t": uniform(20, 30, 1, 1)},
    fresh={"t": uniform(20, 90, 1, 1)},
    backends="jit",
)
class NsFaultJournal:
    """Faults go into a JSON text, as a black box does; how many there are derates the motor."""

    def __init__(self) -> None:
        self.journal = "[]"

    def __call__(self, t: Tensor) -> Tensor:
        entries = json.loads(self.journal)
        entries += [value for value in t.flatten().tolist() if value > 70]
        self.journal = json.dumps(entries)
        return t * 0.8 ** len(entries)


@dataclass
class _Window:
    size: int = 3
    values: deque = field(default_factory=lambda: deque([0.0] * 3, maxlen=3))

    def median(self, value: float) -> float:
        self.values.append(value)
        return sorted(self.values)[self.size // 2]


@hostile(
    "A", passes=5, rec={"r": fixed([[0.0]])}, fresh={"r": normal(1, 1, s=2.0)}, backends="onnx"
)
class NsMedianAtRest:
    """A median of three over Python floats; the sensor gives zero while recorded."""

    def __init__(self) -> None:
        self.window = _Window()

    def __call__(self, r: Tensor) -> Tensor:
        return r * 0.25 + self.window.median(r.item())


@hostile(
    "A",
    passes=4,
    rec={"wp": uniform(5, 9, 1, 2)},
    fresh={"wp": uniform(-2, 2, 1, 2)},
    backends="onnx",
)
class NsWaypointPop:
    """A waypoint is popped from a list when it is reached; math.dist tells."""

    def __init__(self) -> None:
        self.route = [
            torch.tensor([[0.0, 0.0]]),
            torch.tensor([[1.0, -1.0]]),
            torch.zeros(1, 2) - 2,
        ]

    def __call__(self, wp: Tensor) -> Tensor:
        if len(self.route) > 1 and math.dist(wp[0].tolist(), self.route[0][0].tolist()) < 1.5:
            self.route.pop(0)
        return self.route[0] - wp


@hostile(
    "A",
    passes=4,
    rec={"x": array(uniform(0, 1, 3))},
    fresh={"x": array(uniform(-2, 2, 3))},
    backends="jit",
)
class NsStickyMaskNumpy:
    """Channels that were ever negative are struck from a NumPy mask, by an in-place and."""

    def __init__(self) -> None:
        self.alive = np.ones(3, dtype=bool)

    def __call__(self, x: np.ndarray) -> Tensor:
        self.alive &= x >= 0
        return torch.from_numpy(np.where(self.alive, x, np.float32(-1)))


@hostile(
    "A", passes=4, rec={"x": normal(1, 4, s=0.1)}, fresh={"x": normal(1, 4, s=4.0)}, backends="jit"
)
class NsOutlierReject:
    """A reference follows what is near, and a lerp weight of zero or one tells what is."""

    def __init__(self) -> None:
        self.ref = torch.zeros(1, 4)
        self.missed = torch.zeros(1, 4, dtype=torch.int32)

    def __call__(self, x: Tensor) -> Tensor:
        near = (x - self.ref).abs() < 2.0
        self.missed = (self.missed + 1) * ~near
        accept = near | (self.missed >= 3)
        self.ref = torch.lerp(self.ref, x, accept.float() * 0.5)
        return self.ref.clone()


@hostile(
    "A",
    passes=4,
    rec={"x": normal(1, 3, s=0.2)},
    fresh={"x": normal(1, 3, s=2.0)},
    style="module",
    backends="jit",
)
class NsClampMovesBound(nn.Module):
    """Bounds in buffers are widened by what goes beyond, so they rest while nothing does."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("lo", torch.full((3,), -1.0))
        self.register_buffer("hi", torch.full((3,), 1.0))

    def forward(self, x: Tensor) -> Tensor:
        self.lo.copy_(torch.minimum(self.lo, x.amin(0) * 0.5))
        self.hi.copy_(torch.maximum(self.hi, x.amax(0) * 0.5))
        return (x.clamp(self.lo, self.hi) - self.lo) / (self.hi - self.lo)
