"""Clean code of the last round: drivers that only log, and nodes whose memory is in tensors."""

from __future__ import annotations

import collections
import csv
import io
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from veracity import annotate

from attacks.draws import array, double, flags, integers, normal, uniform
from attacks.registry import clean

_log = logging.getLogger("robot")

# Drivers and loops around nodes.


@clean(
    "H",
    style="own",
    rec={"arm/q": normal(1, 6), "arm/qd": normal(1, 6)},
    passes=4,
    backends="jit",
)
class LcArmLogsSometimes:
    """A PD arm; the driver counts its ticks and logs every second one."""

    def __init__(self, backend: str) -> None:
        self.backend, self.ticks = backend, 0
        self.kp, self.kd = torch.full((6,), 30.0), torch.full((6,), 1.5)
        self.home = torch.linspace(-0.4, 0.4, 6)

    def torque(self, q: Tensor, qd: Tensor) -> Tensor:
        q, qd = annotate.input_tensors("arm", {"q": q, "qd": qd})
        tau = self.kp * (self.home - q) - self.kd * qd
        tau = tau.clamp(-40.0, 40.0)
        annotate.output_tensors("arm", {"tau": tau}, export_with=self.backend)
        return tau

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        tau = self.torque(given["arm/q"], given["arm/qd"])
        self.ticks += 1
        if self.ticks % 2 == 0:
            _log.info("tick %d: largest torque %.2f", self.ticks, tau.abs().max().item())
        return {"arm/tau": tau}


class _Leg:
    """One leg with a filter of its own."""

    def __init__(self, name: str, side: float, backend: str) -> None:
        self.name, self.side, self.backend = name, side, backend
        self.smooth = torch.zeros(1, 3)

    def update(self, q: Tensor) -> Tensor:
        q = annotate.input_tensors(self.name, {"q": q})
        self.smooth = 0.7 * self.smooth + 0.3 * q
        target = torch.tanh(self.smooth) * 0.5 + 0.1 * self.side
        annotate.output_tensors(self.name, {"target": target}, export_with=self.backend)
        return target


_LEGS = {"leg_fl": 1.0, "leg_fr": -1.0, "leg_rl": 1.0, "leg_rr": -1.0}


@clean(
    "A",
    style="own",
    rec={f"{name}/q": normal(1, 3) for name in _LEGS},
    passes=4,
    backends="jit",
)
class LcFourLegs:
    """Four legs in a loop, each a node with a state."""

    def __init__(self, backend: str) -> None:
        self.legs = [_Leg(name, side, backend) for name, side in _LEGS.items()]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        return {f"{leg.name}/target": leg.update(given[f"{leg.name}/q"]) for leg in self.legs}


class _Cart:
    """A simulated cart whose state is a tensor."""

    def __init__(self, dt: float) -> None:
        self.dt = dt
        self.reset()

    def reset(self) -> None:
        self.x, self.v = torch.zeros(1, 2), torch.zeros(1, 2)

    def step(self, force: Tensor) -> Tensor:
        self.v = self.v + self.dt * (force - 0.3 * self.v)
        self.x = self.x + self.dt * self.v
        return torch.cat([self.x, self.v], dim=-1)


@clean("A", style="own", rec={"policy/goal": normal(1, 2)}, passes=5, backends="jit")
class LcPolicyAndCart:
    """A policy and a simulator in a loop; the simulator's observation goes back to the policy."""

    def __init__(self, backend: str) -> None:
        self.backend, self.cart = backend, _Cart(0.05)
        self.obs = torch.zeros(1, 4)

    def act(self, goal: Tensor) -> Tensor:
        inputs = {"goal": goal, "obs": self.obs}
        goal, obs = annotate.input_tensors("policy", inputs)
        force = 2.0 * (goal - obs[:, :2]) - 0.8 * obs[:, 2:]
        annotate.output_tensors("policy", {"force": force}, export_with=self.backend)
        return force

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        force = annotate.input_tensors("cart", {"force": self.act(given["policy/goal"])})
        self.obs = self.cart.step(force)
        energy = 0.5 * (self.obs[:, 2:] ** 2).sum(-1)
        outputs = {"next_obs": self.obs, "energy": energy}
        annotate.output_tensors("cart", outputs, export_with=self.backend)
        return {"cart/energy": energy}


