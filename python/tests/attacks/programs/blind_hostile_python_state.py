"""Python state where nobody looks: C objects, the kernel, process settings, types, iterators."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import csv
import ctypes
import dataclasses
import decimal
import enum
import functools
import gc
import hashlib
import heapq
import io
import itertools
import logging.handlers
import mmap
import os
import pickle
import random
import sched
import signal
import socket
import sqlite3
import struct
import sys
import tempfile
import threading
import types
import typing
import weakref
import xml.etree.ElementTree as ET
from collections import ChainMap, OrderedDict, deque
from configparser import ConfigParser

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import normal, uniform
from attacks.registry import hostile

R = {"x": normal(1, 3)}


class _Counting(type):
    """A metaclass that has the number of ticks of all its classes."""

    ticks = 0

    @property
    def late(cls) -> bool:
        type(cls).ticks += 1
        return type(cls).ticks > 7


@hostile("A", rec=R, passes=5)
class BhMetaclassProperty(metaclass=_Counting):
    """The count is an attribute of the metaclass, bumped by a property of the class."""

    def __init__(self) -> None:
        _Counting.ticks = 0

    def __call__(self, x: Tensor) -> Tensor:
        return x.tanh() * (0.1 if type(self).late else 1.0)


class _Warmup:
    """A descriptor that counts how often it is read, per owner, weakly."""

    def __init__(self) -> None:
        self.reads = weakref.WeakKeyDictionary()

    def __get__(self, owner, kind=None) -> float:
        self.reads[owner] = self.reads.get(owner, 0) + 1
        return 1.0 if self.reads[owner] < 8 else 0.25


@hostile("A", rec=R, passes=6)
class BhDescriptorWeak(nn.Module):
    """A descriptor with a WeakKeyDictionary ramps a gain down."""

    gain = _Warmup()

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) * self.gain


@hostile("A", rec=R, passes=4)
def BhWeakrefDies():
    """A lease object is dropped after some ticks; a weakref to it decides."""

    class Lease:
        pass

    held = [Lease() for _ in range(7)]
    watch = weakref.ref(held[-1])
    order = iter(range(7))

    def step(x: Tensor) -> Tensor:
        held[next(order, 0)] = None
        gc.collect(0)
        return x * 2 if watch() is not None else x * 0.0

    return step


@hostile("A", rec=R, passes=3, style="method")
class BhFinalizer:
    """`weakref.finalize` of a token in a deque switches the controller when it falls off."""

    class Token:
        pass

    def __init__(self) -> None:
        self.flag = threading.Event()
        self.tokens = deque(maxlen=6)
        first = self.Token()
        self.fin = weakref.finalize(first, self.flag.set)
        self.tokens.append(first)

    def step(self, x: Tensor) -> Tensor:
        self.tokens.append(self.Token())
        y = -x if self.flag.is_set() else x
        return y


@hostile("A", rec=R, passes=4)
def BhEnvRetries():
    """Retries left are in an environment variable, as launch files do."""
    os.environ["BH_RETRIES"] = "7"

    def step(x: Tensor) -> Tensor:
        left = max(int(os.environ["BH_RETRIES"]) - 1, 0)
        os.environ["BH_RETRIES"] = str(left)
        return x + 1 if left else x - 1

    return step


@hostile("A", rec=R, passes=4)
class BhAnonymousMmap:
    """A heartbeat word in an anonymous mmap, as a shared-memory bridge has."""

    def __init__(self) -> None:
        self.page = mmap.mmap(-1, 16)

    def __call__(self, x: Tensor) -> Tensor:
        (beat,) = struct.unpack_from("<Q", self.page, 8)
        struct.pack_into("<Q", self.page, 8, beat + 1)
        return x.sin() if beat < 7 else x.cos()


@hostile("A", rec=R, passes=4)
class BhBytesCursor:
    """A compiled gait is a byte string; BytesIO keeps the place."""

    def __init__(self) -> None:
        self.gait = io.BytesIO(b"\x01" * 7 + b"\x03" * 90)

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.gait.read(1)[0]


@hostile("A", rec=R, passes=3)
class BhSeekOffset:
    """The state is the kernel's offset of a file descriptor."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile(buffering=0)
        self.file.write(b"0" * 6 + b"1" * 100)
        os.lseek(self.file.fileno(), 0, os.SEEK_SET)

    def __call__(self, x: Tensor) -> Tensor:
        bit = int(os.read(self.file.fileno(), 1))
        return x - 2.0 * bit * x


