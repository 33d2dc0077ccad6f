"""States that share memory: views, double buffers, .data, NumPy arrays on tensors."""

from __future__ import annotations

from array import array as pyarray

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array, fixed, flags, integers, normal, row
from attacks.registry import hostile


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsSwapEverySixth:
    """Two buffers are swapped every sixth tick; until then one is written and the other read."""

    def __init__(self) -> None:
        self.front = torch.zeros(1, 3)
        self.back = torch.zeros(1, 3)
        self.k = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.back += x
        self.k += 1
        if self.k == 6:
            self.front, self.back, self.k = self.back, self.front, 0
        return x + self.front


@hostile("A", passes=5, rec={"x": normal(1, 3)}, backends="jit")
class NsPingPong:
    """Two buffers change places in every tick by an exclusive or of an index."""

    def __init__(self) -> None:
        self.bufs = torch.zeros(2, 1, 3)
        self.at = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.bufs[self.at] = x
        self.at ^= 1
        return x - self.bufs[self.at]


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="onnx")
class NsTupleSwap:
    """Two tensors change names, and only one of them is ever written in place."""

    def __init__(self) -> None:
        self.now = torch.zeros(1, 3)
        self.old = torch.ones(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.now, self.old = self.old, self.now
        self.now.mul_(0.5).add_(x)
        return self.now - 0.25 * self.old


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsDataExchange:
    """The memories of two parameters are exchanged through .data after the fifth tick."""

    def __init__(self) -> None:
        self.live = nn.Parameter(torch.full((1, 3), 1.0))
        self.shadow = nn.Parameter(torch.full((1, 3), 3.0))
        self.k = 0

    def __call__(self, x: Tensor) -> Tensor:
        if self.k == 5:
            self.live.data, self.shadow.data = self.shadow.data, self.live.data
        self.k += 1
        return x * self.live


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="onnx")
class NsOverlappingWindow:
    """A history moves left by a copy between two views that overlap, through a clone."""

    def __init__(self) -> None:
        self.hist = torch.zeros(12)
        self.old, self.rest, self.new = self.hist[:9], self.hist[3:], self.hist[9:]

    def __call__(self, x: Tensor) -> Tensor:
        self.old.copy_(self.rest.clone())
        self.new.copy_(x[0])
        return self.hist.view(1, 12) * 1.0


@hostile("A", passes=4, rec={"x": normal(1, 4)}, backends="pt2")
class NsStridedDiagonal:
    """The diagonal of a matrix is a strided view that is decayed; the matrix is what is used."""

    def __init__(self) -> None:
        self.p = torch.eye(4)
        self.diag = self.p.as_strided((4,), (5,))

    def __call__(self, x: Tensor) -> Tensor:
        self.diag.mul_(0.9).add_(0.1 * x[0].square())
        return x @ self.p


@hostile(
    "A",
    passes=4,
    rec={"x": normal(1, 4), "w": flags(0.0, 1)},
    fresh={"x": normal(1, 4), "w": flags(0.5, 1)},
    backends="jit",
)
class NsBranchWritesView:
    """A view of a covariance is written only where a flag says so, by an if on NumPy's bool."""

    def __init__(self) -> None:
        self.p = torch.ones(2, 4)
        self.top = self.p[:1]

    def __call__(self, x: Tensor, w: Tensor) -> Tensor:
        if w.numpy()[0]:
            self.top.copy_(x)
        return x * self.p[0]


