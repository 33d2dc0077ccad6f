"""State in NumPy arrays: filters, buffers written in place, rolls, counters, simulators."""

from __future__ import annotations

import collections

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array, fixed, normal, uniform
from attacks.registry import clean, hostile


@clean("A", rec={"x": normal(3)}, passes=5, in_tests=True)
class NumpyLowPass:
    """Arrays in, arrays out, from zeros."""

    def __init__(self) -> None:
        self.h = np.zeros(3, dtype=np.float32)

    def __call__(self, x: Tensor) -> Tensor:
        obs = x.numpy()
        self.h = 0.9 * self.h + 0.1 * obs
        return torch.from_numpy(self.h * 2)


@clean("A", rec={"x": normal(3)}, passes=5)
class NumpyInPlace:
    """`+=` on an array."""

    def __init__(self) -> None:
        self.sum = np.zeros(3, dtype=np.float32)

    def __call__(self, x: Tensor) -> Tensor:
        self.sum += 0.01 * x.numpy()
        return torch.from_numpy(np.tanh(self.sum))


@clean("A", rec={"x": normal(3)}, passes=5)
class NumpySlices:
    """A buffer that is written by slices."""

    def __init__(self) -> None:
        self.buf = np.zeros((4, 3), dtype=np.float32)

    def __call__(self, x: Tensor) -> Tensor:
        self.buf[:-1] = self.buf[1:].copy()
        self.buf[-1] = x.numpy()
        return torch.from_numpy(self.buf.mean(axis=0))


@clean("A", rec={"x": normal(3)}, passes=6)
class NumpyRoll:
    """`np.roll`, then the newest in its place."""

    def __init__(self) -> None:
        self.hist = np.zeros((5, 3), dtype=np.float32)

    def __call__(self, x: Tensor) -> Tensor:
        self.hist = np.roll(self.hist, -1, axis=0)
        self.hist[-1] = x.numpy()
        return torch.from_numpy(self.hist.reshape(-1).copy())


@clean("A", rec={"x": normal(3)}, passes=6)
class NumpyConcatenate:
    """A history by `np.concatenate`."""

    def __init__(self) -> None:
        self.hist = np.zeros((4, 3), dtype=np.float32)
        self.net = nn.Linear(12, 2)

    def __call__(self, x: Tensor) -> Tensor:
        self.hist = np.concatenate([self.hist[1:], x.numpy()[None]], axis=0)
        return self.net(torch.from_numpy(self.hist).flatten())


@clean("A", rec={"x": normal(2)}, passes=5)
class NumpyBiquad:
    """Two states in a dict of arrays."""

    def __init__(self) -> None:
        self.z = {"z1": np.zeros(2, np.float32), "z2": np.zeros(2, np.float32)}

    def __call__(self, x: Tensor) -> Tensor:
        u = x.numpy()
        y = np.float32(0.2) * u + self.z["z1"]
        self.z["z1"] = np.float32(0.4) * u - np.float32(-0.3) * y + self.z["z2"]
        self.z["z2"] = np.float32(0.2) * u - np.float32(0.1) * y
        return torch.from_numpy(y)


@clean("A", rec={"x": array(normal(3))}, passes=5)
class ArrayInputs:
    """The input is an array, the state as well, the output is a tensor."""

    def __init__(self) -> None:
        self.prev = np.zeros(3, np.float32)

    def __call__(self, x) -> Tensor:
        d = x - self.prev
        self.prev = x
        return torch.as_tensor(d * 10)


@clean("A", rec={"x": normal(3)}, passes=6)
class NumpyDeque:
    """A deque of arrays."""

    def __init__(self) -> None:
        self.buf = collections.deque([np.zeros(3, np.float32) for _ in range(3)], maxlen=3)

    def __call__(self, x: Tensor) -> Tensor:
        self.buf.append(x.numpy())
        return torch.from_numpy(np.concatenate(list(self.buf)))


@clean("A", rec={"x": normal(2)}, passes=6)
class NumpyClipIntegral:
    """A PID with a clamp, in double precision."""

    def __init__(self) -> None:
        self.i = np.zeros(2)

    def __call__(self, x: Tensor) -> Tensor:
        e = x.double().numpy()
        self.i = np.clip(self.i + 0.1 * e, -0.3, 0.3)
        return torch.from_numpy(2.0 * e + 0.5 * self.i)


@clean("A", rec={"x": normal(4)}, passes=5)
class NumpyThenTorch:
    """The state is a tensor that is read through NumPy."""

    def __init__(self) -> None:
        self.h = torch.zeros(4)

    def __call__(self, x: Tensor) -> Tensor:
        mixed = 0.5 * self.h.numpy() + 0.5 * x.numpy()
        self.h = torch.from_numpy(np.sin(mixed))
        return self.h + x