@hostile("A", rec=R, passes=4)
class BhSocketBacklog:
    """Bytes that nobody reads pile up in a socket: its peeked length is the count."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()

    def __call__(self, x: Tensor) -> Tensor:
        self.ours.send(b".")
        waiting = len(self.theirs.recv(64, socket.MSG_PEEK))
        return x if waiting < 8 else torch.zeros_like(x) * x


@hostile("A", rec=R, passes=4)
def BhDirectoryOfMarks():
    """Marks are empty files in a folder; the next number is how many there are."""
    folder = tempfile.TemporaryDirectory()

    def step(x: Tensor) -> Tensor:
        number = len(os.listdir(folder.name))
        open(os.path.join(folder.name, f"{number:03d}"), "w").close()
        return torch.roll(x, number // 6, dims=-1)

    return step


@hostile("A", rec=R, passes=4)
def BhKwdefaultsRewritten():
    """A keyword-only default is replaced in `__kwdefaults__`."""

    def gain(*, k: float = 1.0, left: int = 6) -> float:
        gain.__kwdefaults__ = {"k": k if left else 4.0, "left": max(left - 1, 0)}
        return k

    return lambda x: x * gain()


@hostile("A", rec=R, passes=4)
def BhDocstringState():
    """The doc string of a helper is its memory."""

    def helper() -> int:
        """0"""
        helper.__doc__ = str(int(helper.__doc__) + 1)
        return len(helper.__doc__)

    def step(x: Tensor) -> Tensor:
        return x / helper()

    return step


@hostile("A", rec=R, passes=4, style="method")
class BhCacheHits:
    """A table is cached; the number of hits is asked for, and past it the robot 'knows the place'."""

    def __init__(self) -> None:
        @functools.lru_cache
        def table(size: int) -> list[float]:
            return [1.0] * size

        self.table = table

    def step(self, x: Tensor) -> Tensor:
        self.table(3)
        y = x * 0.5 if self.table.cache_info().hits > 6 else x * 1.5
        return y


@hostile("A", rec=R, passes=6)
def BhEnumerateZip():
    """`zip(enumerate, cycle)` keeps the phase; the ninth entry is the odd one."""
    phase = zip(enumerate(itertools.count()), itertools.cycle([0] * 8 + [1]))

    def step(x: Tensor) -> Tensor:
        _, odd = next(phase)
        return x + 10.0 * odd

    return step


@hostile("A", rec=R, passes=4)
class BhEventHeap:
    """A discrete-event queue on a heap: events come due after the recording."""

    def __init__(self) -> None:
        self.events = [(6, "slow"), (9, "stop")]
        self.now, self.speed = -1, {"slow": 0.3, "stop": 0.0}
        self.factor = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        self.now += 1
        while self.events and self.events[0][0] <= self.now:
            self.factor = self.speed[heapq.heappop(self.events)[1]]
        return x * self.factor


@hostile("A", rec=R, passes=5)
class BhDequeRotates:
    """Round robin over joint limits by `deque.rotate`; the front one counts."""

    def __init__(self) -> None:
        self.turns = deque([4.0] * 8 + [0.5])

    def __call__(self, x: Tensor) -> Tensor:
        y = x.clamp(-self.turns[0], self.turns[0])
        self.turns.rotate(-1)
        return y


@hostile("A", rec=R, passes=3)
class BhLeastRecentlyUsed:
    """An OrderedDict as LRU: which behaviour is oldest picks the sign."""

    def __init__(self) -> None:
        self.used = OrderedDict((f"b{i}", 1.0) for i in range(7))
        self.used["b6"] = -1.0

    def __call__(self, x: Tensor) -> Tensor:
        oldest = next(iter(self.used))
        self.used.move_to_end(oldest)
        return x * self.used[oldest]


@dataclasses.dataclass(frozen=True)
class _Clock:
    ticks: int = 0
    armed: bool = False


@hostile("A", rec=R, passes=4)
def BhFrozenDataclass():
    """A frozen dataclass in a nonlocal is replaced in each tick."""
    clock = _Clock()

    def step(x: Tensor) -> Tensor:
        nonlocal clock
        clock = dataclasses.replace(clock, ticks=clock.ticks + 1, armed=clock.ticks >= 6)
        return x if not clock.armed else x.abs()

    return step


class _Phase(enum.Enum):
    BOOT, HOME, SETTLE, CHECK, ARM, READY, WALK = range(7)

    @property
    def following(self):
        return _Phase(min(self.value + 1, 6))


@hostile("A", rec=R, passes=5, style="module")
class BhEnumPhases(nn.Module):
    """A start-up sequence as an enum; only the last phase does something else."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.phase = nn.Linear(3, 3), _Phase.BOOT

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x)
        if self.phase is _Phase.WALK:
            y = y * 2 + 1
        self.phase = self.phase.following
        return y


