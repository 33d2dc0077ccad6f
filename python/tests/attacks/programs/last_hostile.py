"""What changes later, in the places where nobody looks: drivers, messages, memory and exceptions."""

from __future__ import annotations

import asyncio
import bisect
import collections
import configparser
import contextlib
import heapq
import io
import itertools
import logging
import math
import sched
import sqlite3
import struct
import threading
import warnings
import weakref
from collections.abc import Generator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from types import TracebackType
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from veracity import annotate

from attacks.draws import by_tick, either, fixed, flags, integers, normal, row, uniform
from attacks.registry import hostile

# Drivers and loops around nodes.


@hostile(
    "C",
    style="own",
    rec={"arm/q": uniform(-0.5, 0.5, 1, 3)},
    fresh={
        "arm/q": either(lambda t: t == 4, fixed([[3.0, -3.0, 2.0]]), uniform(-0.5, 0.5, 1, 3)),
    },
    backends="jit",
)
class LhWarningsSoften:
    """The driver collects warnings; one of the torque check makes the arm softer."""

    def __init__(self, backend: str) -> None:
        self.backend, self.kp = backend, 20.0

    def torque(self, q: Tensor) -> Tensor:
        q = annotate.input_tensors("arm", {"q": q})
        tau = -self.kp * q
        if tau.abs().max() > 40.0:
            warnings.warn("torque is near its limit", stacklevel=2)
        annotate.output_tensors("arm", {"tau": tau}, export_with=self.backend)
        return tau

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tau = self.torque(given["arm/q"])
        if any("torque" in str(one.message) for one in caught):
            self.kp = 5.0
        return {"arm/tau": tau}


class _SlipHandler(logging.Handler):
    """Counts what is logged about slip."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.slips = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.slips += 1


@hostile(
    "C",
    style="own",
    rec={"base/command": normal(1, 2), "base/slip": uniform(0.0, 0.3, 1, 1)},
    fresh={
        "base/slip": either(
            lambda t: t in (2, 3, 5), uniform(0.7, 0.9, 1, 1), uniform(0.0, 0.3, 1, 1)
        )
    },
    backends="jit",
)
class LhLogHandlerSlows:
    """The node only logs that it slips; a handler counts, and the driver slows down."""

    def __init__(self, backend: str) -> None:
        self.backend, self.limit = backend, 1.5
        self.handler = _SlipHandler()
        self.log = logging.Logger("slip")
        self.log.addHandler(self.handler)

    def drive(self, command: Tensor, slip: Tensor) -> Tensor:
        command, slip = annotate.input_tensors("base", {"command": command, "slip": slip})
        if slip.item() > 0.5:
            self.log.warning("slip of %.2f", slip.item())
        wheels = self.limit * torch.tanh(command) - 0.1 * slip
        annotate.output_tensors("base", {"wheels": wheels}, export_with=self.backend)
        return wheels

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        wheels = self.drive(given["base/command"], given["base/slip"])
        if self.handler.slips >= 3:
            self.limit = 0.5
        return {"base/wheels": wheels}


@hostile(
    "C",
    style="own",
    rec={"hand/force": uniform(0.0, 1.0, 1, 2)},
    fresh={
        "hand/force": either(lambda t: t >= 4, uniform(5.0, 6.0, 1, 2), uniform(0.0, 1.0, 1, 2)),
    },
    backends="jit",
)
class LhStdoutParsed:
    """The hand's old code prints when it is overloaded; the driver reads what was printed."""

    def __init__(self, backend: str) -> None:
        self.backend, self.gear = backend, 1.0

    def grip(self, force: Tensor) -> Tensor:
        force = annotate.input_tensors("hand", {"force": force})
        if (force > 3.0).any():
            print("OVERLOAD", round(float(force.max()), 2))
        current = self.gear * force + 0.05
        annotate.output_tensors("hand", {"current": current}, export_with=self.backend)
        return current

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            current = self.grip(given["hand/force"])
        if "OVERLOAD" in said.getvalue():
            self.gear = 0.25
        return {"hand/current": current}


@hostile(
    "C",
    style="own",
    rec={"lidar/ranges": uniform(0.5, 2.0, 1, 6)},
    fresh={
        "lidar/ranges": either(
            lambda t: t == 3, fixed([[0.0, 1.0, 1.0, 1.5, 1.0, 0.8]]), uniform(0.5, 2.0, 1, 6)
        )
    },
    backends="jit",
)
class LhNumpyErrorCall:
    """NumPy calls back when the logged closeness divides by zero; the robot then goes slowly."""

    def __init__(self, backend: str) -> None:
        self.backend, self.cruise = backend, 1.0
        self.closest: list[float] = []

    def zero_range(self, kind: str, flag: int) -> None:
        self.cruise = 0.2

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        ranges = annotate.input_tensors("lidar", {"ranges": given["lidar/ranges"]})
        speed = self.cruise * torch.tanh(ranges.mean(-1, keepdim=True))
        annotate.output_tensors("lidar", {"speed": speed}, export_with=self.backend)
        with np.errstate(divide="call", call=self.zero_range):
            closeness = 1.0 / given["lidar/ranges"].numpy()
        self.closest.append(float(closeness.max()))
        return {"lidar/speed": speed}