@clean("A", rec={"x": normal(4)}, passes=5)
class NumpyScalarClock:
    """A phase as a 0-dim array."""

    def __init__(self) -> None:
        self.phase = np.zeros((), dtype=np.float32)

    def __call__(self, x: Tensor) -> Tensor:
        self.phase = np.mod(self.phase + np.float32(0.1) + x.numpy().mean() * np.float32(0.0), 1.0)
        return x * torch.as_tensor(np.cos(self.phase))


@hostile("A", rec={"x": normal(2)}, passes=5)
class NumpyCounter:
    """A step counter in an array of integers that no input reaches."""

    def __init__(self) -> None:
        self.n = np.zeros(1, dtype=np.int64)

    def __call__(self, x: Tensor) -> Tensor:
        self.n += 1
        return x * torch.from_numpy(np.minimum(self.n / 5.0, 1.0).astype(np.float32))


@hostile("A", rec={"x": uniform(-1, 1, 2)}, fresh={"x": normal(2, s=4)}, passes=5)
class NumpyLatch:
    """A fault flag in an array that stays down while recorded."""

    def __init__(self) -> None:
        self.fault = np.zeros(1, dtype=np.float32)

    def __call__(self, x: Tensor) -> Tensor:
        self.fault = np.maximum(self.fault, (np.abs(x.numpy()).max() > 2.0).astype(np.float32))
        return x * torch.from_numpy(1.0 - self.fault)


@hostile("A", rec={"x": fixed([0.5, 0.5])}, fresh={"x": normal(2)}, passes=4)
class NumpyAtRest:
    """An average that starts at what it sees."""

    def __init__(self) -> None:
        self.m = np.full(2, 0.5, np.float32)

    def __call__(self, x: Tensor) -> Tensor:
        self.m += np.float32(0.1) * (x.numpy() - self.m)
        return x - torch.from_numpy(self.m.copy())


@hostile("A", rec={"x": normal(2)}, passes=5)
class NumpyFromFirst:
    """The first observation fills the state."""

    def __init__(self) -> None:
        self.h = None

    def __call__(self, x: Tensor) -> Tensor:
        a = x.numpy()
        self.h = a.copy() if self.h is None else 0.7 * self.h + 0.3 * a
        return torch.from_numpy(self.h * 1.0)


@hostile("A", rec={"x": normal(2)}, passes=6)
class NumpyDelay:
    """A list of arrays, the oldest of three."""

    def __init__(self) -> None:
        self.line = [np.zeros(2, np.float32) for _ in range(3)]

    def __call__(self, x: Tensor) -> Tensor:
        self.line.append(x.numpy())
        return torch.from_numpy(self.line.pop(0)) + x


@hostile("A", rec={"x": normal(2)}, passes=6)
class NumpyRing:
    """A ring in an array with an index in Python."""

    def __init__(self) -> None:
        self.ring, self.i = np.zeros((3, 2), np.float32), 0

    def __call__(self, x: Tensor) -> Tensor:
        out = self.ring[self.i].copy()
        self.ring[self.i] = x.numpy()
        self.i = (self.i + 1) % 3
        return torch.from_numpy(out) + x


@hostile("A", rec={"x": normal(2)}, passes=4)
class NumpyCopyto:
    """`np.copyto` into a state."""

    def __init__(self) -> None:
        self.h = np.ones(2, np.float32)

    def __call__(self, x: Tensor) -> Tensor:
        y = self.h * x.numpy()
        np.copyto(self.h, x.numpy())
        return torch.from_numpy(y)


@hostile("A", rec={"x": normal(2)}, passes=4)
class NumpyOut:
    """`out=` with the state as target."""

    def __init__(self) -> None:
        self.h = np.zeros(2, np.float32)

    def __call__(self, x: Tensor) -> Tensor:
        np.add(self.h, x.numpy(), out=self.h)
        return torch.from_numpy(self.h.copy())


@hostile("A", rec={"x": normal(2)}, passes=4)
class NumpyObject:
    """A structured array as state."""

    def __init__(self) -> None:
        self.s = np.zeros(2, dtype=[("pos", "f4"), ("vel", "f4")])

    def __call__(self, x: Tensor) -> Tensor:
        self.s["vel"] = 0.5 * self.s["vel"] + x.numpy()
        self.s["pos"] += 0.1 * self.s["vel"]
        return torch.from_numpy(self.s["pos"].copy())


@hostile("A", rec={"x": normal(2)}, passes=4)
class TensorOverArray:
    """A tensor and an array on one memory, written through the one and read through the other."""

    def __init__(self) -> None:
        self.a = np.zeros(2, np.float32)
        self.t = torch.from_numpy(self.a)

    def __call__(self, x: Tensor) -> Tensor:
        y = self.t + x
        self.a[:] = y.numpy()
        return y


@hostile("A", rec={"x": normal(2)}, passes=5)
class NumpyItemState:
    """A Python float that comes from an array and goes back into one."""

    def __init__(self) -> None:
        self.level = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        self.level = 0.9 * self.level + 0.1 * float(x.numpy().sum())
        return x + self.level