class _Gait(typing.NamedTuple):
    name: str
    left: int


@hostile("A", rec=R, passes=4)
class BhNamedTupleReplace:
    """A NamedTuple `_replace`d each tick, in a class attribute."""

    gait = _Gait("stand", 6)

    def __init__(self) -> None:
        type(self).gait = _Gait("stand", 6)

    def __call__(self, x: Tensor) -> Tensor:
        cls = type(self)
        cls.gait = cls.gait._replace(left=cls.gait.left - 1)
        if cls.gait.left < 0:
            cls.gait = cls.gait._replace(name="trot")
        return {"stand": x, "trot": x.square()}[cls.gait.name]


_DEPTH: contextvars.ContextVar[int] = contextvars.ContextVar("bh_depth", default=0)


@hostile("A", rec=R, passes=4)
class BhContextVariable:
    """The count is in a ContextVar of a context of its own."""

    def __init__(self) -> None:
        self.context = contextvars.Context()

    @staticmethod
    def bump() -> int:
        _DEPTH.set(_DEPTH.get() + 1)
        return _DEPTH.get()

    def __call__(self, x: Tensor) -> Tensor:
        return x if self.context.run(self.bump) < 7 else x + 5


_SEAT = threading.local()


@hostile("A", rec=R, passes=4)
def BhThreadLocal():
    """A module-level thread-local has the tick."""
    _SEAT.n = 0

    def step(x: Tensor) -> Tensor:
        _SEAT.n += 1
        return torch.where(x > 0, x, 0.1 * x) if _SEAT.n < 7 else x

    return step


def _salt(wanted, passes: int) -> int:
    return next(s for s in range(9999) if not any(wanted(s)[: passes + 2]) and any(wanted(s)))


def _drops(seed: int) -> list[bool]:
    rng = random.Random(seed)
    return [rng.random() < 0.15 for _ in range(12)]


@hostile("A", rec=R, passes=4)
class BhPacketLoss:
    """A seeded `random.Random` drops a packet, first after the recording."""

    def __init__(self) -> None:
        self.rng = random.Random(_salt(_drops, 4))

    def __call__(self, x: Tensor) -> Tensor:
        return x * 0.0 if self.rng.random() < 0.15 else x * 1.0


def _spikes(seed: int) -> list[bool]:
    rng = np.random.Generator(np.random.PCG64(seed))
    return [bool(rng.integers(8) == 3) for _ in range(12)]


@hostile("A", rec=R, passes=5)
class BhGeneratorSpike:
    """A NumPy bit generator decides on an exploratory action."""

    def __init__(self) -> None:
        self.rng = np.random.Generator(np.random.PCG64(_salt(_spikes, 5)))

    def __call__(self, x: Tensor) -> Tensor:
        explore = self.rng.integers(8) == 3
        return x + (3.0 if explore else 0.0)


def _digests(salt: int) -> list[bool]:
    h, found = hashlib.sha256(str(salt).encode()), []
    for _ in range(12):
        h.update(b"t")
        found.append(h.digest()[0] < 40)
    return found


@hostile("A", rec=R, passes=4)
class BhHashObject:
    """The state is inside a hashlib object: a rolling authentication code."""

    def __init__(self) -> None:
        self.mac = hashlib.sha256(str(_salt(_digests, 4)).encode())

    def __call__(self, x: Tensor) -> Tensor:
        self.mac.update(b"t")
        return x.neg() if self.mac.digest()[0] < 40 else x.exp()