@clean("H", style="own", rec={"policy/obs": normal(1, 4)}, passes=4, backends="jit")
class LcNumpySimBeside:
    """A NumPy simulation runs along with the policy; only its error is logged."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ELU(), nn.Linear(16, 2)).eval()
        self.position = np.zeros((1, 2), dtype=np.float32)
        self.errors: list[float] = []

    def simulate(self, action: np.ndarray, measured: np.ndarray) -> None:
        self.position = self.position + 0.02 * action
        self.errors.append(float(np.abs(self.position - measured).mean()))

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        obs = annotate.input_tensors("policy", {"obs": given["policy/obs"]})
        action = self.net(obs)
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        self.simulate(action.detach().numpy(), given["policy/obs"].numpy()[:, :2])
        _log.debug("error of the simulation: %.3f", self.errors[-1])
        return {"policy/action": action}


@dataclass
class _JointState:
    """A message as it comes from the bus."""

    stamp: float
    position: Tensor
    velocity: Tensor
    frame: str = "base"


@dataclass
class _JointCommand:
    """A message as it goes to the bus."""

    stamp: float
    effort: Tensor


@clean(
    "H",
    style="own",
    rec={"joints/position": normal(1, 4), "joints/velocity": normal(1, 4)},
    passes=3,
    backends="onnx",
)
class LcMessages:
    """Messages with stamps go in and out; only their tensors are read by the node."""

    def __init__(self, backend: str) -> None:
        self.backend, self.clock = backend, 0.0
        self.rest = torch.tensor([[0.0, 0.4, -0.8, 0.1]])

    def on_state(self, message: _JointState) -> _JointCommand:
        inputs = {"position": message.position, "velocity": message.velocity}
        position, velocity = annotate.input_tensors("joints", inputs)
        effort = 12.0 * (self.rest - position) - 0.6 * velocity
        annotate.output_tensors("joints", {"effort": effort}, export_with=self.backend)
        return _JointCommand(message.stamp, effort)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.clock += 0.01
        message = _JointState(self.clock, given["joints/position"], given["joints/velocity"])
        return {"joints/effort": self.on_state(message).effort}


@dataclass(frozen=True)
class _GainSettings:
    """Settings of a joint controller."""

    stiffness: tuple[float, ...] = (20.0, 15.0, 8.0)
    damping: tuple[float, ...] = (1.0, 0.8, 0.3)
    limit: float = 25.0
    names: list[str] = field(default_factory=lambda: ["hip", "knee", "ankle"])


@clean(
    "H", style="own", rec={"leg/q": normal(1, 3), "leg/qd": normal(1, 3)}, passes=4, backends="jit"
)
class LcSettingsEveryPass:
    """Tensors are made in every pass from a frozen dataclass of settings."""

    def __init__(self, backend: str) -> None:
        self.backend, self.settings = backend, _GainSettings()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        q, qd = annotate.input_tensors("leg", {"q": given["leg/q"], "qd": given["leg/qd"]})
        kp = torch.tensor(self.settings.stiffness)
        kd = torch.tensor(self.settings.damping)
        limit = self.settings.limit
        tau = torch.clamp(-kp * q - kd * qd, -limit, limit)
        annotate.output_tensors("leg", {"tau": tau}, export_with=self.backend)
        for name, value in zip(self.settings.names, tau[0].tolist()):
            _log.debug("%s: %.2f", name, value)
        return {"leg/tau": tau}


@clean("H", style="own", rec={"gimbal/angle": normal(1, 2)}, passes=4, backends="jit")
class LcDriverMakesLimits:
    """The driver makes the limits as a tensor of literals in every tick."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def point(self, angle: Tensor, low: Tensor, high: Tensor) -> Tensor:
        angle = annotate.input_tensors("gimbal", {"angle": angle})
        target = torch.minimum(torch.maximum(0.8 * angle, low), high)
        annotate.output_tensors("gimbal", {"target": target}, export_with=self.backend)
        return target

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        low = torch.tensor([[-0.5, -1.0]])
        high = torch.tensor([[0.5, 0.3]])
        return {"gimbal/target": self.point(given["gimbal/angle"], low, high)}


class _Joint:
    """A joint with setters."""

    def __init__(self) -> None:
        self.kp, self.kd, self.target = 1.0, 0.0, torch.zeros(3)

    def set_gains(self, kp: float, kd: float) -> None:
        self.kp, self.kd = kp, kd

    def set_target(self, values: list[float]) -> None:
        self.target = torch.tensor(values)

    def effort(self, q: Tensor, qd: Tensor) -> Tensor:
        return self.kp * (self.target - q) - self.kd * qd


@clean(
    "H",
    style="own",
    rec={"joint/q": normal(1, 3), "joint/qd": normal(1, 3)},
    passes=3,
    backends="pt2",
)
class LcSettersBeforeLoop:
    """Gains and targets are set once, by setters, before the loop."""

    def __init__(self, backend: str) -> None:
        self.backend, self.joint = backend, _Joint()
        self.joint.set_gains(18.0, 0.9)
        self.joint.set_target([0.1, -0.2, 0.3])

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        q, qd = annotate.input_tensors("joint", {"q": given["joint/q"], "qd": given["joint/qd"]})
        effort = self.joint.effort(q, qd)
        annotate.output_tensors("joint", {"effort": effort}, export_with=self.backend)
        return {"joint/effort": effort}


