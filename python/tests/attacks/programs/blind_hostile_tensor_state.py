"""Memory in tensors, arrays and raw bytes, which rests while it is recorded."""

from __future__ import annotations

import array
import ctypes
import struct

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array as as_array
from attacks.draws import either, fixed, flags, integers, normal, row, uniform
from attacks.registry import hostile

CALM = {"x": uniform(-1.0, 1.0, 1, 3)}
ROUGH = {"x": normal(1, 3, s=3.0)}
R = {"x": normal(1, 3)}


@hostile("A", rec=CALM, fresh=ROUGH, passes=5, style="module")
class BhFaultLatchBool(nn.Module):
    """A boolean buffer latches overload with `|=` on itself."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fault", torch.zeros(1, 3, dtype=torch.bool), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        self.fault |= x.abs() > 4.0
        return x.masked_fill(self.fault, 0.0)


@hostile(
    "A",
    rec=R,
    fresh={"x": either(lambda t: t % 3 == 2, fixed([[float("nan"), 1.0, 2.0]]), normal(1, 3))},
)
class BhHoldLastFinite:
    """The last finite value is held; nothing was ever lost while recorded."""

    def __init__(self) -> None:
        self.good = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.good = torch.where(x.isfinite(), x, self.good)
        return self.good * 2


@hostile("A", rec={"x": uniform(-0.3, 0.3, 1, 3)}, fresh=ROUGH, passes=5)
class BhSchmittTrigger:
    """Hysteresis between two edges; while recorded x never leaves the band."""

    def __init__(self) -> None:
        self.on = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        torch.where(
            x > 1, torch.ones(()), torch.where(x < -1, torch.zeros(()), self.on), out=self.on
        )
        return x + 10 * self.on


@hostile(
    "A",
    rec=R,
    fresh={"x": row([[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]], [[0.0, 2.0, 1.0]])},
)
class BhStuckSensor(nn.Module):
    """Counts equal samples in a row; three of them zero the output."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.same = torch.full((1, 3), 99.0), torch.zeros((), dtype=torch.int64)

    def forward(self, x: Tensor) -> Tensor:
        alike = (x == self.last).all()
        self.same.copy_(torch.where(alike, self.same + 1, torch.zeros_like(self.same)))
        self.last.copy_(x)
        return x * (self.same < 2)


@hostile("A", rec=R, passes=4)
class BhLongRing:
    """A ring of twelve with a Python index; what is read is eight ticks old: zero while recorded."""

    def __init__(self) -> None:
        self.ring, self.i = torch.zeros(12, 3), 0

    def __call__(self, x: Tensor) -> Tensor:
        self.ring[self.i] = x[0]
        old = self.ring[self.i - 8]
        self.i = (self.i + 1) % 12
        return x + old


@hostile("A", rec=CALM, fresh={"x": normal(1, 3, s=4e7)}, passes=4)
class BhAlphaBelowRounding:
    """An average that moves so slowly that float32 rounds it away, until x is huge."""

    def __init__(self) -> None:
        self.mean = torch.full((1, 3), 100.0)

    def __call__(self, x: Tensor) -> Tensor:
        self.mean += 1e-8 * (x - self.mean)
        return self.mean * 2


@hostile("A", rec={"x": uniform(-0.04, 0.04, 1, 3)}, fresh={"x": normal(1, 3)}, passes=6)
class BhDeadbandIntegral:
    """An integral with a dead band: errors were too small to count."""

    def __init__(self) -> None:
        self.total = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.total.add_(nn.functional.hardshrink(x, 0.05))
        return x + self.total


@hostile("A", rec=R, passes=4)
class BhPerLegMemory:
    """A dict of tensors by name of leg; the name changes each sixth tick."""

    def __init__(self) -> None:
        self.h = {"left": torch.zeros(1, 3), "right": torch.ones(1, 3)}
        self.names = iter((["left"] * 6 + ["right"] * 6) * 9)

    def __call__(self, x: Tensor) -> Tensor:
        name = next(self.names)
        self.h[name] = 0.5 * self.h[name] + x
        return self.h[name]


