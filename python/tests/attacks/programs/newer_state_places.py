"""States in unusual places."""

from __future__ import annotations

import contextlib
import contextvars
import copy
import enum
import functools
import io
import logging
import os
import pickle
import re
import sqlite3
import struct
import types
import unittest.mock
import warnings
import weakref
from collections import ChainMap, Counter, OrderedDict, defaultdict, namedtuple
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import fixed, integers, normal, uniform
from attacks.registry import hostile


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="onnx")
class NsCoroutineFilter:
    """A filter is a generator that is sent values; its settling count is a local variable."""

    def __init__(self) -> None:
        self.filter = self._run()
        next(self.filter)

    def _run(self) -> Generator[Tensor, Tensor, None]:
        y = torch.zeros(1, 3)
        for alpha in (0.5,) * 6:
            y = y + alpha * ((yield y) - y)
        while True:
            y = y + 0.05 * ((yield y) - y)

    def __call__(self, x: Tensor) -> Tensor:
        return self.filter.send(x)


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsAwaitedPlan:
    """A plan is a native coroutine, stepped by hand: it awaits six ticks and then turns around."""

    @types.coroutine
    def _tick(self) -> Generator[float, None, None]:
        yield self.heading

    async def _plan(self) -> None:
        for _ in range(6):
            await self._tick()
        self.heading = -1.0
        while True:
            await self._tick()

    def __init__(self) -> None:
        self.heading = 1.0
        self.plan = self._plan()

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.plan.send(None)


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="onnx")
class NsContextVarGain:
    """A gain in a context variable is set anew by a callee after some ticks."""

    def __init__(self) -> None:
        self.gain: contextvars.ContextVar[tuple[float, int]] = contextvars.ContextVar("gain")
        self.context = contextvars.Context()
        self.context.run(self.gain.set, (1.0, 0))

    def _inner(self) -> float:
        gain, age = self.gain.get()
        self.gain.set((gain if age < 6 else 0.5, age + 1))
        return gain

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.context.run(self._inner)


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsCacheMisses:
    """The number of misses of a cache tells how many bins of the input were ever seen."""

    def __init__(self) -> None:
        @functools.lru_cache(maxsize=None)
        def bin_gain(_key: int) -> float:
            return 1.0

        self.bin_gain = bin_gain

    def __call__(self, x: Tensor) -> Tensor:
        y = x * self.bin_gain(0)
        if self.bin_gain.cache_info().hits > 6:
            y = y + 1.0
        return y


@hostile(
    "A",
    passes=4,
    rec={"x": normal(1, 3), "mode": fixed(1)},
    fresh={"x": normal(1, 3), "mode": integers(0, 3)},
    backends="jit",
)
class NsCachedByMode:
    """A result is cached by the number of a mode: what was made first for it is given for ever."""

    def __init__(self) -> None:
        self.make = functools.lru_cache(self._make)

    def _make(self, mode: int) -> Tensor:
        return torch.eye(3) * (mode + 1)

    def __call__(self, x: Tensor, mode: Tensor) -> Tensor:
        return x @ self.make(int(mode))


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="pt2")
class NsCachedProperty:
    """A cached property is deleted every sixth tick, so that it is made of the state anew."""

    def __init__(self) -> None:
        self.bias = torch.zeros(1, 3)
        self.age = 0

    @functools.cached_property
    def offset(self) -> Tensor:
        return self.bias.clone()

    def __call__(self, x: Tensor) -> Tensor:
        self.bias = 0.5 * self.bias + x
        y = x - self.offset
        self.age += 1
        if self.age % 6 == 0:
            del self.offset
        return y


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="onnx")
class NsWeakTarget:
    """A target is held weakly by the controller; its owner drops it later."""

    class _Target:
        def __init__(self) -> None:
            self.pos = torch.ones(1, 3)

    def __init__(self) -> None:
        self.owners = [self._Target()] * 7
        self.ref = weakref.ref(self.owners[0])

    def __call__(self, x: Tensor) -> Tensor:
        if self.owners:
            self.owners.pop()
        target = self.ref()
        return x if target is None else x - target.pos


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsFinalizer:
    """A lease object dies with the last of its references, and its finalizer cuts the gain."""

    class _Lease:
        pass

    def __init__(self) -> None:
        self.box = types.SimpleNamespace(gain=2.0)
        lease = self._Lease()
        weakref.finalize(lease, setattr, self.box, "gain", 0.5)
        self.holders = {number: lease for number in range(6)}

    def __call__(self, x: Tensor) -> Tensor:
        if self.holders:
            self.holders.popitem()
        return x * self.box.gain


