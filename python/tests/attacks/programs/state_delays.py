"""Values of more than one tick ago: queues, delay lines, rings, action latency, histories."""

from __future__ import annotations

import collections
import itertools

import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import fixed, integers, normal, uniform
from attacks.registry import ALL, clean, hostile


@clean("A", rec={"a": normal(1, 3)}, passes=6, backends=ALL)
class ActionLatencyTwo:
    """A deque of actions, the oldest of which is sent."""

    def __init__(self) -> None:
        self.queue = collections.deque([torch.zeros(1, 3) for _ in range(2)])
        self.net = nn.Linear(3, 3)

    def __call__(self, a: Tensor) -> Tensor:
        self.queue.append(self.net(a).tanh())
        return self.queue.popleft() * 0.25


@clean("A", rec={"x": normal(4)}, passes=7, in_tests=True)
class DequeOldest:
    """`deque(maxlen=4)` read at its front, all places of it the same zeros."""

    def __init__(self) -> None:
        self.buf = collections.deque([torch.zeros(4)] * 4, maxlen=4)

    def __call__(self, x: Tensor) -> Tensor:
        self.buf.append(x)
        return x - self.buf[0]


@clean("A", rec={"x": normal(2)}, passes=10)
class DelayOfFive:
    """A line of five, each start another value."""

    def __init__(self) -> None:
        self.line = [torch.full((2,), float(k)) for k in range(5)]

    def __call__(self, x: Tensor) -> Tensor:
        out = self.line.pop(0)
        self.line.append(0.5 * x + 0.1 * out)
        return out + x


@clean("A", rec={"x": normal(1, 3)}, passes=8)
class TwoTapsOfAQueue:
    """The newest but one and the oldest of five, the rest is never read."""

    def __init__(self) -> None:
        self.q = [torch.zeros(1, 3) for _ in range(5)]

    def __call__(self, x: Tensor) -> Tensor:
        self.q.insert(0, x)
        self.q.pop()
        return self.q[1] - self.q[4]


@clean("A", rec={"x": normal(3)}, passes=6)
def generator_with_memory():
    """A generator that is sent values and keeps two of them."""

    def run():
        older, old = torch.zeros(3), torch.zeros(3)
        out = None
        while True:
            x = yield out
            out = x - 2 * old + older
            older, old = old, x

    coroutine = run()
    next(coroutine)
    return coroutine.send


@clean("A", rec={"x": normal(3)}, passes=6)
class SecondDifference:
    """Acceleration from two past positions, shifted by tuple assignment."""

    def __init__(self) -> None:
        self.p1, self.p2 = torch.zeros(3), torch.zeros(3)

    def __call__(self, x: Tensor) -> Tensor:
        a = (x - 2 * self.p1 + self.p2) * 100.0
        self.p1, self.p2 = x, self.p1
        return a


@clean("A", rec={"x": normal(1, 2)}, passes=7, backends=("jit", "onnx"))
class OnlyTheOlder:
    """Two variables, and only the older one matters."""

    def __init__(self) -> None:
        self.p1 = torch.ones(1, 2)
        self.p2 = -torch.ones(1, 2)

    def __call__(self, x: Tensor) -> Tensor:
        out = x * self.p2
        self.p2 = self.p1
        self.p1 = x.sin()
        return out