@hostile("B", style="own", rec={"joint/q": normal(1, 3)}, passes=5, backends="jit")
class LhSqliteParameters:
    """Gains come from a table of a database, into which an operator writes later."""

    def __init__(self, backend: str) -> None:
        self.backend, self.ticks = backend, 0
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table gains (stamp integer, kp real)")
        self.db.execute("insert into gains values (0, 8.0)")

    def kp(self) -> float:
        newest = "select kp from gains order by stamp desc limit 1"
        return float(self.db.execute(newest).fetchone()[0])

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        if self.ticks == 7:
            self.db.execute("insert into gains values (?, ?)", (self.ticks, 2.0))
        self.ticks += 1
        q = annotate.input_tensors("joint", {"q": given["joint/q"]})
        tau = -self.kp() * q
        annotate.output_tensors("joint", {"tau": tau}, export_with=self.backend)
        return {"joint/tau": tau}


@hostile("A", style="own", rec={"legs/q": normal(1, 4)}, passes=5, backends="jit")
class LhSchedulerStandsUp:
    """An event of a scheduler with a clock of its own lets the robot stand up."""

    def __init__(self, backend: str) -> None:
        self.backend, self.clock, self.height = backend, 0.0, 0.1
        self.events = sched.scheduler(lambda: self.clock, lambda _: None)
        self.events.enter(0.15, 1, self.stand_up)

    def stand_up(self) -> None:
        self.height = 0.35

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.clock += 0.02
        self.events.run(blocking=False)
        q = annotate.input_tensors("legs", {"q": given["legs/q"]})
        target = 0.2 * q + self.height
        annotate.output_tensors("legs", {"target": target}, export_with=self.backend)
        return {"legs/target": target}


@hostile("A", style="own", rec={"drone/error": normal(1, 3)}, passes=4, backends="jit")
class LhAsyncioSupervisor:
    """A coroutine beside the control loop counts its beats and takes the thrust back."""

    def __init__(self, backend: str) -> None:
        self.backend, self.beats, self.thrust = backend, 0, 1.0

    async def supervise(self) -> None:
        self.beats += 1
        await asyncio.sleep(0)
        if self.beats > 6:
            self.thrust = 0.3

    async def control(self, error: Tensor) -> Tensor:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        error = annotate.input_tensors("drone", {"error": error})
        rotor = self.thrust * torch.tanh(error) + 0.5
        annotate.output_tensors("drone", {"rotor": rotor}, export_with=self.backend)
        return rotor

    async def cycle(self, error: Tensor) -> Tensor:
        _, rotor = await asyncio.gather(self.supervise(), self.control(error))
        return rotor

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"drone/rotor": asyncio.run(self.cycle(given["drone/error"]))}


class _Wrist:
    stiffness = 12.0

    def torque(self, q: Tensor, rest: Tensor) -> Tensor:
        return self.stiffness * (rest - q)


@hostile("A", style="own", rec={"wrist/q": normal(1, 3)}, passes=5, backends="jit")
class LhSupervisorThread:
    """A short thread before every tick looks after the wrist, and softens it one day."""

    def __init__(self, backend: str) -> None:
        self.backend, self.ticks = backend, 0
        self.wrist, self.rest = _Wrist(), torch.full((1, 3), 0.2)

    def supervise(self, tick: int) -> None:
        if tick >= 7:
            self.wrist.stiffness = 4.0

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        worker = threading.Thread(target=self.supervise, args=(self.ticks,))
        worker.start()
        worker.join()
        self.ticks += 1
        q = annotate.input_tensors("wrist", {"q": given["wrist/q"]})
        tau = self.wrist.torque(q, self.rest)
        annotate.output_tensors("wrist", {"tau": tau}, export_with=self.backend)
        return {"wrist/tau": tau}


class _Calibration:
    """What a calibration found."""

    def __init__(self, offset: Tensor) -> None:
        self.offset = offset


@hostile("B", style="own", rec={"wrench/raw": normal(1, 3)}, passes=4, backends="jit")
class LhWeakCalibration:
    """A calibration is looked up in a weak dictionary, and its owner lets it go."""

    def __init__(self, backend: str) -> None:
        self.backend, self.ticks = backend, 0
        self.session = [_Calibration(torch.tensor([[0.5, -0.5, 1.0]]))]
        self.known: weakref.WeakValueDictionary[str, _Calibration] = weakref.WeakValueDictionary()
        self.known["wrist"] = self.session[0]

    def corrected(self, raw: Tensor) -> Tensor:
        calibration = self.known.get("wrist")
        return raw * 1.02 if calibration is None else raw * 1.02 - calibration.offset

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.ticks += 1
        if self.ticks > 7:
            self.session.clear()  # the calibration is old
        raw = annotate.input_tensors("wrench", {"raw": given["wrench/raw"]})
        wrench = self.corrected(raw)
        annotate.output_tensors("wrench", {"wrench": wrench}, export_with=self.backend)
        return {"wrench/wrench": wrench}


