"""Pipelines of several nodes, with feedback, that annotate themselves."""

from __future__ import annotations

import logging

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import flags, normal, uniform
from attacks.registry import ALL, clean

log = logging.getLogger("cc.pipelines")


@clean(
    "H",
    style="own",
    rec={"encoder/image": normal(1, 3, 8, 8), "policy/state": normal(1, 4)},
    backends=("jit", "onnx"),
    passes=3,
)
class CcEncoderPolicy:
    """An encoder of pictures and a policy that joins its features with the state."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 6)
        )
        self.policy = nn.Sequential(nn.Linear(10, 8), nn.ELU(), nn.Linear(8, 2))

    def __call__(self, given: dict) -> dict:
        image = annotate.input_tensors("encoder", {"image": given["encoder/image"]})
        features = self.encoder(image)
        annotate.output_tensors("encoder", {"features": features}, export_with=self.backend)
        state, z = annotate.input_tensors(
            "policy", {"state": given["policy/state"], "features": features}
        )
        action = self.policy(torch.cat([state, z], -1))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return {"policy/action": action}


@clean("H", style="own", rec={"policy/obs": normal(1, 4)}, backends=ALL, passes=4)
class CcLastActionFeedback:
    """A policy that gets its last action back, and gives scaled targets."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.net = nn.Sequential(nn.Linear(7, 8), nn.Tanh(), nn.Linear(8, 3))
        self.last_action = torch.zeros(1, 3)
        self.default = torch.tensor([[0.1, 0.8, -1.5]])

    def __call__(self, given: dict) -> dict:
        obs, last = annotate.input_tensors(
            "policy", {"obs": given["policy/obs"], "last_action": self.last_action}
        )
        action = self.net(torch.cat([obs, last], dim=-1))
        target = action * 0.25 + self.default
        annotate.output_tensors(
            "policy", {"action": action, "target": target}, export_with=self.backend
        )
        self.last_action = action
        return {"policy/target": target}


@clean(
    "H",
    style="own",
    rec={"estimator/imu": normal(1, 6), "control/q": normal(1, 3)},
    backends=("jit", "onnx"),
    passes=4,
)
class CcThreeStages:
    """Estimator, policy and joint controller; torques go back to the estimator."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.est, self.pol = (
            nn.Linear(9, 3),
            nn.Sequential(nn.Linear(3, 8), nn.ELU(), nn.Linear(8, 3)),
        )
        self.last_effort = torch.zeros(1, 3)

    def __call__(self, given: dict) -> dict:
        imu, effort = annotate.input_tensors(
            "estimator", {"imu": given["estimator/imu"], "effort": self.last_effort}
        )
        velocity = torch.tanh(self.est(torch.cat([imu, effort], -1)))
        annotate.output_tensors("estimator", {"velocity": velocity}, export_with=self.backend)

        v = annotate.input_tensors("policy", {"velocity": velocity})
        action = self.pol(v)
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)

        a, q = annotate.input_tensors("control", {"action": action, "q": given["control/q"]})
        torque = torch.clamp(5.0 * (0.25 * a - q), -10.0, 10.0)
        effort = torque / 10.0
        annotate.output_tensors(
            "control", {"torque": torque, "effort": effort}, export_with=self.backend
        )
        self.last_effort = effort
        return {"control/torque": torque}


@clean("H", style="own", rec={"gru/obs": normal(1, 4)}, backends=("jit", "pt2"), passes=4)
class CcExplicitHidden:
    """A GRU whose hidden state is a port, fed back detached."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.cell, self.head = nn.GRUCell(4, 5), nn.Linear(5, 2)
        self.h = torch.zeros(1, 5)

    def __call__(self, given: dict) -> dict:
        obs, h = annotate.input_tensors("gru", {"obs": given["gru/obs"], "h": self.h})
        hidden = self.cell(obs, h)
        action = self.head(hidden)
        annotate.output_tensors(
            "gru", {"hidden": hidden, "action": action}, export_with=self.backend
        )
        self.h = hidden.detach()
        return {"gru/action": action}


@clean("H", style="own", rec={"a/x": normal(1, 3), "b/x": normal(1, 3)}, backends="jit", passes=4)
class CcTwoArms:
    """Two arms by the same class, and a coordinator that blends their proposals."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.arms = {name: nn.Linear(3, 2) for name in ("a", "b")}

    def arm(self, name: str, x: Tensor) -> Tensor:
        x = annotate.input_tensors(name, {"x": x})
        proposal = torch.tanh(self.arms[name](x))
        annotate.output_tensors(name, {"proposal": proposal}, export_with=self.backend)
        return proposal

    def __call__(self, given: dict) -> dict:
        left, right = self.arm("a", given["a/x"]), self.arm("b", given["b/x"])
        left, right = annotate.input_tensors("blend", {"left": left, "right": right})
        weight = torch.sigmoid(left.norm(dim=-1, keepdim=True) - right.norm(dim=-1, keepdim=True))
        both = weight * left + (1 - weight) * right
        annotate.output_tensors("blend", {"both": both, "weight": weight}, export_with=self.backend)
        return {"blend/both": both, "blend/weight": weight}


@clean(
    "H",
    style="own",
    rec={"obs_term/vel": normal(1, 3), "obs_term/cmd": normal(1, 3)},
    backends="onnx",
    passes=5,
)
class CcTermsThenPolicy:
    """An observation node with a history on self, and a policy with memory of its own."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.history = torch.zeros(1, 3, 6)
        self.net = nn.Linear(18, 3)
        self.smooth = torch.zeros(1, 3)

    def observe(self, vel: Tensor, cmd: Tensor) -> Tensor:
        vel, cmd = annotate.input_tensors("obs_term", {"vel": vel, "cmd": cmd})
        now = torch.cat([vel * 2.0, cmd.clip(-1, 1)], dim=-1)
        self.history = torch.cat([self.history[:, 1:], now.unsqueeze(1)], dim=1)
        obs = self.history.flatten(1)
        annotate.output_tensors("obs_term", {"obs": obs}, export_with=self.backend)
        return obs

    def __call__(self, given: dict) -> dict:
        obs = annotate.input_tensors(
            "policy", {"obs": self.observe(given["obs_term/vel"], given["obs_term/cmd"])}
        )
        self.smooth = 0.6 * self.smooth + 0.4 * torch.tanh(self.net(obs))
        target = self.smooth * 0.5
        annotate.output_tensors("policy", {"target": target}, export_with=self.backend)
        return {"policy/target": target}