@clean("A", rec={"x": normal(2)}, passes=8)
class DelayedGru(nn.Module):
    """A recurrent layer that is run on observations of two ticks ago."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(2, 4)
        self.h = torch.zeros(1, 4)
        self.pending = [torch.zeros(2), torch.zeros(2)]

    def forward(self, x: Tensor) -> Tensor:
        self.pending = self.pending + [x]
        late, self.pending = self.pending[0], self.pending[1:]
        self.h = self.cell(late.unsqueeze(0), self.h)
        return self.h.sum(-1)


@clean("A", rec={"x": normal(1, 3)}, passes=7)
class FirFilter:
    """Taps over a list that is rebuilt by a comprehension."""

    def __init__(self) -> None:
        self.taps = [0.4, 0.3, 0.2, 0.1]
        self.past = [torch.zeros(1, 3) for _ in self.taps]

    def __call__(self, x: Tensor) -> Tensor:
        self.past = [x, *self.past[:-1]]
        return sum(t * p for t, p in zip(self.taps, self.past, strict=True))


@clean("A", rec={"x": normal(1, 3)}, passes=7)
class StackedDeque:
    """`torch.stack` over a deque that is filled with one tensor, as wrappers of frames do."""

    def __init__(self) -> None:
        self.frames = collections.deque(itertools.repeat(torch.zeros(1, 3), 3), maxlen=3)

    def __call__(self, x: Tensor) -> Tensor:
        self.frames.append(x)
        return torch.stack(tuple(self.frames)).amax(0)


@clean("A", rec={"a": normal(2), "b": normal(2)}, passes=8)
class TwoLines:
    """Delays of two and of three, in a dict of lists."""

    def __init__(self) -> None:
        self.lines = {"a": [torch.zeros(2)] * 2, "b": [torch.zeros(2)] * 3}

    def _delayed(self, key: str, value: Tensor) -> Tensor:
        self.lines[key].append(value)
        return self.lines[key].pop(0)

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        return self._delayed("a", a) - self._delayed("b", b)


@clean("A", rec={"x": normal(2)}, passes=6, style="method")
class DelayInAMethod:
    """`annotate.method` with a queue."""

    def __init__(self) -> None:
        self.q = collections.deque([torch.zeros(2), torch.ones(2)])

    def step(self, x: Tensor) -> Tensor:
        self.q.append(x * 2)
        out = self.q.popleft() + x
        return out


@hostile("A", rec={"x": normal(2)}, passes=6)
class RingByIndex:
    """A ring in a list with an index in Python."""

    def __init__(self) -> None:
        self.ring = [torch.zeros(2) for _ in range(3)]
        self.i = 0

    def __call__(self, x: Tensor) -> Tensor:
        out = self.ring[self.i]
        self.ring[self.i] = x
        self.i = (self.i + 1) % 3
        return out + x


@hostile("A", rec={"x": normal(2)}, passes=8)
class RingInTensor:
    """A ring in a tensor with an index in Python."""

    def __init__(self) -> None:
        self.ring = torch.zeros(3, 2)
        self.i = 0

    def __call__(self, x: Tensor) -> Tensor:
        out = self.ring[self.i].clone()
        self.ring[self.i] = x
        self.i = (self.i + 1) % 3
        return out + x


@clean("A", rec={"x": normal(2)}, passes=6)
class RingWithTensorIndex:
    """The same with the index in a tensor."""

    def __init__(self) -> None:
        self.ring = torch.zeros(3, 2)
        self.i = torch.zeros(1, dtype=torch.long)

    def __call__(self, x: Tensor) -> Tensor:
        out = self.ring.index_select(0, self.i).squeeze(0)
        self.ring = self.ring.index_copy(0, self.i, x.unsqueeze(0))
        self.i = (self.i + 1) % 3
        return out + x


@hostile("A", rec={"x": normal(2)}, passes=3)
class DelayLongerThanRecording:
    """Five ticks of delay in three passes."""

    def __init__(self) -> None:
        self.line = [torch.zeros(2) for _ in range(5)]

    def __call__(self, x: Tensor) -> Tensor:
        self.line.append(x)
        return self.line.pop(0) + x


@hostile("A", rec={"x": normal(2)}, passes=10)
class DelayOfTwenty:
    """A delay longer than ten passes, all places the same tensor."""

    def __init__(self) -> None:
        self.line = collections.deque([torch.zeros(2)] * 20)

    def __call__(self, x: Tensor) -> Tensor:
        self.line.append(x)
        return self.line.popleft() + x


@hostile("A", rec={"x": fixed([0.0, 0.0])}, fresh={"x": normal(2)}, passes=6)
class DelayAtRest:
    """Nothing moves while recorded."""

    def __init__(self) -> None:
        self.line = [torch.zeros(2) for _ in range(2)]

    def __call__(self, x: Tensor) -> Tensor:
        self.line.append(x)
        return self.line.pop(0) - x


@hostile("A", rec={"x": normal(2)}, passes=8)
class DelayThatGrows:
    """The queue gets longer each second tick."""

    def __init__(self) -> None:
        self.line = collections.deque([torch.zeros(2)])
        self.n = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.line.append(x)
        self.n += 1
        return (self.line.popleft() if self.n % 2 else self.line[0]) + x


@hostile("A", rec={"x": normal(2)}, passes=7)
class DequeThatFills:
    """The oldest of a deque that starts empty."""

    def __init__(self) -> None:
        self.buf = collections.deque(maxlen=3)

    def __call__(self, x: Tensor) -> Tensor:
        self.buf.append(x)
        return x - self.buf[0]


@hostile("A", rec={"x": normal(1, 2)}, passes=7)
class MeanOfWhatIsThere:
    """An average over a deque that starts empty."""

    def __init__(self) -> None:
        self.buf = collections.deque(maxlen=4)

    def __call__(self, x: Tensor) -> Tensor:
        self.buf.append(x)
        return torch.cat(tuple(self.buf)).mean(0)


@hostile("A", rec={"x": normal(2)}, passes=6)
class EverySecondObservation:
    """The observation is taken on every second tick only."""

    def __init__(self) -> None:
        self.kept, self.n = torch.zeros(2), 0

    def __call__(self, x: Tensor) -> Tensor:
        if self.n % 2 == 0:
            self.kept = x
        self.n += 1
        return self.kept * 1.5


@hostile("A", rec={"x": normal(2)}, passes=9)
class QueueIsResetOnce:
    """The line is filled with zeros again in the middle of the recording."""

    def __init__(self) -> None:
        self.line, self.n = [torch.zeros(2), torch.zeros(2)], 0

    def __call__(self, x: Tensor) -> Tensor:
        self.n += 1
        if self.n == 5:
            self.line = [torch.zeros(2), torch.zeros(2)]
        self.line.append(x)
        return self.line.pop(0) + x


@hostile("A", rec={"x": normal(2)}, passes=6)
class WriteIntoTheQueue:
    """What waits in the queue is changed there in place."""

    def __init__(self) -> None:
        self.line = [torch.zeros(2), torch.ones(2)]

    def __call__(self, x: Tensor) -> Tensor:
        self.line.append(x.clone())
        self.line[1].mul_(0.5)
        return self.line.pop(0) + x


@hostile("A", rec={"x": normal(2)}, passes=6)
class SharedInTwoQueues:
    """One tensor goes into two queues of unlike length, and is doubled in one of them."""

    def __init__(self) -> None:
        self.a = [torch.zeros(2)]
        self.b = [torch.zeros(2) for _ in range(3)]

    def __call__(self, x: Tensor) -> Tensor:
        v = x * 1.0
        self.a.append(v)
        self.b.append(v)
        first = self.a.pop(0)
        first *= 2
        return first - self.b.pop(0)


@hostile("A", rec={"x": normal(2)}, passes=7, session={"max_cached_io": 2})
class DelayWithFewSamples:
    """Fewer passes are kept than the delay is long."""

    def __init__(self) -> None:
        self.line = [torch.zeros(2) for _ in range(3)]

    def __call__(self, x: Tensor) -> Tensor:
        self.line.append(x)
        return self.line.pop(0) + x


@hostile("A", rec={"x": normal(2), "k": integers(0, 3, 1)}, passes=8)
class DelayChosenByInput:
    """A delay that an input chooses, by indexing a list with a number."""

    def __init__(self) -> None:
        self.past = [torch.zeros(2) for _ in range(3)]

    def __call__(self, x: Tensor, k: Tensor) -> Tensor:
        self.past = [x, *self.past[:2]]
        return self.past[int(k)] * 1.0


@clean("A", rec={"x": normal(2), "k": integers(0, 3, 1)}, passes=8)
class DelayChosenByTensor:
    """The same, indexed as a tensor."""

    def __init__(self) -> None:
        self.past = [torch.zeros(2) for _ in range(3)]

    def __call__(self, x: Tensor, k: Tensor) -> Tensor:
        self.past = [x, *self.past[:2]]
        return torch.stack(self.past).index_select(0, k).squeeze(0)


@hostile("A", rec={"x": uniform(0.0, 1.0, 2)}, fresh={"x": normal(2, s=4)}, passes=8)
class DelayedLatch:
    """A flag of two ticks ago that stays down while recorded."""

    def __init__(self) -> None:
        self.flags = [torch.zeros(1, dtype=torch.bool)] * 2

    def __call__(self, x: Tensor) -> Tensor:
        self.flags.append((x > 3).any().reshape(1))
        return torch.where(self.flags.pop(0), -x, x)


@clean("A", style="own", rec={"act/obs": normal(1, 3)}, passes=7)
def driver_with_latency(backend: str):
    """The driver keeps the last two actions and passes them in."""
    net = nn.Linear(9, 3)
    past = [torch.zeros(1, 3), torch.zeros(1, 3)]

    def step(given):
        obs, a1, a2 = annotate.input_tensors(
            "act", {"obs": given["act/obs"], "a1": past[0], "a2": past[1]}
        )
        action = net(torch.cat([obs, a1, a2], -1)).tanh()
        annotate.output_tensors("act", {"action": action}, export_with=backend)
        past.insert(0, action)
        past.pop()
        return {"act/action": action}

    return step