@hostile("A", style="own", rec={"joint/q": normal(1, 3)}, passes=4, backends="jit")
class LhSwapTensors:
    """The driver exchanges the gains of two skills, in place, with torch's own helper."""

    def __init__(self, backend: str) -> None:
        self.backend, self.ticks = backend, 0
        self.gains = torch.tensor([[10.0, 8.0, 6.0]])
        self.spare = torch.tensor([[2.0, 2.0, 1.0]])

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        if self.ticks == 7:
            torch.utils.swap_tensors(self.gains, self.spare)
        self.ticks += 1
        q = annotate.input_tensors("joint", {"q": given["joint/q"]})
        tau = -self.gains * q
        annotate.output_tensors("joint", {"tau": tau}, export_with=self.backend)
        return {"joint/tau": tau}


@hostile("A", style="own", rec={"servo/angle": normal(1, 4)}, passes=5, backends="jit")
class LhParameterBlock:
    """Trims lie in a block of bytes that a configuration tool packs anew."""

    def __init__(self, backend: str) -> None:
        self.backend, self.ticks = backend, 0
        self.block = bytearray(struct.pack("<4f", 0.1, 0.2, 0.3, 0.4))
        self.trim = torch.frombuffer(self.block, dtype=torch.float32)

    def tool(self) -> None:
        if self.ticks == 7:
            struct.pack_into("<4f", self.block, 0, -1.0, -1.0, -1.0, -1.0)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.tool()
        self.ticks += 1
        angle = annotate.input_tensors("servo", {"angle": given["servo/angle"]})
        pulse = 0.5 * angle + self.trim
        annotate.output_tensors("servo", {"pulse": pulse}, export_with=self.backend)
        return {"servo/pulse": pulse}


@dataclass
class _Twist:
    """A velocity command as it comes from the radio."""

    seq: int
    data: Tensor


@hostile("B", style="own", rec={"base/velocity": normal(1, 2)}, passes=5, backends="jit")
class LhSequenceWraps:
    """Commands with an old sequence number are ignored; the number has eight bits."""

    def __init__(self, backend: str) -> None:
        self.backend, self.sent, self.last_seq = backend, 250, -1
        self.velocity = torch.zeros(1, 2)

    def receive(self, data: Tensor) -> _Twist:
        twist = _Twist(self.sent & 0xFF, data)
        self.sent += 1
        return twist

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        twist = self.receive(given["base/velocity"])
        velocity = annotate.input_tensors("base", {"velocity": twist.data})
        if twist.seq > self.last_seq:
            self.velocity, self.last_seq = velocity, twist.seq
        wheels = self.velocity @ torch.tensor([[1.0, 1.0], [-0.3, 0.3]])
        annotate.output_tensors("base", {"wheels": wheels}, export_with=self.backend)
        return {"base/wheels": wheels}


_GAITS = {"stand": [0.0, 0.0, 0.0, 0.0], "trot": [0.3, -0.3, -0.3, 0.3]}


@hostile("A", style="own", rec={"legs/q": normal(1, 4)}, passes=4, backends="jit")
class LhGaitPlan:
    """A plan of gaits with a time for each; offsets of the legs come from a table."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.table = {name: torch.tensor([values]) for name, values in _GAITS.items()}
        self.plan = collections.deque([("stand", 7), ("trot", 20)])
        self.gait, self.left = self.plan.popleft()

    def advance(self) -> None:
        if self.left == 0:
            self.gait, self.left = self.plan.popleft()
        self.left -= 1

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.advance()
        q = annotate.input_tensors("legs", {"q": given["legs/q"]})
        target = self.table[self.gait] + 0.1 * torch.tanh(q)
        annotate.output_tensors("legs", {"target": target}, export_with=self.backend)
        return {"legs/target": target}


@hostile("A", style="own", rec={"policy/obs": normal(1, 3)}, passes=4, backends="jit")
class LhHomingQueue:
    """A chunking policy plays a homing chunk of zeros first, then the chunks of its network."""

    def __init__(self, backend: str) -> None:
        self.backend, self.net = backend, nn.Linear(3, 8)
        self.queue = collections.deque(torch.zeros(8, 2).unbind(0))

    def next_action(self, obs: Tensor) -> Tensor:
        if not self.queue:
            self.queue.extend(self.net(obs).view(4, 2).unbind(0))
        return self.queue.popleft()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        obs = annotate.input_tensors("policy", {"obs": given["policy/obs"]})
        action = self.next_action(obs) - 0.1 * obs[0, :2]
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return {"policy/action": action}


class _Guard:
    """Swallows what a check raises, and remembers it."""

    def __init__(self) -> None:
        self.tripped = False

    def __enter__(self) -> _Guard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.tripped = self.tripped or kind is not None
        return True


@hostile(
    "C",
    style="own",
    rec={"planner/goal": normal(1, 2, s=0.2)},
    fresh={
        "planner/goal": either(lambda t: t == 3, fixed([[4.0, 3.0]]), normal(1, 2, s=0.2)),
    },
    backends="jit",
)
class LhGuardSwallows:
    """A plan that costs too much trips a guard, and the base is slow from then on."""

    def __init__(self, backend: str) -> None:
        self.backend, self.guard = backend, _Guard()

    def verify(self, cost: Tensor) -> None:
        if cost.item() > 10.0:
            raise RuntimeError(f"a plan of cost {cost.item():.1f}")

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        goal = annotate.input_tensors("planner", {"goal": given["planner/goal"]})
        outputs = {"heading": torch.atan2(goal[:, 1:], goal[:, :1]), "cost": (goal**2).sum()}
        annotate.output_tensors("planner", outputs, export_with=self.backend)
        with self.guard:
            self.verify(outputs["cost"])
        heading = annotate.input_tensors("base", {"heading": outputs["heading"]})
        speed = (0.2 if self.guard.tripped else 1.0) * torch.cos(heading)
        annotate.output_tensors("base", {"speed": speed}, export_with=self.backend)
        return {"base/speed": speed}


@hostile(
    "G",
    style="own",
    rec={"joy/stick": uniform(0.5, 1.0, 1, 2), "nav/goal": normal(1, 2)},
    fresh={
        "joy/stick": either(lambda t: t % 3 == 2, fixed([[0.0, 0.0]]), uniform(0.5, 1.0, 1, 2)),
    },
    backends="jit",
)
class LhPriorityMux:
    """A joystick wins over the navigation for as long as somebody moves it."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def joy(self, stick: Tensor) -> Tensor:
        stick = annotate.input_tensors("joy", {"stick": stick})
        twist = 0.8 * stick**3 + 0.2 * stick
        annotate.output_tensors("joy", {"twist": twist}, export_with=self.backend)
        return twist

    def nav(self, goal: Tensor) -> Tensor:
        goal = annotate.input_tensors("nav", {"goal": goal})
        twist = torch.tanh(goal)
        annotate.output_tensors("nav", {"twist": twist}, export_with=self.backend)
        return twist

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        manual, planned = self.joy(given["joy/stick"]), self.nav(given["nav/goal"])
        chosen = manual if float(manual.norm()) > 0.05 else planned
        chosen = annotate.input_tensors("base", {"twist": chosen})
        wheels = chosen @ torch.tensor([[1.0, 1.0], [-0.3, 0.3]])
        annotate.output_tensors("base", {"wheels": wheels}, export_with=self.backend)
        return {"base/wheels": wheels}


