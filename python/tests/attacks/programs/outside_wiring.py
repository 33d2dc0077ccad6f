"""Nodes as people wire them: glue, rates, shared modules, outputs that are written afterwards."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import fixed, normal, uniform
from attacks.registry import ALL, hostile


@hostile(
    "G",
    style="own",
    rec={"a/x": normal(1, 3, s=0.2)},
    fresh={"a/x": normal(1, 3, s=3)},
    backends=ALL,
)
def outside_clip_between(backend: str):
    """A clip between two nodes that never bites while recorded."""
    net = nn.Linear(3, 2)

    def step(given):
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        feature = x * 2
        annotate.output_tensors("a", {"feature": feature}, export_with=backend)
        feature = torch.clamp(feature, -1.5, 1.5)
        feature = annotate.input_tensors("b", {"feature": feature})
        y = net(feature)
        annotate.output_tensors("b", {"y": y}, export_with=backend)
        return {"b/y": y}

    return step


@hostile("G", style="own", rec={"a/x": normal(1, 3)})
def outside_written_between(backend: str):
    """The output is scaled in place on its way to the next node."""
    net = nn.Linear(3, 2)

    def step(given):
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        feature = x * 2
        annotate.output_tensors("a", {"feature": feature}, export_with=backend)
        feature.mul_(0.5).add_(1.0)
        feature = annotate.input_tensors("b", {"feature": feature})
        y = net(feature)
        annotate.output_tensors("b", {"y": y}, export_with=backend)
        return {"b/y": y}

    return step


@hostile("G", style="own", rec={"a/x": normal(1, 3)}, passes=3)
def outside_numpy_between(backend: str):
    """ROS: what one node gives goes out as an array and comes back as a tensor."""
    net = nn.Linear(3, 2)

    def step(given):
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        feature = x * 2
        annotate.output_tensors("a", {"feature": feature}, export_with=backend)
        message = np.array(feature.numpy(), copy=True)
        message[:, 0] = np.clip(message[:, 0], -1, 1)
        feature = annotate.input_tensors("b", {"feature": torch.from_numpy(message)})
        y = net(feature)
        annotate.output_tensors("b", {"y": y}, export_with=backend)
        return {"b/y": y}

    return step


@hostile("G", style="own", rec={"a/x": fixed([[0.0, 0.0]])}, fresh={"a/x": normal(1, 2)}, passes=4)
def outside_equal_outputs(backend: str):
    """Left and right are equal while recorded, and the second node takes the right one."""

    def step(given):
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        left, right = x * 2, x * 3
        annotate.output_tensors("a", {"left": left, "right": right}, export_with=backend)
        arm = annotate.input_tensors("b", {"arm": right})
        y = arm + 1
        annotate.output_tensors("b", {"y": y}, export_with=backend)
        return {"a/left": left, "b/y": y}

    return step


@hostile("G", style="own", rec={"a/x": normal(1, 2)}, passes=6, backends=("jit", "onnx"))
def outside_slow_policy(backend: str):
    """The policy runs in every third tick; its last action is held by plain Python."""
    net, held, count = nn.Linear(2, 2), torch.zeros(1, 2), 0

    def step(given):
        nonlocal held, count
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        feature = x.tanh()
        annotate.output_tensors("a", {"feature": feature}, export_with=backend)
        if count % 3 == 0:
            feature = annotate.input_tensors("policy", {"feature": feature})
            held = net(feature)
            annotate.output_tensors("policy", {"action": held}, export_with=backend)
        count += 1
        action, x = annotate.input_tensors("post", {"action": held, "x": x})
        u = action * 0.5 + x
        annotate.output_tensors("post", {"u": u}, export_with=backend)
        return {"post/u": u}

    return step


@hostile("G", style="own", rec={"cam/image": normal(1, 4), "ctl/q": normal(1, 2)}, passes=5)
def outside_camera_at_start(backend: str):
    """The camera gives one picture, in the first tick."""
    state = {"goal": None}

    def step(given):
        if state["goal"] is None:
            image = annotate.input_tensors("cam", {"image": given["cam/image"]})
            goal = image[:, :2] * 2
            annotate.output_tensors("cam", {"goal": goal}, export_with=backend)
            state["goal"] = goal
        q, goal = annotate.input_tensors("ctl", {"q": given["ctl/q"], "goal": state["goal"]})
        u = goal - q
        annotate.output_tensors("ctl", {"u": u}, export_with=backend)
        return {"ctl/u": u}

    return step


@hostile(
    "G", style="own", rec={"left/x": normal(1, 2), "right/x": normal(1, 2)}, passes=4, backends=ALL
)
def outside_shared_recurrent(backend: str):
    """Two nodes share one recurrent module, and so its hidden state."""

    class Memory(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.h = nn.GRUCell(2, 3), torch.zeros(1, 3)

        def forward(self, x: Tensor) -> Tensor:
            self.h = self.cell(x, self.h)
            return self.h

    memory = Memory()

    def step(given):
        x = annotate.input_tensors("left", {"x": given["left/x"]})
        y = memory(x)
        annotate.output_tensors("left", {"y": y}, export_with=backend)
        x = annotate.input_tensors("right", {"x": given["right/x"]})
        z = memory(x)
        annotate.output_tensors("right", {"y": z}, export_with=backend)
        return {"left/y": y, "right/y": z}

    return step


@hostile("G", style="own", rec={"est/z": normal(1, 2), "ctl/q": normal(1, 2)}, passes=4)
def outside_unwired_attribute(backend: str):
    """The controller takes the estimate from an attribute, and nobody marked that."""

    class Robot:
        velocity = torch.zeros(1, 2)

    robot = Robot()

    def step(given):
        z = annotate.input_tensors("est", {"z": given["est/z"]})
        robot.velocity = 0.9 * z
        annotate.output_tensors("est", {"v": robot.velocity}, export_with=backend)
        q = annotate.input_tensors("ctl", {"q": given["ctl/q"]})
        u = q - 2 * robot.velocity
        annotate.output_tensors("ctl", {"u": u}, export_with=backend)
        return {"est/v": robot.velocity, "ctl/u": u}

    return step


@hostile(
    "G",
    style="own",
    rec={"est/z": fixed([[0.0, 0.0]]), "ctl/q": normal(1, 2)},
    fresh={"est/z": normal(1, 2)},
    passes=4,
)
def outside_unwired_at_rest(backend: str):
    """The same at rest, and one tick late."""
    robot = {"v": torch.zeros(1, 2)}

    def step(given):
        q = annotate.input_tensors("ctl", {"q": given["ctl/q"]})
        u = q - 2 * robot["v"]
        annotate.output_tensors("ctl", {"u": u}, export_with=backend)
        z = annotate.input_tensors("est", {"z": given["est/z"]})
        robot["v"] = 0.9 * z
        annotate.output_tensors("est", {"v": robot["v"]}, export_with=backend)
        return {"est/v": robot["v"], "ctl/u": u}

    return step


@hostile("G", style="own", rec={"arm/q": normal(1, 2)}, passes=4)
def outside_same_node_twice(backend: str):
    """One node runs twice in a tick, on what it gave itself."""
    net = nn.Linear(2, 2)

    def node(q: Tensor) -> Tensor:
        q = annotate.input_tensors("arm", {"q": q})
        y = net(q).tanh()
        annotate.output_tensors("arm", {"y": y}, export_with=backend)
        return y

    def step(given):
        return {"arm/y": node(node(given["arm/q"]))}

    return step


@hostile("G", style="own", rec={"a/x": normal(1, 2)}, passes=4)
def outside_order_changes(backend: str):
    """Two nodes that feed each other change their order from tick to tick."""
    mail = {"a": torch.zeros(1, 2), "b": torch.zeros(1, 2)}
    count = [0]

    def run_a(x):
        x, other = annotate.input_tensors("a", {"x": x, "other": mail["b"]})
        y = x + 0.5 * other
        annotate.output_tensors("a", {"y": y}, export_with=backend)
        mail["a"] = y

    def run_b():
        other = annotate.input_tensors("b", {"other": mail["a"]})
        z = other * 0.7 + 1
        annotate.output_tensors("b", {"z": z}, export_with=backend)
        mail["b"] = z

    def step(given):
        count[0] += 1
        if count[0] % 2:
            run_a(given["a/x"])
            run_b()
        else:
            run_b()
            run_a(given["a/x"])
        return {"a/y": mail["a"], "b/z": mail["b"]}

    return step


@hostile("G", style="own", rec={"est/z": normal(1, 2)}, passes=4)
def outside_glue_keeps_state(backend: str):
    """What is fed back is filtered between the nodes, where nobody looks."""
    kept = torch.zeros(1, 2)

    def step(given):
        nonlocal kept
        z, prior = annotate.input_tensors("est", {"z": given["est/z"], "prior": kept})
        v = 0.5 * z + 0.5 * prior
        annotate.output_tensors("est", {"v": v}, export_with=backend)
        kept = v * 0.9
        return {"est/v": v}

    return step


@hostile(
    "G", style="own", rec={"est/z": fixed([[0.0, 0.0]])}, fresh={"est/z": normal(1, 2)}, passes=4
)
def outside_glue_at_rest(backend: str):
    """The same at rest: 0.9 times zero is zero."""
    kept = torch.zeros(1, 2)

    def step(given):
        nonlocal kept
        z, prior = annotate.input_tensors("est", {"z": given["est/z"], "prior": kept})
        v = 0.5 * z + 0.5 * prior
        annotate.output_tensors("est", {"v": v}, export_with=backend)
        kept = v * 0.9
        return {"est/v": v}

    return step


@hostile("G", style="own", rec={"n/x": normal(1, 3)}, passes=4)
def outside_buffer_given_out(backend: str):
    """One buffer is given out in every tick, and zeroed by the caller afterwards."""
    buffer = torch.zeros(1, 3)

    def step(given):
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        buffer.copy_(x * 2 + buffer)
        annotate.output_tensors("n", {"y": buffer}, export_with=backend)
        given_out = buffer.clone()
        buffer.zero_()
        return {"n/y": given_out}

    return step


@hostile("G", rec={"x": normal(1, 3)}, passes=4)
def outside_numbers_out(x: Tensor) -> dict:
    """A float and a tensor made from it are given out."""
    norm = float(x.norm())
    return {"unit": x / norm, "norm": torch.tensor([norm])}


@hostile("G", rec={"x": normal(1, 3)}, passes=5)
class OutsideOutputsVary:
    """A second output is there in every other pass."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, x: Tensor) -> dict:
        self.n += 1
        y = {"y": x * 2}
        if self.n % 2 == 0:
            y["slow"] = x.sum(-1)
        return y


