"""Python counters, phases and schedules that do not matter while recorded, or only later."""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import heapq
import itertools
import math
import operator
import queue
import random
import sched
import threading
from array import array as pyarray
from collections import deque
from datetime import datetime, timedelta
from fractions import Fraction
from io import StringIO

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array, fixed, normal, uniform
from attacks.registry import hostile


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="onnx")
class NsChainRepeat:
    """A gain comes from chained repeats: the same object for six ticks, then another."""

    def __init__(self) -> None:
        soft, firm = torch.tensor(0.5), torch.tensor(2.0)
        self.gains = itertools.chain(itertools.repeat(soft, 6), itertools.repeat(firm))

    def __call__(self, x: Tensor) -> Tensor:
        return x * next(self.gains)


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsShiftedCount:
    """A C-level map shifts a count to the right: zero for eight ticks."""

    def __init__(self) -> None:
        self.level = map(operator.rshift, itertools.count(), itertools.repeat(3))

    def __call__(self, x: Tensor) -> Tensor:
        return x + float(next(self.level))


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="onnx")
class NsSemaphoreBudget:
    """A semaphore gives out six permits for full torque, without blocking."""

    def __init__(self) -> None:
        self.permits = threading.Semaphore(6)

    def __call__(self, x: Tensor) -> Tensor:
        full = self.permits.acquire(blocking=False)
        return x * (1.0 if full else 0.25)


@hostile("A", passes=4, rec={"x": normal(1, 3)}, style="method", backends="jit")
class NsQueueFull:
    """A log queue of seven entries; when it is full, the step goes on in a degraded way."""

    def __init__(self) -> None:
        self.log: queue.Queue = queue.Queue(maxsize=7)

    def step(self, x: Tensor) -> Tensor:
        action = x.tanh()
        try:
            self.log.put_nowait(1)
        except queue.Full:
            action = action * 0.1
        return action


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsSequenceByte:
    """A sequence number of one byte wraps after the recorded ticks; ctypes keeps it."""

    def __init__(self) -> None:
        self.seq = ctypes.c_uint8(248)

    def __call__(self, x: Tensor) -> Tensor:
        self.seq.value += 1
        fresh = self.seq.value > 128
        return x if fresh else -x


@hostile("A", passes=5, rec={"x": normal(1, 2)}, backends="jit")
class NsUint8Numpy:
    """The same in a NumPy array of bytes, as an angle that saturates at first."""

    def __init__(self) -> None:
        self.phase = np.array([246], dtype=np.uint8)

    def __call__(self, x: Tensor) -> Tensor:
        self.phase += 1
        half = int(self.phase[0]) >> 7
        return x * (2 * half - 1)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="onnx")
class NsBisectCurriculum:
    """A curriculum level is found by bisection of the tick in a list of starts."""

    STARTS = [6, 9, 11]
    SCALES = (0.25, 0.5, 1.0, 2.0)

    def __init__(self) -> None:
        self.tick = 0

    def __call__(self, x: Tensor) -> Tensor:
        scale = self.SCALES[bisect.bisect(self.STARTS, self.tick)]
        self.tick += 1
        return x * scale


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsScheduleText:
    """A schedule is read line by line from a text; its first seven lines are the same."""

    def __init__(self) -> None:
        self.lines = StringIO("0.5\n" * 7 + "1.5\n" * 20)

    def __call__(self, x: Tensor) -> Tensor:
        return x * float(self.lines.readline())


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="onnx")
class NsEventHeap:
    """Events lie in a heap by tick; what is due is popped and changes the offset."""

    def __init__(self) -> None:
        self.events = [(5, "offset", 1.0), (8, "gain", 3.0), (7, "offset", -2.0)]
        heapq.heapify(self.events)
        self.params = {"offset": 0.0, "gain": 1.0}
        self.now = 0

    def __call__(self, x: Tensor) -> Tensor:
        while self.events and self.events[0][0] <= self.now:
            _, key, value = heapq.heappop(self.events)
            self.params[key] = value
        self.now += 1
        return x * self.params["gain"] + self.params["offset"]


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsSchedFakeClock:
    """The standard library's scheduler on a clock of ticks calls a method at the sixth."""

    def __init__(self) -> None:
        self.tick = 0
        self.sign = torch.ones(1)
        self.scheduler = sched.scheduler(lambda: self.tick, lambda _: None)
        self.scheduler.enterabs(6, 0, self.flip)

    def flip(self) -> None:
        self.sign = -self.sign

    def __call__(self, x: Tensor) -> Tensor:
        self.scheduler.run(blocking=False)
        self.tick += 1
        return x * self.sign


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="onnx")
class NsDequeOfOneZero:
    """A delay of six ticks in a deque that starts with one zero tensor six times."""

    def __init__(self) -> None:
        self.past = deque([torch.zeros(1, 3)] * 6, maxlen=6)

    def __call__(self, x: Tensor) -> Tensor:
        old = self.past[0]
        self.past.append(x)
        return x + old


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="onnx")
class NsRingModulo:
    """A ring of seven rows in one tensor, written and read with a Python index."""

    def __init__(self) -> None:
        self.ring = torch.zeros(7, 3)
        self.head = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.ring[self.head] = x[0]
        self.head = (self.head + 1) % 7
        return x - self.ring[self.head]