@hostile(
    "G",
    style="own",
    rec={"left/pos": normal(1, 3), "right/pos": normal(1, 3)},
    passes=5,
    backends="jit",
)
class LhLeaderChanges:
    """Two arms carry a tray; the one that leads is another after seven ticks."""

    def __init__(self, backend: str) -> None:
        self.backend, self.order, self.ticks = backend, ["left", "right"], 0

    def wish(self, arm: str, pos: Tensor) -> Tensor:
        pos = annotate.input_tensors(arm, {"pos": pos})
        wish = pos + 0.1 * torch.sin(pos)
        annotate.output_tensors(arm, {"wish": wish}, export_with=self.backend)
        return wish

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        wishes = {arm: self.wish(arm, given[f"{arm}/pos"]) for arm in ("left", "right")}
        self.ticks += 1
        if self.ticks == 8:
            self.order.reverse()
        inputs = {"leader": wishes[self.order[0]], "follower": wishes[self.order[1]]}
        leader, follower = annotate.input_tensors("tray", inputs)
        pose = 0.8 * leader + 0.2 * follower
        annotate.output_tensors("tray", {"pose": pose}, export_with=self.backend)
        return {"tray/pose": pose}


@hostile("G", style="own", rec={"vision/image": normal(1, 6)}, passes=5, backends="jit")
class LhRateDrops:
    """Vision runs in every tick while it warms up, and in every third one afterwards."""

    def __init__(self, backend: str) -> None:
        self.backend, self.ticks = backend, 0
        self.encoder, self.head = nn.Linear(6, 4), nn.Linear(4, 2)
        self.features = torch.zeros(1, 4)

    def look(self, image: Tensor) -> Tensor:
        image = annotate.input_tensors("vision", {"image": image})
        features = torch.tanh(self.encoder(image))
        annotate.output_tensors("vision", {"features": features}, export_with=self.backend)
        return features

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        if self.ticks < 6 or self.ticks % 3 == 0:
            self.features = self.look(given["vision/image"])
        self.ticks += 1
        features = annotate.input_tensors("policy", {"features": self.features})
        action = self.head(features)
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return {"policy/action": action}


@hostile(
    "G",
    style="own",
    rec={"policy/obs": uniform(0.5, 1.0, 1, 3)},
    fresh={
        "policy/obs": either(
            lambda t: t % 4 == 3, fixed([[-1.0, 0.5, 0.5]]), uniform(0.5, 1.0, 1, 3)
        )
    },
    backends="jit",
)
class LhNanGuard:
    """The motors get the last action that was finite."""

    def __init__(self, backend: str) -> None:
        self.backend, self.good = backend, torch.zeros(1, 3)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        obs = annotate.input_tensors("policy", {"obs": given["policy/obs"]})
        action = torch.sqrt(obs) * 2.0
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        if torch.isfinite(action).all():
            self.good = action
        command = annotate.input_tensors("motor", {"command": self.good})
        tau = 2.0 * command - 0.1
        annotate.output_tensors("motor", {"tau": tau}, export_with=self.backend)
        return {"motor/tau": tau}