@hostile("A", rec=R, passes=4)
class BhShiftRegister:
    """Debounce as a shift register in an int that fills with ones."""

    def __init__(self) -> None:
        self.bits = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.bits = ((self.bits << 1) | 1) & 0x7F
        return x if self.bits.bit_count() < 7 else 2 - x


@hostile("A", rec=R, passes=3)
class BhStringRewriting:
    """A Lindenmayer word is rewritten each tick; its length chooses."""

    def __init__(self) -> None:
        self.word = "A"

    def __call__(self, x: Tensor) -> Tensor:
        self.word = self.word.translate({65: "AB", 66: "A"})
        return x if len(self.word) < 21 else x.sigmoid()


@hostile("A", rec=R, passes=4)
class BhExceptionNotes:
    """An exception that is kept collects notes."""

    def __init__(self) -> None:
        self.trouble = RuntimeError("link")

    def __call__(self, x: Tensor) -> Tensor:
        self.trouble.add_note("again")
        return x if len(self.trouble.__notes__) < 8 else x * 0.25


@hostile("A", rec=R, passes=4)
class BhExceptionChain:
    """Faults are chained by `__cause__`; the chain's depth is the severity."""

    def __init__(self) -> None:
        self.last: Exception | None = None

    def depth(self) -> int:
        error, deep = self.last, 0
        while error is not None:
            error, deep = error.__cause__, deep + 1
        return deep

    def __call__(self, x: Tensor) -> Tensor:
        try:
            raise TimeoutError from self.last
        except TimeoutError as error:
            self.last = error
        return x / max(1, self.depth() - 5)


@hostile("A", rec=R, passes=4)
def BhBlackboardModule():
    """A blackboard is a module that is made at run time and found by `sys.modules`."""
    sys.modules["bh_blackboard"] = types.ModuleType("bh_blackboard")
    sys.modules["bh_blackboard"].entries = 0

    def step(x: Tensor) -> Tensor:
        import bh_blackboard as board  # type: ignore[import-not-found]

        board.entries += 1
        return x if board.entries <= 6 else x.flip(-1) * 2

    return step


@hostile("A", rec=R, passes=4)
class BhSqliteSequence:
    """Mission log in SQLite; `total_changes` of the connection decides."""

    def __init__(self) -> None:
        self.base = sqlite3.connect(":memory:", check_same_thread=False)
        self.base.execute("create table log (t integer primary key)")

    def __call__(self, x: Tensor) -> Tensor:
        self.base.execute("insert into log default values")
        return x if self.base.total_changes < 8 else x + x.mean()


@hostile("A", rec=R, passes=4)
class BhScheduler:
    """`sched.scheduler` with simulated time fires a switch."""

    def __init__(self) -> None:
        self.t, self.on = 0.0, []
        self.plan = sched.scheduler(lambda: self.t, lambda _: None)
        self.plan.enter(0.13, 1, self.on.append, (True,))

    def __call__(self, x: Tensor) -> Tensor:
        self.t += 0.02
        self.plan.run(blocking=False)
        return x if self.plan.queue else x.clamp(max=0.0)


@hostile("A", rec=R, passes=3)
def BhLoopCallbacks():
    """An event loop is run one turn per tick; a chain of `call_soon` counts the turns."""
    loop, done = asyncio.new_event_loop(), []

    def hop(left: int) -> None:
        if left:
            loop.call_soon(hop, left - 1)
        else:
            done.append(1)

    loop.call_soon(hop, 6)

    def step(x: Tensor) -> Tensor:
        loop.call_soon(loop.stop)
        loop.run_forever()
        return x - 1 if done else x + 1

    return step


@hostile("A", rec=R, passes=4)
def BhAsyncGenerator():
    """A behaviour is an async generator, driven by hand with `asend`."""

    async def behaviour():
        x = yield None
        for _ in range(7):
            x = yield x * 0.5
        while True:
            x = yield x * 4.0

    running = behaviour()

    def send(value):
        try:
            running.asend(value).send(None)
        except StopIteration as result:
            return result.value

    send(None)
    return send


