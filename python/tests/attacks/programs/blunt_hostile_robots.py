"""Controllers, estimators and nodes around robots that were quiet while they were recorded."""

from __future__ import annotations

import functools
import json
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import by_tick, either, fixed, integers, normal, row, uniform
from attacks.registry import hostile

# Nodes as classes, with messages and parameters around them.


class _Bus:
    """Topics and who listens to them."""

    def __init__(self) -> None:
        self.listeners: dict[str, list[Callable[[Any], None]]] = defaultdict(list)

    def subscribe(self, topic: str, listener: Callable[[Any], None]) -> None:
        self.listeners[topic].append(listener)

    def publish(self, topic: str, message: Any) -> None:
        for listener in self.listeners[topic]:
            listener(message)


class _ArmNode:
    """Holds the arm by a spring."""

    def __init__(self, bus: _Bus, backend: str) -> None:
        self.backend, self.stiffness = backend, torch.full((1, 3), 20.0)
        bus.subscribe("/stiffness", self.on_stiffness)

    def on_stiffness(self, message: dict[str, float]) -> None:
        self.stiffness = torch.full((1, 3), message["data"])

    def step(self, q: Tensor) -> Tensor:
        q = annotate.input_tensors("arm", {"q": q})
        tau = -self.stiffness * q
        annotate.output_tensors("arm", {"tau": tau}, export_with=self.backend)
        return tau


class _SafetyNode:
    """Listens to torques, and publishes a stiffness when they are large."""

    def __init__(self, bus: _Bus) -> None:
        self.bus = bus
        bus.subscribe("/tau", self.on_tau)

    def on_tau(self, message: dict[str, list[float]]) -> None:
        if max(abs(value) for value in message["effort"]) > 30.0:
            self.bus.publish("/stiffness", {"data": 5.0})


@hostile(
    "E",
    style="own",
    rec={"arm/q": uniform(-0.5, 0.5, 1, 3)},
    fresh={"arm/q": either(lambda t: t == 4, fixed([[2.0, -2.0, 1.0]]), uniform(-0.5, 0.5, 1, 3))},
    backends=("jit", "onnx"),
)
class BlBusSafety:
    """A safety node that listens on a bus publishes a lower stiffness after a large torque."""

    def __init__(self, backend: str) -> None:
        self.bus = _Bus()
        self.arm, self.safety = _ArmNode(self.bus, backend), _SafetyNode(self.bus)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        tau = self.arm.step(given["arm/q"])
        self.bus.publish("/tau", {"effort": tau[0].tolist()})
        return {"arm/tau": tau}


class _Parameters:
    """A server of parameters, with callbacks as ROS has them."""

    def __init__(self, **values: float) -> None:
        self.values = values
        self.callbacks: list[Callable[[str, float], None]] = []

    def set(self, name: str, value: float) -> None:
        self.values[name] = value
        for callback in self.callbacks:
            callback(name, value)


@hostile(
    "E",
    style="own",
    rec={"base/twist": normal(1, 3), "joy/buttons": fixed([0, 0, 0, 0])},
    fresh={"joy/buttons": row([0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0])},
    backends=("jit",),
)
class BlTurboButton:
    """A button of the gamepad sets a parameter of the drive."""

    def __init__(self, backend: str) -> None:
        self.backend, self.limit = backend, 0.5
        self.parameters = _Parameters(limit=0.5)
        self.parameters.callbacks.append(self.on_parameter)

    def on_parameter(self, name: str, value: float) -> None:
        setattr(self, name, value)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        pressed = np.flatnonzero(given["joy/buttons"].numpy())
        for button in pressed:
            self.parameters.set("limit", {0: 0.5, 1: 1.5}.get(int(button), 0.5))
        twist = annotate.input_tensors("base", {"twist": given["base/twist"]})
        wheels = twist.clamp(-self.limit, self.limit) @ torch.tensor(
            [[1.0, 1], [0, 0], [-0.3, 0.3]]
        )
        annotate.output_tensors("base", {"wheels": wheels}, export_with=self.backend)
        return {"base/wheels": wheels}


class _Grasp:
    """A grasp that may not be there."""

    def __init__(self, pose: Tensor) -> None:
        self._pose = pose

    @property
    def offset(self) -> Tensor:
        if self._pose.norm() > 3.0:
            raise AttributeError("the grasp is out of reach")
        return 0.1 * self._pose