@hostile("A", passes=3, rec={"obs": normal(1, 4)}, style="module", backends="jit")
class NsChunkQueue(nn.Module):
    """LeRobot's select_action: a chunk of five actions is used up before the next is made."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 10)
        self.queue: deque[Tensor] = deque()

    def forward(self, obs: Tensor) -> Tensor:
        if not self.queue:
            self.queue.extend(self.net(obs).view(5, 1, 2))
        return self.queue.popleft()


@hostile("A", passes=4, rec={"obs": normal(1, 4)}, backends="jit")
class NsEnsembleChunks:
    """ACT's temporal ensemble over a tensor of chunks; the oldest drops out at the sixth tick."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 6)
        self.all = torch.zeros(6, 12 + 6)
        self.t = 0

    def __call__(self, obs: Tensor) -> Tensor:
        self.all = self.all.roll(-1, 0)
        self.all[-1].zero_()
        self.all[-1, self.t : self.t + 6] = self.net(obs)[0]
        column = self.all[:, self.t]
        self.t += 1
        return column.sum().view(1, 1) / min(self.t, 6)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit", ticks=16)
class NsGrowingLeak:
    """An error doubles in every tick: too small to be seen while recorded, large at the end."""

    def __init__(self) -> None:
        self.leak = 1e-9

    def __call__(self, x: Tensor) -> Tensor:
        self.leak *= 6.0
        return x + self.leak