@hostile(
    "A",
    passes=4,
    rec={"x": normal(1, 4), "w": flags(0.0, 4)},
    fresh={"x": normal(1, 4), "w": flags(0.4, 4)},
    backends="onnx",
)
class NsMaskedScatterEmpty:
    """A mask that is empty while recorded writes through an expanded index of a transposed view."""

    def __init__(self) -> None:
        self.store = torch.zeros(4, 1)

    def __call__(self, x: Tensor, w: Tensor) -> Tensor:
        self.store.t()[:, w] = x[:, w]
        return x + 3.0 * self.store.t()


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsNumpyUnderneath:
    """A tensor lies on an array; the array's tail is written with a counter and read later."""

    def __init__(self) -> None:
        self.raw = np.zeros(16, dtype=np.float32)
        self.view = torch.from_numpy(self.raw)
        self.k = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.raw[(self.k + 9) % 16] = self.k
        self.k += 1
        return x + self.view[:3]


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsFromBuffer:
    """A tensor on a bytearray, as shared memory has it: a byte of it is the enable flag."""

    def __init__(self) -> None:
        self.memory = bytearray(b"\x01" * 3 + b"\x00")
        self.enable = torch.frombuffer(self.memory, dtype=torch.uint8)

    def __call__(self, x: Tensor) -> Tensor:
        self.memory[3] += 1
        if self.memory[3] == 6:
            self.memory[0:3] = b"\x01\x00\x01"
        return x * self.enable[:3]


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsArrayModuleTail:
    """NumPy's view of a Python array; the array is written, the view becomes a tensor anew."""

    def __init__(self) -> None:
        self.cells = pyarray("f", [1.0] * 3)
        self.n = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.n += 1
        self.cells[1] = 1.0 + max(0, self.n - 6)
        return x / torch.from_numpy(np.frombuffer(self.cells, dtype=np.float32).copy())


@hostile("A", passes=4, rec={"x": array(normal(3))}, backends="jit")
class NsStructuredArray:
    """State in fields of a structured array: position and a count of samples."""

    def __init__(self) -> None:
        self.s = np.zeros(1, dtype=[("pos", np.float32, 3), ("n", np.int32)])

    def __call__(self, x: np.ndarray) -> Tensor:
        self.s["n"] += 1
        n = int(self.s["n"][0])
        if n > 6:
            self.s["pos"] += 0.1
        return torch.from_numpy(x + self.s["pos"][0])


@hostile("A", passes=4, rec={"x": array(normal(3))}, style="method", backends="onnx")
class NsNumpyFilterInPlace:
    """An exponential filter in NumPy with in-place operators, and a row of the history by roll."""

    def __init__(self) -> None:
        self.y = np.zeros(3, dtype=np.float32)
        self.hist = np.zeros((4, 3), dtype=np.float32)

    def step(self, x: np.ndarray) -> np.ndarray:
        self.y *= np.float32(0.8)
        self.y += np.float32(0.2) * x
        self.hist[:] = np.roll(self.hist, 1, axis=0)
        self.hist[0] = self.y
        target = self.hist.mean(axis=0) + self.hist[3]
        return target


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsSetStorage:
    """A name is pointed at another memory with set_ when a bank is used up."""

    def __init__(self) -> None:
        self.banks = [torch.full((1, 3), value) for value in (1.0, -2.0)]
        self.bank = torch.empty(0)
        self.bank.set_(self.banks[0])
        self.used = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.used += 1
        if self.used == 7:
            self.bank.set_(self.banks[1])
        return x + self.bank


@hostile(
    "A",
    passes=4,
    rec={"i": integers(0, 2, 1), "x": normal(1, 3)},
    fresh={"i": integers(0, 5, 1), "x": normal(1, 3)},
    backends="jit",
)
class NsAliasInList:
    """A list of five rows, two of which are one tensor; the recorded indices never show that."""

    def __init__(self) -> None:
        shared = torch.zeros(3)
        self.rows = [torch.zeros(3), torch.zeros(3), shared, torch.zeros(3), shared]

    def __call__(self, i: Tensor, x: Tensor) -> Tensor:
        self.rows[i.item()] += x[0]
        return torch.stack(self.rows)