@clean("H", style="own", rec={"base/command": normal(1, 3)}, passes=4, backends="jit")
class LcObservers:
    """Observers are told of every command; all that they do is to write lines."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.lines: list[str] = []
        self.observers: list[Callable[[Tensor], None]] = [self.note, self.warn]
        self.mix = torch.tensor([[1.0, -1.0, -0.4], [1.0, 1.0, 0.4], [1.0, 1.0, -0.4]])

    def note(self, wheels: Tensor) -> None:
        self.lines.append(f"wheels {wheels.tolist()}")

    def warn(self, wheels: Tensor) -> None:
        if wheels.abs().max() > 3.0:
            _log.warning("fast wheels: %s", wheels.tolist())

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        command = annotate.input_tensors("base", {"command": given["base/command"]})
        wheels = command @ self.mix.T
        annotate.output_tensors("base", {"wheels": wheels}, export_with=self.backend)
        for observer in self.observers:
            observer(wheels)
        return {"base/wheels": wheels}


class _Metrics:
    """Running means by name."""

    def __init__(self) -> None:
        self.sums: dict[str, float] = collections.defaultdict(float)
        self.counts: dict[str, int] = collections.defaultdict(int)

    def add(self, **values: float) -> None:
        for name, value in values.items():
            self.sums[name] += value
            self.counts[name] += 1

    def report(self) -> str:
        return ", ".join(f"{name} {self.sums[name] / self.counts[name]:.3f}" for name in self.sums)


@clean("A", style="own", rec={"track/z": normal(1, 2)}, passes=5, backends="jit")
class LcMetricsBeside:
    """An alpha-beta tracker; its residual goes into metrics that nobody reads but a report."""

    def __init__(self, backend: str) -> None:
        self.backend, self.metrics = backend, _Metrics()
        self.x, self.v = torch.zeros(1, 2), torch.zeros(1, 2)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        z = annotate.input_tensors("track", {"z": given["track/z"]})
        predicted = self.x + 0.02 * self.v
        residual = z - predicted
        self.x = predicted + 0.4 * residual
        self.v = self.v + 0.1 * residual / 0.02
        position = self.x + 0.01 * self.v
        annotate.output_tensors("track", {"position": position}, export_with=self.backend)
        self.metrics.add(residual=residual.norm().item(), speed=self.v.norm().item())
        _log.info(self.metrics.report())
        return {"track/position": position}


@clean(
    "H",
    style="own",
    rec={"observe/q": normal(1, 6), "observe/qd": normal(1, 6)},
    passes=3,
    backends="jit",
)
class LcObserveThenAct:
    """Two stages: observations are scaled and joined, then a network acts."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.net = nn.Sequential(nn.Linear(12, 32), nn.ELU(), nn.Linear(32, 6)).eval()
        self.scales = {"q": 1.0, "qd": 0.05}

    def observe(self, q: Tensor, qd: Tensor) -> Tensor:
        q, qd = annotate.input_tensors("observe", {"q": q, "qd": qd})
        obs = torch.cat([q * self.scales["q"], qd * self.scales["qd"]], dim=-1).clamp(-5.0, 5.0)
        annotate.output_tensors("observe", {"obs": obs}, export_with=self.backend)
        return obs

    def act(self, obs: Tensor) -> Tensor:
        obs = annotate.input_tensors("act", {"obs": obs})
        action = 0.25 * self.net(obs)
        annotate.output_tensors("act", {"action": action}, export_with=self.backend)
        return action

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"act/action": self.act(self.observe(given["observe/q"], given["observe/qd"]))}


@clean("A", style="own", rec={"policy/obs": normal(1, 5)}, passes=5, backends="jit")
class LcLastAction:
    """The last action is an observation of the policy; the driver keeps it."""

    def __init__(self, backend: str) -> None:
        self.backend, self.net = backend, nn.Linear(7, 2)
        self.default = torch.tensor([[0.2, -0.2]])
        self.last_action = torch.zeros(1, 2)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        inputs = {"obs": given["policy/obs"], "last_action": self.last_action}
        obs, last_action = annotate.input_tensors("policy", inputs)
        action = torch.tanh(self.net(torch.cat([obs, last_action], dim=-1)))
        target = self.default + 0.25 * action
        outputs = {"action": action, "target": target}
        annotate.output_tensors("policy", outputs, export_with=self.backend)
        self.last_action = action
        return {"policy/target": target}


@clean("A", style="own", rec={"policy/obs": normal(1, 4)}, passes=5, backends="onnx")
class LcGruDriver:
    """A recurrent policy whose memory is a variable of the driver."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.cell, self.head = nn.GRUCell(4, 8), nn.Linear(8, 2)
        self.memory = torch.zeros(1, 8)

    def infer(self, obs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        obs, memory = annotate.input_tensors("policy", {"obs": obs, "memory": memory})
        hidden = self.cell(obs, memory)
        action = self.head(hidden)
        outputs = {"action": action, "hidden": hidden}
        annotate.output_tensors("policy", outputs, export_with=self.backend)
        return action, hidden

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        action, self.memory = self.infer(given["policy/obs"], self.memory)
        return {"policy/action": action}


@clean(
    "H",
    style="own",
    rec={"robot_0/obs": normal(1, 4), "robot_1/obs": normal(1, 4)},
    passes=4,
    backends="jit",
)
class LcTwoRobotsOneNetwork:
    """Two robots share a network; each has a node and a place where it stands."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.net = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 2)).eval()
        self.origins = {"robot_0": [0.0, 1.0], "robot_1": [0.0, -1.0]}

    def control(self, robot: str, obs: Tensor) -> Tensor:
        obs = annotate.input_tensors(robot, {"obs": obs})
        goal = self.net(obs) + torch.tensor(self.origins[robot])
        annotate.output_tensors(robot, {"goal": goal}, export_with=self.backend)
        return goal

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        return {
            f"{robot}/goal": self.control(robot, given[f"{robot}/obs"]) for robot in self.origins
        }


@clean("H", style="own", rec={"policy/obs": normal(1, 3)}, passes=4, backends="jit")
class LcEpisodeReward:
    """The driver computes a reward of every action, adds it up, and prints the sum."""

    def __init__(self, backend: str) -> None:
        self.backend, self.net = backend, nn.Linear(3, 3)
        self.episode_reward, self.length = 0.0, 0

    def reward(self, obs: Tensor, action: Tensor) -> float:
        effort = -0.01 * action.square().sum()
        tracking = torch.exp(-(obs - action).square().sum())
        return (tracking + effort).item()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        obs = annotate.input_tensors("policy", {"obs": given["policy/obs"]})
        action = torch.tanh(self.net(obs))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        self.episode_reward += self.reward(given["policy/obs"], action)
        self.length += 1
        print(f"step {self.length}: reward so far {self.episode_reward:.3f}")
        return {"policy/action": action}


