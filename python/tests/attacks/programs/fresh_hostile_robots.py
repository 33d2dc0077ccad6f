"""Robots whose drivers, buses, supervisors and old habits decide later than the recording."""

from __future__ import annotations

import asyncio
import bisect
import collections
import contextlib
import csv
import dataclasses
import functools
import heapq
import io
import itertools
import logging
import os
import queue
import re
import sched
import signal
import socket
import sqlite3
import statistics
import struct
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import array, by_tick, either, fixed, normal, uniform
from attacks.registry import hostile


class _Arm:
    """A proportional law that many of the drivers below use."""

    def __init__(self, backend: str, node: str = "arm") -> None:
        self.backend, self.node, self.kp, self.scale = backend, node, 20.0, 1.0

    def torque(self, q: Tensor) -> Tensor:
        q = annotate.input_tensors(self.node, {"q": q})
        tau = -self.kp * self.scale * q
        annotate.output_tensors(self.node, {"tau": tau}, export_with=self.backend)
        return tau


class _Derate(logging.Handler):
    def __init__(self, arm: _Arm) -> None:
        super().__init__()
        self.arm = arm

    def emit(self, record: logging.LogRecord) -> None:
        if float(record.args[0]) > 60:  # type: ignore[index, arg-type]
            self.arm.scale = 0.5


@hostile("C", style="own", rec={"arm/q": normal(1, 3)}, passes=5, backends="jit")
class FhLogDerate:
    """A handler of the robot's log halves the torque once a large one was logged."""

    def __init__(self, backend: str) -> None:
        self.arm = _Arm(backend)
        self.log = logging.getLogger("fh.derate")
        self.log.propagate = False
        self.log.setLevel(logging.INFO)
        self.log.handlers[:] = [_Derate(self.arm)]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        tau = self.arm.torque(given["arm/q"])
        self.log.info("peak %.1f", tau.abs().max())
        return {"arm/tau": tau}


class _Console(io.StringIO):
    """What stands on the console goes to a supervisor as well."""

    def __init__(self, arm: _Arm) -> None:
        super().__init__()
        self.arm = arm

    def write(self, text: str) -> int:
        found = re.match(r"load (\d+)", text)
        if found and int(found[1]) > 60:
            self.arm.kp = 10.0
        return super().write(text)


@hostile("C", style="own", rec={"arm/q": normal(1, 3)}, passes=5, backends="jit")
class FhConsoleSupervisor:
    """A supervisor reads what the controller prints, and makes the arm soft on a high load."""

    def __init__(self, backend: str) -> None:
        self.arm = _Arm(backend)
        self.console = _Console(self.arm)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        with contextlib.redirect_stdout(self.console):
            tau = self.arm.torque(given["arm/q"])
            print(f"load {tau.abs().max():.0f}")
        return {"arm/tau": tau}


@hostile("E", style="own", rec={"arm/q": normal(1, 3)}, passes=5, backends="jit")
class FhSocketPilot:
    """Operator's bytes wait in a socket: eight times keep going, then make it soft."""

    def __init__(self, backend: str) -> None:
        self.arm = _Arm(backend)
        self.here, self.there = socket.socketpair()
        self.there.sendall(b"kkkkkkkksk" + b"k" * 30)

    def keep(self) -> None:
        pass

    def soft(self) -> None:
        self.arm.kp = 8.0

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        {b"k": self.keep, b"s": self.soft}[self.here.recv(1)]()
        return {"arm/tau": self.arm.torque(given["arm/q"])}


@hostile("A", style="own", rec={"arm/q": normal(1, 3)}, passes=4, backends="jit")
class FhSqliteParameters:
    """Gains and the log of ticks are in a database; the query picks the gain that is valid now."""

    QUERY = (
        "SELECT kp FROM gains WHERE since <= (SELECT count(*) FROM ticks) "
        "ORDER BY since DESC LIMIT 1"
    )

    def __init__(self, backend: str) -> None:
        self.arm = _Arm(backend)
        self.db = sqlite3.connect(":memory:")
        self.db.executescript(
            "CREATE TABLE gains(since INT, kp REAL); CREATE TABLE ticks(n INTEGER PRIMARY KEY);"
            "INSERT INTO gains VALUES (0, 20.0), (9, 35.0);"
        )

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.db.execute("INSERT INTO ticks DEFAULT VALUES")
        self.arm.kp = self.db.execute(self.QUERY).fetchone()[0]
        return {"arm/tau": self.arm.torque(given["arm/q"])}