_AS_DELIVERED = "[joint]\nkp = 20\nrest = 0.1\n"
_TUNED = "[joint]\nkp = 8\n"


@hostile("B", style="own", rec={"joint/q": normal(1, 2)}, passes=4, backends="jit")
class LhConfigRead:
    """A configuration file is read once more while the robot runs."""

    def __init__(self, backend: str) -> None:
        self.backend, self.ticks = backend, 0
        self.config = configparser.ConfigParser()
        self.config.read_string(_AS_DELIVERED)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.ticks += 1
        if self.ticks == 8:
            self.config.read_string(_TUNED)
        joint = self.config["joint"]
        q = annotate.input_tensors("joint", {"q": given["joint/q"]})
        tau = joint.getfloat("kp") * (joint.getfloat("rest") - q)
        annotate.output_tensors("joint", {"tau": tau}, export_with=self.backend)
        return {"joint/tau": tau}


class _Motor:
    """A motor with a torque constant."""

    def __init__(self) -> None:
        self.kt = 1.2

    def torque(self, current: Tensor) -> Tensor:
        return self.kt * current - 0.01 * current.abs()


@hostile("B", style="own", rec={"motor/current": normal(1, 2)}, passes=5, backends="jit")
class LhFaultInjection:
    """A test bench weakens a motor for some ticks, by patching its constant."""

    def __init__(self, backend: str) -> None:
        self.backend, self.ticks, self.motor = backend, 0, _Motor()

    def fault(self) -> Any:
        if 6 <= self.ticks < 10:
            return mock.patch.object(self.motor, "kt", 0.4)
        return contextlib.nullcontext()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        with self.fault():
            current = annotate.input_tensors("motor", {"current": given["motor/current"]})
            torque = self.motor.torque(current)
            annotate.output_tensors("motor", {"torque": torque}, export_with=self.backend)
        self.ticks += 1
        return {"motor/torque": torque}


class _Derate(TorchFunctionMode):
    """Halves every `tanh`."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result * 0.5 if func is torch.tanh else result


@hostile("B", style="own", rec={"policy/obs": normal(1, 4)}, passes=4, backends="jit")
class LhFunctionMode:
    """Late in the episode the policy runs inside of a mode that derates its activations."""

    def __init__(self, backend: str) -> None:
        self.backend, self.ticks, self.net = backend, 0, nn.Linear(4, 3)

    def act(self, obs: Tensor) -> Tensor:
        obs = annotate.input_tensors("policy", {"obs": obs})
        action = torch.tanh(self.net(obs))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return action

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.ticks += 1
        if self.ticks <= 7:
            return {"policy/action": self.act(given["policy/obs"])}
        with _Derate():
            return {"policy/action": self.act(given["policy/obs"])}


@hostile("A", style="own", rec={"track/z": normal(1, 2)}, passes=5, backends="jit")
class LhStepDecay:
    """A tracker takes the rate of its filter from a learning-rate schedule of torch."""

    def __init__(self, backend: str) -> None:
        self.backend, self.estimate = backend, torch.zeros(1, 2)
        self.optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.5)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=7, gamma=0.1)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        z = annotate.input_tensors("track", {"z": given["track/z"]})
        rate = self.schedule.get_last_lr()[0]
        self.estimate = self.estimate + rate * (z - self.estimate)
        position = self.estimate * 1.0
        annotate.output_tensors("track", {"position": position}, export_with=self.backend)
        self.optimizer.step()
        self.schedule.step()
        return {"track/position": position}


class _Grip:
    """A way to grip; the newest kind is the one in use."""

    kinds: ClassVar[list[type[_Grip]]] = []
    force = 1.0

    def __init_subclass__(cls) -> None:
        _Grip.kinds.append(cls)


@hostile("B", style="own", rec={"hand/width": normal(1, 2)}, passes=4, backends="jit")
class LhPluginArrives:
    """A plugin registers itself as a subclass, late, and is the grip from then on."""

    def __init__(self, backend: str) -> None:
        self.backend, self.ticks = backend, 0
        _Grip.kinds[:] = [_Grip]

    def load_plugins(self) -> None:
        if self.ticks == 7:
            type("SoftGrip", (_Grip,), {"force": 0.3})
        self.ticks += 1

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.load_plugins()
        width = annotate.input_tensors("hand", {"width": given["hand/width"]})
        effort = _Grip.kinds[-1].force * torch.sigmoid(width)
        annotate.output_tensors("hand", {"effort": effort}, export_with=self.backend)
        return {"hand/effort": effort}


class _Bus:
    """Sends velocities to motors that take from -1 to 1."""

    def __init__(self) -> None:
        self.sent: list[list[float]] = []

    def write(self, velocity: Tensor) -> None:
        if float(velocity.abs().max()) > 1.0:
            velocity.clamp_(-1.0, 1.0)
        self.sent.append(velocity.flatten().tolist())


@hostile(
    "A",
    style="own",
    rec={"base/accel": uniform(-0.5, 0.5, 1, 2)},
    fresh={"base/accel": uniform(4.0, 6.0, 1, 2)},
    backends="jit",
)
class LhBusClampsInPlace:
    """The bus clamps the velocity that it gets in place, and that is the integrator's own."""

    def __init__(self, backend: str) -> None:
        self.backend, self.bus, self.velocity = backend, _Bus(), torch.zeros(1, 2)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        accel = annotate.input_tensors("base", {"accel": given["base/accel"]})
        self.velocity = self.velocity + 0.1 * accel
        lean = -0.5 * self.velocity
        annotate.output_tensors("base", {"lean": lean}, export_with=self.backend)
        self.bus.write(self.velocity)
        return {"base/lean": lean}