@hostile("G", rec={"x": normal(2, 3)}, passes=4)
class OutsideNamesTurn:
    """Two outputs change their names from pass to pass."""

    def __init__(self) -> None:
        self.turn = False

    def __call__(self, x: Tensor) -> dict:
        self.turn = not self.turn
        a, b = x[0] * 2, x[1] * 3
        return {"a": a, "b": b} if self.turn else {"a": b, "b": a}


@hostile("G", style="own", rec={"a/x": normal(1, 3)}, passes=4)
def outside_delay_of_two(backend: str):
    """A network link of two ticks between two nodes."""
    link = [torch.zeros(1, 3), torch.zeros(1, 3)]

    def step(given):
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        y = x * 2
        annotate.output_tensors("a", {"y": y}, export_with=backend)
        link.append(y)
        late = annotate.input_tensors("b", {"late": link.pop(0)})
        z = late + 1
        annotate.output_tensors("b", {"z": z}, export_with=backend)
        return {"a/y": y, "b/z": z}

    return step


@hostile("G", style="own", rec={"a/x": normal(1, 3), "a/w": uniform(0.5, 1.0, 1)}, passes=4)
def outside_input_marked_late(backend: str):
    """The second input is used before it is marked."""

    def step(given):
        w = given["a/w"]
        half = w * 0.5
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        w = annotate.input_tensors("a", {"w": w})
        y = x * half + w
        annotate.output_tensors("a", {"y": y}, export_with=backend)
        return {"a/y": y}

    return step
