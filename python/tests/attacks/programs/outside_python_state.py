"""Python state in every container that there is, and every way of deciding by it."""

from __future__ import annotations

import array
import asyncio
import collections
import contextlib
import ctypes
import datetime
import decimal
import queue
import random
import types

import torch
from torch import Tensor, nn

from attacks.draws import fixed, normal
from attacks.programs import outside_settings as settings
from attacks.registry import clean, hostile

_REC = {"x": normal(1, 3)}


def _counting(name: str, make, bump, read) -> None:
    """Register a program whose count lies in what `make` gives."""

    class Code:
        def __init__(self) -> None:
            self.box = make()

        def __call__(self, x: Tensor) -> Tensor:
            bump(self.box)
            return x if read(self.box) < 7 else -x

    hostile("A", rec=_REC, passes=4, name=name)(Code)


def _add(key):
    def bump(box) -> None:
        box[key] += 1

    return bump


def _item(key):
    return lambda box: box[key]


_counting("outside_in_counter", collections.Counter, _add("n"), _item("n"))
_counting("outside_in_dict", lambda: {"n": 0}, _add("n"), _item("n"))
_counting("outside_in_ordered", lambda: collections.OrderedDict(n=0), _add("n"), _item("n"))
_counting("outside_in_default", lambda: collections.defaultdict(int), _add("n"), _item("n"))
_counting("outside_in_user_dict", lambda: collections.UserDict(n=0), _add("n"), _item("n"))
_counting("outside_in_bytearray", lambda: bytearray(1), _add(0), _item(0))
_counting("outside_in_array", lambda: array.array("i", [0]), _add(0), _item(0))
_counting("outside_in_ctypes", lambda: (ctypes.c_int * 1)(), _add(0), _item(0))
_counting("outside_in_long_list", lambda: [0] * 100, _add(90), _item(90))
_counting("outside_in_queue", queue.Queue, lambda box: box.put(1), lambda box: box.qsize())
_counting(
    "outside_deep_inside",
    lambda: {"a": {"b": {"c": {"d": {"e": {"f": [0]}}}}}},
    lambda box: _add(0)(box["a"]["b"]["c"]["d"]["e"]["f"]),
    lambda box: box["a"]["b"]["c"]["d"]["e"]["f"][0],
)


@hostile("A", rec=_REC, passes=4)
class OutsideDecimal:
    def __init__(self) -> None:
        self.t = decimal.Decimal("0.0")

    def __call__(self, x: Tensor) -> Tensor:
        self.t += decimal.Decimal("0.1")
        return x if self.t < decimal.Decimal("0.65") else -x


@hostile("A", rec=_REC, passes=4)
class OutsideTimedelta:
    """Simulated time as a `datetime`."""

    def __init__(self) -> None:
        self.start = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
        self.time = self.start

    def __call__(self, x: Tensor) -> Tensor:
        self.time += datetime.timedelta(milliseconds=20)
        return x if self.time - self.start < datetime.timedelta(milliseconds=130) else -x


@hostile("A", rec=_REC, passes=4)
class OutsideCountOnTensor(nn.Module):
    """The count is an attribute of a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(3))
        self.gain.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.gain.calls += 1
        return x * self.gain if self.gain.calls < 7 else -x


@hostile("A", rec=_REC, passes=4)
def outside_settings_module():
    settings.tick = 0

    def step(x: Tensor) -> Tensor:
        settings.tick += 1
        return x if settings.tick < 7 else -x

    return step


@hostile("A", rec=_REC, passes=4)
def outside_coroutine():
    """A behaviour as a coroutine that is sent observations."""

    @types.coroutine
    def observation(last):
        return (yield last)

    async def behave():
        x = await observation(None)
        for _ in range(6):
            x = await observation(x)
        while True:
            x = await observation(-x)

    running = behave()
    running.send(None)
    return lambda x: running.send(x)


@hostile("A", rec=_REC, passes=4)
def outside_async_loop():
    loop, seen = asyncio.new_event_loop(), {"n": 0}

    async def act(x: Tensor) -> Tensor:
        await asyncio.sleep(0)
        seen["n"] += 1
        return x if seen["n"] < 7 else -x

    return lambda x: loop.run_until_complete(act(x))


@hostile("A", rec=_REC, passes=3)
def outside_rare_drop():
    """A packet is lost now and then, by Python's own generator."""

    def step(x: Tensor) -> Tensor:
        if random.random() < 0.3:
            return torch.zeros_like(x) + 0 * x
        return x * 2

    return step


