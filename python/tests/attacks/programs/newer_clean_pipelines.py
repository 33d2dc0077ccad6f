"""Pipelines of several nodes, annotated by the code itself."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import normal, uniform
from attacks.registry import clean


@clean(
    "A",
    passes=4,
    style="own",
    rec={"estimator/gyro": normal(1, 3), "estimator/q": normal(1, 4)},
    backends=("jit", "onnx"),
)
class NcEstimatorPolicyActuator:
    """Estimator with a filter, policy, actuator: three nodes in a row."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.filtered = torch.zeros(1, 3)
        self.net = nn.Sequential(nn.Linear(7, 16), nn.ELU(), nn.Linear(16, 4))

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        gyro, q = annotate.input_tensors(
            "estimator", {"gyro": given["estimator/gyro"], "q": given["estimator/q"]}
        )
        self.filtered = 0.8 * self.filtered + 0.2 * gyro
        state = torch.cat([self.filtered, q], dim=1)
        annotate.output_tensors("estimator", {"state": state}, export_with=self.backend)

        state = annotate.input_tensors("policy", {"state": state})
        action = self.net(state)
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)

        action = annotate.input_tensors("actuator", {"action": action})
        torque = (25.0 * torch.tanh(action)).clamp(-20.0, 20.0)
        annotate.output_tensors("actuator", {"torque": torque}, export_with=self.backend)
        return {"actuator/torque": torque}


@clean("A", passes=5, style="own", rec={"observer/imu": normal(1, 6)}, backends="jit")
class NcLastActionFeedback:
    """The policy's action is an input of the observer in the next tick; the actuator scales it."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.actor = nn.Linear(9, 3)
        self.last_action = torch.zeros(1, 3)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        imu, last = annotate.input_tensors(
            "observer", {"imu": given["observer/imu"], "last_action": self.last_action}
        )
        obs = torch.cat([0.5 * imu, last], dim=-1).clamp(-10, 10)
        annotate.output_tensors("observer", {"obs": obs}, export_with=self.backend)

        obs = annotate.input_tensors("policy", {"obs": obs})
        action = torch.tanh(self.actor(obs))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        self.last_action = action

        action = annotate.input_tensors("actuator", {"action": action})
        target = 0.25 * action + torch.tensor([0.1, 0.8, -1.5])
        annotate.output_tensors("actuator", {"target": target}, export_with=self.backend)
        return {"actuator/target": target}


@clean("H", passes=3, style="own", rec={"observer/x": normal(1, 8)}, backends="jit")
def NcSharedObservation(backend: str):
    """One observation goes to a policy, to a critic and to a monitor."""
    actor, critic = nn.Linear(8, 3), nn.Linear(8, 1)

    def step(given: dict[str, Tensor]) -> dict[str, Tensor]:
        x = annotate.input_tensors("observer", {"x": given["observer/x"]})
        obs = F.layer_norm(x, (8,))
        annotate.output_tensors("observer", {"obs": obs}, export_with=backend)

        a = annotate.input_tensors("policy", {"obs": obs})
        action = torch.tanh(actor(a))
        annotate.output_tensors("policy", {"action": action}, export_with=backend)

        c = annotate.input_tensors("critic", {"obs": obs})
        value = critic(c)
        annotate.output_tensors("critic", {"value": value}, export_with=backend)

        m = annotate.input_tensors("monitor", {"obs": obs})
        alarm = (m.abs() > 2.0).any(dim=-1)
        annotate.output_tensors("monitor", {"alarm": alarm}, export_with=backend)
        return {"policy/action": action, "critic/value": value, "monitor/alarm": alarm}

    return step


@clean("A", passes=5, style="own", rec={"policy/obs": normal(1, 5)}, backends="jit")
class NcPolicyOwnActionBack:
    """A single node whose action comes back to itself through marked ports."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.net = nn.Sequential(nn.Linear(7, 16), nn.Tanh(), nn.Linear(16, 2))
        self.previous = torch.zeros(1, 2)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs, previous = annotate.input_tensors(
            "policy", {"obs": given["policy/obs"], "previous": self.previous}
        )
        action = 0.7 * previous + 0.3 * self.net(torch.cat([obs, previous], dim=1))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        self.previous = action
        return {"policy/action": action}