@hostile("A", style="own", rec={"policy/obs": normal(4, 3)}, passes=5, backends="jit")
class LhTrainsLater:
    """The driver collects first, then trains: its policy is put into training mode."""

    def __init__(self, backend: str) -> None:
        self.backend, self.ticks = backend, 0
        self.net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).eval()

    def collect(self, obs: Tensor) -> Tensor:
        obs = annotate.input_tensors("policy", {"obs": obs})
        action = self.net(obs)
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return action

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.net.train(self.ticks >= 6)
        self.ticks += 1
        return {"policy/action": self.collect(given["policy/obs"])}


# Inside of a node.


@hostile("A", rec={"x": normal(1, 3)}, passes=5, backends="jit")
class LhTensorAge:
    """A filter writes its age onto the tensor that it keeps, and is damped when it is old."""

    def __init__(self) -> None:
        self.memory = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        age = getattr(self.memory, "age", 0)
        memory = 0.8 * self.memory + 0.2 * x
        memory.age = age + 1  # type: ignore[attr-defined]
        self.memory = memory
        return memory * 1.0 if age < 7 else memory * 0.4


@hostile("A", rec={"scan": normal(3, 3)}, passes=4, backends="jit")
class LhVersionCounter:
    """A grid that was written often, by torch's own count, is trusted less."""

    def __init__(self) -> None:
        self.grid = torch.zeros(3, 3)

    def __call__(self, scan: Tensor) -> Tensor:
        self.grid.mul_(0.9)
        self.grid.add_(scan, alpha=0.1)
        trust = 1.0 if self.grid._version <= 14 else 0.3
        return self.grid * trust


def _fatigue() -> Generator[float, float, None]:
    """How strong the arm still may be; it is sent the effort of every tick."""
    done, limit = 0.0, 1.0
    while True:
        effort = yield limit
        done += effort
        if done > 5.0:
            limit = 0.3


@hostile(
    "A",
    style="method",
    rec={"effort": uniform(0.0, 0.2, 1, 3)},
    fresh={"effort": uniform(1.0, 2.0, 1, 3)},
    backends="jit",
)
class LhCoroutineTires:
    """A coroutine is sent the effort, and answers with the strength that is left."""

    def __init__(self) -> None:
        self.fatigue = _fatigue()
        next(self.fatigue)

    def step(self, effort: Tensor) -> Tensor:
        strength = self.fatigue.send(float(effort.mean()))
        tau = strength * effort - 0.1
        return tau


@hostile("A", rec={"goal": normal(1, 2)}, passes=5, backends="jit")
class LhSemaphoreBudget:
    """Replanning takes a permit of a semaphore; without one the plan of before stays."""

    def __init__(self) -> None:
        self.budget = threading.Semaphore(7)
        self.plan = torch.zeros(1, 2)

    def __call__(self, goal: Tensor) -> Tensor:
        if self.budget.acquire(blocking=False):
            self.plan = torch.tanh(goal) * 0.5
        return self.plan + 0.1 * goal


class _Stance:
    """A leg on the ground."""

    def __init__(self) -> None:
        self.left = 7

    def target(self, q: Tensor) -> Tensor:
        self.left -= 1
        if self.left == 0:
            self.__class__ = _Swing  # type: ignore[assignment]
        return 0.1 * q


class _Swing(_Stance):
    """A leg in the air."""

    def target(self, q: Tensor) -> Tensor:
        return 0.1 * q + 0.4


@hostile("A", rec={"q": normal(1, 3)}, passes=4, backends="jit")
class LhLegChangesClass:
    """The state pattern by the book: a leg becomes another class after its time in stance."""

    def __init__(self) -> None:
        self.leg = _Stance()

    def __call__(self, q: Tensor) -> Tensor:
        return self.leg.target(q)


@hostile(
    "C",
    rec={"cell": by_tick(lambda t: [[3.0 * t, 1.0]])},
    fresh={"cell": row([[1.0, 2.0]], [[3.0, 4.0]])},
    backends="jit",
)
class LhVisitBonus:
    """Exploration: a bonus for cells by how often their bytes were seen."""

    def __init__(self) -> None:
        self.visits: dict[bytes, int] = {}

    def __call__(self, cell: Tensor) -> Tensor:
        key = cell.round().int().numpy().tobytes()
        self.visits[key] = self.visits.get(key, 0) + 1
        return 0.1 * cell + 1.0 / math.sqrt(self.visits[key])


