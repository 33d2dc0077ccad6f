"""Several nodes, wired as in a robot's main loop."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import array, flags, integers, normal
from attacks.registry import ALL, clean


def mlp(*sizes: int) -> nn.Sequential:
    layers = [m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.ELU())]
    return nn.Sequential(*layers[:-1])


@clean(
    "G",
    style="own",
    rec={"estimator/imu": normal(1, 6), "controller/q": normal(1, 3)},
    passes=5,
    backends=ALL,
)
def BcEstimatorPolicyPd(backend: str):
    """Estimator, policy with the last action fed back, PD controller."""
    net, last, est = mlp(6, 8, 3), torch.zeros(1, 3), torch.zeros(1, 3)

    def step(given):
        nonlocal last, est
        imu = annotate.input_tensors("estimator", {"imu": given["estimator/imu"]})
        est = 0.9 * est + 0.1 * (imu[:, :3] + 0.02 * imu[:, 3:])
        annotate.output_tensors("estimator", {"vel": est}, export_with=backend)
        vel, prev = annotate.input_tensors("policy", {"vel": est, "last_action": last})
        last = net(torch.cat([vel, prev], -1)).clamp(-2, 2)
        annotate.output_tensors("policy", {"action": last}, export_with=backend)
        action, q = annotate.input_tensors(
            "controller", {"action": last, "q": given["controller/q"]}
        )
        tau = 20.0 * (0.25 * action - q)
        annotate.output_tensors("controller", {"tau": tau}, export_with=backend)
        return {"controller/tau": tau}

    return step


@clean(
    "G",
    style="own",
    rec={
        "encode/image": integers(0, 256, 1, 3, 8, 8, dtype=torch.uint8),
        "act/proprio": normal(1, 4),
    },
    passes=4,
    backends=("onnx", "jit"),
)
class BcVisuomotorClass:
    """A class owns the nodes; a stopwatch is around each."""

    def __init__(self, backend: str) -> None:
        self.backend, self.times = backend, {"encode": [], "act": []}
        self.cnn = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 5)
        )
        self.head = mlp(9, 8, 2)

    def __call__(self, given):
        began = time.perf_counter()
        image = annotate.input_tensors("encode", {"image": given["encode/image"]})
        z = self.cnn(image.float() / 255.0)
        annotate.output_tensors("encode", {"z": z}, export_with=self.backend)
        self.times["encode"].append(time.perf_counter() - began)
        began = time.perf_counter()
        z, proprio = annotate.input_tensors("act", {"z": z, "proprio": given["act/proprio"]})
        u = self.head(torch.cat([z, proprio], -1))
        annotate.output_tensors("act", {"u": u}, export_with=self.backend)
        self.times["act"].append(time.perf_counter() - began)
        return {"act/u": u}


@dataclass
class Shared:
    pose: Tensor = field(default_factory=lambda: torch.zeros(3))
    cmd: Tensor = field(default_factory=lambda: torch.zeros(2))


@clean(
    "G",
    style="own",
    rec={"odom/wheels": normal(2), "plan/goal": normal(2)},
    passes=5,
    backends=("jit", "onnx"),
)
def BcOdometryPlanner(backend: str):
    """Odometry keeps its pose, a planner steers to a goal in the robot's frame."""
    board = Shared()

    def odometry(wheels: Tensor) -> None:
        wheels = annotate.input_tensors("odom", {"wheels": wheels})
        v, w = wheels.mean(), (wheels[1] - wheels[0]) / 0.4
        th = board.pose[2] + 0.02 * w
        board.pose = torch.stack(
            [board.pose[0] + 0.02 * v * th.cos(), board.pose[1] + 0.02 * v * th.sin(), th]
        )
        annotate.output_tensors("odom", {"pose": board.pose}, export_with=backend)

    def plan(goal: Tensor) -> None:
        pose, goal = annotate.input_tensors("plan", {"pose": board.pose, "goal": goal})
        d = goal - pose[:2]
        c, s = pose[2].cos(), pose[2].sin()
        local = torch.stack([c * d[0] + s * d[1], -s * d[0] + c * d[1]])
        board.cmd = torch.stack([local[0].clamp(-1, 1), 2.0 * local[1].tanh()])
        annotate.output_tensors("plan", {"cmd": board.cmd}, export_with=backend)

    def step(given):
        odometry(given["odom/wheels"])
        plan(given["plan/goal"])
        return {"plan/cmd": board.cmd}

    return step


@clean("G", style="own", rec={"high/obs": normal(1, 5)}, passes=4, backends="jit")
def BcHierarchy(backend: str):
    """A high level gives a latent, a low level with a GRU cell acts on it."""
    high, cell, out = mlp(5, 8, 3), nn.GRUCell(3, 6), nn.Linear(6, 2)
    memory = {"h": torch.zeros(1, 6)}

    def step(given):
        obs = annotate.input_tensors("high", {"obs": given["high/obs"]})
        latent = F.normalize(high(obs), dim=-1)
        annotate.output_tensors("high", {"latent": latent}, export_with=backend)
        latent = annotate.input_tensors("low", {"latent": latent})
        memory["h"] = cell(latent, memory["h"])
        u = out(memory["h"])
        annotate.output_tensors("low", {"u": u}, export_with=backend)
        return {"low/u": u}

    return step


