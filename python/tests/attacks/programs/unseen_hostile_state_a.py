"""Python-held state: counters, timers, queues, iterators, helper objects."""

from __future__ import annotations

import collections
import contextvars
import csv
import enum
import functools
import heapq
import io
import itertools
import queue
import random
import sched
import socket
import sqlite3
import struct
import threading
import types
import weakref
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import normal, uniform
from attacks.registry import hostile


class FakeClock:
    """A clock that counts its readings."""

    def __init__(self, dt: float = 0.02) -> None:
        self._ticks, self._dt = itertools.count(), dt

    def now(self) -> float:
        return next(self._ticks) * self._dt


@hostile("A", rec={"obs": normal(1, 4)}, passes=4, ticks=12)
class ChSoftStart:
    """Torque limit that is raised once the soft-start time of the drive is over."""

    def __init__(self) -> None:
        self.clock, self.t0 = FakeClock(), None
        self.net = nn.Linear(4, 3)

    def __call__(self, obs: Tensor) -> Tensor:
        now = self.clock.now()
        if self.t0 is None:
            self.t0 = now
        limit = 0.1 if now - self.t0 < 0.13 else 1.0
        return self.net(obs).clamp(-limit, limit)


@hostile("A", rec={"cmd": uniform(-1, 1, 1, 3)}, passes=4, ticks=14)
class ChTeleopQueue:
    """Operator offsets that arrive in a queue; the first ones are all the same."""

    def __init__(self) -> None:
        self.inbox: queue.Queue[float] = queue.Queue()
        for v in [0.0] * 7 + [0.3, 0.3, -0.2, 0.5, 0.1]:
            self.inbox.put(v)
        self.last = 0.0

    def __call__(self, cmd: Tensor) -> Tensor:
        try:
            self.last = self.inbox.get_nowait()
        except queue.Empty:
            pass
        return cmd * 0.8 + self.last


def gait_script(stand: int):
    """Yield the scale of each phase."""
    for _ in range(stand):
        yield 0.0
    while True:
        yield 1.0
        yield -1.0


@hostile("A", rec={"phase_rate": uniform(0.5, 1.5, 1, 4)}, passes=5, ticks=14)
class ChGaitScript:
    """A generator stands for six ticks, then trots."""

    def __init__(self) -> None:
        self.script = gait_script(6)
        self.nominal = torch.tensor([[0.1, -0.1, 0.1, -0.1]])

    def __call__(self, phase_rate: Tensor) -> Tensor:
        return self.nominal + next(self.script) * 0.2 * phase_rate


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12)
class ChCycleLegs:
    """itertools.cycle over legs where the first beats are the same leg twice over."""

    def __init__(self) -> None:
        self.legs = itertools.cycle(itertools.chain([2] * 5, [0, 1]))

    def __call__(self, x: Tensor) -> Tensor:
        leg = next(self.legs)
        y = x.clone()
        y[:, leg] = 0.0
        return y