@hostile("B", rec={"x": fixed([[0.0, 0.0, 0.0]])}, fresh={"x": normal(1, 3)}, passes=4)
class OutsideDropoutAtRest(nn.Module):
    """Dropout of zeros is zero."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(x) + x


@hostile("B", rec={"x": normal(1, 3)}, passes=4)
class OutsideNoiseWithZeroScale:
    """Noise whose scale a schedule raises after the recording."""

    def __init__(self) -> None:
        self.scale, self.n = torch.zeros(1), 0

    def __call__(self, x: Tensor) -> Tensor:
        self.n += 1
        if self.n > 6:
            self.scale.fill_(1.0)
        return x + self.scale * torch.randn_like(x)


def _deciding(name: str, decide) -> None:
    """Register a program that counts plainly, and decides by `decide(self, x)`."""

    class Code(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n = 0
            self.net = nn.Linear(3, 3)
            self.nets = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
            self.calls = [lambda x: x, lambda x: -x]

        def early(self, x: Tensor) -> Tensor:
            return x

        def late(self, x: Tensor) -> Tensor:
            return -x

        def forward(self, x: Tensor) -> Tensor:
            self.n += 1
            return decide(self, x)

    hostile("A", rec=_REC, passes=4, name=name)(Code)


def _by_tuple(self, x: Tensor) -> Tensor:
    return (x, -x)[self.n > 6]


def _by_name(self, x: Tensor) -> Tensor:
    return getattr(self, ("early", "late")[min(self.n // 7, 1)])(x)


def _by_table(self, x: Tensor) -> Tensor:
    return self.calls[self.n // 7 % 2](x)


def _by_loop(self, x: Tensor) -> Tensor:
    for _ in range(self.n // 7):
        x = x * 2
    return x


def _by_roll(self, x: Tensor) -> Tensor:
    return torch.roll(x, self.n // 7, -1)


def _by_slice(self, x: Tensor) -> Tensor:
    y = x.clone()
    y[:, : self.n // 7] = 0
    return y


def _by_text(self, x: Tensor) -> Tensor:
    return eval("x" if self.n < 7 else "-x", {"x": x})


def _by_exception(self, x: Tensor) -> Tensor:
    try:
        assert self.n < 7
        return x
    except AssertionError:
        return -x


def _by_context(self, x: Tensor) -> Tensor:
    lower = self.n > 6
    with torch.autocast("cpu", torch.bfloat16) if lower else contextlib.nullcontext():
        return self.net(x).float()


def _by_module_swap(self, x: Tensor) -> Tensor:
    if self.n == 7:
        self.nets[0] = nn.Identity()
    return self.nets[0](x)


def _by_init(self, x: Tensor) -> Tensor:
    if self.n == 7:
        nn.init.zeros_(self.net.weight)
    return self.net(x)


def _by_fill(self, x: Tensor) -> Tensor:
    if self.n >= 7:
        self.net.bias.data.fill_(5.0)
    return self.net(x)


def _by_vector(self, x: Tensor) -> Tensor:
    if self.n == 7:
        nn.utils.vector_to_parameters(torch.zeros(12), self.net.parameters())
    return self.net(x)


def _by_short_circuit(self, x: Tensor) -> Tensor:
    return (self.n < 7 and x.abs()) if self.n < 7 else x.neg()


def _by_sorted(self, x: Tensor) -> Tensor:
    order = sorted(range(3), key=lambda i: (i + self.n // 7) % 3)
    return x[:, order]


def _by_zip(self, x: Tensor) -> Tensor:
    total = torch.zeros(1, 3)
    for _, net in zip(range(1 + self.n // 7), self.nets, strict=False):
        total = total + net(x)
    return total


def _by_list(self, x: Tensor) -> Tensor:
    return sum(net(x) for i, net in enumerate(self.nets) if i <= self.n // 7)


for _name, _decide in list(globals().items()):
    if _name.startswith("_by_"):
        _deciding("outside" + _name, _decide)


# Clean neighbours: the same counts, and nothing hangs on them.


@clean("H", rec=_REC, passes=5)
class OutsideCountsEverything(nn.Module):
    """Counters of all kinds for a report."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 2)
        self.stats = collections.Counter()
        self.time = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
        self.last: collections.deque[float] = collections.deque(maxlen=3)

    def report(self) -> str:
        return f"{self.stats['ticks']} ticks until {self.time}"

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x)
        self.stats["ticks"] += 1
        self.time += datetime.timedelta(milliseconds=20)
        self.last.append(float(self.stats["ticks"]))
        return y


@clean("H", rec=_REC, passes=5)
class OutsideProfiled:
    """A context that times a block and adds it up."""

    class Timer:
        def __init__(self) -> None:
            self.total, self.entries = 0.0, 0

        def __enter__(self):
            self.began = datetime.datetime.now(tz=datetime.timezone.utc)
            return self

        def __exit__(self, *args: object) -> None:
            now = datetime.datetime.now(tz=datetime.timezone.utc)
            self.total += (now - self.began).total_seconds()
            self.entries += 1

    def __init__(self) -> None:
        self.net, self.timer = nn.Linear(3, 2), self.Timer()

    def __call__(self, x: Tensor) -> Tensor:
        with self.timer:
            return self.net(x)


@clean("H", rec=_REC, passes=4)
class OutsideCheckpointEvery(nn.Module):
    """Every second tick a copy of the weights is put aside."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.n, self.kept = nn.Linear(3, 2), 0, {}

    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        if self.n % 2 == 0:
            self.kept[self.n] = {k: v.clone() for k, v in self.net.state_dict().items()}
        return self.net(x)


@clean("H", rec=_REC, passes=4)
class OutsideTicketNumber:
    """Every answer has a number, which goes into a message that nobody computes with."""

    def __init__(self) -> None:
        self.net, self.number, self.sent = nn.Linear(3, 2), 0, []

    def __call__(self, x: Tensor) -> Tensor:
        y = self.net(x)
        self.number += 1
        self.sent.append({"id": self.number, "shape": list(y.shape)})
        self.sent = self.sent[-2:]
        return y