@clean("A", passes=4, style="own", rec={"memory/obs": normal(1, 4)}, backends="onnx")
class NcExplicitHiddenPorts:
    """A GRU whose hidden state goes out and in through ports, and a head as another node."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.cell, self.head = nn.GRUCell(4, 8), nn.Linear(8, 2)
        self.h = torch.zeros(1, 8)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs, h = annotate.input_tensors("memory", {"obs": given["memory/obs"], "h": self.h})
        h_next = self.cell(obs, h)
        annotate.output_tensors("memory", {"h_next": h_next}, export_with=self.backend)
        self.h = h_next

        latent = annotate.input_tensors("head", {"latent": h_next})
        action = self.head(latent)
        annotate.output_tensors("head", {"action": action}, export_with=self.backend)
        return {"head/action": action}


@clean(
    "H",
    passes=3,
    style="own",
    rec={"vision/image": uniform(0, 1, 1, 3, 16, 16), "policy/proprio": normal(1, 4)},
    fresh={"vision/image": uniform(0, 1, 1, 3, 16, 16)},
    backends="jit",
)
class NcVisionAndProprio:
    """A vision encoder in front; the policy has an input from outside as well."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        ).eval()
        self.actor = nn.Linear(8, 2)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        image = annotate.input_tensors("vision", {"image": given["vision/image"]})
        feature = self.encoder(image * 2 - 1)
        annotate.output_tensors("vision", {"feature": feature}, export_with=self.backend)
        inputs = {"feature": feature, "proprio": given["policy/proprio"]}
        feature, proprio = annotate.input_tensors("policy", inputs)
        action = self.actor(torch.cat([feature, proprio], 1))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return {"policy/action": action}


class Stage:
    """A node as a class: subclasses say what it computes."""

    name, inputs, outputs = "stage", ("x",), ("y",)

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def compute(self, *values: Tensor) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def __call__(self, board: dict[str, Tensor]) -> None:
        marked = annotate.input_tensors(self.name, {key: board[key] for key in self.inputs})
        values = marked if len(self.inputs) > 1 else (marked,)
        results = dict(zip(self.outputs, self.compute(*values), strict=True))
        annotate.output_tensors(self.name, results, export_with=self.backend)
        board.update(results)


class Filter(Stage):
    name, inputs, outputs = "filter", ("imu",), ("smooth",)

    def __init__(self, backend: str) -> None:
        super().__init__(backend)
        self.memory = torch.zeros(1, 6)

    def compute(self, imu: Tensor) -> tuple[Tensor, ...]:
        self.memory = torch.lerp(self.memory, imu, 0.4)
        return (self.memory,)


class Planner(Stage):
    name, inputs, outputs = "planner", ("smooth", "command"), ("plan", "confidence")

    def __init__(self, backend: str) -> None:
        super().__init__(backend)
        self.net = nn.Linear(8, 4)

    def compute(self, smooth: Tensor, command: Tensor) -> tuple[Tensor, ...]:
        plan = self.net(torch.cat([smooth, command], 1))
        return plan, plan.softmax(-1).amax(-1, keepdim=True)


class Tracker(Stage):
    name, inputs, outputs = "tracker", ("plan", "confidence"), ("torque",)

    def compute(self, plan: Tensor, confidence: Tensor) -> tuple[Tensor, ...]:
        return (plan.sin() * confidence,)


@clean(
    "A",
    passes=5,
    style="own",
    rec={"filter/imu": normal(1, 6), "planner/command": normal(1, 2)},
    backends="jit",
)
class NcBlackboardStages:
    """Stages of one base class that read and write a blackboard."""

    def __init__(self, backend: str) -> None:
        self.stages = [Filter(backend), Planner(backend), Tracker(backend)]

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        board = {key.split("/")[1]: value for key, value in given.items()}
        for stage in self.stages:
            stage(board)
        return {"tracker/torque": board["torque"]}


@clean(
    "A",
    passes=4,
    style="own",
    rec={"left/x": normal(1, 3), "right/x": normal(1, 3)},
    backends="jit",
)
def NcTwoArmsOneController(backend: str):
    """Two arms as nodes with a filter each, made by one factory; a coordinator behind them."""

    class Arm:
        def __init__(self, name: str) -> None:
            self.name, self.ema = name, torch.zeros(1, 3)

        def __call__(self, x: Tensor) -> Tensor:
            x = annotate.input_tensors(self.name, {"x": x})
            self.ema = 0.5 * (self.ema + x)
            annotate.output_tensors(self.name, {"tip": self.ema}, export_with=backend)
            return self.ema

    arms = {name: Arm(name) for name in ("left", "right")}

    def step(given: dict[str, Tensor]) -> dict[str, Tensor]:
        tips = {name: arm(given[f"{name}/x"]) for name, arm in arms.items()}
        left, right = annotate.input_tensors("coordinator", tips)
        gap, middle = right - left, (left + right) / 2
        annotate.output_tensors("coordinator", {"gap": gap, "middle": middle}, export_with=backend)
        return {"coordinator/gap": gap, "coordinator/middle": middle}

    return step