@hostile("A", rec={"obs": normal(2, 5)}, passes=5, ticks=16, backends="onnx")
class ChActionLatency:
    """Isaac-Lab-like delay buffer of actions, delay redrawn by a private random.Random."""

    def __init__(self) -> None:
        self.rng = random.Random(3)
        self.delay, self.left = 0, 7
        self.buffer = collections.deque(maxlen=4)
        self.net = nn.Linear(5, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        self.buffer.appendleft(self.net(obs))
        self.left -= 1
        if self.left == 0:
            self.delay, self.left = self.rng.randint(1, 3), 4
        return self.buffer[min(self.delay, len(self.buffer) - 1)].clone()


@hostile("A", rec={"obs": normal(1, 4)}, passes=4, ticks=12)
class ChPushRobots:
    """Domain randomisation: a push every eight steps, from a private generator of NumPy."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(5)
        self.steps = 0

    def __call__(self, obs: Tensor) -> Tensor:
        self.steps += 1
        push = np.zeros(4, dtype=np.float32)
        if self.steps % 8 == 0:
            push[:2] = self.rng.uniform(0.5, 1.0, 2)
        return obs * 0.9 + torch.from_numpy(push)


class Curriculum:
    """Stages with the step at which they begin."""

    def __init__(self, stages: dict[int, float]) -> None:
        self._stages, self._step = sorted(stages.items()), -1

    def update(self) -> float:
        self._step += 1
        return [v for s, v in self._stages if s <= self._step][-1]


@hostile("A", rec={"cmd": uniform(-1, 1, 3, 3)}, passes=4, ticks=12)
class ChCommandCurriculum:
    """The range of commands widens at the seventh iteration."""

    def __init__(self) -> None:
        self.curriculum = Curriculum({0: 0.5, 7: 1.5})

    def __call__(self, cmd: Tensor) -> Tensor:
        limit = self.curriculum.update()
        return cmd.clamp(-1, 1) * limit


@dataclass
class RewardCfg:
    track: float = 1.0
    slip: float = -0.1


@dataclass
class EnvCfg:
    rewards: RewardCfg = field(default_factory=RewardCfg)
    decimation: int = 4


@hostile("A", rec={"v": normal(4, 3), "slip": uniform(0, 1, 4)}, passes=4, ticks=12)
class ChRewardWeightChange:
    """A nested configuration that a term of the curriculum rewrites at run time."""

    def __init__(self) -> None:
        self.cfg, self.common_step_counter = EnvCfg(), 0

    def modify_reward_weight(self, term: str, weight: float, num_steps: int) -> None:
        if self.common_step_counter > num_steps:
            setattr(self.cfg.rewards, term, weight)

    def __call__(self, v: Tensor, slip: Tensor) -> Tensor:
        self.modify_reward_weight("slip", -0.6, 6)
        self.common_step_counter += 1
        r = self.cfg.rewards
        return torch.exp(-v.square().sum(-1)) * r.track + slip * r.slip


def every(n: int):
    """Decorate a method that has to run each n-th call only, with its last result otherwise."""

    def wrap(fn):
        calls, last = 0, None

        @functools.wraps(fn)
        def inner(*args):
            nonlocal calls, last
            if calls == 0 or (calls >= 5 and calls % n == 0):
                last = fn(*args)
            calls += 1
            return last

        return inner

    return wrap


@hostile("A", rec={"x": uniform(0.1, 1, 1, 2)}, passes=3, ticks=12)
class ChThrottledDecorator:
    """A decorator that holds its count and last value in a closure."""

    def __init__(self) -> None:
        self.scale = 1.0

        @every(3)
        def bump() -> float:
            self.scale *= 1.25
            return self.scale

        self.bump = bump

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.bump()


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12, style="method")
class ChWarmupCalls:
    """A function attribute counts the calls; the gyro bias goes away after warm-up."""

    def __init__(self) -> None:
        ChWarmupCalls.step.calls = 0

    def step(self, x: Tensor) -> Tensor:
        fn = ChWarmupCalls.__dict__["step"]
        fn.calls += 1
        bias = 0.05 if fn.calls <= 6 else 0.0
        return x - bias


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12)
class ChLruSchedule:
    """The call count of a cached gain lookup is read for statistics, and then for more."""

    def __init__(self) -> None:
        @functools.lru_cache(maxsize=None)
        def gain(speed: int) -> float:
            return 1.0 + 0.1 * speed

        self.gain = gain

    def __call__(self, x: Tensor) -> Tensor:
        k = self.gain(3)
        if self.gain.cache_info().hits >= 6:
            k *= 0.5
        return x * k


class Mode(enum.Enum):
    BOOT = 0
    ZERO = 1
    RUN = 2

    def after(self) -> Mode:
        return Mode(min(self.value + 1, 2))


@hostile("A", rec={"q": normal(1, 6)}, passes=3, ticks=14)
class ChModeMachine:
    """Boot, zero, run: each mode lasts its number of ticks."""

    HOLD = {Mode.BOOT: 5, Mode.ZERO: 3, Mode.RUN: 10**9}

    def __init__(self) -> None:
        self.mode, self.entered, self.tick = Mode.BOOT, 0, 0
        self.net = nn.Linear(6, 6)

    def __call__(self, q: Tensor) -> Tensor:
        if self.tick - self.entered >= self.HOLD[self.mode]:
            self.mode, self.entered = self.mode.after(), self.tick
        self.tick += 1
        return getattr(self, f"_{self.mode.name.lower()}")(q)

    def _boot(self, q: Tensor) -> Tensor:
        return q * 0.0

    def _zero(self, q: Tensor) -> Tensor:
        return -0.2 * q

    def _run(self, q: Tensor) -> Tensor:
        return self.net(q).tanh()


@hostile("A", rec={"obs": normal(1, 4)}, passes=4, ticks=12)
class ChRebindStep:
    """After calibration the controller binds another method as its step."""

    def __init__(self) -> None:
        self.samples: list[int] = []
        self.control = self._calibrating

    def _calibrating(self, obs: Tensor) -> Tensor:
        self.samples.append(len(self.samples))
        if len(self.samples) == 6:
            self.control = self._running
        return obs * 0.1

    def _running(self, obs: Tensor) -> Tensor:
        return obs * 0.7 + 0.1

    def __call__(self, obs: Tensor) -> Tensor:
        return self.control(obs)


class _Standing:
    def act(self, ctx: ChStatePattern, x: Tensor) -> Tensor:
        ctx.ticks += 1
        if ctx.ticks > 5:
            ctx.state = _Walking()
        return x * 0.25


class _Walking:
    def act(self, ctx: ChStatePattern, x: Tensor) -> Tensor:
        return x.sin()


@hostile("A", rec={"x": normal(1, 4)}, passes=4, ticks=10, style="method")
class ChStatePattern:
    """The state pattern: the context swaps its state object."""

    def __init__(self) -> None:
        self.state: _Standing | _Walking = _Standing()
        self.ticks = 0

    def step(self, x: Tensor) -> Tensor:
        return self.state.act(self, x)


class _Armed:
    __slots__ = ("_n",)

    def __init__(self) -> None:
        self._n = 0

    @property
    def ready(self) -> bool:
        self._n += 1
        return self._n > 6


@hostile("A", rec={"x": normal(1, 3)}, passes=5, ticks=12)
class ChSlotsProperty:
    """Arming is a property of an object with slots that counts how often it was asked."""

    def __init__(self) -> None:
        self.arming = _Armed()

    def __call__(self, x: Tensor) -> Tensor:
        return x.tanh() if self.arming.ready else torch.zeros_like(x)


WAYPOINTS = "\n".join(["0.2,0.0"] * 6 + ["0.4,0.1", "0.6,0.3", "0.8,0.2", "0.9,-0.1"] * 4)


@hostile("A", rec={"pos": normal(1, 2, s=0.3)}, passes=4, ticks=12)
class ChCsvReplay:
    """Waypoints are read from a recorded log line by line."""

    def __init__(self) -> None:
        self.rows = csv.reader(io.StringIO(WAYPOINTS))

    def __call__(self, pos: Tensor) -> Tensor:
        target = torch.tensor([[float(v) for v in next(self.rows)]])
        return 2.0 * (target - pos)


@hostile("A", rec={"pos": normal(1, 3, s=0.3)}, passes=4, ticks=14)
class ChBinaryReplay:
    """Force commands out of a binary stream, one frame per tick."""

    def __init__(self) -> None:
        frames = [(0.0, 0.0, 1.0)] * 7 + [(0.5, -0.5, 1.0), (0.25, 0.5, 0.0)] * 6
        self.stream = io.BytesIO(b"".join(struct.pack("<3f", *f) for f in frames))

    def __call__(self, pos: Tensor) -> Tensor:
        frame = np.frombuffer(self.stream.read(12), dtype=np.float32).copy()
        return pos + torch.from_numpy(frame)


@hostile("A", rec={"x": normal(1, 4)}, passes=4, ticks=12)
class ChPipeHeartbeat:
    """A watchdog counts heartbeats of a socket pair that ends after a while."""

    def __init__(self) -> None:
        self.rx, tx = socket.socketpair()
        self.rx.setblocking(False)
        tx.send(b"h" * 6)
        self.tx = tx

    def __call__(self, x: Tensor) -> Tensor:
        try:
            self.rx.recv(1)
        except BlockingIOError:
            return torch.zeros_like(x)
        return x * 0.5


@hostile("A", rec={"x": normal(1, 2)}, passes=4, ticks=12)
class ChSqliteParams:
    """A parameter server in SQLite, with a trigger by number of reads."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table p(name text, value real)")
        self.db.execute("create table reads(n integer)")
        self.db.execute("insert into p values('kp', 2.0)")

    def param(self, name: str) -> float:
        self.db.execute("insert into reads values(1)")
        (n,) = self.db.execute("select count(*) from reads").fetchone()
        if n == 7:
            self.db.execute("update p set value = 3.5 where name = 'kp'")
        return self.db.execute("select value from p where name = ?", (name,)).fetchone()[0]

    def __call__(self, x: Tensor) -> Tensor:
        return -self.param("kp") * x


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12)
class ChSemaphoreTokens:
    """A token bucket: six boosts, and then none."""

    def __init__(self) -> None:
        self.tokens = threading.Semaphore(6)

    def __call__(self, x: Tensor) -> Tensor:
        boost = 2.0 if self.tokens.acquire(blocking=False) else 1.0
        return x * boost


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12)
class ChEventFromSched:
    """An e-stop event that a scheduler with a counted clock fires."""

    def __init__(self) -> None:
        self.clock, self.estop = FakeClock(1.0), threading.Event()
        self.sched = sched.scheduler(self.clock.now, lambda _: None)
        self.sched.enterabs(8.0, 1, self.estop.set)

    def __call__(self, x: Tensor) -> Tensor:
        self.sched.run(blocking=False)
        return x * (0.0 if self.estop.is_set() else 1.0)