@clean("G", style="own", rec={"norm/obs": normal(1, 4)}, passes=4, backends=("pt2", "jit"))
def BcListOfStages(backend: str):
    """Stages in a list of (name, function), run in a loop."""
    net = mlp(4, 8, 2)
    stages = [
        ("norm", "obs", "x", lambda x: (x - 0.1) / 1.5),
        ("net", "x", "raw", net),
        ("squash", "raw", "u", lambda u: torch.tanh(u) * 0.5),
    ]

    def step(given):
        value = given["norm/obs"]
        for name, inp, out, function in stages:
            value = function(annotate.input_tensors(name, {inp: value}))
            annotate.output_tensors(name, {out: value}, export_with=backend)
        return {"squash/u": value}

    return step


@clean(
    "G", style="own", rec={f"leg{i}/q": normal(1, 3) for i in range(4)}, passes=3, backends="onnx"
)
def BcLegNodes(backend: str):
    """Four legs' nodes from one class, and one that sums them up."""

    class Leg:
        def __init__(self, name: str, side: float) -> None:
            self.name, self.side = name, side

        def __call__(self, q: Tensor) -> Tensor:
            q = annotate.input_tensors(self.name, {"q": q})
            foot = torch.stack([q[:, 1].sin(), self.side * q[:, 0].cos(), -q[:, 2].cos()], -1)
            annotate.output_tensors(self.name, {"foot": foot}, export_with=backend)
            return foot

    legs = [Leg(f"leg{i}", 1.0 if i % 2 == 0 else -1.0) for i in range(4)]

    def step(given):
        feet = {f"foot{i}": leg(given[f"{leg.name}/q"]) for i, leg in enumerate(legs)}
        parts = annotate.input_tensors("body", feet)
        centre = torch.stack(list(parts)).mean(0)
        annotate.output_tensors("body", {"centre": centre}, export_with=backend)
        return {"body/centre": centre}

    return step


@clean("G", style="own", rec={"policy/obs": normal(1, 4)}, passes=4, backends="jit")
class BcMethodNodes:
    """Nodes by decorated methods of one robot class."""

    def __init__(self, backend: str) -> None:
        self.net, self.y = mlp(4, 8, 2), torch.zeros(1, 2)
        self.policy = annotate.method(node_name="policy", export_with=backend)(self._policy)
        self.smooth = annotate.method(node_name="smooth", export_with=backend)(self._smooth)

    def _policy(self, obs: Tensor) -> Tensor:
        action = self.net(obs)
        return action

    def _smooth(self, action: Tensor) -> Tensor:
        self.y = 0.6 * self.y + 0.4 * action
        filtered = self.y
        return filtered

    def __call__(self, given):
        return {"smooth/filtered": self.smooth(self.policy(given["policy/obs"]))}


@clean(
    "G",
    style="own",
    rec={"obs/q": array(normal(3)), "obs/dq": array(normal(3))},
    passes=4,
    backends="jit",
)
def BcNumpyEnds(backend: str):
    """Arrays at both ends, torch in the middle."""
    net = mlp(6, 8, 3)

    def step(given):
        q, dq = annotate.input_tensors("obs", {"q": given["obs/q"], "dq": given["obs/dq"]})
        obs = np.concatenate([q, 0.1 * dq]).astype(np.float32)
        annotate.output_tensors("obs", {"vector": obs}, export_with=backend)
        vector = annotate.input_tensors("policy", {"vector": obs})
        action = net(torch.as_tensor(vector)).clip(-1, 1)
        annotate.output_tensors("policy", {"action": action}, export_with=backend)
        return {"policy/action": action}

    return step


@clean(
    "G",
    style="own",
    rec={"teacher/priv": normal(1, 6), "student/hist": normal(1, 12)},
    passes=3,
    backends=("jit", "onnx"),
)
def BcTeacherStudent(backend: str):
    """Two encoders, one actor that is shared; the gap between them is only logged."""
    teacher, student, actor = mlp(6, 8, 4), mlp(12, 8, 4), mlp(4, 8, 2)
    gaps: list[float] = []

    def node(name: str, port: str, encoder: nn.Module, value: Tensor) -> tuple[Tensor, Tensor]:
        value = annotate.input_tensors(name, {port: value})
        z = encoder(value)
        u = actor(z)
        annotate.output_tensors(name, {"z": z, "u": u}, export_with=backend)
        return z, u

    def step(given):
        zt, ut = node("teacher", "priv", teacher, given["teacher/priv"])
        zs, us = node("student", "hist", student, given["student/hist"])
        gaps.append(F.mse_loss(zs, zt).item())
        return {"teacher/z": zt, "teacher/u": ut, "student/z": zs, "student/u": us}

    return step


@clean(
    "G",
    style="own",
    rec={"safety/u": normal(2), "safety/stop": flags(0.3, 1)},
    passes=5,
    backends="onnx",
)
def BcSafetyLayer(backend: str):
    """A safety node ramps commands down while a stop is held, then limits the rate."""
    state = {"gain": torch.ones(1), "last": torch.zeros(2)}

    def step(given):
        u, stop = annotate.input_tensors(
            "safety", {"u": given["safety/u"], "stop": given["safety/stop"]}
        )
        state["gain"] = torch.where(
            stop, state["gain"] * 0.5, torch.clamp(state["gain"] + 0.1, max=1.0)
        )
        safe = state["gain"] * u
        annotate.output_tensors("safety", {"safe": safe}, export_with=backend)
        safe = annotate.input_tensors("rate", {"safe": safe})
        state["last"] = state["last"] + (safe - state["last"]).clamp(-0.2, 0.2)
        annotate.output_tensors("rate", {"out": state["last"]}, export_with=backend)
        return {"rate/out": state["last"]}

    return step