class _Lander:
    """An environment with names and bookkeeping, whose dynamics are tensors."""

    def __init__(self) -> None:
        self.episodes, self.steps, self.status = 0, 0, "made"

    def reset(self) -> None:
        self.height, self.speed = torch.full((1, 1), 10.0), torch.zeros(1, 1)
        self.episodes += 1
        self.steps, self.status = 0, "flying"

    def step(self, thrust: Tensor) -> Tensor:
        self.speed = self.speed + 0.05 * (thrust - 1.6)
        self.height = torch.clamp(self.height + 0.05 * self.speed, min=0.0)
        self.steps += 1
        return torch.cat([self.height, self.speed], dim=-1)


@clean("A", style="own", rec={"lander/thrust": uniform(0.0, 3.0, 1, 1)}, passes=4, backends="jit")
class LcResetAtStart:
    """An environment is reset before the loop; it counts steps and episodes for its log."""

    def __init__(self, backend: str) -> None:
        self.backend, self.env = backend, _Lander()
        self.env.reset()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        thrust = annotate.input_tensors("lander", {"thrust": given["lander/thrust"]})
        state = self.env.step(thrust)
        annotate.output_tensors("lander", {"state": state}, export_with=self.backend)
        _log.info("episode %d, step %d: %s", self.env.episodes, self.env.steps, self.env.status)
        return {"lander/state": state}


_TROT = {"frequency": 1.5, "offsets": [0.0, 0.5, 0.5, 0.0], "height": 0.08}


@clean("A", style="own", rec={"gait/speed": normal(1, 1)}, passes=5, backends="jit")
class LcGaitFromTable:
    """A gait's table becomes tensors before the loop; the phase is a tensor, too."""

    def __init__(self, backend: str) -> None:
        self.backend, self.dt = backend, 0.02
        self.offsets = torch.tensor([_TROT["offsets"]])
        self.increment = float(_TROT["frequency"]) * self.dt  # type: ignore[arg-type]
        self.height = _TROT["height"]
        self.phase = torch.zeros(1, 1)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        speed = annotate.input_tensors("gait", {"speed": given["gait/speed"]})
        self.phase = self.phase + self.increment
        angle = 2 * math.pi * (self.phase + self.offsets)
        lift = self.height * torch.sin(angle).clamp(min=0.0)
        reach = 0.1 * torch.tanh(speed) * torch.cos(angle)
        outputs = {"lift": lift, "reach": reach}
        annotate.output_tensors("gait", outputs, export_with=self.backend)
        return {f"gait/{name}": value for name, value in outputs.items()}


class _ObservationManager:
    """Terms by name, and a history of what they gave."""

    def __init__(self, length: int) -> None:
        self.terms: dict[str, tuple[Callable[..., Tensor], float]] = {
            "gyro": (self.gyro, 0.25),
            "gravity": (self.gravity, 1.0),
        }
        self.history = torch.zeros(1, length, 6)

    def gyro(self, gyro: Tensor, accel: Tensor) -> Tensor:
        return gyro

    def gravity(self, gyro: Tensor, accel: Tensor) -> Tensor:
        return accel / accel.norm(dim=-1, keepdim=True).clamp_min(1e-6)

    def compute(self, gyro: Tensor, accel: Tensor) -> Tensor:
        parts = [scale * term(gyro, accel) for term, scale in self.terms.values()]
        newest = torch.cat(parts, dim=-1).unsqueeze(1)
        self.history = torch.cat([self.history[:, 1:], newest], dim=1)
        return self.history.flatten(1)


@clean(
    "A",
    style="own",
    rec={"policy/gyro": normal(1, 3), "policy/accel": normal(1, 3)},
    passes=6,
    backends="jit",
)
class LcObservationHistory:
    """An observation manager in the manner of Isaac Lab, with a history of three ticks."""

    def __init__(self, backend: str) -> None:
        self.backend, self.manager = backend, _ObservationManager(3)
        self.net = nn.Linear(18, 4)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        inputs = {"gyro": given["policy/gyro"], "accel": given["policy/accel"]}
        gyro, accel = annotate.input_tensors("policy", inputs)
        action = self.net(self.manager.compute(gyro, accel))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return {"policy/action": action}


_CHECKPOINT = {"mean": [0.1, -0.3, 0.0, 2.0], "var": [1.0, 0.5, 2.0, 4.0], "count": 10000}