@clean(
    "A",
    passes=4,
    style="own",
    rec={"high/goal": normal(1, 3), "low/q": normal(1, 3)},
    backends="jit",
)
class NcDecoratedMethodNodes:
    """Two nodes as decorated methods that call each other's results."""

    def __init__(self, backend: str) -> None:
        self.velocity = torch.zeros(1, 3)

        @annotate.method(node_name="high", export_with=backend)
        def high(goal: Tensor) -> Tensor:
            waypoint = torch.tanh(goal) * 0.5
            return waypoint

        @annotate.method(node_name="low", export_with=backend)
        def low(waypoint: Tensor, q: Tensor) -> Tensor:
            self.velocity = 0.9 * self.velocity + 0.1 * (waypoint - q)
            command = q + 0.02 * self.velocity
            return command

        self.high, self.low = high, low

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        waypoint = self.high(goal=given["high/goal"])
        command = self.low(waypoint=waypoint, q=given["low/q"])
        return {"low/command": command}


@clean("A", passes=4, style="own", rec={"plant/disturbance": normal(1, 2, s=0.1)}, backends="jit")
class NcPlantAndController:
    """A simulated plant and a controller in a loop: the torque of the last tick drives the plant."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.x = torch.tensor([[0.5, 0.0]])
        self.torque = torch.zeros(1, 1)
        self.A = torch.tensor([[1.0, 0.05], [-0.1, 0.98]])
        self.B = torch.tensor([[0.0, 0.05]])
        self.K = torch.tensor([[2.0], [0.8]])

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        inputs = {"disturbance": given["plant/disturbance"], "torque": self.torque}
        disturbance, torque = annotate.input_tensors("plant", inputs)
        self.x = self.x @ self.A.T + torque @ self.B + disturbance
        annotate.output_tensors("plant", {"x": self.x}, export_with=self.backend)
        x = annotate.input_tensors("controller", {"x": self.x})
        command = -(x @ self.K)
        annotate.output_tensors("controller", {"command": command}, export_with=self.backend)
        self.torque = command
        return {"controller/command": command}


@clean("H", passes=3, style="own", rec={"encoder/scan": uniform(0, 4, 1, 20)}, backends="pt2")
class NcEncoderDecoderPt2:
    """An encoder and a decoder as two pt2 programs."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.enc = nn.Sequential(nn.Linear(20, 8), nn.SiLU(), nn.Linear(8, 3))
        self.dec = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 20))

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        scan = annotate.input_tensors("encoder", {"scan": given["encoder/scan"]})
        z = self.enc(torch.log1p(scan))
        annotate.output_tensors("encoder", {"z": z}, export_with=self.backend)
        z = annotate.input_tensors("decoder", {"z": z})
        rebuilt = self.dec(z).expm1()
        annotate.output_tensors("decoder", {"rebuilt": rebuilt}, export_with=self.backend)
        return {"decoder/rebuilt": rebuilt}


@clean("A", passes=5, style="own", rec={"detector/z": normal(1, 2)}, backends="onnx")
class NcTrackerPredictionBack:
    """A detector that gets the tracker's prediction of the tick before, and a tracker with state."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.prediction = torch.zeros(1, 2)
        self.position, self.velocity = torch.zeros(1, 2), torch.zeros(1, 2)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        z, prior = annotate.input_tensors(
            "detector", {"z": given["detector/z"], "prior": self.prediction}
        )
        residual = z - prior
        weight = torch.exp(-0.5 * residual.square().sum(-1, keepdim=True))
        annotate.output_tensors(
            "detector", {"residual": residual, "weight": weight}, export_with=self.backend
        )

        residual, weight = annotate.input_tensors(
            "tracker", {"residual": residual, "weight": weight}
        )
        self.velocity = self.velocity + 0.1 * weight * residual
        self.position = self.position + 0.05 * self.velocity + 0.5 * weight * residual
        prediction = self.position + 0.05 * self.velocity
        annotate.output_tensors(
            "tracker",
            {"prediction": prediction, "position": self.position},
            export_with=self.backend,
        )
        self.prediction = prediction
        return {"tracker/position": self.position}