@clean(
    "H",
    style="own",
    rec={"high/goal": normal(1, 2), "low/state": normal(1, 4)},
    backends=("jit", "onnx"),
    passes=4,
)
class CcHierarchy:
    """A high level gives a latent command from the goal and the low level's last summary."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.high, self.low, self.sum = nn.Linear(2 + 3, 4), nn.Linear(8, 3), nn.Linear(3, 3)
        self.summary = torch.zeros(1, 3)
        self.ticks = 0

    def __call__(self, given: dict) -> dict:
        self.ticks += 1
        goal, summary = annotate.input_tensors(
            "high", {"goal": given["high/goal"], "summary": self.summary}
        )
        command = F.normalize(self.high(torch.cat([goal, summary], -1)) + 0.01, dim=-1)
        annotate.output_tensors("high", {"command": command}, export_with=self.backend)
        state, cmd = annotate.input_tensors(
            "low", {"state": given["low/state"], "command": command}
        )
        action = self.low(torch.cat([state, cmd], -1))
        summary = torch.tanh(self.sum(action))
        annotate.output_tensors(
            "low", {"action": action, "summary": summary}, export_with=self.backend
        )
        self.summary = summary
        log.debug("tick %d: |command| = %.3f", self.ticks, command.norm().item())
        return {"low/action": action}


@clean("H", style="own", rec={"slew/target": normal(1, 3)}, backends="jit", passes=4)
class CcSlewFromPose:
    """A rate limit whose last value is a port, starting at the default pose."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.last = torch.tensor([[0.1, 0.8, -1.5]])

    def __call__(self, given: dict) -> dict:
        target, last = annotate.input_tensors(
            "slew", {"target": given["slew/target"], "last": self.last}
        )
        position = last + (target - last).clamp(-0.2, 0.2)
        rate = (position - last) / 0.02
        annotate.output_tensors(
            "slew", {"position": position, "rate": rate}, export_with=self.backend
        )
        self.last = position
        return {"slew/rate": rate}


@clean(
    "H",
    style="own",
    rec={"guard/raw": normal(1, 4), "guard/ok": flags(0.8, 1)},
    backends="pt2",
    passes=4,
)
class CcGuarded:
    """A safety node before a policy: held values where a sensor is not ok, by where."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.held = torch.zeros(1, 4)
        self.net = nn.Linear(4, 2)

    def __call__(self, given: dict) -> dict:
        raw, ok = annotate.input_tensors(
            "guard", {"raw": given["guard/raw"], "ok": given["guard/ok"]}
        )
        self.held = torch.where(ok.unsqueeze(-1), raw, self.held)
        safe = self.held.clamp(-3.0, 3.0)
        annotate.output_tensors("guard", {"safe": safe}, export_with=self.backend)
        obs = annotate.input_tensors("policy", {"obs": safe})
        action = torch.tanh(self.net(obs))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return {"policy/action": action}


@clean(
    "H",
    style="own",
    rec={"plan/goal": uniform(-1.0, 1.0, 1, 3)},
    backends=("jit", "onnx"),
    passes=4,
)
class CcPlannerTracker:
    """A planner makes a fixed number of waypoints, a tracker steps along with state fed back."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.pos = torch.zeros(1, 3)

    def __call__(self, given: dict) -> dict:
        goal, start = annotate.input_tensors(
            "plan", {"goal": given["plan/goal"], "start": self.pos}
        )
        s = torch.linspace(0.0, 1.0, 5).view(1, 5, 1)
        blend = 10 * s**3 - 15 * s**4 + 6 * s**5
        waypoints = start.unsqueeze(1) + blend * (goal - start).unsqueeze(1)
        annotate.output_tensors("plan", {"waypoints": waypoints}, export_with=self.backend)
        path = annotate.input_tensors("track", {"waypoints": waypoints})
        position = path[:, 2]
        command = (path[:, 3] - path[:, 1]) / 0.04
        annotate.output_tensors(
            "track", {"position": position, "command": command}, export_with=self.backend
        )
        self.pos = position
        return {"track/command": command}