@hostile(
    "C",
    style="inline",
    rec={"pose": uniform(-1.0, 1.0, 1, 3)},
    fresh={"pose": either(lambda t: t % 4 == 3, fixed([[5.0, 0.0, 1.0]]), uniform(-1, 1, 1, 3))},
    backends=("jit", "onnx"),
)
def BlGraspProperty(pose: Tensor) -> Tensor:  # noqa: N802
    """A property says that it is not there for poses out of reach, and a default steps in."""
    return pose + getattr(_Grasp(pose), "offset", torch.zeros(1, 3))


@hostile(
    "C",
    style="own",
    rec={"arm/q": uniform(-1.0, 1.0, 1, 3)},
    fresh={"arm/q": either(lambda t: t in (2, 5), fixed([[4.0, 0.0, 0.0]]), uniform(-1, 1, 1, 3))},
    backends="jit",
)
class BlFinallyReturns:
    """A check of limits raises, and `finally: return` lets nobody hear of it."""

    def __init__(self, backend: str) -> None:
        self.backend, self.bias = backend, 0.0

    def check(self, q: Tensor) -> None:
        if (q.abs() > 3.1).any():
            raise RuntimeError("a joint is out of its limits")

    def supervise(self, q: Tensor) -> bool:
        fine = False
        try:
            self.check(q)
            fine = True
        finally:
            return fine  # noqa: B012  # a habit that this is about

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.bias += 0.0 if self.supervise(given["arm/q"]) else 0.5
        q = annotate.input_tensors("arm", {"q": given["arm/q"]})
        tau = -3.0 * q + self.bias
        annotate.output_tensors("arm", {"tau": tau}, export_with=self.backend)
        return {"arm/tau": tau}


@hostile(
    "C",
    style="method",
    rec={"err": uniform(-0.4, 0.4, 4), "tau": normal(4)},
    fresh={"err": uniform(-1.0, 1.0, 4)},
    backends=("jit", "onnx", "pt2"),
)
class BlBrokenJoints:
    """Joints that track badly are looped over, and there is none while recorded."""

    def step(self, err: Tensor, tau: Tensor) -> Tensor:
        safe = tau.clone()
        for i in (err.abs() > 0.5).nonzero().flatten():
            safe[i] = -0.2 * safe[i]
        return safe


class _Waypoints:
    """Iterates over the points of a path that are still ahead."""

    def __init__(self, path: Tensor) -> None:
        self.path = path

    def ahead(self, x: Tensor) -> Iterator[Tensor]:
        for point in self.path:
            if point[0] > x[0, 0]:
                yield point


@hostile(
    "C",
    style="inline",
    rec={"x": uniform(-0.5, 0.4, 1, 2)},
    fresh={"x": uniform(-0.5, 2.4, 1, 2)},
    passes=3,
    backends="onnx",
)
class BlNextWaypoint:
    """The next waypoint ahead is taken from a generator, and it is the first one while recorded."""

    def __init__(self) -> None:
        self.path = torch.tensor([[0.5, 0.0], [1.5, 1.0], [2.5, -1.0]])

    def __call__(self, x: Tensor) -> Tensor:
        goal = next(_Waypoints(self.path).ahead(x), self.path[-1])
        return (goal - x).clamp(-0.3, 0.3)


# Numbers of hardware.


@hostile(
    "F",
    style="inline",
    rec={"ticks": integers(-900, 900, 1, 4, dtype=torch.int16)},
    fresh={"ticks": integers(-32768, 32767, 1, 4, dtype=torch.int16)},
    backends=("onnx", "jit", "pt2"),
)
class BlEncoderWrap:
    """Encoders of sixteen bits run over, and their difference wraps around."""

    def __init__(self) -> None:
        self.last = torch.zeros(1, 4, dtype=torch.int16)

    def __call__(self, ticks: Tensor) -> Tensor:
        moved = ticks - self.last
        self.last = ticks.clone()
        return moved.float() * (2 * torch.pi / 4096)