@hostile(
    "C",
    style="method",
    rec={"reach": uniform(0.3, 0.6, 1)},
    fresh={"reach": either(lambda t: t % 2 == 1, uniform(0.8, 1.0, 1), uniform(0.3, 0.6, 1))},
    backends="jit",
)
class LhElbowStretched:
    """An elbow by the law of cosines; what is out of reach stretches the arm."""

    def __init__(self) -> None:
        self.upper, self.lower = 0.4, 0.3

    def step(self, reach: Tensor) -> Tensor:
        cosine = (reach**2 - self.upper**2 - self.lower**2) / (2 * self.upper * self.lower)
        try:
            math.acos(float(cosine))
            elbow = torch.acos(cosine)
        except ValueError:
            elbow = torch.zeros(1)
        return elbow


@hostile(
    "C",
    rec={"codes": integers(0, 3, 6), "x": normal(1, 2)},
    fresh={"codes": integers(0, 5, 6)},
    backends="jit",
)
class LhFaultAmongCodes:
    """A motor with fault code 3 among its codes gets half of the command."""

    def __call__(self, codes: Tensor, x: Tensor) -> Tensor:
        share = 0.5 if 3 in codes else 1.0
        return share * x + 0.0 * codes.sum()


@hostile(
    "C",
    rec={"force": normal(1, 2), "substeps": fixed(3)},
    fresh={"substeps": row(3, 6, 1, 4)},
    backends="jit",
)
class LhSubsteps:
    """A simulator with as many substeps as the caller wants, given as a tensor."""

    def __init__(self) -> None:
        self.velocity = torch.zeros(1, 2)

    def __call__(self, force: Tensor, substeps: Tensor) -> Tensor:
        velocity = self.velocity
        for _ in range(substeps):
            velocity = velocity + 0.1 * (force - 0.5 * velocity)
        self.velocity = velocity
        return velocity * 2.0


@hostile(
    "C",
    style="method",
    rec={"forces": normal(4, 3), "contact": fixed([True, True, True, True])},
    fresh={"contact": flags(0.5, 4)},
    backends="jit",
)
def LhCompressedForces(forces: Tensor, contact: Tensor) -> Tensor:  # noqa: N802
    """The force on the body: the sum over those feet that a selector lets through."""
    total = sum(itertools.compress(forces, contact), torch.zeros(3))
    wrench = total * 0.25
    return wrench


@hostile(
    "C",
    rec={"drift": normal(4, 2, s=0.02)},
    fresh={"drift": normal(4, 2, s=3.0)},
    backends="jit",
)
class LhNearestTwo:
    """Repulsion from the two nearest obstacles, found with a heap."""

    def __init__(self) -> None:
        self.known = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [0.0, -4.0]])

    def __call__(self, drift: Tensor) -> Tensor:
        obstacles = (self.known + drift).unbind(0)
        nearest = heapq.nsmallest(2, obstacles, key=lambda place: float(place.norm()))
        return -torch.stack(nearest).sum(0)


@hostile(
    "C",
    rec={"speed": uniform(0.1, 0.4, 1)},
    fresh={"speed": uniform(0.0, 3.0, 1)},
    backends="jit",
)
class LhGainByBisect:
    """Gain scheduling: the gain of a speed is looked up with a bisection."""

    edges = (0.5, 1.0, 2.0)
    gains = (4.0, 3.0, 1.5, 0.5)

    def __call__(self, speed: Tensor) -> Tensor:
        place = bisect.bisect(self.edges, speed)
        return self.gains[place] * (1.0 - speed)


@hostile(
    "C",
    rec={"stop": fixed(3), "error": normal(1, 2)},
    fresh={"stop": row(3, 7, 9, 3)},
    backends="jit",
)
class LhStopIndex:
    """A shuttle looks up its next stop in a list of tensors."""

    def __init__(self) -> None:
        self.stops = [torch.tensor(3), torch.tensor(7), torch.tensor(9)]
        self.speeds = [1.0, 0.5, -0.4]

    def __call__(self, stop: Tensor, error: Tensor) -> Tensor:
        speed = self.speeds[self.stops.index(stop)]
        return speed * error + 0.0 * stop


@hostile(
    "D",
    rec={"x": uniform(0.6, 0.9, 1, 4)},
    fresh={"x": either(lambda t: t % 2 == 1, uniform(0.05, 0.1, 1, 4), uniform(3.0, 7.0, 1, 4))},
    backends="jit",
)
class LhBlockFloat:
    """Packs a block for a small processor: mantissas of seven bits with one exponent."""

    def __call__(self, x: Tensor) -> Tensor:
        _, exponent = math.frexp(x.abs().max().item())
        return torch.round(x * 2.0 ** (7 - exponent))


@hostile(
    "D",
    style="method",
    rec={"angle": uniform(2.6, 3.3, 1)},
    fresh={"angle": uniform(0.0, 9.0, 1)},
    backends="jit",
)
class LhStepperRest:
    """What a stepper motor cannot do: the rest after whole steps, half a step rounded up."""

    def step(self, angle: Tensor) -> Tensor:
        steps = int(Decimal(repr(angle.item())).quantize(Decimal(1), ROUND_HALF_UP))
        rest = (angle - steps) * 10.0
        return rest


