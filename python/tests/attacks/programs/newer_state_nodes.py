"""Pipelines of several nodes that share states or hand them to one another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import fixed, flags, normal, row, uniform
from attacks.registry import hostile

Values = dict[str, Any]


@hostile(
    "G",
    passes=5,
    style="own",
    rec={"est/z": normal(1, 3), "ctl/goal": normal(1, 3)},
    backends="jit",
)
def NsSharedBlackboard(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """An estimator and a controller share a blackboard; the controller's write is read next tick."""
    board = {"bias": torch.zeros(1, 3)}

    def step(given: Values) -> Values:
        z = annotate.input_tensors("est", {"z": given["est/z"]})
        x = z - board["bias"]
        annotate.output_tensors("est", {"x": x}, export_with=backend)
        x, goal = annotate.input_tensors("ctl", {"x": x, "goal": given["ctl/goal"]})
        u = goal - x
        board["bias"] = 0.1 * u
        annotate.output_tensors("ctl", {"u": u}, export_with=backend)
        return {"ctl/u": u}

    return step


@hostile(
    "G",
    passes=4,
    style="own",
    rec={"est/z": normal(1, 2), "ctl/goal": normal(1, 2)},
    backends="onnx",
)
def NsSharedCounter(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """One node counts, the other reads the count: it does not matter before the seventh tick."""
    shared = SimpleNamespace(ticks=0)

    def step(given: Values) -> Values:
        z = annotate.input_tensors("est", {"z": given["est/z"]})
        shared.ticks += 1
        x = z * 0.5
        annotate.output_tensors("est", {"x": x}, export_with=backend)
        x, goal = annotate.input_tensors("ctl", {"x": x, "goal": given["ctl/goal"]})
        u = (goal - x) * (1.0 if shared.ticks < 7 else 3.0)
        annotate.output_tensors("ctl", {"u": u}, export_with=backend)
        return {"ctl/u": u}

    return step


@hostile("G", passes=4, style="own", rec={"obs/x": normal(1, 3)}, backends="jit")
def NsLowRateNode(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """A planner runs every sixth tick, the tracker in each: its plan is held in between."""
    memory = {"tick": 0, "plan": torch.zeros(1, 3)}
    net = nn.Linear(3, 3)

    def step(given: Values) -> Values:
        x = annotate.input_tensors("obs", {"x": given["obs/x"]})
        f = x.tanh()
        annotate.output_tensors("obs", {"f": f}, export_with=backend)
        if memory["tick"] % 6 == 0:
            g = annotate.input_tensors("plan", {"f": f})
            memory["plan"] = net(g)
            annotate.output_tensors("plan", {"p": memory["plan"]}, export_with=backend)
        memory["tick"] += 1
        p, f = annotate.input_tensors("track", {"p": memory["plan"], "f": f})
        u = p - f
        annotate.output_tensors("track", {"u": u}, export_with=backend)
        return {"track/u": u}

    return step


@hostile(
    "G",
    passes=5,
    style="own",
    rec={"a/x": uniform(-0.1, 0.1, 1, 2)},
    fresh={"a/x": normal(1, 2, s=3.0)},
    backends="jit",
)
def NsFeedbackOnlyIfSmall(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """An action is fed back, unless it is too large: then the last one stays."""
    memory = {"last": torch.zeros(1, 2)}

    def step(given: Values) -> Values:
        x, last = annotate.input_tensors("a", {"x": given["a/x"], "last": memory["last"]})
        u = x + 0.5 * last
        annotate.output_tensors("a", {"u": u}, export_with=backend)
        if float(u.abs().max()) < 2.0:
            memory["last"] = u
        return {"a/u": u}

    return step


class _Filter:
    """One filter object that two nodes use."""

    def __init__(self) -> None:
        self.y = torch.zeros(1, 2)

    def __call__(self, x: Tensor) -> Tensor:
        self.y = 0.5 * self.y + 0.5 * x
        return self.y


@hostile(
    "G",
    passes=4,
    style="own",
    rec={"left/x": normal(1, 2), "right/x": normal(1, 2)},
    backends="onnx",
)
def NsOneFilterTwoNodes(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """Two arms use one filter by mistake, so that each sees what the other left."""
    shared = _Filter()

    def step(given: Values) -> Values:
        out = {}
        for side in ("left", "right"):
            x = annotate.input_tensors(side, {"x": given[f"{side}/x"]})
            y = shared(x) * 2
            annotate.output_tensors(side, {"y": y}, export_with=backend)
            out[f"{side}/y"] = y
        return out

    return step


@hostile(
    "G", passes=4, style="own", rec={"l/x": normal(1, 2), "r/x": normal(1, 2)}, backends="onnx"
)
def NsOneBufferTwoViews(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """Two nodes write halves of one buffer in place; each reads the other's half of the last tick."""
    both = torch.zeros(1, 4)
    left, right = both[:, :2], both[:, 2:]

    def step(given: Values) -> Values:
        x = annotate.input_tensors("l", {"x": given["l/x"]})
        a = x + right
        left.copy_(x)
        annotate.output_tensors("l", {"a": a}, export_with=backend)
        x = annotate.input_tensors("r", {"x": given["r/x"]})
        b = x - left
        right.copy_(x * 0.5)
        annotate.output_tensors("r", {"b": b}, export_with=backend)
        return {"l/a": a, "r/b": b}

    return step


@hostile(
    "G",
    passes=4,
    style="own",
    rec={"est/z": normal(1, 2), "sup/alarm": fixed([False])},
    fresh={"est/z": normal(1, 2), "sup/alarm": flags(0.3, 1)},
    backends="pt2",
)
def NsSupervisorResets(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """A supervisor resets the estimator's memory in place when there is an alarm; there was none."""
    mean = torch.zeros(1, 2)

    def step(given: Values) -> Values:
        z = annotate.input_tensors("est", {"z": given["est/z"]})
        mean.lerp_(z, 0.3)
        x = mean * 1.0
        annotate.output_tensors("est", {"x": x}, export_with=backend)
        x, alarm = annotate.input_tensors("sup", {"x": x, "alarm": given["sup/alarm"]})
        ok = x * (~alarm)
        mean.masked_fill_(alarm, 0.0)
        annotate.output_tensors("sup", {"ok": ok}, export_with=backend)
        return {"sup/ok": ok}

    return step


@hostile("G", passes=4, style="own", rec={"a/x": normal(1, 2)}, backends="jit")
def NsSourceSwitches(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """The second node is given the raw value in the first ticks, and the filtered one later."""
    memory = {"y": torch.zeros(1, 2), "n": 0}

    def step(given: Values) -> Values:
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        memory["y"] = 0.6 * memory["y"] + 0.4 * x
        raw, smooth = x * 1.0, memory["y"] * 1.0
        annotate.output_tensors("a", {"raw": raw, "smooth": smooth}, export_with=backend)
        memory["n"] += 1
        source = raw if memory["n"] <= 6 else smooth
        s = annotate.input_tensors("b", {"s": source})
        y = s.exp()
        annotate.output_tensors("b", {"y": y}, export_with=backend)
        return {"b/y": y}

    return step


@hostile("G", passes=4, style="own", rec={"a/x": normal(1, 2)}, backends="jit")
def NsWarmupBypass(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """Between two nodes the value is scaled by a Python warm-up that begins after the recording."""
    memory = {"n": 0}

    def step(given: Values) -> Values:
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        h = x.sin()
        annotate.output_tensors("a", {"h": h}, export_with=backend)
        memory["n"] += 1
        if memory["n"] > 6:
            h = h * 0.5
        h = annotate.input_tensors("b", {"h": h})
        y = h + 1
        annotate.output_tensors("b", {"y": y}, export_with=backend)
        return {"b/y": y}

    return step


@hostile("G", passes=5, style="own", rec={"a/x": normal(1, 2)}, backends="jit")
def NsDeclaredState(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """A declared state is updated as declared, and dropped by the code at the seventh tick."""
    memory = {"h": torch.zeros(1, 2), "n": 0}

    def step(given: Values) -> Values:
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        h = annotate.state_tensors("a", {"h": memory["h"]})
        h = torch.tanh(h + x)
        annotate.update_state("a", {"h": h})
        memory["n"] += 1
        memory["h"] = h if memory["n"] != 7 else torch.zeros(1, 2)
        y = h * 3
        annotate.output_tensors("a", {"y": y}, export_with=backend)
        return {"a/y": y}

    return step


@hostile(
    "G", passes=4, style="own", rec={"cam/img": normal(1, 4), "ctl/q": normal(1, 2)}, backends="jit"
)
def NsLatestMessage(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """A controller uses the camera's result of the tick before, as callbacks of ROS would have it."""
    net = nn.Linear(4, 2)
    topic: dict[str, Tensor] = {"/goal": torch.zeros(1, 2)}

    def step(given: Values) -> Values:
        goal, q = annotate.input_tensors("ctl", {"goal": topic["/goal"], "q": given["ctl/q"]})
        u = goal - q
        annotate.output_tensors("ctl", {"u": u}, export_with=backend)
        img = annotate.input_tensors("cam", {"img": given["cam/img"]})
        goal = net(img)
        annotate.output_tensors("cam", {"goal": goal}, export_with=backend)
        topic["/goal"] = goal
        return {"ctl/u": u}

    return step


@hostile(
    "G", passes=4, style="own", rec={"cam/img": normal(1, 4), "ctl/q": normal(1, 2)}, backends="jit"
)
def NsMessageStale(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """The same with a message that is not published from the seventh tick on: the last one stays."""
    net = nn.Linear(4, 2)
    topic: dict[str, Any] = {"/goal": torch.zeros(1, 2), "seq": 0}

    def step(given: Values) -> Values:
        goal, q = annotate.input_tensors("ctl", {"goal": topic["/goal"], "q": given["ctl/q"]})
        u = goal - q
        annotate.output_tensors("ctl", {"u": u}, export_with=backend)
        img = annotate.input_tensors("cam", {"img": given["cam/img"]})
        goal = net(img)
        annotate.output_tensors("cam", {"goal": goal}, export_with=backend)
        topic["seq"] += 1
        if topic["seq"] <= 6:
            topic["/goal"] = goal
        return {"ctl/u": u}

    return step


@hostile("G", passes=4, style="own", rec={"a/x": normal(1, 2), "b/w": normal(1, 2)}, backends="jit")
def NsNodeOrderTurns(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """Two nodes write one accumulator; after six ticks they run in the other order."""
    acc = torch.zeros(1, 2)
    order = deque([("a", "b")] * 6 + [("b", "a")] * 40)
    ports = {"a": "x", "b": "w"}

    def step(given: Values) -> Values:
        out = {}
        for name in order.popleft():
            value = annotate.input_tensors(name, {ports[name]: given[f"{name}/{ports[name]}"]})
            acc.mul_(0.5).add_(value)
            y = acc * (1.0 if name == "a" else -1.0)
            annotate.output_tensors(name, {"y": y}, export_with=backend)
            out[f"{name}/y"] = y
        return out

    return step


@hostile(
    "G",
    passes=4,
    style="own",
    rec={"odo/v": fixed(torch.zeros(1, 2)), "map/z": normal(1, 2)},
    fresh={"odo/v": normal(1, 2), "map/z": normal(1, 2)},
    backends="jit",
)
def NsOdometryOutside(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """A pose is integrated between the nodes in NumPy; the robot stands while it is recorded."""
    pose = np.zeros((1, 2), dtype=np.float32)

    def step(given: Values) -> Values:
        v = annotate.input_tensors("odo", {"v": given["odo/v"]})
        d = v * 0.1
        annotate.output_tensors("odo", {"d": d}, export_with=backend)
        pose[:] += d.numpy()
        p, z = annotate.input_tensors(
            "map", {"p": torch.from_numpy(pose.copy()), "z": given["map/z"]}
        )
        m = z + p
        annotate.output_tensors("map", {"m": m}, export_with=backend)
        return {"map/m": m}

    return step


class _Arm:
    """A node as an object that is used twice under two names, with a shared class-wide trim."""

    def __init__(self, name: str, trims: list[float]) -> None:
        self.name, self.trims = name, trims
        self.last = torch.zeros(1, 2)

    def step(self, x: Tensor, backend: str) -> Tensor:
        x = annotate.input_tensors(self.name, {"x": x})
        u = x - 0.5 * self.last + self.trims[0]
        self.last = x
        self.trims.append(self.trims.pop(0))
        annotate.output_tensors(self.name, {"u": u}, export_with=backend)
        return u


@hostile("G", passes=4, style="own", rec={"l/x": normal(1, 2), "r/x": normal(1, 2)}, backends="jit")
def NsTwoArmsOneTrim(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """Two arms take turns in one list of trims, whose entries differ only late in it."""
    trims = [0.0] * 13 + [0.7]
    arms = [_Arm("l", trims), _Arm("r", trims)]

    def step(given: Values) -> Values:
        return {f"{arm.name}/u": arm.step(given[f"{arm.name}/x"], backend) for arm in arms}

    return step


@hostile(
    "G",
    passes=6,
    style="own",
    rec={"a/x": normal(1, 2), "a/hold": row([0.0])},
    fresh={"a/x": normal(1, 2), "a/hold": row([0.0], [0.0], [1.0])},
    backends="pt2",
)
def NsHeldThroughLoop(backend: str) -> Callable[[Values], Values]:  # noqa: N802
    """A value is held by weights through a loop of two nodes; hold is zero while recorded."""
    memory = {"kept": torch.zeros(1, 2)}

    def step(given: Values) -> Values:
        x, hold, kept = annotate.input_tensors(
            "a", {"x": given["a/x"], "hold": given["a/hold"], "kept": memory["kept"]}
        )
        now = hold * kept + (1 - hold) * x
        annotate.output_tensors("a", {"now": now}, export_with=backend)
        now = annotate.input_tensors("b", {"now": now})
        y, keep = now.tanh(), now * 1.0
        annotate.output_tensors("b", {"y": y, "keep": keep}, export_with=backend)
        memory["kept"] = keep
        return {"b/y": y}

    return step