@hostile(
    "F",
    style="inline",
    rec={"duty": uniform(0.0, 1.0, 1, 3)},
    fresh={"duty": uniform(-0.5, 2.0, 1, 3)},
    backends=("onnx", "jit"),
)
def BlPwmByte(duty: Tensor) -> dict[str, Tensor]:  # noqa: N802
    """Duty cycles go through a byte, and are out of its range later."""
    level = (duty * 255).round().to(torch.int32)
    byte = level.to(torch.uint8)
    return {
        "level": byte.float() / 255.0,
        "coarse": (byte >> 4).float(),
        "left": (255 - byte).float(),
    }


@hostile(
    "F",
    style="inline",
    rec={"xy": uniform(0.2, 1.0, 1, 2)},
    fresh={
        "xy": row(
            [[-1.0, -0.0]],
            [[-1.0, 0.0]],
            [[0.0, -1.0]],
            [[0.0, 0.0]],
            [[-0.0, 0.0]],
            [[-2.0, 1e-30]],
        )
    },
    backends=("onnx", "pt2"),
)
def BlHeadingCorners(xy: Tensor) -> dict[str, Tensor]:  # noqa: N802
    """Headings come at the corners of the arc tangent, with signs of nought."""
    x, y = xy[:, :1], xy[:, 1:]
    yaw = torch.atan2(y, x)
    return {
        "yaw": yaw,
        "wrapped": torch.remainder(yaw + torch.pi, 2 * torch.pi) - torch.pi,
        "side": torch.copysign(torch.ones(1, 1), y),
        "angle": torch.angle(torch.complex(x, y)),
        "inverse": 1.0 / (x * y),
    }