_gear: contextvars.ContextVar[int] = contextvars.ContextVar("gear", default=0)


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12)
class ChContextVarGear:
    """The gear is a context variable, which the middleware shifts up."""

    def __init__(self) -> None:
        _gear.set(0)

    def __call__(self, x: Tensor) -> Tensor:
        _gear.set(_gear.get() + 1)
        return x * (1.0 if _gear.get() < 7 else 3.0)


@hostile("A", rec={"err": normal(1, 3)}, passes=4, ticks=14)
class ChEventHeap:
    """A priority queue of faults to inject, by tick."""

    def __init__(self) -> None:
        self.tick, self.faults, self.dead = 0, [], set()
        for at, joint in [(9, 2), (6, 0)]:
            heapq.heappush(self.faults, (at, joint))

    def __call__(self, err: Tensor) -> Tensor:
        while self.faults and self.faults[0][0] <= self.tick:
            self.dead.add(heapq.heappop(self.faults)[1])
        self.tick += 1
        alive = [0.0 if j in self.dead else 1.0 for j in range(3)]
        return err * torch.tensor(alive)


class Bus:
    """Callbacks by topic; one-shot callbacks leave."""

    def __init__(self) -> None:
        self.subs: dict[str, list] = collections.defaultdict(list)

    def emit(self, topic: str) -> None:
        for cb in list(self.subs[topic]):
            if cb() is False:
                self.subs[topic].remove(cb)


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12)
class ChBusCallbacks:
    """A subscriber of the tick topic unloads the payload after six ticks."""

    def __init__(self) -> None:
        self.bus, self.params = Bus(), types.SimpleNamespace(mass=2.0)
        countdown = iter(range(6))

        def unload():
            if next(countdown, None) is None:
                self.params.mass = 1.2
                return False

        self.bus.subs["tick"].append(unload)

    def __call__(self, x: Tensor) -> Tensor:
        self.bus.emit("tick")
        return x * self.params.mass


class _Sensor:
    pass


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12)
class ChWeakSensors:
    """A registry of weak references: a sensor is dropped by its owner later."""

    def __init__(self) -> None:
        owned = [_Sensor(), _Sensor()]
        self.live = weakref.WeakSet(owned)
        self.drop = iter([None] * 6 + [owned.pop])
        self.owned = owned

    def __call__(self, x: Tensor) -> Tensor:
        act = next(self.drop, None)
        if act is not None:
            act()
            act = None
        return x / len(self.live)


@dataclass(frozen=True)
class Limits:
    vel: float = 1.0
    acc: float = 2.0


@hostile("A", rec={"v": normal(1, 3)}, passes=4, ticks=12)
class ChFrozenReplace:
    """Frozen limits, replaced as a whole when the operator's session is old enough."""

    def __init__(self) -> None:
        self.limits, self.history = Limits(), [0]

    def __call__(self, v: Tensor) -> Tensor:
        self.history.append(self.history[-1] + 20)
        if self.history[-1] > 120:
            self.limits = replace(self.limits, vel=0.3)
        return v.clamp(-self.limits.vel, self.limits.vel)