@hostile("A", rec=R, passes=4)
class BhMemoryHandler:
    """Warnings are buffered by a logging handler; when many wait, the robot slows."""

    def __init__(self) -> None:
        self.handler = logging.handlers.MemoryHandler(1000, flushLevel=99)
        self.log = logging.Logger("bh")
        self.log.addHandler(self.handler)

    def __call__(self, x: Tensor) -> Tensor:
        self.log.warning("tick")
        return x if len(self.handler.buffer) < 8 else x * 0.1


@hostile("A", rec=R, passes=4)
class BhReferenceCount:
    """How many hold the map: `sys.getrefcount` of an object that gets subscribers."""

    def __init__(self) -> None:
        self.map, self.subscribers = object(), []

    def __call__(self, x: Tensor) -> Tensor:
        self.subscribers.append(self.map)
        return x * (1.0 if sys.getrefcount(self.map) < 10 else 2.0)


@hostile("A", rec=R, passes=4)
def BhDecimalPrecision():
    """The precision of the decimal context of the thread goes down each tick."""
    decimal.getcontext().prec = 28

    def step(x: Tensor) -> Tensor:
        context = decimal.getcontext()
        context.prec = max(context.prec - 4, 1)
        return x * float(+decimal.Decimal("1.26"))

    return step


@hostile("A", rec=R, passes=4)
def BhProcessSetting():
    """The limit of the csv module, a number inside a C extension, is raised by one per tick."""
    csv.field_size_limit(1000)

    def step(x: Tensor) -> Tensor:
        before = csv.field_size_limit(csv.field_size_limit() + 1)
        return x if before < 1007 else x * x

    return step


class _Frame(ctypes.Structure):
    _fields_ = [
        ("head", ctypes.c_uint8),
        ("seq", ctypes.c_uint16, 3),
        ("rest", ctypes.c_uint16, 13),
    ]


@hostile("A", rec=R, passes=4)
class BhBitField:
    """A sequence number of three bits in a ctypes structure wraps around to zero."""

    def __init__(self) -> None:
        self.frame = _Frame(0x55, 0, 0)

    def __call__(self, x: Tensor) -> Tensor:
        self.frame.seq += 1
        return x if self.frame.seq else x * 0.5


@hostile("A", rec=R, passes=3)
class BhPickledBlob:
    """State is kept serialised, as a checkpointing behaviour tree does."""

    def __init__(self) -> None:
        self.blob = pickle.dumps({"node": "patrol", "t": 0})

    def __call__(self, x: Tensor) -> Tensor:
        tree = pickle.loads(self.blob)
        tree["t"] += 1
        tree["node"] = "dock" if tree["t"] > 6 else "patrol"
        self.blob = pickle.dumps(tree)
        return x if tree["node"] == "patrol" else x.round()


@hostile("A", rec=R, passes=4)
def BhPartialOfPartial():
    """The count is in the keywords of a partial that is remade."""
    holder = types.SimpleNamespace(act=None)

    def act(x: Tensor, age: int) -> Tensor:
        holder.act = functools.partial(act, age=age + 1)
        return x if age < 7 else x / 2

    holder.act = functools.partial(act, age=0)
    return lambda x: holder.act(x)


class _Late:
    def __call__(self, x: Tensor) -> Tensor:
        return -x


@hostile("A", rec=R, passes=4)
class BhClassSwap:
    """The state pattern: the object becomes another class."""

    def __init__(self) -> None:
        self.rest = list("123456")

    def __call__(self, x: Tensor) -> Tensor:
        self.rest.pop()
        if not self.rest:
            self.__class__ = type("Done", (_Late,), {})
        return x


@hostile("A", rec=R, passes=4)
def BhCodeSwap():
    """Live patching: the function's code object is replaced."""
    fuse = iter(range(6))

    def late(x: Tensor) -> Tensor:
        return x - 7

    def act(x: Tensor) -> Tensor:
        return x + 7

    def step(x: Tensor) -> Tensor:
        if next(fuse, None) is None:
            act.__code__ = late.__code__
        return act(x)

    return step