@hostile("A", rec=CALM, fresh=ROUGH, passes=4, style="module")
class BhDataReplaced(nn.Module):
    """A parameter's `.data` is replaced by itself, or by half of itself after an overload."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        self.gain.data = torch.where(x.abs().amax() > 3, self.gain.data * 0.5, self.gain.data)
        return x * self.gain


@hostile("A", rec=CALM, fresh=ROUGH, passes=4)
class BhOldDiagonalView:
    """A diagonal view, made at the start, is read; the matrix is written, by nothing while at rest."""

    def __init__(self) -> None:
        self.p = torch.eye(3)
        self.view = self.p.diagonal()

    def __call__(self, x: Tensor) -> Tensor:
        excess = torch.relu(x.abs() - 1.5)
        self.p.addmm_(excess.T, excess)
        return x / self.view


@hostile(
    "A", rec={"x": as_array(uniform(-1, 1, 3))}, fresh={"x": as_array(normal(3, s=4.0))}, passes=4
)
class BhCopytoWhere:
    """`np.copyto(where=)` into an array older than the session, at rest."""

    def __init__(self) -> None:
        self.offset = np.zeros(3, np.float32)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        np.copyto(self.offset, x, where=np.abs(x) > 3)
        return x - self.offset * np.float32(0.5)


@hostile("A", rec=CALM, fresh=ROUGH, passes=4)
class BhPutmaskUnderTensor:
    """A tensor's memory is written by `np.putmask` through an old array of it."""

    def __init__(self) -> None:
        self.worst = torch.zeros(1, 3)
        self.raw = self.worst.numpy()

    def __call__(self, x: Tensor) -> Tensor:
        seen = x.numpy()
        np.putmask(self.raw, np.abs(seen) > 3.0, seen)
        return x + self.worst


@hostile("A", rec=CALM, fresh=ROUGH, passes=4)
class BhUfuncAt:
    """A histogram under a tensor is counted by `np.add.at`, in a bin that is not read at rest."""

    def __init__(self) -> None:
        self.bins = np.zeros(6, np.float32)
        self.seen = torch.from_numpy(self.bins)

    def __call__(self, x: Tensor) -> Tensor:
        places = np.clip(np.abs(x.numpy()[0]).astype(np.int64), 0, 5)
        np.add.at(self.bins, places, 1.0)
        return x * (1.0 + self.seen[3])


@hostile("A", rec=R, passes=4)
class BhBytesUnderTensor:
    """A tensor over a bytearray; Python packs another gain into it later."""

    def __init__(self) -> None:
        self.raw = bytearray(struct.pack("<3f", 1, 1, 1))
        self.gain = torch.frombuffer(self.raw, dtype=torch.float32)
        self.seq = iter(range(6))

    def __call__(self, x: Tensor) -> Tensor:
        if next(self.seq, None) is None:
            struct.pack_into("<f", self.raw, 4, 8.0)
        return x * self.gain


@hostile("A", rec=R, passes=4)
class BhArrayModuleUnderTensor:
    """The tick is counted in an `array.array` whose memory is a tensor's."""

    def __init__(self) -> None:
        self.raw = array.array("q", [0])
        self.tick = torch.frombuffer(self.raw, dtype=torch.int64)

    def __call__(self, x: Tensor) -> Tensor:
        self.raw[0] += 1
        return x + (self.tick > 6) * 2.0


@hostile("A", rec=R, passes=4)
class BhStorageBytes:
    """A byte of the storage is set: the exponent of a float changes."""

    def __init__(self) -> None:
        self.gain, self.age = torch.ones(3), iter([0] * 6)

    def __call__(self, x: Tensor) -> Tensor:
        if next(self.age, 1):
            self.gain.untyped_storage()[3] = 0x40
        return x * self.gain


@hostile("A", rec=CALM, fresh=ROUGH, passes=4)
class BhMemmove:
    """`ctypes.memmove` copies the observation over the memory when it is large."""

    def __init__(self) -> None:
        self.kept = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        x = x.contiguous()
        size = 12 * int(x.abs().max() > 3)
        ctypes.memmove(self.kept.data_ptr(), x.data_ptr(), size)
        return x + self.kept


@hostile("A", rec=R, passes=4)
class BhBufferDictionary(nn.Module):
    """A buffer is replaced through `_buffers`, at first by equal values."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("limit", torch.full((3,), 4.0))
        self.register_buffer("age", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self._buffers["age"] = self.age + 1
        self._buffers["limit"] = torch.where(self.age > 6, torch.tensor(0.2), torch.full((3,), 4.0))
        return torch.minimum(x, self.limit)


@hostile("A", rec=R, passes=4, style="module")
class BhCheckpointLoadedLater(nn.Module):
    """A second checkpoint is loaded by `load_state_dict` in the seventh tick."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 2)
        self.later = [None] * 6 + [{k: v * 2 for k, v in self.net.state_dict().items()}]

    def forward(self, x: Tensor) -> Tensor:
        if self.later and (state := self.later.pop(0)):
            self.net.load_state_dict(state)
        return self.net(x)