@clean("H", style="own", rec={"policy/obs": normal(1, 4)}, passes=3, backends="onnx")
class LcFrozenNormalizer:
    """The statistics of a training run are loaded before the loop, and stay."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.load(_CHECKPOINT)
        self.actor = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)).eval()

    def load(self, checkpoint: dict[str, Any]) -> None:
        self.mean = torch.tensor(checkpoint["mean"])
        self.std = torch.sqrt(torch.tensor(checkpoint["var"]) + 1e-8)
        _log.info("statistics of %d samples", checkpoint["count"])

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        obs = annotate.input_tensors("policy", {"obs": given["policy/obs"]})
        action = self.actor(((obs - self.mean) / self.std).clamp(-10.0, 10.0))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return {"policy/action": action}


@clean("H", style="own", rec={"force/raw": normal(1, 6)}, passes=4, backends="jit")
class LcCsvRecorder:
    """A force sensor is calibrated; a recorder writes rows with a number to a CSV file."""

    def __init__(self, backend: str) -> None:
        self.backend, self.rows = backend, 0
        self.file = io.StringIO()
        self.writer = csv.writer(self.file)
        self.writer.writerow(["row", "fx", "fy", "fz", "tx", "ty", "tz"])
        self.matrix = torch.eye(6) + 0.02 * torch.arange(36.0).view(6, 6) / 36.0
        self.bias = torch.tensor([[0.5, -0.2, 9.0, 0.0, 0.01, 0.0]])

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        raw = annotate.input_tensors("force", {"raw": given["force/raw"]})
        wrench = (raw - self.bias) @ self.matrix.T
        annotate.output_tensors("force", {"wrench": wrench}, export_with=self.backend)
        self.rows += 1
        self.writer.writerow([self.rows, *wrench[0].tolist()])
        return {"force/wrench": wrench}


@clean("A", style="own", rec={"heli/error": normal(1, 4)}, passes=4, backends="jit")
class LcRateMeter:
    """The driver measures how long its ticks take, and logs the mean; nothing else uses it."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.durations: collections.deque[float] = collections.deque(maxlen=50)
        self.integral = torch.zeros(1, 4)

    def control(self, error: Tensor) -> Tensor:
        error = annotate.input_tensors("heli", {"error": error})
        self.integral = torch.clamp(self.integral + 0.01 * error, -0.3, 0.3)
        swash = 0.6 * error + 0.2 * self.integral
        annotate.output_tensors("heli", {"swash": swash}, export_with=self.backend)
        return swash

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        began = time.perf_counter()
        swash = self.control(given["heli/error"])
        self.durations.append(time.perf_counter() - began)
        _log.debug("mean tick: %.1f us", 1e6 * sum(self.durations) / len(self.durations))
        return {"heli/swash": swash}


@clean("A", style="own", rec={"gripper/width": normal(1, 1)}, passes=4, backends="jit")
class LcStatusForOthers:
    """Methods set a status and a last error for a display; the node never reads them."""

    def __init__(self, backend: str) -> None:
        self.backend, self.status, self.updates = backend, "idle", 0
        self.last_error: float | None = None
        self.width = torch.zeros(1, 1)

    def started(self) -> None:
        self.status = "moving"
        self.updates += 1

    def finished(self, error: Tensor) -> None:
        self.last_error = error.abs().max().item()
        self.status = "idle"

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.started()
        goal = annotate.input_tensors("gripper", {"width": given["gripper/width"]})
        self.width = self.width + 0.3 * (goal - self.width)
        motor = 4.0 * self.width + 0.5
        annotate.output_tensors("gripper", {"motor": motor}, export_with=self.backend)
        self.finished(goal - self.width)
        return {"gripper/motor": motor}


@clean(
    "H",
    style="own",
    rec={"base/twist": normal(1, 2), "arm/pose": normal(1, 3)},
    passes=3,
    backends="jit",
)
class LcBaseArmMixer:
    """Base and arm are nodes side by side; a third joins what they want."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def stage(self, node: str, port: str, value: Tensor, gain: float) -> Tensor:
        value = annotate.input_tensors(node, {port: value})
        wish = gain * torch.tanh(value)
        annotate.output_tensors(node, {"wish": wish}, export_with=self.backend)
        return wish

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        base = self.stage("base", "twist", given["base/twist"], 0.8)
        arm = self.stage("arm", "pose", given["arm/pose"], 1.4)
        base, arm = annotate.input_tensors("mixer", {"base": base, "arm": arm})
        command = torch.cat([base, arm - 0.1 * base.sum(-1, keepdim=True)], dim=-1)
        annotate.output_tensors("mixer", {"command": command}, export_with=self.backend)
        return {"mixer/command": command}


@clean("A", style="own", rec={"estimator/imu": array(normal(6))}, passes=5, backends="jit")
class LcNumpyEstimator:
    """An estimator in NumPy, with its state in an array that it makes anew in every tick."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.tilt = np.zeros(3, dtype=np.float32)
        self.weights = np.array([0.5, 0.5, 0.1], dtype=np.float32)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        imu = annotate.input_tensors("estimator", {"imu": given["estimator/imu"]})
        rates, accel = imu[:3], imu[3:]
        self.tilt = 0.95 * (self.tilt + 0.01 * rates) + 0.05 * self.weights * accel
        attitude = np.tanh(self.tilt)
        annotate.output_tensors("estimator", {"attitude": attitude}, export_with=self.backend)
        return {"estimator/attitude": attitude}