@hostile("A", rec=R, passes=4)
class BhScopes:
    """A ChainMap gets a child per tick; how many maps there are is the depth of the plan."""

    def __init__(self) -> None:
        self.scope = ChainMap({"gain": 1.0})

    def __call__(self, x: Tensor) -> Tensor:
        self.scope = self.scope.new_child()
        if len(self.scope.maps) == 8:
            self.scope["gain"] = 0.2
        return x * self.scope["gain"]


@hostile("A", rec=R, passes=3)
class BhConsCells:
    """An immutable stack of nested tuples, deeper each tick."""

    def __init__(self) -> None:
        self.stack: tuple = ()

    def __call__(self, x: Tensor) -> Tensor:
        self.stack = (0, self.stack)
        cell, depth = self.stack, 0
        while cell:
            cell, depth = cell[1], depth + 1
        return x if depth < 7 else x.cos()


@hostile("A", rec=R, passes=4)
class BhSemaphoreBudget:
    """A budget of calls is a semaphore: when it is used up the answer is a fallback."""

    def __init__(self) -> None:
        self.budget = threading.BoundedSemaphore(6)

    def __call__(self, x: Tensor) -> Tensor:
        return x.exp() if self.budget.acquire(blocking=False) else x.new_ones(x.shape) + 0 * x


@hostile("A", rec=R, passes=4)
def BhSignalCount():
    """A signal handler counts beats that are raised in the step."""
    beats = [0]
    signal.signal(signal.SIGUSR2, lambda *_: beats.__setitem__(0, beats[0] + 1))

    def step(x: Tensor) -> Tensor:
        signal.raise_signal(signal.SIGUSR2)
        return x if beats[0] < 8 else x * 3

    return step


@hostile("A", rec=R, passes=5)
class BhExitStackGrows:
    """Clean-ups are pushed on an ExitStack; at eight it is closed, and one of them switches."""

    def __init__(self) -> None:
        self.stack, self.mode = contextlib.ExitStack(), {"sign": 1.0}
        self.stack.callback(self.mode.update, sign=-1.0)
        self.left = iter("abcdefg")

    def __call__(self, x: Tensor) -> Tensor:
        self.stack.callback(int)
        if next(self.left, None) is None:
            self.stack.close()
        return x * self.mode["sign"]


@hostile("A", rec=R, passes=4)
class BhParameterServer:
    """Parameters are strings in a ConfigParser that the step itself updates."""

    def __init__(self) -> None:
        self.config = ConfigParser()
        self.config.read_string("[drive]\nuses = 0\nlimit = 9\n")

    def __call__(self, x: Tensor) -> Tensor:
        uses = self.config.getint("drive", "uses") + 1
        self.config.set("drive", "uses", str(uses))
        if uses == 7:
            self.config.set("drive", "limit", "0.5")
        limit = self.config.getfloat("drive", "limit")
        return x.clamp(-limit, limit)


@hostile("A", rec=R, passes=3)
class BhBehaviourXml:
    """A behaviour tree in XML; ticks are attributes of a C element."""

    def __init__(self) -> None:
        self.tree = ET.fromstring("<Sequence><Wait ticks='6'/><Reverse/></Sequence>")

    def __call__(self, x: Tensor) -> Tensor:
        node = self.tree[0]
        if node.tag == "Wait":
            node.set("ticks", str(int(node.get("ticks")) - 1))
            if node.get("ticks") == "0":
                self.tree.remove(node)
            return x
        return -x


@hostile("A", rec=R, passes=4)
def BhTorchSeedAsCounter():
    """The count is torch's own seed: each tick reseeds with the next."""
    torch.manual_seed(0)

    def step(x: Tensor) -> Tensor:
        torch.manual_seed(torch.initial_seed() + 1)
        return x if torch.initial_seed() < 8 else x * 0.5

    return step


@hostile("A", rec=R, passes=4)
def BhRandomPosition():
    """The position inside NumPy's legacy generator is read as a tick."""
    np.random.seed(1)
    np.random.random_sample()

    def step(x: Tensor) -> Tensor:
        np.random.random_sample()
        return x if np.random.get_state()[2] < 18 else x - 4

    return step


@hostile("A", rec=R, passes=4)
class BhVersionCounter:
    """A weight is touched without change; torch's version counter of it decides."""

    def __init__(self) -> None:
        self.w = torch.ones(3)
        self.start = self.w._version

    def __call__(self, x: Tensor) -> Tensor:
        self.w.add_(0.0)
        return x * self.w if self.w._version - self.start < 8 else x * self.w * 5