@hostile("A", rec=R, passes=4)
class BhSetStorage:
    """Double buffering: `set_` makes the front tensor lie on the other storage."""

    def __init__(self) -> None:
        self.front, self.back = torch.ones(3), torch.full((3,), -2.0)
        self.flips = iter([False] * 7 + [True] * 99)

    def __call__(self, x: Tensor) -> Tensor:
        if next(self.flips):
            self.front.set_(self.back)
        return x * self.front


@hostile("A", rec=R, passes=4)
class BhSwapTensors:
    """`torch.utils.swap_tensors` exchanges weights between two networks."""

    def __init__(self) -> None:
        self.a, self.b, self.left = nn.Linear(3, 2), nn.Linear(3, 2), [0] * 6

    def __call__(self, x: Tensor) -> Tensor:
        if not self.left:
            torch.utils.swap_tensors(self.a.weight, self.b.weight)
        self.left = self.left[1:] if self.left else [0] * 99
        return self.a(x)


@hostile("A", rec={"x": normal(1, 3, s=0.1)}, fresh={"x": normal(1, 3, s=3.0)}, passes=5)
class BhKalmanSteady:
    """A filter that starts in its steady state; only a rejected measurement inflates it."""

    def __init__(self) -> None:
        self.p = torch.full((1, 3), 0.5)

    def __call__(self, x: Tensor) -> Tensor:
        rejected = x.square() > 9 * self.p
        gain = self.p / (self.p + 0.5)
        after = self.p * (1 - gain) + 0.25
        self.p = torch.where(rejected, self.p * 4, after)
        return x * gain * ~rejected


@hostile(
    "A", rec={"x": normal(1, 4), "contact": fixed(0.0)}, fresh={"contact": fixed(1.0)}, passes=4
)
class BhHiddenGated(nn.Module):
    """A GRU whose memory is multiplied by contact: zero in the air, where it was recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.h = nn.GRUCell(4, 5), torch.zeros(1, 5)

    def forward(self, x: Tensor, contact: Tensor) -> Tensor:
        out = self.cell(x, self.h)
        self.h = out * contact
        return out


@hostile(
    "A",
    rec={"cell": integers(0, 3, 2), "x": normal(1, 3)},
    fresh={"cell": integers(0, 8, 2)},
    passes=6,
)
class BhOccupancy:
    """A grid is counted up; the cells that are read were not visited while recorded."""

    def __init__(self) -> None:
        self.grid = torch.zeros(8, 8)

    def __call__(self, cell: Tensor, x: Tensor) -> Tensor:
        self.grid.index_put_((cell[0], cell[1]), torch.ones(()), accumulate=True)
        return x + self.grid[4:].sum()


@hostile("A", rec=CALM, fresh=ROUGH, passes=4)
class BhExampleBank:
    """Nearest neighbour; each observation replaces the oldest entry, which are all far at first."""

    def __init__(self) -> None:
        self.keys = torch.full((20, 3), 50.0)
        self.keys[0] = 0.0
        self.values, self.i = torch.arange(20.0), 10

    def __call__(self, x: Tensor) -> Tensor:
        nearest = torch.cdist(x, self.keys).argmin(-1)
        self.keys[self.i % 20] = x[0] + 40.0 * (x[0].abs().amax() < 2)
        self.i += 1
        return self.values[nearest] + x


@hostile("A", rec=CALM, fresh=ROUGH, passes=4)
class BhComplexAlias:
    """A phase is turned through `view_as_complex` of a real buffer, by nothing at rest."""

    def __init__(self) -> None:
        self.pair = torch.tensor([[1.0, 0.0]])
        self.phase = torch.view_as_complex(self.pair)

    def __call__(self, x: Tensor) -> Tensor:
        angle = torch.relu(x.abs().amax() - 2.0)
        self.phase *= torch.polar(torch.ones(()), angle)
        return x * self.pair[:, :1]


@hostile(
    "A",
    rec={"x": uniform(0.0, 1.0, 1, 3)},
    fresh={"x": normal(1, 3, s=3.0)},
    passes=4,
    backends="jit",
)
class BhBitsOfFloat:
    """The float's bits are an int view that is added to: one unit of the exponent per overload."""

    def __init__(self) -> None:
        self.gain = torch.ones(3)
        self.bits = self.gain.view(torch.int32)

    def __call__(self, x: Tensor) -> Tensor:
        self.bits += (x[0] > 2.0).int() * (1 << 23)
        return x * self.gain


@hostile("A", rec=CALM, fresh=ROUGH, passes=4)
class BhForeachDecay:
    """A list of traces is decayed by `_foreach_mul_` and fed by relu of what is too much."""

    def __init__(self) -> None:
        self.traces = [torch.zeros(1, 3) for _ in range(3)]

    def __call__(self, x: Tensor) -> Tensor:
        torch._foreach_mul_(self.traces, 0.9)
        torch._foreach_add_(self.traces, [torch.relu(x.abs() - 1 - i) for i in range(3)])
        return x - self.traces[2] - 0.5 * self.traces[0]