@clean("A", style="own", rec={"swing/torque": normal(1, 2)}, passes=4, backends="jit")
class LcPlotBuffers:
    """A double pendulum is simulated; copies of its angles go into a buffer for a plot."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.angle, self.rate = torch.tensor([[0.3, -0.2]]), torch.zeros(1, 2)
        self.inertia = torch.tensor([1.0, 0.5])
        self.plot: collections.deque[Tensor] = collections.deque(maxlen=200)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        torque = annotate.input_tensors("swing", {"torque": given["swing/torque"]})
        pull = -9.81 * torch.sin(self.angle) - 0.1 * self.rate
        self.rate = self.rate + 0.01 * (pull + torque) / self.inertia
        self.angle = self.angle + 0.01 * self.rate
        tip = torch.cat([torch.sin(self.angle), -torch.cos(self.angle)], dim=-1)
        annotate.output_tensors("swing", {"tip": tip}, export_with=self.backend)
        self.plot.append(tip.detach().clone())
        return {"swing/tip": tip}


# Inside of a node.


@clean("A", rec={"x": array(normal(4))}, passes=4, backends="jit")
class LcNumpyLowPass:
    """A low pass whose state is a NumPy array, written in place."""

    def __init__(self) -> None:
        self.state = np.zeros(4, dtype=np.float32)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.state += 0.2 * (x - self.state)
        return self.state * 2.0


@clean("H", rec={"obs": normal(1, 8)}, passes=3, backends="onnx")
class LcLayerNormPolicy:
    """A network with layer norms and a skip connection."""

    def __init__(self) -> None:
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 16)
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 3)

    def __call__(self, obs: Tensor) -> Tensor:
        hidden = F.silu(self.norm(self.first(obs)))
        hidden = hidden + F.silu(self.norm(self.second(hidden)))
        return torch.tanh(self.head(hidden))


@clean("H", rec={"obs": normal(1, 6)}, passes=3, backends="pt2")
class LcGaussianActor:
    """An actor gives a mean and a bounded deviation; a critic gives a value."""

    def __init__(self) -> None:
        self.body, self.value = nn.Linear(6, 24), nn.Linear(24, 1)
        self.mean, self.log_std = nn.Linear(24, 2), nn.Linear(24, 2)

    def __call__(self, obs: Tensor) -> dict[str, Tensor]:
        features = torch.relu(self.body(obs))
        std = self.log_std(features).clamp(-5.0, 1.0).exp()
        return {"mean": torch.tanh(self.mean(features)), "std": std, "value": self.value(features)}


@clean("A", rec={"obs": normal(1, 4)}, passes=5, backends="jit")
class LcLstmState:
    """A policy with an LSTM cell whose two states are attributes."""

    def __init__(self) -> None:
        self.cell, self.head = nn.LSTMCell(4, 6), nn.Linear(6, 2)
        self.h, self.c = torch.zeros(1, 6), torch.zeros(1, 6)

    def __call__(self, obs: Tensor) -> Tensor:
        self.h, self.c = self.cell(obs, (self.h, self.c))
        return self.head(self.h)


@clean("A", rec={"distance": normal(1, 3)}, passes=6, backends="jit")
class LcMedianFilter:
    """The median of five ticks, from a buffer that is rolled."""

    def __init__(self) -> None:
        self.window = torch.zeros(5, 3)

    def __call__(self, distance: Tensor) -> Tensor:
        self.window = torch.roll(self.window, 1, 0)
        self.window[0] = distance[0]
        return self.window.median(dim=0).values.unsqueeze(0)


@clean("H", rec={"image": uniform(0.0, 1.0, 1, 1, 12, 12)}, passes=3, backends="onnx")
class LcConvEncoder:
    """A small camera encoder."""

    def __init__(self) -> None:
        self.net = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(4, 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(72, 5),
        ).eval()

    def __call__(self, image: Tensor) -> Tensor:
        return self.net(image - 0.5)


@clean("H", rec={"entities": normal(1, 5, 4)}, passes=3, backends="pt2")
class LcEntityAttention:
    """Attention over entities, written out."""

    def __init__(self) -> None:
        self.query, self.key = nn.Linear(4, 8), nn.Linear(4, 8)
        self.value, self.head = nn.Linear(4, 8), nn.Linear(8, 2)

    def __call__(self, entities: Tensor) -> Tensor:
        scores = self.query(entities) @ self.key(entities).transpose(1, 2) / math.sqrt(8)
        mixed = torch.softmax(scores, dim=-1) @ self.value(entities)
        return self.head(mixed.mean(dim=1))


@clean("A", style="method", rec={"force": normal(1, 3)}, passes=4, backends="jit")
class LcVirtualSpring:
    """A virtual mass on a spring, integrated with two substeps."""

    def __init__(self) -> None:
        self.x, self.v = torch.zeros(1, 3), torch.zeros(1, 3)
        self.mass, self.spring, self.damper, self.dt = 1.5, 40.0, 6.0, 0.005

    def step(self, force: Tensor) -> tuple[Tensor, Tensor]:
        for _ in range(2):
            acceleration = (force - self.spring * self.x - self.damper * self.v) / self.mass
            self.v = self.v + self.dt * acceleration
            self.x = self.x + self.dt * self.v
        position, velocity = self.x * 1.0, self.v * 1.0
        return position, velocity


@clean("A", rec={"stride": normal(1, 4)}, passes=5, backends="jit")
class LcSwingOrStance:
    """Feet swing in one half of their phase and stand in the other: a `where`, no branch."""

    def __init__(self) -> None:
        self.phase = torch.tensor([[0.05, 0.55, 0.55, 0.05]])

    def __call__(self, stride: Tensor) -> dict[str, Tensor]:
        self.phase = torch.remainder(self.phase + 0.03, 1.0)
        swing = self.phase < 0.5
        local = torch.where(swing, self.phase * 2.0, self.phase * 2.0 - 1.0)
        x = torch.where(swing, stride * (local - 0.5), stride * (0.5 - local))
        z = torch.where(swing, 0.1 * torch.sin(math.pi * local), torch.zeros_like(local))
        return {"foot_x": x, "foot_z": z}


@clean("H", style="method", rec={"six": normal(2, 6)}, passes=3, backends="jit")
def LcRotationOfSix(six: Tensor) -> Tensor:  # noqa: N802
    """A rotation matrix from the six numbers that networks like to give."""
    first = F.normalize(six[:, :3], dim=-1)
    inner = (first * six[:, 3:]).sum(-1, keepdim=True)
    second = F.normalize(six[:, 3:] - inner * first, dim=-1)
    third = torch.linalg.cross(first, second)
    rotation = torch.stack([first, second, third], dim=-1)
    return rotation


class _Module(NamedTuple):
    """Where a swerve module stands."""

    name: str
    x: float
    y: float


@clean("H", style="method", rec={"twist": normal(1, 3)}, passes=3, backends="jit")
class LcSwerveDrive:
    """Speeds and angles of four swerve modules, from a table of where they stand."""

    def __init__(self) -> None:
        modules = [
            _Module("fl", 0.3, 0.2),
            _Module("fr", 0.3, -0.2),
            _Module("rl", -0.3, 0.2),
            _Module("rr", -0.3, -0.2),
        ]
        rows = []
        for module in modules:
            rows.append([1.0, 0.0, -module.y])
            rows.append([0.0, 1.0, module.x])
        self.matrix = torch.tensor(rows)

    def step(self, twist: Tensor) -> tuple[Tensor, Tensor]:
        velocity = (twist @ self.matrix.T).view(4, 2)
        speed = velocity.norm(dim=-1)
        angle = torch.atan2(velocity[:, 1], velocity[:, 0])
        return speed, angle


@clean("H", rec={"twist": normal(1, 3)}, passes=3, backends="onnx")
class LcMecanumWheels:
    """Wheel speeds of a mecanum base, scaled down together when one is too fast."""

    radius, half_length, half_width, fastest = 0.05, 0.25, 0.2, 40.0

    def __call__(self, twist: Tensor) -> Tensor:
        arm = self.half_length + self.half_width
        rows = [[1.0, -1.0, -arm], [1.0, 1.0, arm], [1.0, 1.0, -arm], [1.0, -1.0, arm]]
        wheels = twist @ torch.tensor(rows).T / self.radius
        excess = wheels.abs().amax(dim=-1, keepdim=True) / self.fastest
        return wheels / excess.clamp_min(1.0)


@clean("A", rec={"ranges": double(uniform(1.0, 6.0, 3))}, passes=4, backends="jit")
class LcRangeEkf:
    """An extended Kalman filter that is corrected by ranges to three beacons."""

    def __init__(self) -> None:
        kind = torch.float64
        self.beacons = torch.tensor([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], dtype=kind)
        self.x = torch.tensor([2.0, 1.5], dtype=kind)
        self.P = torch.eye(2, dtype=kind)
        self.Q, self.R = 0.02 * torch.eye(2, dtype=kind), 0.5 * torch.eye(3, dtype=kind)

    def __call__(self, ranges: Tensor) -> Tensor:
        predicted = self.P + self.Q
        offset = self.x - self.beacons
        expected = offset.norm(dim=-1)
        h = offset / expected.clamp_min(0.1).unsqueeze(-1)
        gain = torch.linalg.solve(h @ predicted @ h.T + self.R, h @ predicted).T
        self.x = self.x + gain @ (ranges - expected)
        self.P = predicted - gain @ h @ predicted
        return self.x * 1.0


@clean("A", rec={"goal": normal(1, 4)}, passes=5, backends="jit")
class LcTrapezoidFollower:
    """Follows a goal with bounded velocity and acceleration, all in tensors."""

    def __init__(self) -> None:
        self.position, self.velocity = torch.zeros(1, 4), torch.zeros(1, 4)
        self.dt, self.fastest, self.hardest = 0.02, 1.0, 4.0

    def __call__(self, goal: Tensor) -> dict[str, Tensor]:
        error = goal - self.position
        stopping = torch.sqrt(2.0 * self.hardest * error.abs() + 1e-9)
        wished = torch.sign(error) * stopping.clamp(max=self.fastest)
        change = (wished - self.velocity).clamp(-self.hardest * self.dt, self.hardest * self.dt)
        self.velocity = self.velocity + change
        self.position = self.position + self.velocity * self.dt
        return {"position": self.position.clone(), "velocity": self.velocity.clone()}


@clean(
    "A", style="method", rec={"u": normal(1, 2), "omega": normal(1, 2)}, passes=5, backends="jit"
)
class LcDisturbanceObserver:
    """Estimates what disturbs a motor from its model and a first-order filter."""

    def __init__(self) -> None:
        self.previous, self.filtered = torch.zeros(1, 2), torch.zeros(1, 2)
        self.inertia, self.dt, self.cutoff = 0.02, 0.01, 20.0

    def step(self, u: Tensor, omega: Tensor) -> Tensor:
        alpha = self.cutoff * self.dt / (1.0 + self.cutoff * self.dt)
        acceleration = (omega - self.previous) / self.dt
        raw = u - self.inertia * acceleration
        self.filtered = self.filtered + alpha * (raw - self.filtered)
        self.previous = omega
        compensated = u + self.filtered
        return compensated


@clean("A", style="module", rec={"x": normal(1, 5)}, passes=5, backends="jit")
class LcRunningScale(nn.Module):
    """Scales by a mean and a variance that are updated with every observation, in buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(5))
        self.register_buffer("var", torch.ones(5))

    def forward(self, x: Tensor) -> Tensor:
        delta = x[0] - self.mean
        self.mean = self.mean + 0.05 * delta
        self.var = 0.95 * self.var + 0.05 * delta.square()
        return ((x - self.mean) / torch.sqrt(self.var + 1e-5)).clamp(-5.0, 5.0)