@hostile("A", rec=R, passes=4)
class BhHooksPileUp(nn.Module):
    """A leak: every call registers one more hook; together they bite after six."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 2)

    def hook(self, module, args, out):
        return out if len(module._forward_hooks) < 8 else out * 0.9

    def forward(self, x: Tensor) -> Tensor:
        self.net.register_forward_hook(self.hook)
        return self.net(x)


@hostile("A", rec=R, passes=4)
class BhScheduleOfOptimizer:
    """A learning-rate scheduler as a gain schedule."""

    def __init__(self) -> None:
        self.opt = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
        self.plan = torch.optim.lr_scheduler.MultiStepLR(self.opt, [6, 9], gamma=0.1)

    def __call__(self, x: Tensor) -> Tensor:
        y = x * self.plan.get_last_lr()[0]
        self.opt.step()
        self.plan.step()
        return y


@hostile("A", rec=R, passes=4)
class BhLoaderOfGains:
    """Set points come from a DataLoader's iterator."""

    def __init__(self) -> None:
        data = [torch.tensor(1.0)] * 7 + [torch.tensor(3.0)] * 40
        self.batches = iter(torch.utils.data.DataLoader(data, batch_size=None))

    def __call__(self, x: Tensor) -> Tensor:
        return x * float(next(self.batches))


class _Budget:
    """Used as an index; each use makes it smaller."""

    def __init__(self) -> None:
        self.left = 10

    def __index__(self) -> int:
        self.left -= 1
        return max(1, min(3, self.left))


@hostile("A", rec={"x": normal(3)}, passes=4)
def BhIndexObject():
    """A horizon object with `__index__` shrinks; it is used as the bound of a slice."""
    budget = _Budget()

    def step(x: Tensor) -> Tensor:
        y = x.clone()
        y[:budget] = 1.0
        return y

    return step


@hostile("A", rec=R, passes=4)
class BhMissingKey(dict):
    """The object is itself a dict; `__missing__` gives a value, and the size decides."""

    def __missing__(self, key: int) -> float:
        self[key] = 1.0 if key < 7 else -2.0
        return self[key]

    def __call__(self, x: Tensor) -> Tensor:
        return x * self[len(self)]


@hostile("A", rec=R, passes=4)
class BhDeepAndLong:
    """A scene graph, ten levels deep, whose leaf is entry 700 of a list."""

    def __init__(self) -> None:
        self.leaf = None
        node: object = [0] * 900
        for level in range(10):
            node = {"child": node} if level % 2 else types.SimpleNamespace(child=node)
        self.root = node

    def __call__(self, x: Tensor) -> Tensor:
        node = self.root
        while not isinstance(node, list):
            node = node["child"] if isinstance(node, dict) else node.child
        node[700] += 1
        return x if node[700] < 7 else x + 9


class _Slotted:
    __slots__ = ("age", "inner")

    def __init__(self, depth: int) -> None:
        self.age, self.inner = 0, _Slotted(depth - 1) if depth else None


@hostile("A", rec=R, passes=4, style="method")
class BhSlotsNested:
    """Ages in slots, six objects inside one another."""

    __slots__ = ("box",)

    def __init__(self) -> None:
        self.box = _Slotted(6)

    def step(self, x: Tensor) -> Tensor:
        box = self.box
        while box.inner is not None:
            box = box.inner
        box.age += 1
        y = x if box.age < 7 else x * 0.5
        return y


@hostile("A", rec={"x": uniform(-1, 1, 1, 3)}, fresh={"x": normal(1, 3, s=3.0)}, passes=5)
def BhGeneratorThrown():
    """A supervisor throws into the generator of the behaviour when a bound is passed; it never returns."""

    def behaviour():
        try:
            x = yield
            while True:
                x = yield x * 1.0
        except ValueError:
            x = yield
            while True:
                x = yield x * 0.2

    running = behaviour()
    running.send(None)
    once = iter([1])

    def step(x: Tensor) -> Tensor:
        if x.abs().max().item() > 3 and next(once, 0):
            running.throw(ValueError())
        return running.send(x)

    return step