@hostile(
    "F",
    style="inline",
    rec={"cell": integers(0, 40, 1, 4)},
    fresh={"cell": integers(-40, 40, 1, 4)},
    backends=("onnx", "jit", "pt2"),
)
def BlGridNegative(cell: Tensor) -> dict[str, Tensor]:  # noqa: N802
    """Cells left of the origin come later: division and remainder of negative integers."""
    return {
        "chunk": cell // 8,
        "inside": cell % 8,
        "fmod": torch.fmod(cell, 8),
        "trunc": torch.div(cell, 8, rounding_mode="trunc"),
        "shift": cell >> 2,
        "metres": (cell.float() / 8).long() + (cell.float() // 0.3).long(),
    }


@hostile(
    "D",
    style="own",
    rec={"gait/stamp": by_tick(lambda t: torch.tensor([[0.02 * t]], dtype=torch.float64))},
    fresh={
        "gait/stamp": by_tick(lambda t: torch.tensor([[1.75e9 + 0.02 * t]], dtype=torch.float64))
    },
    backends=("onnx", "jit"),
)
class BlEpochStamp:
    """Stamps are seconds since the epoch later, of which the first one is taken off in float64."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.zero = torch.full((1, 1), float("nan"), dtype=torch.float64)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        stamp = annotate.input_tensors("gait", {"stamp": given["gait/stamp"]})
        self.zero = torch.where(self.zero.isnan(), stamp, self.zero)
        phase = ((stamp - self.zero) * 1.7) % 1.0
        foot = torch.sin(2 * torch.pi * phase).float()
        annotate.output_tensors("gait", {"foot": foot}, export_with=self.backend)
        return {"gait/foot": foot}


@hostile(
    "F",
    style="inline",
    rec={"jac": normal(1, 3, 4), "v": normal(1, 3)},
    fresh={
        "jac": row(
            [[[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]],
            [[[1.0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]]],
            [[[0.0] * 4] * 3],
        )
    },
    backends=("onnx", "jit"),
)
def BlSingularArm(jac: Tensor, v: Tensor) -> Tensor:  # noqa: N802
    """The Jacobian loses rank later, and the pseudo-inverse has to cut it off."""
    pinv = torch.linalg.pinv(jac, rcond=1e-4)
    return (pinv @ v.unsqueeze(-1)).squeeze(-1) + torch.linalg.matrix_rank(jac).float()


@hostile(
    "F",
    style="inline",
    rec={"hit": uniform(0.1, 3.9, 6, 2)},
    fresh={"hit": uniform(-2.0, 3.9, 6, 2)},
    passes=3,
    backends=("jit", "onnx", "pt2"),
)
class BlOccupancy:
    """Hits left of the map have negative cells, which count from its other end."""

    def __init__(self) -> None:
        self.map = torch.zeros(4, 4)

    def __call__(self, hit: Tensor) -> Tensor:
        cell = hit.floor().long()
        self.map *= 0.9
        self.map[cell[:, 1], cell[:, 0]] += 1.0
        self.map.index_put_((cell[:, 0], cell[:, 1]), torch.full((6,), 0.1), accumulate=True)
        return self.map.clone()


# Values that cross between nodes.


class _Blackboard(dict[str, Any]):
    """What nodes tell one another."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


@hostile(
    "G",
    style="own",
    rec={"slip/w": normal(1, 4, s=0.2), "drive/cmd": normal(1, 2)},
    fresh={"slip/w": normal(1, 4, s=2.0)},
    backends=("jit", "onnx"),
)
class BlBlackboardTraction:
    """One node writes its verdict on a blackboard, and another one reads it there."""

    def __init__(self, backend: str) -> None:
        self.backend, self.board = backend, _Blackboard(traction="good")

    def detect(self, w: Tensor) -> Tensor:
        w = annotate.input_tensors("slip", {"w": w})
        ratio = w.std(dim=-1, keepdim=True)
        self.board["traction"] = "poor" if ratio.item() > 1.0 else "good"
        annotate.output_tensors("slip", {"ratio": ratio}, export_with=self.backend)
        return ratio

    def drive(self, cmd: Tensor) -> Tensor:
        cmd = annotate.input_tensors("drive", {"cmd": cmd})
        wheels = {"good": 1.0, "poor": 0.3}[self.board.traction] * cmd
        annotate.output_tensors("drive", {"wheels": wheels}, export_with=self.backend)
        return wheels

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        ratio = self.detect(given["slip/w"])
        return {"slip/ratio": ratio, "drive/wheels": self.drive(given["drive/cmd"])}


def _limit(values: list[float], lo: float, hi: float) -> list[float]:
    return [min(max(value, lo), hi) for value in values]


@hostile(
    "G",
    style="own",
    rec={"plan/x": uniform(-0.3, 0.3, 1, 3)},
    fresh={"plan/x": normal(1, 3, s=2.0)},
    backends=("jit", "onnx"),
)
class BlMessageLimits:
    """A plan crosses to the next node as a JSON message, and is limited on its way."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        x = annotate.input_tensors("plan", {"x": given["plan/x"]})
        target = 2.0 * x
        annotate.output_tensors("plan", {"target": target}, export_with=self.backend)
        message = json.dumps({"position": _limit(target[0].tolist(), -1.0, 1.0)})
        position = torch.tensor([json.loads(message)["position"]])
        position = annotate.input_tensors("arm", {"position": position})
        tau = 10.0 * position
        annotate.output_tensors("arm", {"tau": tau}, export_with=self.backend)
        return {"plan/target": target, "arm/tau": tau}


@hostile(
    "G",
    style="own",
    rec={"est/x": row([[0.25, 0.5, -1.0]], [[1.5, -0.75, 2.0]], [[0.0, 1.0, 3.0]])},
    fresh={"est/x": normal(1, 3, s=3e-8)},
    passes=3,
    backends=("jit", "onnx"),
)
class BlHalfOnTheWire:
    """Between two nodes the values are packed in half precision, exactly so while recorded."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        x = annotate.input_tensors("est", {"x": given["est/x"]})
        state = x * 0.5
        annotate.output_tensors("est", {"state": state}, export_with=self.backend)
        wire = state.half()
        state = annotate.input_tensors("ctl", {"state": wire.float()})
        u = -4.0 * state
        annotate.output_tensors("ctl", {"u": u}, export_with=self.backend)
        return {"est/state": x * 0.5, "ctl/u": u}


@hostile(
    "G",
    style="own",
    rec={"safe/cmd": uniform(-0.8, 0.8, 1, 3)},
    fresh={"safe/cmd": normal(1, 3, s=2.0)},
    backends=("jit", "onnx", "pt2"),
)
class BlClampsItsInput:
    """The first node clamps the command in place, so the second one gets what it left."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        msg = {"cmd": given["safe/cmd"]}
        cmd = annotate.input_tensors("safe", {"cmd": msg["cmd"]})
        cmd.clamp_(-1.0, 1.0)
        load = cmd.abs().sum(-1, keepdim=True)
        annotate.output_tensors("safe", {"load": load}, export_with=self.backend)
        cmd = annotate.input_tensors("motor", {"cmd": msg["cmd"]})
        duty = 0.7 * cmd
        annotate.output_tensors("motor", {"duty": duty}, export_with=self.backend)
        return {"safe/load": load, "motor/duty": duty}


class _LowPass:
    """A filter of first order."""

    def __init__(self, alpha: float) -> None:
        self.alpha, self.value = alpha, torch.zeros(1, 2)

    def __call__(self, x: Tensor) -> Tensor:
        self.value = self.value + self.alpha * (x - self.value)
        return self.value


@hostile(
    "G",
    style="own",
    rec={"left/x": fixed([[0.0, 0.0]]), "right/x": fixed([[0.0, 0.0]])},
    fresh={"left/x": normal(1, 2), "right/x": normal(1, 2, m=2.0)},
    passes=6,
    backends=("jit", "onnx"),
)
class BlOneFilterTwoArms:
    """Both arms were given the same filter by mistake, and stand still while recorded."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        shared = _LowPass(0.4)
        self.filters = {"left": shared, "right": shared}

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        out = {}
        for side, smooth in self.filters.items():
            x = annotate.input_tensors(side, {"x": given[f"{side}/x"]})
            y = smooth(x) * 2.0
            annotate.output_tensors(side, {"y": y}, export_with=self.backend)
            out[f"{side}/y"] = y
        return out


@hostile(
    "G",
    style="own",
    rec={"heat/temp": uniform(20.0, 40.0, 1, 2), "servo/q": normal(1, 2)},
    fresh={"heat/temp": uniform(20.0, 95.0, 1, 2)},
    backends=("jit", "onnx"),
)
class BlSharedGains:
    """The thermal node writes the gains, in place and without Python deciding, that the servo reads."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.nominal, self.gains = torch.tensor([[8.0, 6.0]]), torch.tensor([[8.0, 6.0]])

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        temp = annotate.input_tensors("heat", {"temp": given["heat/temp"]})
        self.gains.copy_(torch.where(temp > 60.0, 0.5 * self.nominal, self.nominal))
        margin = 80.0 - temp
        annotate.output_tensors("heat", {"margin": margin}, export_with=self.backend)
        q = annotate.input_tensors("servo", {"q": given["servo/q"]})
        tau = -self.gains * q
        annotate.output_tensors("servo", {"tau": tau}, export_with=self.backend)
        return {"heat/margin": margin, "servo/tau": tau}


# State machines, clocks and what a driver decides.


@dataclass
class _Clock:
    """The time between two ticks, as the stamps say."""

    last: float = 0.0
    dt: float = 0.02

    def tick(self, stamp: float) -> None:
        self.dt, self.last = round(stamp - self.last, 6) if self.last else self.dt, stamp


@hostile(
    "A",
    style="own",
    rec={"pid/err": normal(1, 2), "clock/stamp": by_tick(lambda t: [1.0 + 0.02 * t])},
    fresh={"clock/stamp": by_tick(lambda t: [1.0 + 0.02 * t + (0.05 if t >= 5 else 0.0)])},
    backends=("jit", "onnx"),
)
class BlJitteryClock:
    """Ticks come evenly while recorded, and one is late afterwards."""

    def __init__(self, backend: str) -> None:
        self.backend, self.clock, self.integral = backend, _Clock(), torch.zeros(1, 2)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.clock.tick(given["clock/stamp"].double().item())
        err = annotate.input_tensors("pid", {"err": given["pid/err"]})
        self.integral = self.integral + err * self.clock.dt
        u = 2.0 * err + 30.0 * self.integral
        annotate.output_tensors("pid", {"u": u}, export_with=self.backend)
        return {"pid/u": u}


@hostile("A", style="inline", rec={"q": normal(1, 4)}, ticks=16, backends="jit")
class BlContactString:
    """The schedule of the feet is a text that is turned by a letter in every tick."""

    def __init__(self) -> None:
        self.pattern = "SSSSSSWWSS"
        self.lift = {"S": 0.0, "W": 0.8}

    def __call__(self, q: Tensor) -> Tensor:
        foot = self.pattern[0]
        self.pattern = self.pattern[1:] + self.pattern[0]
        return 0.5 * q + self.lift[foot]


@dataclass
class _Plan:
    cost: Tensor
    action: Tensor


@hostile(
    "C",
    style="inline",
    rec={"x": uniform(0.5, 1.5, 1, 3)},
    fresh={"x": normal(1, 3, s=2.0)},
    backends=("jit", "onnx"),
)
class BlCheapestPlan:
    """The cheapest plan of some is the same one in every recorded tick."""

    def __init__(self) -> None:
        self.nets = nn.ModuleList(nn.Linear(3, 2) for _ in range(3))

    def __call__(self, x: Tensor) -> Tensor:
        plans = [_Plan((x - 1.0 + 2.0 * k).pow(2).sum(), net(x)) for k, net in enumerate(self.nets)]
        return min(plans, key=operator.attrgetter("cost")).action


class _Mode(Enum):
    STAND = auto()
    WALK = auto()
    RECOVER = auto()


@hostile(
    "C",
    style="own",
    rec={"walk/obs": normal(1, 4), "imu/gravity": fixed([0.0, 0.0, -1.0])},
    fresh={"imu/gravity": row([0.0, 0.0, -1.0], [0.1, 0.0, -1.0], [0.9, 0.0, -0.2])},
    passes=12,
    backends=("jit", "pt2"),
)
class BlFallTable:
    """A fall is an event, and what follows stands in tables of the state machine."""

    def __init__(self, backend: str) -> None:
        self.backend, self.mode = backend, _Mode.WALK
        self.net, self.offset = nn.Linear(4, 2), torch.zeros(2)
        self.moves = {
            (_Mode.WALK, "fell"): _Mode.RECOVER,
            (_Mode.RECOVER, "upright"): _Mode.STAND,
        }
        self.entered = {_Mode.RECOVER: self.tuck, _Mode.STAND: functools.partial(self.tuck, 0.2)}

    def tuck(self, by: float = -1.0) -> None:
        self.offset.fill_(by)

    def event(self, gravity: Tensor) -> str:
        return ("upright", "fell")[int(gravity[2] > -0.5)]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        key = (self.mode, self.event(given["imu/gravity"]))
        if key in self.moves:
            self.mode = self.moves[key]
            self.entered[self.mode]()
        obs = annotate.input_tensors("walk", {"obs": given["walk/obs"]})
        action = self.net(obs) + self.offset
        annotate.output_tensors("walk", {"action": action}, export_with=self.backend)
        return {"walk/action": action}


@hostile(
    "B",
    style="own",
    rec={"ctl/x": uniform(-0.5, 0.5, 1, 2)},
    fresh={"ctl/x": normal(1, 2, s=2.0)},
    backends=("jit",),
)
class BlPlannerFuture:
    """A planner works in a pool; its last result is taken up in the next tick."""

    def __init__(self, backend: str) -> None:
        self.backend, self.pool = backend, ThreadPoolExecutor(1)
        self.future: Future[Tensor] | None = None

    def plan(self, x: Tensor) -> Tensor:
        return x.sign() * (x.abs() - 1.0).clamp(min=0.0)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        x = annotate.input_tensors("ctl", {"x": given["ctl/x"]})
        goal = self.future.result() if self.future is not None else torch.zeros(1, 2)
        u = goal - 0.5 * x
        annotate.output_tensors("ctl", {"u": u}, export_with=self.backend)
        self.future = self.pool.submit(self.plan, given["ctl/x"])
        return {"ctl/u": u}


@hostile(
    "A",
    style="own",
    rec={"kf/x": normal(1, 2), "gps/fix": fixed([[0.0, 0.0]])},
    fresh={"gps/fix": either(lambda t: t < 5, fixed([[0.0, 0.0]]), normal(1, 2))},
    passes=4,
    backends=("jit", "onnx"),
)
class BlFixInTheBuffer:
    """The driver copies fixes of a receiver into an array that the filter keeps a tensor of."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.message = np.zeros((1, 2), dtype=np.float32)
        self.fix = torch.from_numpy(self.message)

    def on_fix(self, fix: np.ndarray) -> None:
        if np.any(fix):
            self.message[:] = fix

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.on_fix(given["gps/fix"].numpy())
        x = annotate.input_tensors("kf", {"x": given["kf/x"]})
        y = x + 0.3 * (self.fix - x)
        annotate.output_tensors("kf", {"y": y}, export_with=self.backend)
        return {"kf/y": y}


@hostile(
    "A",
    style="inline",
    rec={"bump": uniform(0.0, 0.4, 1, 1), "cmd": normal(1, 2)},
    fresh={"bump": either(lambda t: t == 4, fixed([[0.9]]), uniform(0.0, 0.4, 1, 1))},
    passes=1,
    backends=("jit", "onnx"),
)
class BlLatchedOnePass:
    """A bumper latches, all in tensors; only one pass was recorded."""

    def __init__(self) -> None:
        self.latched = torch.zeros(1, 1, dtype=torch.bool)

    def __call__(self, bump: Tensor, cmd: Tensor) -> Tensor:
        self.latched |= bump > 0.7
        return torch.where(self.latched, torch.zeros_like(cmd), cmd)


# Written after the first run, about the places where it had hurt.


@hostile(
    "E",
    style="own",
    rec={"ft/wrench": normal(1, 6), "gripper/open": fixed([False])},
    fresh={"gripper/open": by_tick(lambda t: [t == 5])},
    backends=("jit", "onnx"),
)
class BlTaredWrench:
    """When the gripper has opened, the driver tares the sensor: it copies the reading into the bias."""

    def __init__(self, backend: str) -> None:
        self.backend, self.bias = backend, torch.zeros(1, 6)

    def tare(self, wrench: Tensor) -> None:
        self.bias.copy_(wrench)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        if bool(given["gripper/open"]):
            self.tare(given["ft/wrench"])
        wrench = annotate.input_tensors("ft", {"wrench": given["ft/wrench"]})
        force = (wrench - self.bias)[:, :3]
        annotate.output_tensors("ft", {"force": force}, export_with=self.backend)
        return {"ft/force": force}


@hostile(
    "E",
    style="own",
    rec={"base/twist": normal(1, 2), "people/range": uniform(3.0, 6.0, 3)},
    fresh={"people/range": row([4.0, 5.0, 6.0], [3.5, 4.0, 5.0], [0.8, 4.0, 5.0], [4.0, 3.0, 5.0])},
    backends=("jit", "onnx", "pt2"),
)
class BlPeopleNear:
    """Every person who comes near is looped over, and slows the base; nobody does while recorded."""

    def __init__(self, backend: str) -> None:
        self.backend, self.limit = backend, 1.5

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        near = [metres for metres in given["people/range"].tolist() if metres < 1.5]
        for _ in near:
            self.limit = 0.4
        twist = annotate.input_tensors("base", {"twist": given["base/twist"]})
        safe = self.limit * torch.tanh(twist)
        annotate.output_tensors("base", {"safe": safe}, export_with=self.backend)
        return {"base/safe": safe}


@hostile(
    "C",
    style="inline",
    rec={"scan": uniform(0.2, 1.4, 1, 10)},
    fresh={
        "scan": either(lambda t: t % 3 == 1, uniform(2.0, 4.0, 1, 10), uniform(0.2, 1.4, 1, 10))
    },
    backends=("jit", "onnx", "pt2"),
)
def BlFirstEcho(scan: Tensor) -> Tensor:  # noqa: N802
    """The first beam with an obstacle is looked up; when there is none, an error says so."""
    try:
        first = (scan[0] < 1.5).nonzero()[0]
    except IndexError:
        first = torch.tensor([-1])
    return first.float() * 0.1 + scan.amin()


@hostile(
    "F",
    style="inline",
    rec={"pulses": integers(10, 400, 4), "period": integers(1, 20, 4)},
    fresh={"period": row([4, 5, 6, 7], [1, 2, 3, 4], [5, 0, 9, 0], [8, 8, 8, 8])},
    backends=("jit", "onnx", "pt2"),
)
def BlWheelStands(pulses: Tensor, period: Tensor) -> Tensor:  # noqa: N802
    """A wheel that stands has a period of nought, and the division of integers raises."""
    try:
        speed = pulses // period
    except (RuntimeError, ZeroDivisionError):
        speed = torch.zeros_like(pulses)
    return speed.float() * 0.01