@hostile("A", passes=4, rec={"i": integers(0, 5, 1), "x": normal(1, 3)}, backends="onnx")
class NsIndexAddState:
    """Rows are written by index_add_ and index_copy_ with an index that is an input."""

    def __init__(self) -> None:
        self.sum = torch.zeros(5, 3)
        self.last = torch.zeros(5, 3)

    def __call__(self, i: Tensor, x: Tensor) -> Tensor:
        self.sum.index_add_(0, i, x)
        self.last.index_copy_(0, i, x * 0.5)
        return (self.sum - self.last).roll(1, 0)


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="onnx")
class NsReturnedState:
    """The output is the buffer itself, and the next tick writes it before it is read."""

    def __init__(self) -> None:
        self.out = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.out.lerp_(x, 0.5)
        self.out.clamp_(-1, 1)
        return self.out


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsInputKept:
    """The input is kept as it is and then written in place, so that its name means two things."""

    def __init__(self) -> None:
        self.prev = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        rate = x - self.prev
        self.prev = x
        y = rate * 2
        x.clamp_(-1, 1)
        return y


@hostile("A", passes=6, rec={"x": normal(1, 2)}, backends="pt2")
class NsThreeTickDelay:
    """A delay of three ticks by names that are handed on, with the middle one changed on the way."""

    def __init__(self) -> None:
        self.a = self.b = self.c = torch.zeros(1, 2)

    def __call__(self, x: Tensor) -> Tensor:
        out = self.c + 0.5 * self.a
        self.c, self.b, self.a = self.b * 0.9, self.a, x
        return out


@hostile(
    "A",
    passes=4,
    rec={"x": normal(1, 2), "s": fixed(0.0)},
    fresh={"x": normal(1, 2), "s": row(0.0, 1.0)},
    backends="onnx",
)
class NsDataWriteWeighted:
    """A calibration is written through .data with a weight that is zero while recorded."""

    def __init__(self) -> None:
        self.cal = torch.ones(1, 2)

    def __call__(self, x: Tensor, s: Tensor) -> Tensor:
        self.cal.data += s * 0.5
        return x * self.cal


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsResizedStore:
    """A log tensor grows in place by resize_, and its length chooses a gain."""

    def __init__(self) -> None:
        self.log = torch.zeros(1)

    def __call__(self, x: Tensor) -> Tensor:
        self.log.resize_(self.log.numel() + 1)
        return x * (1.0 if self.log.numel() < 8 else 0.5)


@hostile("A", passes=5, rec={"x": normal(1, 2)}, backends="jit")
class NsHalfPrecisionStick:
    """An accumulator in half precision stops to move once it is large, not while recorded."""

    def __init__(self) -> None:
        self.acc = torch.full((1, 1), 2040.0, dtype=torch.float16)

    def __call__(self, x: Tensor) -> Tensor:
        self.acc += 1.0
        return x + (self.acc.float() - 2040.0)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="onnx")
class NsByteCounterTensor:
    """A counter in a tensor of bytes overflows after the recorded ticks."""

    def __init__(self) -> None:
        self.n = torch.tensor([248], dtype=torch.uint8)

    def __call__(self, x: Tensor) -> Tensor:
        self.n += 1
        return x * (self.n.float() / 255)


@hostile("A", passes=4, rec={"x": normal(1, 4)}, backends="jit")
class NsUnboundRows:
    """Rows come from unbind once; each tick writes one of them by a Python turn."""

    def __init__(self) -> None:
        self.grid = torch.zeros(6, 4)
        self.rows = list(self.grid.unbind(0))

    def __call__(self, x: Tensor) -> Tensor:
        line = self.rows.pop(0)
        self.rows.append(line)
        line.copy_(x[0])
        return self.grid.sum(0, keepdim=True)


@hostile("A", passes=4, rec={"x": normal(1, 4)}, backends="jit")
class NsSameZeroTwice:
    """Velocity and bias start as one tensor by mistake; only in-place code shows it."""

    def __init__(self) -> None:
        zero = torch.zeros(1, 4)
        self.vel, self.bias = zero, zero

    def __call__(self, x: Tensor) -> Tensor:
        self.vel += 0.1 * x
        self.bias = self.bias * 0.5
        return self.vel + self.bias