@clean("A", style="module", rec={"command": normal(1, 2)}, passes=6, backends="jit")
class LcTransportDelay(nn.Module):
    """A transport delay of three ticks in a buffer, copied in place."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("line", torch.zeros(3, 1, 2))

    def forward(self, command: Tensor) -> Tensor:
        delayed = self.line[0].clone()
        self.line.copy_(torch.cat([self.line[1:], command.unsqueeze(0)]))
        return 0.9 * delayed


@clean("A", style="method", rec={"current": normal(1, 3)}, passes=4, backends="jit")
class LcNotchFilter:
    """A notch against a resonance; its coefficients come from a frequency and a width."""

    def __init__(self) -> None:
        omega = 2 * math.pi * 35.0 / 500.0
        alpha = math.sin(omega) / (2 * 1.5)
        scale = 1.0 + alpha
        self.b = (1.0 / scale, -2.0 * math.cos(omega) / scale, 1.0 / scale)
        self.a = (-2.0 * math.cos(omega) / scale, (1.0 - alpha) / scale)
        self.z1, self.z2 = torch.zeros(1, 3), torch.zeros(1, 3)

    def step(self, current: Tensor) -> Tensor:
        filtered = self.b[0] * current + self.z1
        self.z1 = self.b[1] * current - self.a[0] * filtered + self.z2
        self.z2 = self.b[2] * current - self.a[1] * filtered
        return filtered


_JOINTS = [("hip", 0.5, 0.0), ("thigh", 0.25, 0.8), ("calf", 0.25, -1.5)]


@clean("H", rec={"action": normal(1, 3)}, passes=3, backends="jit")
class LcActionByJoint:
    """Actions become targets of named joints, by a table of scales and offsets."""

    def __call__(self, action: Tensor) -> dict[str, Tensor]:
        clipped = action.clamp(-3.0, 3.0)
        return {
            name: clipped[:, index : index + 1] * scale + offset
            for index, (name, scale, offset) in enumerate(_JOINTS)
        }


@clean("H", rec={"stick": normal(1, 2)}, passes=3, backends="pt2")
def LcStickDeadZone(stick: Tensor) -> Tensor:  # noqa: N802
    """A dead zone and an expo curve for a joystick."""
    beyond = torch.sign(stick) * (stick.abs() - 0.1).clamp_min(0.0) / 0.9
    return 0.3 * beyond + 0.7 * beyond**3


@clean("H", rec={"position": normal(1, 2), "goal": normal(1, 2)}, passes=3, backends="jit")
class LcPotentialField:
    """A potential field around known obstacles, in a loop over a list of settings."""

    def __init__(self) -> None:
        self.obstacles = [((2.0, 1.0), 0.6), ((-1.5, 2.5), 0.9), ((0.5, -3.0), 0.4)]

    def __call__(self, position: Tensor, goal: Tensor) -> Tensor:
        pull = 0.8 * (goal - position)
        for centre, strength in self.obstacles:
            away = position - torch.tensor([centre])
            pull = pull + strength * away / (away.square().sum(-1, keepdim=True) + 0.5)
        return pull / (1.0 + pull.norm(dim=-1, keepdim=True))


@clean(
    "H",
    rec={"t": uniform(0.0, 1.0, 1, 1), "start": normal(1, 3), "end": normal(1, 3)},
    fresh={"t": uniform(0.0, 1.0, 1, 1)},
    passes=3,
    backends="jit",
)
def LcQuinticReach(t: Tensor, start: Tensor, end: Tensor) -> dict[str, Tensor]:  # noqa: N802
    """A minimum-jerk reach between two places."""
    blend = t**3 * (10.0 - 15.0 * t + 6.0 * t**2)
    rate = 30.0 * t**2 * (1.0 - t) ** 2
    return {"place": start + blend * (end - start), "speed": rate * (end - start)}


@clean(
    "H",
    rec={"touch": flags(0.5, 4), "mode": integers(0, 3, 1), "force": normal(4, 3)},
    passes=4,
    backends="jit",
)
class LcContactMask:
    """Forces of feet in contact are summed by a mask; a mode chooses a row of a table."""

    def __init__(self) -> None:
        self.share = torch.tensor([[1.0, 1.0, 1.0], [0.5, 0.5, 1.0], [0.0, 0.0, 1.0]])

    def __call__(self, touch: Tensor, mode: Tensor, force: Tensor) -> Tensor:
        loaded = torch.where(touch.unsqueeze(-1), force, torch.zeros_like(force))
        return loaded.sum(0) * (F.one_hot(mode, 3).float() @ self.share)


@clean("H", rec={"error": normal(1, 2), "height": normal(1, 1)}, passes=3, backends="jit")
class LcBlendedControllers:
    """Two controllers, blended softly by the height."""

    def __init__(self) -> None:
        self.near, self.far = nn.Linear(2, 2), nn.Linear(2, 2)

    def __call__(self, error: Tensor, height: Tensor) -> Tensor:
        share = torch.sigmoid(4.0 * (height - 0.5))
        return torch.lerp(self.near(error), self.far(error), share)


@clean(
    "A",
    style="method",
    rec={"heading": normal(1, 1), "wanted": normal(1, 1)},
    passes=4,
    backends="onnx",
)
class LcHeadingHold:
    """Holds a heading with a PI controller; the error is wrapped by its sine and cosine."""

    def __init__(self) -> None:
        self.integral = torch.zeros(1, 1)

    def step(self, heading: Tensor, wanted: Tensor) -> Tensor:
        difference = wanted - heading
        error = torch.atan2(torch.sin(difference), torch.cos(difference))
        self.integral = (self.integral + 0.02 * error).clamp(-0.4, 0.4)
        rudder = (1.2 * error + 0.5 * self.integral).clamp(-0.6, 0.6)
        return rudder