@hostile(
    "D",
    rec={"a": normal(1, 3), "b": uniform(-1e-9, 1e-9, 1, 3)},
    fresh={"b": normal(1, 3)},
    passes=6,
    backends="jit",
)
class LhTrimBelowRounding:
    """A trim that fades from tick to tick, on a signal that is lost in rounding at first."""

    def __init__(self) -> None:
        self.trim = 1.0

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        y = a + self.trim * b
        self.trim *= 0.8
        return y


@hostile(
    "D",
    rec={"charge": normal(1, 3, s=1e-9)},
    fresh={"charge": normal(1, 3)},
    passes=5,
    backends="jit",
)
class LhNanocoulombs:
    """A sensor in nanocoulombs, as coulombs; its factor grows while it warms up."""

    def __init__(self) -> None:
        self.factor = 1.0

    def __call__(self, charge: Tensor) -> Tensor:
        self.factor += 0.5
        return self.factor * charge


@hostile(
    "D",
    style="method",
    rec={"count": by_tick(lambda t: [1000 + 100 * t])},
    fresh={"count": by_tick(lambda t: [(30000 + 1500 * t + 32768) % 65536 - 32768])},
    backends="jit",
)
class LhEncoderTurns:
    """An encoder of sixteen bits; overflows are counted in Python."""

    def __init__(self) -> None:
        self.turns = 0
        self.last: int | None = None

    def step(self, count: Tensor) -> Tensor:
        now = int(count)
        if self.last is not None and now - self.last < -32768:
            self.turns += 1
        self.last = now
        position = (count + 65536 * self.turns).float() * 1e-4
        return position


@hostile(
    "C",
    style="method",
    rec={"z": normal(2, s=0.2)},
    fresh={"z": either(lambda t: t % 3 == 1, normal(2, s=0.1, m=20.0), normal(2, s=0.2))},
    passes=5,
    backends="jit",
)
class LhOutlierGate:
    """A Kalman filter ignores measurements that are too far away."""

    def __init__(self) -> None:
        self.mean, self.variance = torch.zeros(2), torch.ones(2)

    def step(self, z: Tensor) -> Tensor:
        self.variance = self.variance + 0.05
        innovation = z - self.mean
        if (innovation**2 / (self.variance + 0.3)).sum().item() < 25.0:
            gain = self.variance / (self.variance + 0.3)
            self.mean = self.mean + gain * innovation
            self.variance = (1.0 - gain) * self.variance
        estimate = self.mean * 1.0
        return estimate


@hostile("A", style="module", passes=4, backends="jit")
class LhSlopeAnneals(nn.Module):
    """The slope of an activation is annealed by how often the policy was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.act = nn.Linear(4, 4), nn.LeakyReLU(0.5)
        self.asked = 0

    def forward(self, x: Tensor) -> Tensor:
        self.asked += 1
        if self.asked > 7:
            self.act.negative_slope = 0.01
        return self.act(self.net(x))


@hostile("A", style="module", passes=5, backends="jit")
class LhHookLimits(nn.Module):
    """A forward hook of a layer lets everything through for some ticks, and then limits it."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.head = nn.Linear(4, 6), nn.Linear(6, 2)
        self.runs = 0
        self.net.register_forward_hook(self._limit)

    def _limit(self, module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        self.runs += 1
        return output if self.runs <= 7 else output.clamp(-0.1, 0.1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.net(x))


@hostile("G", style="module", passes=5, backends="jit")
class LhExpertsTakeTurns(nn.Module):
    """Experts take turns, each for six ticks, by the order of a deque."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(4, 2) for _ in range(3)])
        self.order, self.shift = collections.deque([0, 1, 2]), itertools.cycle(range(6))

    def forward(self, x: Tensor) -> Tensor:
        y = self.experts[self.order[0]](x)
        if next(self.shift) == 5:
            self.order.rotate(-1)
        return torch.tanh(y)


@hostile("A", style="module", rec={"x": normal(8, 3)}, passes=4, backends="jit")
class LhCumulativeStatistics(nn.Module):
    """Observations are centred with a batch norm that averages over all that it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3, momentum=None, affine=False)

    def forward(self, x: Tensor) -> Tensor:
        self.norm(x)
        mean = self.norm.running_mean
        return x - mean if mean is not None else x


@hostile(
    "C",
    rec={"pitch": uniform(0.0, 0.2, 1), "q": normal(1, 3)},
    fresh={"pitch": either(lambda t: t >= 3, uniform(0.4, 0.8, 1), uniform(0.0, 0.2, 1))},
    passes=6,
    backends="jit",
)
class LhTerrainVotes:
    """The terrain is what most of the last five ticks say; each terrain has its step height."""

    heights: ClassVar[dict[str, float]] = {"flat": 0.05, "stairs": 0.2}

    def __init__(self) -> None:
        self.votes: collections.deque[str] = collections.deque(maxlen=5)

    def __call__(self, pitch: Tensor, q: Tensor) -> Tensor:
        self.votes.append("stairs" if pitch.item() > 0.3 else "flat")
        terrain = collections.Counter(self.votes).most_common(1)[0][0]
        return 0.1 * q + self.heights[terrain] + 0.0 * pitch