class _Cooldown:
    """A descriptor that counts how often it was read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.slot = f"_{name}_reads"

    def __get__(self, owner: Any, kind: type) -> float:
        reads = owner.__dict__.get(self.slot, 0)
        owner.__dict__[self.slot] = reads + 1
        return 1.0 if reads < 7 else 0.3


@hostile("A", passes=4, rec={"x": normal(1, 3)}, style="method", backends="jit")
class NsDescriptorReads:
    """A thermal model in a descriptor: the factor falls after it was read seven times."""

    torque = _Cooldown()

    def step(self, x: Tensor) -> Tensor:
        action = x.clamp(-1, 1) * self.torque
        return action


class _Phase(enum.Enum):
    STAND = 0
    WALK = 1

    @property
    def next(self) -> _Phase:
        return _Phase((self.value + 1) % 2)


class _Gait(NamedTuple):
    phase: _Phase
    left: int


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="onnx")
class NsEnumGait:
    """A named tuple of a phase and the ticks that are left is replaced in every tick."""

    def __init__(self) -> None:
        self.gait = _Gait(_Phase.STAND, 6)

    def __call__(self, x: Tensor) -> Tensor:
        self.gait = self.gait._replace(left=self.gait.left - 1)
        if not self.gait.left:
            self.gait = _Gait(self.gait.phase.next, 3)
        return x * (1 if self.gait.phase is _Phase.STAND else -1)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsClassSwap:
    """An object changes its class when it is warm, the way the state pattern is sometimes done."""

    class _Warm:
        def act(self, x: Tensor) -> Tensor:
            return x * 2

    class _Cold(_Warm):
        def act(self, x: Tensor) -> Tensor:
            self.n = getattr(self, "n", 0) + 1
            if self.n >= 6:
                self.__class__ = NsClassSwap._Warm
            return x

    def __init__(self) -> None:
        self.motor = self._Cold()

    def __call__(self, x: Tensor) -> Tensor:
        return self.motor.act(x)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="onnx")
class NsMethodSwap:
    """The step is an attribute that replaces itself; the count is a default argument."""

    def __init__(self) -> None:
        def first(x: Tensor, seen: list[int] = []) -> Tensor:  # noqa: B006
            seen.append(1)
            if len(seen) == 6:
                self.act = self.later
            return x

        self.act = first

    def later(self, x: Tensor) -> Tensor:
        return x.abs()

    def __call__(self, x: Tensor) -> Tensor:
        return self.act(x)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsFunctionDefaults:
    """A function's __defaults__ are written by its caller, a trick of old plugins."""

    def __init__(self) -> None:
        def scale(x: Tensor, k: float = 1.0, n: int = 0) -> Tensor:
            return x * k

        self.scale = scale

    def __call__(self, x: Tensor) -> Tensor:
        y = self.scale(x)
        k, n = self.scale.__defaults__
        self.scale.__defaults__ = (k if n < 5 else 3.0, n + 1)
        return y


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsPartialRebound:
    """A partial is replaced by one with another keyword once its budget is spent."""

    def __init__(self) -> None:
        self.act = functools.partial(self._act, budget=12.0)

    def _act(self, x: Tensor, *, budget: float, gain: float = 1.0) -> Tensor:
        budget -= 2.0
        words = dict(self.act.keywords, budget=budget)
        if budget <= 0:
            words["gain"] = 0.2
        self.act = functools.partial(self._act, **words)
        return x * gain

    def __call__(self, x: Tensor) -> Tensor:
        return self.act(x)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsMockedDriver:
    """A driver is a mock with a list of answers; how often it was called is used, too."""

    def __init__(self) -> None:
        self.driver = unittest.mock.Mock(side_effect=[1.0] * 6 + [0.0] * 60)

    def __call__(self, x: Tensor) -> Tensor:
        enabled = self.driver("read")
        return x * enabled


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsWarnedOnce:
    """A warning that is raised as an error only after others of its kind were collected."""

    def __init__(self) -> None:
        self.caught: list[Any] = []

    def __call__(self, x: Tensor) -> Tensor:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            warnings.warn("late", stacklevel=1)
        self.caught += found
        return x / (1 + len(self.caught) // 6)


class _Counting(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.seen = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        self.seen[record.levelname] += 1


@hostile(
    "A", passes=4, rec={"x": uniform(0, 1, 1, 2)}, fresh={"x": uniform(0, 3, 1, 2)}, backends="jit"
)
class NsLogHandler:
    """A handler of the log counts warnings, and the node reads the count back."""

    def __init__(self) -> None:
        self.handler = _Counting()
        self.log = logging.Logger("ns")
        self.log.addHandler(self.handler)

    def __call__(self, x: Tensor) -> Tensor:
        if x.max() > 2.0:
            self.log.warning("beyond the limit")
        return x * 0.5 ** self.handler.seen["WARNING"]


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsSqliteTicks:
    """Ticks are rows of a table in memory; a query of their number gives the level."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table ticks (n integer primary key)")

    def __call__(self, x: Tensor) -> Tensor:
        self.db.execute("insert into ticks default values")
        (level,) = self.db.execute("select count(*) / 6 from ticks").fetchone()
        return x + level


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="onnx")
class NsPackedHeader:
    """Counters live in a packed header of bytes, as in a message of a bus."""

    def __init__(self) -> None:
        self.header = bytearray(struct.pack("<HB", 65530, 1))

    def __call__(self, x: Tensor) -> Tensor:
        seq, epoch = struct.unpack_from("<HB", self.header)
        seq += 1
        struct.pack_into("<HB", self.header, 0, seq & 0xFFFF, epoch + (seq >> 16))
        return x * float(self.header[2])


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsPickledSelf:
    """The state is stored as a pickle after every tick, and restored before the next."""

    def __init__(self) -> None:
        self.stored = pickle.dumps({"mean": torch.zeros(1, 2), "n": 0})

    def __call__(self, x: Tensor) -> Tensor:
        state = pickle.loads(self.stored)
        state["mean"] = 0.7 * state["mean"] + 0.3 * x
        state["n"] += 1
        self.stored = pickle.dumps(state)
        return state["mean"] * 1.0


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsSavedTensorFile:
    """A hidden state goes through torch.save and torch.load of a buffer of bytes."""

    def __init__(self) -> None:
        self.file = io.BytesIO()
        torch.save(torch.zeros(1, 2), self.file)

    def __call__(self, x: Tensor) -> Tensor:
        self.file.seek(0)
        h = torch.load(self.file)
        h = torch.tanh(h + x)
        self.file = io.BytesIO()
        torch.save(h, self.file)
        return 2 * h


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="pt2")
class NsEnvironment:
    """A level is kept in the process's environment, which the constructor sets back."""

    def __init__(self) -> None:
        os.environ["NS_LEVEL"] = "0"

    def __call__(self, x: Tensor) -> Tensor:
        level = int(os.environ["NS_LEVEL"]) + 1
        os.environ["NS_LEVEL"] = str(level)
        return x + (2.0 if level > 6 else 0.0)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="onnx")
class NsTensorAttribute:
    """The age of a tensor is an attribute of the tensor object itself."""

    def __init__(self) -> None:
        self.goal = torch.ones(1, 2)
        self.goal.age = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.goal.age += 1
        return x - (self.goal if self.goal.age < 7 else 0.0)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsVersionCounter:
    """A cache is judged by torch's own version counter of a scratch buffer."""

    def __init__(self) -> None:
        self.scratch = torch.zeros(1, 2)

    def __call__(self, x: Tensor) -> Tensor:
        self.scratch.copy_(x)
        return self.scratch * (1.0 if self.scratch._version < 7 else -1.0)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsGradAsStore:
    """The last command is kept in .grad of a parameter, because it is a place that exists."""

    def __init__(self) -> None:
        self.p = nn.Parameter(torch.ones(1, 2))

    def __call__(self, x: Tensor) -> Tensor:
        last = self.p.grad
        self.p.grad = x.clone()
        return x if last is None else x - last


@hostile("A", passes=5, rec={"x": normal(1, 2)}, backends="jit")
class NsChainedScopes:
    """Settings are scopes of a chain map; a new scope is opened when the last is full."""

    def __init__(self) -> None:
        self.scopes = ChainMap({"gain": 1.0, "n": 0})

    def __call__(self, x: Tensor) -> Tensor:
        self.scopes["n"] += 1
        if self.scopes["n"] % 7 == 0:
            self.scopes = self.scopes.new_child({"gain": self.scopes["gain"] * 2})
        return x * self.scopes["gain"]


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsLruEviction:
    """An ordered dict of eight places: the calibration is evicted when others have filled it."""

    def __init__(self) -> None:
        self.places: OrderedDict[Any, float] = OrderedDict(calibration=0.5)

    def __call__(self, x: Tensor) -> Tensor:
        self.places[len(self.places), id(self)] = 1.0
        if len(self.places) > 7:
            self.places.popitem(last=False)
        return x * self.places.get("calibration", 1.0)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsExitStack:
    """Callbacks of an exit stack are popped one by one; one of them does something."""

    def __init__(self) -> None:
        self.offset = 0.0
        self.stack = contextlib.ExitStack()
        self.stack.callback(self.set, 2.0)
        for _ in range(6):
            self.stack.callback(self.set, 0.0)

    def set(self, value: float) -> None:
        self.offset = value

    def __call__(self, x: Tensor) -> Tensor:
        head = self.stack.pop_all()
        if head._exit_callbacks:
            _, last = head._exit_callbacks.pop()
            last(None, None, None)
        self.stack = head
        return x + self.offset


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsRegexScript:
    """A motion script is a text that a regular expression walks over."""

    def __init__(self) -> None:
        self.words = re.finditer(r"\w+", "go " * 6 + "back " * 4 + "go " * 30)

    def __call__(self, x: Tensor) -> Tensor:
        return x if next(self.words).group() == "go" else -x


class _Stale(float):
    """A float whose product depends on how often it was used."""

    def __rmul__(self, other: Any) -> Any:
        self.n = getattr(self, "n", 0) + 1
        return other * (1.0 if self.n <= 6 else 0.0)

    __mul__ = __rmul__


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsFloatSubclass:
    """A gain is a float of an own class that wears out."""

    def __init__(self) -> None:
        self.gain = _Stale(1.0)

    def __call__(self, x: Tensor) -> Tensor:
        return self.gain * x


class _Sequence:
    def __init__(self) -> None:
        self.asked = 0

    def __bool__(self) -> bool:
        self.asked += 1
        return self.asked > 6

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.full((1, 2), float(self.asked // 6), dtype=dtype or np.float32)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsArrayProtocol:
    """A handle becomes an array when torch asks for one, and it is true only later."""

    def __init__(self) -> None:
        self.handle = _Sequence()

    def __call__(self, x: Tensor) -> Tensor:
        ready = not not self.handle
        return x + torch.as_tensor(np.asarray(self.handle)) * (2 if ready else 1)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsDeepCopied:
    """The whole estimator is copied deeply in every tick, as a planner that branches does."""

    @dataclass
    class _Estimate:
        mean: Tensor
        age: int = 0

        def update(self, x: Tensor) -> None:
            self.mean += (x - self.mean) * (0.5 if self.age < 6 else 0.1)
            self.age += 1

    def __init__(self) -> None:
        self.now = self._Estimate(torch.zeros(1, 2))

    def __call__(self, x: Tensor) -> Tensor:
        branch = copy.deepcopy(self.now)
        branch.update(x)
        self.now = branch
        return branch.mean.clone()


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="jit")
class NsDefaultFactory:
    """A default dict gives each new tick the next number; the table is asked by tick."""

    def __init__(self) -> None:
        self.ids: defaultdict[int, int] = defaultdict(lambda: len(self.ids) // 6)

    def __call__(self, x: Tensor) -> Tensor:
        return x * (1 - self.ids[len(self.ids)])


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="pt2")
class NsAnnotatedRegistry:
    """Objects register themselves in a list of their owner; a sum over it grows at the seventh."""

    class _Ping:
        def __init__(self, registry: list[Any]) -> None:
            registry.append(self)

        @property
        def weight(self) -> float:
            return 0.0 if self.order < 6 else 1.0

    def __init__(self) -> None:
        self.registry: list[Any] = []

    def __call__(self, x: Tensor) -> Tensor:
        self._Ping(self.registry).order = len(self.registry)
        return x + sum(ping.weight for ping in self.registry)


@hostile("A", passes=4, rec={"x": normal(1, 2)}, backends="onnx")
class NsNestedDicts:
    """Parameters lie in a dict of dicts, which a key path of a schedule overwrites."""

    def __init__(self) -> None:
        self.config = {"ctrl": {"pd": {"kp": 1.0, "kd": 0.1}}, "tick": 0}
        self.patches = {7: ("ctrl.pd.kp", 4.0), 9: ("ctrl.pd.kd", 1.0)}

    def __call__(self, x: Tensor) -> Tensor:
        path, value = self.patches.get(self.config["tick"], ("tick", self.config["tick"]))
        *folders, leaf = path.split(".")
        functools.reduce(dict.__getitem__, folders, self.config)[leaf] = value
        self.config["tick"] += 1
        pd = self.config["ctrl"]["pd"]
        return pd["kp"] * x - pd["kd"] * x.abs()


_Limits = namedtuple("_Limits", "low high")


def _shrinking() -> Iterator[_Limits]:
    limits = _Limits(-1.0, 1.0)
    yield from [limits] * 5
    while True:
        limits = _Limits(limits.low * 0.5, limits.high * 0.5)
        yield limits


@hostile("A", passes=4, rec={"x": normal(1, 2)}, style="method", backends="onnx")
def NsClosureLimits():  # noqa: ANN201, N802
    """A closure with a generator in a cell; the limits shrink after five ticks."""
    limits = _shrinking()

    def act(x: Tensor) -> Tensor:
        low, high = next(limits)
        y = x.clamp(low, high)
        return y

    return act