@hostile("A", style="own", rec={"arm/q": normal(1, 3)}, passes=4, backends="onnx")
class FhSchedAgenda:
    """An agenda of the standard library stiffens the arm when its simulated time has come."""

    def __init__(self, backend: str) -> None:
        self.arm = _Arm(backend)
        self.clock = itertools.count()
        self.agenda = sched.scheduler(lambda: next(self.clock), lambda _: None)
        self.agenda.enterabs(8, 1, setattr, (self.arm, "kp", 40.0))

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.agenda.run(blocking=False)
        return {"arm/tau": self.arm.torque(given["arm/q"])}


@hostile("A", style="own", rec={"arm/q": normal(1, 3)}, passes=5, backends="jit")
class FhMissionGenerator:
    """The mission is a generator: stand for a while, then carry the load with more gain."""

    def __init__(self, backend: str) -> None:
        self.arm = _Arm(backend)
        self.mission = self._mission()

    def _mission(self) -> Iterator[None]:
        yield from itertools.repeat(None, 8)
        self.arm.kp *= 1.5
        yield from itertools.repeat(None)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        next(self.mission)
        return {"arm/tau": self.arm.torque(given["arm/q"])}


@hostile("A", style="own", rec={"arm/q": normal(1, 3)}, passes=5, backends="jit", ticks=20)
class FhAsyncPilot:
    """A task beside the control loop waits some rounds of the event loop, then slows the arm."""

    def __init__(self, backend: str) -> None:
        self.arm = _Arm(backend)
        self.loop = asyncio.new_event_loop()
        self.turn = asyncio.Queue()
        self.task = self.loop.create_task(self._pilot())

    async def _pilot(self) -> None:
        for _ in range(9):
            await self.turn.get()
            self.turn.task_done()
        self.arm.scale = 0.25
        while True:
            await self.turn.get()
            self.turn.task_done()

    async def _tick(self, q: Tensor) -> Tensor:
        await self.turn.put(None)
        await self.turn.join()
        return self.arm.torque(q)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"arm/tau": self.loop.run_until_complete(self._tick(given["arm/q"]))}


@hostile("A", style="own", rec={"arm/q": normal(1, 3)}, passes=5, backends="jit")
class FhBarrierThread:
    """A supervisor thread goes in step with the loop and lowers the gain after the start."""

    def __init__(self, backend: str) -> None:
        self.arm = _Arm(backend)
        self.gate = threading.Barrier(2)
        threading.Thread(target=self._supervise, args=(self.arm,), daemon=True).start()

    def _supervise(self, arm: _Arm) -> None:
        for round_ in itertools.count():
            self.gate.wait()
            if round_ == 8:
                arm.kp = 5.0
            self.gate.wait()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.gate.wait()
        self.gate.wait()
        return {"arm/tau": self.arm.torque(given["arm/q"])}


class _Walking:
    def law(self, x: Tensor) -> Tensor:
        return x * 2.0


class _Stumbling(_Walking):
    def law(self, x: Tensor) -> Tensor:
        return x * 0.2


@hostile("C", style="own", rec={"leg/x": uniform(-1, 1, 1, 4)}, passes=5, backends="jit")
class FhStateByClass:
    """The state pattern: a leg becomes of another class after a large command."""

    def __init__(self, backend: str) -> None:
        self.backend, self.leg = backend, _Walking()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        x = annotate.input_tensors("leg", {"x": given["leg/x"]})
        y = self.leg.law(x)
        annotate.output_tensors("leg", {"y": y}, export_with=self.backend)
        peak = float(y.abs().max())
        self.leg.__class__ = _Stumbling if peak > 3 else self.leg.__class__
        return {"leg/y": y}


@hostile("A", rec={"x": normal(1, 4)}, passes=6, backends="jit")
class FhMethodReplaced:
    """After the hand-shake the driver of the gripper puts another law in place of the first."""

    def __init__(self) -> None:
        self.seen: collections.deque[bool] = collections.deque(maxlen=8)

    def law(self, x: Tensor) -> Tensor:
        return x.clamp(-1, 1)

    def strong(self, x: Tensor) -> Tensor:
        return x.clamp(-1, 1) * 2

    def __call__(self, x: Tensor) -> Tensor:
        y = self.law(x)
        self.seen.append(True)
        if sum(self.seen) == self.seen.maxlen:
            self.law = self.strong  # type: ignore[method-assign]
        return y