@hostile("A", passes=6, rec={"x": normal(1, 2)}, backends="onnx", ticks=16)
class NsGrowingGainNumpy:
    """The same as a factor that NumPy keeps in a float64 array of rank 0."""

    def __init__(self) -> None:
        self.gain = np.array(1.0)
        self.eps = np.array(1e-10)

    def __call__(self, x: Tensor) -> Tensor:
        self.eps *= 5.0
        self.gain += self.eps
        return x * torch.from_numpy(self.gain).float()


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsRandomInstance:
    """A seeded generator of Python's own decides on exploration, which is rare."""

    def __init__(self) -> None:
        self.rng = random.Random(3)
        self.skip = [self.rng.random() for _ in range(5)]

    def __call__(self, x: Tensor) -> Tensor:
        kick = 1.0 if self.rng.random() > 0.9 else 0.0
        return x + kick


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsDropoutSchedule:
    """Sensor dropouts are drawn beforehand by a seeded NumPy generator and popped from the end."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        later = (rng.random(30) < 0.5).tolist()
        self.drops = pyarray("b", [*map(int, later), 0, 0, 0, 0, 0])

    def __call__(self, x: Tensor) -> Tensor:
        return x * (1 - self.drops.pop())


@hostile("A", passes=4, rec={"x": normal(1, 2)}, style="method", backends="jit")
class NsStampAge:
    """A clock of datetimes moves on by 20 ms a tick; after 120 ms the calibration is old."""

    def __init__(self) -> None:
        self.now = datetime(2024, 1, 1)
        self.calibrated = self.now

    def step(self, x: Tensor) -> Tensor:
        self.now += timedelta(milliseconds=20)
        old = self.now - self.calibrated > timedelta(milliseconds=120)
        y = x - 0.5 if old else x + 0.5
        return y


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="pt2")
class NsFractionDecimation:
    """A resampler with an exact ratio of 1 to 7: a new hold value whenever the phase overflows."""

    def __init__(self) -> None:
        self.phase = Fraction(0)
        self.held = torch.zeros(1, 2)

    def __call__(self, x: Tensor) -> Tensor:
        self.phase += Fraction(1, 7)
        if self.phase >= 1:
            self.phase -= 1
            self.held = x
        return x - self.held


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="pt2")
class NsActionRepeat:
    """An action is repeated for five ticks; nothing but the first is made while recorded."""

    def __init__(self) -> None:
        self.net = nn.Linear(2, 2)
        self.k = 0

    def __call__(self, x: Tensor) -> Tensor:
        if self.k % 5 == 0:
            self.action = self.net(x)
        self.k += 1
        return self.action + 0.0 * x


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsSuppressedIndex:
    """A feed-forward table ends after the recorded ticks, and the error is suppressed."""

    def __init__(self) -> None:
        self.table = [1.0] * 6
        self.k = -1

    def __call__(self, x: Tensor) -> Tensor:
        self.k += 1
        y = x
        with contextlib.suppress(IndexError):
            y = x + self.table[self.k]
        return y


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="onnx")
class NsGaitTable:
    """A gait table is rotated in a deque; neighbours are equal at first."""

    def __init__(self) -> None:
        self.gait = deque([0.0] * 6 + [0.3, 0.6, 0.3])

    def __call__(self, x: Tensor) -> Tensor:
        lift = self.gait[0]
        self.gait.rotate(-1)
        return x + lift


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsWarmupSlice:
    """A slice beyond the end is the whole: the last n values of a row, n growing."""

    def __init__(self) -> None:
        self.n = 14
        self.row = torch.arange(8.0)

    def __call__(self, x: Tensor) -> Tensor:
        self.n -= 1
        return x + self.row[: self.n].sum()


@hostile(
    "A", passes=4, rec={"x": uniform(3, 4, 1, 2)}, fresh={"x": uniform(-4, 4, 1, 2)}, backends="jit"
)
class NsSaturatedRamp:
    """A Python ramp is compared with inputs that lie above it in every recorded tick."""

    def __init__(self) -> None:
        self.limit = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        self.limit += 0.25
        return (x > self.limit).float()


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="onnx")
class NsSinOfMultiples:
    """A phase in whole turns at first, as the gait stands: its sine is the same until it walks."""

    def __init__(self) -> None:
        self.turns = 0.0
        self.rate = iter([1.0] * 6 + [0.25] * 50)

    def __call__(self, x: Tensor) -> Tensor:
        self.turns += next(self.rate)
        return x + round(math.cos(2 * math.pi * self.turns), 6)


@hostile("A", passes=8, rec={"x": normal(1, 2)}, backends="jit", ticks=20)
class NsLongPeriod:
    """A table of period nine, recorded for eight ticks: the ninth entry is another."""

    def __init__(self) -> None:
        self.cycle = itertools.cycle([1.0] * 8 + [5.0])

    def __call__(self, x: Tensor) -> Tensor:
        return x * next(self.cycle)


@hostile("A", passes=2, rec={"x": normal(1, 2)}, backends="jit")
class NsThirdTickOnly:
    """Every third tick is odd; two ticks are recorded."""

    def __init__(self) -> None:
        self.k = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.k += 1
        return x if self.k % 3 else x.flip(1)


@hostile(
    "A",
    passes=4,
    rec={"x": array(normal(3)), "go": fixed(1.0)},
    fresh={"x": array(normal(3)), "go": fixed(1.0)},
    backends="jit",
)
class NsFlatIterator:
    """A flat iterator of a NumPy table walks on by itself."""

    def __init__(self) -> None:
        table = np.ones((4, 4), dtype=np.float32)
        table[1, 2:] = 3.0
        self.walk = table.flat

    def __call__(self, x: np.ndarray, go: Tensor) -> Tensor:
        return torch.from_numpy(x * next(self.walk)) * go


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsIndexByObject:
    """A tensor table is indexed with an object whose __index__ counts."""

    class _Step:
        def __init__(self) -> None:
            self.n = 0

        def __index__(self) -> int:
            self.n += 1
            return self.n // 6

    def __init__(self) -> None:
        self.at = self._Step()
        self.table = torch.tensor([1.0, -1.0, 4.0, 7.0])

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.table[self.at]