@hostile("A", rec=R, passes=4)
class BhStackOfTensors:
    """Way points are popped from a list; the first six are equal."""

    def __init__(self) -> None:
        self.route = [torch.full((3,), 2.0), torch.full((3,), -1.0)] * 9 + [torch.zeros(3)] * 6

    def __call__(self, x: Tensor) -> Tensor:
        return self.route.pop() - x


@hostile("A", rec=CALM, fresh=ROUGH, passes=4)
class BhTensorDeepInside:
    """The latch is nine dictionaries deep."""

    def __init__(self) -> None:
        node: dict = {"latch": torch.zeros(())}
        for name in "abcdefghi":
            node = {name: node}
        self.tree = node

    def __call__(self, x: Tensor) -> Tensor:
        node = self.tree
        for name in "ihgfedcba":
            node = node[name]
        node["latch"] = torch.maximum(node["latch"], (x.abs().amax() > 4).float())
        return x * (1 - node["latch"])


@hostile("A", rec=CALM, fresh=ROUGH, passes=4)
class BhAttributeOfTensor:
    """What is remembered hangs on the parameter as a tensor attribute."""

    def __init__(self) -> None:
        self.w = nn.Parameter(torch.ones(3))
        self.w.trace = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.w.trace = self.w.trace + torch.relu(x - 2)
        return x * self.w + self.w.trace


@hostile("A", rec={"x": normal(1, 3), "reset": fixed(False)}, fresh={"reset": flags(0.3)}, passes=5)
class BhResetToFirst:
    """A reset goes back to a pose that was kept at the start by a clone of the first input."""

    def __init__(self) -> None:
        self.home: Tensor | None = None
        self.pose = torch.zeros(1, 3)

    def __call__(self, x: Tensor, reset: Tensor) -> Tensor:
        if self.home is None:
            self.home = x.clone()
        self.pose = torch.where(reset, self.home, self.pose + x)
        return self.pose


@hostile(
    "A", rec={"x": fixed([[0.0, 0.0, 0.0]])}, fresh={"x": normal(1, 3)}, passes=4, style="module"
)
class BhRunningMeanOfZeros(nn.Module):
    """A BatchNorm left in training mode; zeros keep its mean, which is what is given."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3, momentum=0.5, track_running_stats=True)

    def forward(self, x: Tensor) -> Tensor:
        self.norm(torch.cat([x, x + 1, x - 1]))
        return x - self.norm.running_mean


@hostile("A", rec=R, passes=4)
class BhGradientAsMemory:
    """Adaptation: the gradient of a parameter piles up, and is applied every eighth tick."""

    def __init__(self) -> None:
        self.w, self.grads = torch.ones(3), torch.zeros(3)
        self.every = iter(([0] * 7 + [1]) * 9)

    def __call__(self, x: Tensor) -> Tensor:
        self.grads += x[0]
        if next(self.every):
            self.w -= 0.5 * self.grads
            self.grads.zero_()
        return x * self.w


@hostile("A", rec=R, passes=4)
class BhStridedWindow:
    """Overlapping windows by `as_strided` over a line buffer that rolls in place."""

    def __init__(self) -> None:
        self.line = torch.zeros(24)
        self.windows = self.line.as_strided((4, 9), (4, 1))

    def __call__(self, x: Tensor) -> Tensor:
        self.line.copy_(self.line.roll(-3))
        self.line[-3:] = x[0]
        return self.windows[0, :3].sum() + x


@hostile("A", rec={"x": as_array(normal(3))}, passes=4)
class BhStructuredRecord:
    """NumPy's structured record with a counter field and a pose field."""

    def __init__(self) -> None:
        self.state = np.zeros(1, dtype=[("n", np.uint8), ("pose", np.float32, (3,))])
        self.state["n"] = 249

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.state["n"] += 1
        return x * (np.float32(1) if self.state["n"][0] > 200 else np.float32(-1))


@hostile("A", rec={"x": as_array(normal(3))}, passes=4)
class BhRollingNumpyView:
    """`sliding_window_view` over history; the oldest window is zero for long."""

    def __init__(self) -> None:
        self.history = np.zeros((10, 3), np.float32)
        self.windows = np.lib.stride_tricks.sliding_window_view(self.history, 3, axis=0)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.history[:-1] = self.history[1:].copy()
        self.history[-1] = x
        return x + self.windows[0].mean(axis=-1)