@hostile("A", style="own", rec={"arm/q": normal(1, 3)}, passes=4, backends="jit")
class FhCsvGains:
    """Gains are replayed from the table of an older run, a row a tick."""

    def __init__(self, backend: str) -> None:
        self.arm = _Arm(backend)
        rows = ["kp,scale", *["20.0,1.0"] * 8, *["20.0,0.4"] * 40]
        self.rows = csv.DictReader(rows)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        vars(self.arm).update({key: float(text) for key, text in next(self.rows).items()})
        return {"arm/tau": self.arm.torque(given["arm/q"])}


@hostile("A", rec={"x": normal(1, 4)}, passes=4, backends="jit")
class FhGainExpression:
    """The gain is an expression of the configuration, over the time since the start."""

    def __init__(self) -> None:
        config = {"gain": "2.0 if t < 0.16 else 3.0", "dt": 0.02}
        self.gain = compile(str(config["gain"]), "gains.yaml", "eval")
        self.dt, self.names = float(config["dt"]), {"t": 0.0}  # type: ignore[arg-type]

    def __call__(self, x: Tensor) -> Tensor:
        y = x * eval(self.gain, self.names)
        self.names["t"] += self.dt
        return y


@dataclasses.dataclass(frozen=True)
class _Profile:
    step: int = 0
    soft: float = 0.3
    hard: float = 1.0

    @property
    def limit(self) -> float:
        return self.soft if self.step < 8 else self.hard

    def after(self) -> _Profile:
        return dataclasses.replace(self, step=self.step + 1)


@hostile("A", style="own", rec={"lim/u": normal(1, 4)}, passes=4, backends="pt2")
class FhFrozenProfile:
    """A start profile that cannot be changed is replaced by its successor in every tick."""

    def __init__(self, backend: str) -> None:
        self.backend, self.profile = backend, _Profile()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        limit = self.profile.limit
        u = annotate.input_tensors("lim", {"u": given["lim/u"]})
        out = u.clamp(-limit, limit)
        annotate.output_tensors("lim", {"out": out}, export_with=self.backend)
        self.profile = self.profile.after()
        return {"lim/out": out}


@hostile("A", rec={"x": normal(1, 4)}, passes=4, backends="jit")
class FhBoostBudget:
    """The motor may be overdriven eight times, which a semaphore counts."""

    def __init__(self) -> None:
        self.budget = threading.Semaphore(8)

    def __call__(self, x: Tensor) -> Tensor:
        return x * (1.5 if self.budget.acquire(blocking=False) else 1.0)


@hostile("A", style="own", rec={"act/u": normal(1, 2)}, passes=5, ticks=16, backends="jit")
class FhLatencyQueue:
    """The model of an actuator gives back the command of nine ticks ago."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.line: queue.Queue[Tensor] = queue.Queue()
        rest = torch.zeros(1, 2)
        for _ in range(9):
            self.line.put(rest)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        u = annotate.input_tensors("act", {"u": given["act/u"]})
        self.line.put(u.tanh())
        late = self.line.get() * 2
        annotate.output_tensors("act", {"late": late}, export_with=self.backend)
        return {"act/late": late}


@hostile(
    "A",
    style="own",
    rec={"odo/p": fixed([[0.4, -0.2]])},
    fresh={"odo/p": normal(1, 2, m=1.0)},
    passes=4,
    backends="jit",
)
class FhHomePose:
    """Positions are told relative to where the robot stood when it was switched on."""

    def __init__(self, backend: str) -> None:
        self.backend, self.frames = backend, dict[str, Tensor]()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        p = annotate.input_tensors("odo", {"p": given["odo/p"]})
        local = p - self.frames.setdefault("home", p.clone())
        annotate.output_tensors("odo", {"local": local}, export_with=self.backend)
        return {"odo/local": local}


@hostile(
    "A",
    style="own",
    rec={"imu/w": fixed([0.0, 0.0, 0.0])},
    fresh={"imu/w": normal(3)},
    passes=5,
    backends="jit",
)
class FhGyroBias:
    """The driver learns the bias of a gyroscope in an array whose memory the node reads."""

    def __init__(self, backend: str) -> None:
        self.backend, self.bias = backend, np.zeros(3, np.float32)
        self.offset = torch.from_numpy(self.bias)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        w = annotate.input_tensors("imu", {"w": given["imu/w"]})
        rate = (w - self.offset) * 57.3
        annotate.output_tensors("imu", {"rate": rate}, export_with=self.backend)
        self.bias += 0.1 * given["imu/w"].numpy()
        return {"imu/rate": rate}


@hostile("A", style="own", rec={"pol/x": uniform(-0.3, 0.3, 1, 2)}, passes=5, backends="jit")
class FhClampedFeedback:
    """What was sent is the last action, and the driver limits it in place before it is sent."""

    def __init__(self, backend: str) -> None:
        self.backend, self.last = backend, torch.zeros(1, 2)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        x, last = annotate.input_tensors("pol", {"x": given["pol/x"], "last": self.last})
        a = 2 * x + 0.5 * last
        annotate.output_tensors("pol", {"a": a}, export_with=self.backend)
        asked = a.clone()
        sent = a.numpy()
        np.clip(sent, -1.2, 1.2, out=sent)
        self.last = a
        return {"pol/a": asked}


@hostile(
    "C",
    style="method",
    rec={"rise": array(uniform(0.2, 1.0, 3)), "run": array(uniform(0.5, 2.0, 3))},
    fresh={"run": array(either(lambda t: t % 4 == 3, fixed([1.0, 0.0, 2.0]), uniform(0.5, 2, 3)))},
    backends="jit",
)
class FhSlopeErrstate:
    """The slope of the ground, or flat ground where NumPy is asked to complain of a division."""

    def step(self, rise: np.ndarray, run: np.ndarray) -> np.ndarray:
        with np.errstate(divide="raise"):
            try:
                slope = rise / run
            except FloatingPointError:
                slope = rise * 0
        return slope


def _stiction(force: float) -> float:
    return force if abs(force) > 0.2 else 0.0


@hostile(
    "C",
    rec={"f": array(uniform(0.5, 2.0, 4))},
    fresh={"f": array(normal(4, s=0.5))},
    backends="jit",
)
class FhVectorizedStiction:
    """Small forces do not move the joint: a function of one number over an array."""

    def __init__(self) -> None:
        self.friction = np.vectorize(_stiction, otypes=[np.float32])

    def __call__(self, f: np.ndarray) -> np.ndarray:
        return self.friction(f) * np.float32(2.0)


@hostile("C", rec={"x": uniform(0.3, 1.0, 1, 4)}, fresh={"x": normal(1, 4)}, backends="jit")
def FhDeadzoneApply(x: Tensor) -> Tensor:  # noqa: N802
    """A stick's dead zone, element by element with a function of Python."""
    moved = x.clone()
    moved.apply_(lambda value: value if abs(value) > 0.25 else 0.0)
    return moved + 0.5 * x


@torch.jit.script
def _quat_guard(q: Tensor) -> Tensor:
    size = q.norm()
    if bool(size < 0.5):
        return torch.tensor([1.0, 0.0, 0.0, 0.0])
    return q / size


@hostile("C", rec={"q": uniform(0.5, 1.0, 4)}, fresh={"q": normal(4, s=0.25)}, backends="jit")
def FhScriptedGuard(q: Tensor) -> Tensor:  # noqa: N802
    """A quaternion is made a unit one by a scripted helper, as simulators have them."""
    return _quat_guard(q) * 2.0


class _SoftStart(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ticks = 0

    def forward(self, x: Tensor) -> Tensor:
        self.ticks += 1
        if self.ticks > 8:
            return x
        return x * 0.5


@hostile("A", rec={"x": normal(1, 4)}, passes=5, backends="jit")
class FhScriptedSoftStart:
    """A scripted module of a library counts its calls, and starts softly."""

    def __init__(self) -> None:
        self.start = torch.jit.script(_SoftStart())

    def __call__(self, x: Tensor) -> Tensor:
        return self.start(x) + 1.0


@hostile(
    "C",
    style="own",
    rec={"a/x": uniform(0, 1, 1, 2), "b/x": uniform(0, 1, 1, 2)},
    fresh={"a/x": normal(1, 2, s=4.0), "b/x": normal(1, 2, s=4.0)},
    passes=4,
    backends="jit",
)
class FhArbiter:
    """Of two behaviours the more confident one drives; while recorded it is the same one."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def behave(self, node: str, x: Tensor, gain: float) -> tuple[Tensor, Tensor]:
        x = annotate.input_tensors(node, {"x": x})
        cmd, sure = x * gain, x.sum().sigmoid() + 0.2 * gain
        annotate.output_tensors(node, {"cmd": cmd, "sure": sure}, export_with=self.backend)
        return cmd, sure

    def drive(self, cmd: Tensor) -> Tensor:
        cmd = annotate.input_tensors("drive", {"cmd": cmd})
        wheel = cmd @ torch.tensor([[1.0, 1.0], [-1.0, 1.0]])
        annotate.output_tensors("drive", {"wheel": wheel}, export_with=self.backend)
        return wheel

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        bids = [self.behave("a", given["a/x"], 3.0), self.behave("b", -given["b/x"], 1.0)]
        cmd, _ = max(bids, key=lambda bid: bid[1])
        return {"drive/wheel": self.drive(cmd)}


class _Bus:
    def __init__(self) -> None:
        self.waiting: collections.deque[tuple[str, Any]] = collections.deque()
        self.heard: dict[str, list[Callable[[Any], None]]] = collections.defaultdict(list)

    def spin_once(self) -> None:
        topic, message = self.waiting.popleft()
        for hear in self.heard[topic]:
            hear(message)


@hostile("B", style="own", rec={"arm/q": normal(1, 3)}, passes=5, backends="jit")
class FhBusParameter:
    """A bus hands out one message a tick; between heartbeats is one that sets a gain."""

    def __init__(self, backend: str) -> None:
        self.arm, self.bus = _Arm(backend), _Bus()
        self.bus.heard["kp"].append(functools.partial(setattr, self.arm, "kp"))
        self.bus.heard["beat"].append(id)
        self.bus.waiting.extend([("beat", 0)] * 8 + [("kp", 12.0)] + [("beat", 0)] * 40)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.bus.spin_once()
        return {"arm/tau": self.arm.torque(given["arm/q"])}


@hostile(
    "C",
    style="own",
    rec={"arm/q": normal(1, 3)},
    fresh={"arm/q": by_tick(lambda t: [[1.0 + min(t, 3), 0.5, -0.5]])},
    passes=5,
    backends="jit",
)
class FhFrozenSensor:
    """When an encoder says the same thrice the supervisor takes it for broken: low gain."""

    def __init__(self, backend: str) -> None:
        self.arm, self.before, self.same = _Arm(backend), torch.full((1, 3), torch.nan), 0

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        q = given["arm/q"]
        self.same = self.same + 1 if torch.equal(q, self.before) else 0
        self.before = q.clone()
        self.arm.scale = 0.1 if self.same >= 3 else 1.0
        return {"arm/tau": self.arm.torque(q)}


class _Reach:
    def __init__(self, gain: float, near: float) -> None:
        self.gain, self.near = gain, near

    def done(self, distance: Tensor) -> bool:
        return distance.item() < self.near


@hostile(
    "C",
    style="own",
    rec={"skill/d": uniform(1.0, 2.0, 1, 3)},
    fresh={"skill/d": by_tick(lambda t: [[2.0 - 0.18 * t] * 3])},
    passes=4,
    backends="jit",
)
class FhSkillSequence:
    """A sequence of a behaviour tree: approach until it is near, then the careful skill."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.rest = iter([_Reach(1.0, 0.8), _Reach(0.2, 0.0)])
        self.skill = next(self.rest)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        d = annotate.input_tensors("skill", {"d": given["skill/d"]})
        v, size = d * self.skill.gain, d.norm()
        annotate.output_tensors("skill", {"v": v, "size": size}, export_with=self.backend)
        if self.skill.done(size):
            self.skill = next(self.rest, self.skill)
        return {"skill/v": v, "skill/size": size}


@hostile("C", style="own", rec={"arm/q": uniform(-0.2, 0.2, 1, 3)}, passes=5, ticks=20)
class FhEnergyTank:
    """An energy tank is spent by what the arm does; an empty one makes it passive."""

    def __init__(self, backend: str) -> None:
        self.arm, self.tank = _Arm(backend), 150.0

    @contextlib.contextmanager
    def spending(self) -> Iterator[list[Tensor]]:
        spent: list[Tensor] = []
        yield spent
        self.tank -= sum(float(tau @ tau.mT) for tau in spent)
        self.arm.scale = min(self.arm.scale, max(0.0, np.sign(self.tank)))

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        with self.spending() as spent:
            spent.append(self.arm.torque(given["arm/q"]))
        return {"arm/tau": spent[0]}


@hostile("C", style="own", rec={"arm/q": normal(1, 3)}, passes=5, backends="jit")
class FhSignalStop:
    """A strong torque raises a signal of the process, as the emergency stop of the cell does."""

    def __init__(self, backend: str) -> None:
        self.arm = _Arm(backend)
        signal.signal(signal.SIGUSR2, self.stop)

    def stop(self, *_: object) -> None:
        self.arm.scale = 0.0

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        tau = self.arm.torque(given["arm/q"])
        if tau.abs().max() > 70:
            signal.raise_signal(signal.SIGUSR2)
        return {"arm/tau": tau}


class _Track:
    def __init__(self, weight: float) -> None:
        self.weight = weight


@hostile("A", rec={"x": normal(1, 4)}, passes=5, backends="jit")
class FhWeakTarget:
    """The robot follows a track that it knows weakly; the tracker forgets old ones."""

    def __init__(self) -> None:
        self.tracks: collections.deque[_Track] = collections.deque([_Track(2.0)], maxlen=8)
        self.target = weakref.ref(self.tracks[0])

    def __call__(self, x: Tensor) -> Tensor:
        followed = self.target()
        self.tracks.append(_Track(1.0))
        return x * followed.weight if followed else x * 0.0


@hostile(
    "A",
    style="own",
    rec={"pol/x": uniform(-2.0, -1.0, 1, 2)},
    fresh={"pol/x": normal(1, 2)},
    passes=5,
    backends="jit",
)
class FhMailbox:
    """The last command comes back through the bytes of a mailbox that the firmware shares."""

    def __init__(self, backend: str) -> None:
        self.backend, self.box = backend, bytearray(8)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        x = annotate.input_tensors("pol", {"x": given["pol/x"]})
        last = torch.frombuffer(self.box, dtype=torch.float32)
        a = torch.relu(x) + 0.5 * last
        annotate.output_tensors("pol", {"a": a}, export_with=self.backend)
        struct.pack_into("2f", self.box, 0, *a[0].tolist())
        return {"pol/a": a}


@hostile("A", style="own", rec={"leg/x": normal(1, 4)}, passes=5, backends="jit")
class FhGaitCycle:
    """A gait is a cycle of masks of the legs: eight ticks on all four, then trot."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        stand, trot = torch.ones(4), torch.tensor([1.0, 0.0, 0.0, 1.0])
        self.gait = itertools.cycle([stand] * 8 + [trot] * 4)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        mask = next(self.gait)
        x = annotate.input_tensors("leg", {"x": given["leg/x"]})
        f = x * mask
        annotate.output_tensors("leg", {"f": f}, export_with=self.backend)
        return {"leg/f": f}


@hostile("A", rec={"x": normal(1, 4)}, passes=4, backends="onnx")
class FhModeQueue:
    """Modes come from a queue of the planner; when it is empty the robot idles."""

    def __init__(self) -> None:
        self.modes: queue.SimpleQueue[str] = queue.SimpleQueue()
        for _ in range(8):
            self.modes.put("walk")

    def walk(self, x: Tensor) -> Tensor:
        return torch.sin(x) * 2

    def idle(self, x: Tensor) -> Tensor:
        return x * 0.1

    def __call__(self, x: Tensor) -> Tensor:
        try:
            mode = self.modes.get_nowait()
        except queue.Empty:
            mode = "idle"
        return getattr(self, mode)(x)


@hostile("B", style="own", rec={"nav/h": normal(1, 1)}, passes=4, backends="jit")
class FhUnitOfMessage:
    """Headings carry their unit; another publisher, in degrees, takes over later."""

    SCALE = {"rad": 1.0, "deg": float(np.pi / 180)}  # noqa: RUF012

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.units = itertools.chain(["rad"] * 8, itertools.repeat("deg"))

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        message = {"heading": given["nav/h"], "unit": next(self.units)}
        h = annotate.input_tensors("nav", {"h": message["heading"]})
        turn = torch.cos(h * self.SCALE[message["unit"]])
        annotate.output_tensors("nav", {"turn": turn}, export_with=self.backend)
        return {"nav/turn": turn}


@hostile("C", style="own", rec={"arm/q": normal(1, 3)}, passes=5, backends="jit")
class FhParameterRecord:
    """Parameters are a record array; its counter of uptime lets the driver change a gain."""

    def __init__(self, backend: str) -> None:
        self.arm = _Arm(backend)
        self.table = np.zeros(1, dtype=[("uptime", "u1"), ("kp", "f4")])
        self.table["kp"] = 20.0

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.table["uptime"] += 1
        self.table["kp"][self.table["uptime"] > 8] = 45.0
        self.arm.kp = float(self.table["kp"][0])
        return {"arm/tau": self.arm.torque(given["arm/q"])}


@hostile("B", style="own", rec={"arm/q": normal(1, 3)}, passes=4, backends="jit")
class FhEnvironProfile:
    """A launch script changes the profile in the environment while the arm runs."""

    def __init__(self, backend: str) -> None:
        self.arm, self.left = _Arm(backend), ["demo"] * 8
        os.environ["FH_PROFILE"] = "lab"

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        os.environ["FH_PROFILE"] = self.left.pop() if self.left else "lab"
        self.arm.kp = {"demo": 20.0, "lab": 60.0}[os.environ["FH_PROFILE"]]
        return {"arm/tau": self.arm.torque(given["arm/q"])}


class _Motor:
    """A motor whose temperature is a property with a memory."""

    def __init__(self) -> None:
        self._hot = False

    @property
    def load(self) -> float:
        return 0.5 if self._hot else 1.0

    @load.setter
    def load(self, current: float) -> None:
        self._hot = current > (2.0 if self._hot else 6.0)


@hostile("C", style="own", rec={"mot/i": uniform(-1, 1, 1, 3)}, passes=5, backends="jit")
class FhHotMotor:
    """What the motor draws is written to a property, which derates with a hysteresis."""

    def __init__(self, backend: str) -> None:
        self.backend, self.motor = backend, _Motor()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        i = annotate.input_tensors("mot", {"i": given["mot/i"]})
        out = i * 3 * self.motor.load
        annotate.output_tensors("mot", {"out": out}, export_with=self.backend)
        self.motor.load = statistics.fmean(map(abs, out[0].tolist())) * 2
        return {"mot/out": out}


@hostile(
    "C",
    rec={"x": uniform(0.0, 0.9, 1, 3), "d": uniform(0.1, 0.9)},
    fresh={"d": uniform(0.1, 2.9)},
    backends="jit",
)
class FhRangeTable:
    """The gain of the nearest range: bisect compares the tensor itself."""

    def __init__(self) -> None:
        self.ends, self.gains = [1.0, 2.0], [1.0, 0.5, 0.1]

    def __call__(self, x: Tensor, d: Tensor) -> Tensor:
        return x * self.gains[bisect.bisect(self.ends, d)]


@hostile(
    "C",
    rec={"f": normal(4, 2), "touch": fixed([True, True, False, True])},
    fresh={"touch": by_tick(lambda t: [t % 2 == 0, True, t % 3 == 0, True])},
    backends="pt2",
)
def FhStanceLegs(f: Tensor, touch: Tensor) -> Tensor:  # noqa: N802
    """The forces of the legs on the ground, picked with a compress of the standard library."""
    stance = list(itertools.compress(f, touch))
    return torch.stack(stance).sum(0)


@hostile(
    "C",
    style="own",
    rec={"rng/d": uniform(2.0, 3.0, 5)},
    fresh={"rng/d": uniform(0.2, 3.0, 5)},
    passes=4,
    backends="jit",
)
class FhNearestFirst:
    """The two nearest obstacles push the robot away; far ones are not looked at."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        d = annotate.input_tensors("rng", {"d": given["rng/d"]})
        close = heapq.nsmallest(2, itertools.takewhile(lambda value: value < 1.5, d.sort().values))
        push = d.mean() + sum((1.5 - value for value in close), torch.tensor(0.0))
        annotate.output_tensors("rng", {"push": push}, export_with=self.backend)
        return {"rng/push": push}


@hostile("C", style="own", rec={"arm/q": normal(1, 3)}, passes=5, backends="jit")
class FhPlainPeak:
    """After a torque that was too large the driver simply lowers the gain."""

    def __init__(self, backend: str) -> None:
        self.backend, self.kp = backend, 20.0

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        q = annotate.input_tensors("arm", {"q": given["arm/q"]})
        tau = -self.kp * q
        annotate.output_tensors("arm", {"tau": tau}, export_with=self.backend)
        if tau.abs().max() > 70:
            self.kp = 10.0
        return {"arm/tau": tau}


@hostile("C", style="own", rec={"arm/q": normal(1, 3)}, passes=5, backends="onnx")
class FhPlainInput:
    """Far from its rest the arm gets another gain, chosen from what was measured."""

    def __init__(self, backend: str) -> None:
        self.arm = _Arm(backend)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.arm.kp = 10.0 if given["arm/q"].abs().max() > 4 else 20.0
        return {"arm/tau": self.arm.torque(given["arm/q"])}


@hostile("A", style="own", rec={"arm/q": normal(1, 3)}, passes=5, backends="jit")
class FhPlainRamp:
    """The gain comes from the number of the tick by an expression, without a branch."""

    def __init__(self, backend: str) -> None:
        self.arm, self.tick = _Arm(backend), 0

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.tick += 1
        self.arm.kp = 20.0 + 5.0 * max(0, self.tick - 8)
        return {"arm/tau": self.arm.torque(given["arm/q"])}


@hostile("A", rec={"x": normal(1, 4)}, passes=5, backends="jit")
class FhTensorClock:
    """A clock is a tensor, and a manoeuvre begins when it is late enough."""

    def __init__(self) -> None:
        self.clock = torch.zeros(())

    def __call__(self, x: Tensor) -> Tensor:
        self.clock += 0.02
        if self.clock.item() > 0.17:
            return x.flip(-1)
        return x * 1.0


@hostile("A", rec={"x": normal(1, 4)}, passes=5, backends="jit")
class FhArrayClock:
    """A counter in an array of NumPy, as the interface of the simulator has it."""

    def __init__(self) -> None:
        self.info = np.zeros(4, np.int64)

    def __call__(self, x: Tensor) -> Tensor:
        self.info[0] += 1
        gains = np.where(self.info[:1] > 8, 2.0, 1.0)
        return x * float(gains[0])


@hostile(
    "C",
    rec={"x": normal(1, 4), "i_gain": fixed(0.1)},
    fresh={"i_gain": uniform(0.0, 1.0)},
    backends="jit",
)
def FhAlphaTensor(x: Tensor, i_gain: Tensor) -> Tensor:  # noqa: N802
    """The gain of the integral part is handed to `torch.add` as its factor."""
    return torch.add(x, x.flip(-1), alpha=i_gain)  # type: ignore[call-overload]


@hostile(
    "C",
    rec={"x": normal(3, 4), "limit": fixed(0.5)},
    fresh={"limit": uniform(0.1, 2.0)},
    backends="jit",
)
def FhListOfTensors(x: Tensor, limit: Tensor) -> Tensor:  # noqa: N802
    """A window is made of numbers and of a tensor that comes from outside."""
    window = torch.tensor([0.25, limit, 2 * limit, 1.0])
    return x * window


@hostile(
    "C",
    rec={"packet": array(fixed([0.5, 1.0, -0.5])), "x": normal(1, 3)},
    fresh={"packet": array(normal(3))},
    backends="jit",
)
def FhPacketOffset(packet: np.ndarray, x: Tensor) -> Tensor:  # noqa: N802
    """An offset is unpacked from the bytes of a packet."""
    words = struct.unpack("<3f", packet.astype("<f4").tobytes())
    return x - torch.as_tensor(words)


@hostile(
    "C",
    rec={"image": fixed(torch.linspace(0, 1, 64).view(8, 8)), "x": normal(1, 4)},
    fresh={"image": uniform(0.0, 1.0, 8, 8)},
    backends="jit",
)
def FhThumbnail(image: Tensor, x: Tensor) -> Tensor:  # noqa: N802
    """A camera's picture is made small by an image library."""
    from PIL import Image  # noqa: PLC0415

    picture = Image.fromarray((image * 255).to(torch.uint8).numpy()).resize((2, 2))
    return x * torch.from_numpy(np.asarray(picture).copy()).flatten() / 255


@hostile(
    "C",
    rec={"d": array(uniform(0.2, 2.0, 3))},
    fresh={"d": array(either(lambda t: t % 4 == 2, fixed([0.0, 1.0, 2.0]), uniform(0.2, 2, 3)))},
    backends="jit",
)
def FhWarningFallback(d: np.ndarray) -> np.ndarray:  # noqa: N802
    """The cost is the logarithm of a distance; with a warning of NumPy it is a plain one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cost = np.log(d)
    return -d if caught else cost


@hostile(
    "C",
    style="own",
    rec={"ik/d": array(uniform(0.5, 1.0, 3))},
    fresh={"ik/d": array(normal(3))},
    passes=4,
    backends="jit",
)
class FhErrorCall:
    """NumPy calls the driver on an invalid root, and the driver then takes smaller steps."""

    def __init__(self, backend: str) -> None:
        self.backend, self.pace = backend, 1.0

    def slower(self, *_: object) -> None:
        self.pace = 0.25

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        d = annotate.input_tensors("ik", {"d": given["ik/d"]})
        with np.errstate(invalid="call", call=self.slower):
            root = np.nan_to_num(np.sqrt(d))
        step = root * np.float32(self.pace)
        annotate.output_tensors("ik", {"step": step}, export_with=self.backend)
        return {"ik/step": step}


@hostile(
    "C",
    style="own",
    rec={"arm/q": normal(1, 3)},
    fresh={"arm/q": by_tick(lambda t: [[0.5 + 0.01 * (t % 4), 0.1 * (t // 4), 1.0]])},
    passes=5,
    backends="jit",
)
class FhRoundedCache:
    """The driver asks a cache first: for a state that is nearly the same, nothing is computed."""

    def __init__(self, backend: str) -> None:
        self.arm, self.cache = _Arm(backend), dict[tuple[float, ...], Tensor]()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        key = tuple(np.round(given["arm/q"][0].numpy(), 1).tolist())
        if key not in self.cache:
            self.cache[key] = self.arm.torque(given["arm/q"])
        return {"arm/tau": self.cache[key]}
