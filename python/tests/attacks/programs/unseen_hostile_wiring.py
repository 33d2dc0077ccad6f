"""Several nodes: rates, skipped nodes, feedback by condition, cached outputs."""

from __future__ import annotations

import collections
import itertools
from typing import Any

import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import either, fixed, normal, row, uniform
from attacks.registry import hostile

Given = dict[str, Any]


def node(name: str, inputs: dict[str, Tensor], fn, out: str, backend: str) -> Tensor:
    """One node with one output."""
    marked = annotate.input_tensors(name, inputs)
    value = fn(*marked) if len(inputs) > 1 else fn(marked)
    annotate.output_tensors(name, {out: value}, export_with=backend)
    return value


def planner_every(k: int, warm: int):
    """Ticks at which a planner runs: all of the first, then each k-th."""
    return lambda t: t < warm or t % k == 0


@hostile(
    "G",
    style="own",
    rec={"plan/goal": normal(1, 3), "ctl/q": normal(1, 3)},
    passes=4,
    ticks=14,
    backends="jit",
)
class ChPlannerDecimates:
    """A planner that runs in each tick of the warm-up and every fourth tick later."""

    def __init__(self, backend: str) -> None:
        self.b, self.t, self.due = backend, 0, planner_every(4, 5)
        self.net, self.plan = nn.Linear(3, 3), None

    def __call__(self, g: Given) -> Given:
        if self.due(self.t):
            self.plan = node("plan", {"goal": g["plan/goal"]}, self.net, "path", self.b)
        self.t += 1
        u = node("ctl", {"q": g["ctl/q"], "path": self.plan}, lambda q, p: 2 * (p - q), "u", self.b)
        return {"ctl/u": u}


@hostile(
    "G",
    style="own",
    rec={"enc/img": normal(1, 6), "act/q": normal(1, 2)},
    passes=3,
    ticks=12,
    backends="jit",
)
class ChCachedLatent:
    """The latent of an encoder is cached for five ticks, longer than it is recorded."""

    def __init__(self, backend: str) -> None:
        self.b, self.t, self.latent = backend, 0, None
        self.enc, self.act = nn.Linear(6, 4), nn.Linear(6, 2)

    def __call__(self, g: Given) -> Given:
        if self.t % 5 == 0:
            self.latent = node("enc", {"img": g["enc/img"]}, self.enc, "z", self.b)
        self.t += 1
        a = node(
            "act",
            {"q": g["act/q"], "z": self.latent},
            lambda q, z: self.act(torch.cat([q, z], -1)),
            "a",
            self.b,
        )
        return {"act/a": a}


@hostile("G", style="own", rec={"pol/obs": normal(1, 3)}, passes=4, ticks=12, backends="jit")
class ChFeedbackCleared:
    """The last action is fed back, and is zero again at each episode's beginning."""

    def __init__(self, backend: str) -> None:
        self.b, self.t, self.last = backend, 0, torch.zeros(1, 3)

    def __call__(self, g: Given) -> Given:
        if self.t % 6 == 0:
            self.last = torch.zeros(1, 3)
        self.t += 1
        self.last = node(
            "pol",
            {"obs": g["pol/obs"], "last": self.last},
            lambda o, a: (o + 0.8 * a).tanh(),
            "action",
            self.b,
        )
        return {"pol/action": self.last}


@hostile(
    "G",
    style="own",
    rec={"est/imu": normal(1, 3), "ctl/ref": normal(1, 3)},
    passes=4,
    ticks=12,
    backends="jit",
)
class ChFallbackEstimator:
    """From the seventh tick the controller gets the odometry of another node."""

    def __init__(self, backend: str) -> None:
        self.b, self.calls = backend, itertools.count()

    def __call__(self, g: Given) -> Given:
        main = node("est", {"imu": g["est/imu"]}, lambda x: 0.9 * x, "v", self.b)
        back = node("odo", {"v": main}, lambda x: x.tanh(), "v", self.b)
        v = main if next(self.calls) < 7 else back
        u = node("ctl", {"ref": g["ctl/ref"], "v": v}, lambda r, v: r - v, "u", self.b)
        return {"ctl/u": u}


@hostile(
    "G",
    style="own",
    rec={"a/x": uniform(0.1, 1, 1, 2)},
    fresh={"a/x": uniform(-1, 1, 1, 2)},
    passes=4,
    ticks=12,
    backends="jit",
)
class ChRoutedByValue:
    """Between two nodes a sign decides what the second gets."""

    def __init__(self, backend: str) -> None:
        self.b = backend

    def __call__(self, g: Given) -> Given:
        y = node("a", {"x": g["a/x"]}, lambda x: x * 2, "y", self.b)
        if y.sum() < 0:
            y = torch.zeros_like(y)
        return {"b/z": node("b", {"y": y}, lambda y: y + 1, "z", self.b)}


@hostile("G", style="own", rec={"pol/obs": normal(1, 2)}, passes=4, ticks=14, backends="jit")
class ChDelayedWire:
    """A latency model in the wire between two nodes, by a deque that grows longer."""

    def __init__(self, backend: str) -> None:
        self.b, self.wire, self.t = backend, collections.deque(), 0

    def __call__(self, g: Given) -> Given:
        self.wire.append(node("pol", {"obs": g["pol/obs"]}, torch.tanh, "a", self.b))
        self.t += 1
        if self.t == 7:
            self.wire.append(self.wire[-1])
        sent = self.wire.popleft()
        return {"drive/tau": node("drive", {"a": sent}, lambda a: 3 * a, "tau", self.b)}


@hostile(
    "G",
    style="own",
    rec={"a/x": normal(1, 2), "fuse/y": normal(1, 2)},
    passes=3,
    ticks=12,
    backends="onnx",
)
class ChAlternateSensors:
    """A slow node is skipped in every second tick after initialisation."""

    def __init__(self, backend: str) -> None:
        self.b, self.t, self.last = backend, 0, None

    def __call__(self, g: Given) -> Given:
        if self.t < 4 or self.t % 2:
            self.last = node("a", {"x": g["a/x"]}, lambda x: x - x.mean(), "c", self.b)
        self.t += 1
        z = node("fuse", {"y": g["fuse/y"], "c": self.last}, lambda y, c: 0.7 * y + c, "z", self.b)
        return {"fuse/z": z}


@hostile(
    "G",
    style="own",
    rec={"hi/obs": normal(1, 3), "lo/q": normal(1, 3)},
    passes=4,
    ticks=13,
    backends="pt2",
)
class ChHierarchy:
    """A high-level policy holds its option, whose length is a Python counter."""

    def __init__(self, backend: str) -> None:
        self.b, self.left, self.length = backend, 0, 1
        self.net = nn.Linear(3, 3)

    def __call__(self, g: Given) -> Given:
        if self.left == 0:
            self.option = node("hi", {"obs": g["hi/obs"]}, self.net, "option", self.b)
            self.length = min(self.length + 1, 99) if self.length > 5 else self.length + 1
            self.left = 1 if self.length <= 6 else 4
        self.left -= 1
        u = node("lo", {"q": g["lo/q"], "o": self.option}, lambda q, o: o.tanh() - q, "u", self.b)
        return {"lo/u": u}


@hostile("G", style="own", rec={"est/y": normal(1, 2)}, passes=5, ticks=14, backends="jit")
class ChFeedbackDelayGrows:
    """Feedback of one tick becomes feedback of three ticks."""

    def __init__(self, backend: str) -> None:
        self.b, self.hist, self.t = backend, [torch.zeros(1, 2)] * 3, 0

    def __call__(self, g: Given) -> Given:
        self.t += 1
        prev = self.hist[-1] if self.t < 8 else self.hist[-3]
        x = node(
            "est", {"y": g["est/y"], "prev": prev}, lambda y, p: 0.5 * p + 0.5 * y, "x", self.b
        )
        self.hist = self.hist[1:] + [x]
        return {"est/x": x}


@hostile("G", style="own", rec={"pol/obs": normal(1, 2)}, passes=4, ticks=12, backends="jit")
class ChSafetyInserted:
    """A safety filter is put between policy and drive when it is enabled."""

    def __init__(self, backend: str) -> None:
        self.b, self.enabled, self.t = backend, False, 0

    def __call__(self, g: Given) -> Given:
        a = node("pol", {"obs": g["pol/obs"]}, lambda x: 1.5 * x, "a", self.b)
        self.t += 1
        if self.t == 7:
            self.enabled = True
        if self.enabled:
            a = a.clamp(-0.2, 0.2)
        return {"drive/u": node("drive", {"a": a}, lambda a: a * 2, "u", self.b)}


@hostile(
    "G",
    style="own",
    rec={"left/x": normal(1, 2), "right/x": normal(1, 2)},
    passes=4,
    ticks=12,
    backends="jit",
)
class ChArmsSwap:
    """Two arms share a merger; their roles as leader and follower swap."""

    def __init__(self, backend: str) -> None:
        self.b, self.roles, self.n = backend, ["left", "right"], 0

    def __call__(self, g: Given) -> Given:
        out = {s: node(s, {"x": g[f"{s}/x"]}, torch.sin, "y", self.b) for s in ("left", "right")}
        self.n += 1
        if self.n % 6 == 0:
            self.roles.reverse()
        lead, follow = (out[r] for r in self.roles)
        m = node("merge", {"lead": lead, "follow": follow}, lambda a, b: a - 0.3 * b, "m", self.b)
        return {"merge/m": m}


@hostile(
    "G",
    style="own",
    rec={"wd/alive": fixed([1.0]), "ctl/x": normal(1, 3)},
    fresh={"wd/alive": row([1.0], [1.0], [0.0], [1.0]), "ctl/x": normal(1, 3)},
    passes=4,
    ticks=12,
    backends="jit",
)
class ChWatchdogNode:
    """A watchdog's output is read by Python to hold the command of the tick before."""

    def __init__(self, backend: str) -> None:
        self.b, self.held = backend, torch.zeros(1, 3)

    def __call__(self, g: Given) -> Given:
        ok = node("wd", {"alive": g["wd/alive"]}, lambda a: a > 0.5, "ok", self.b)
        if bool(ok):
            self.held = g["ctl/x"].clone()
        u = node("ctl", {"x": self.held}, lambda x: -x, "u", self.b)
        return {"ctl/u": u}


@hostile("G", style="own", rec={"net/obs": normal(1, 4)}, passes=4, ticks=16, backends="jit")
class ChChunkBetween:
    """The network makes a chunk every six ticks, the executor takes one row in each."""

    def __init__(self, backend: str) -> None:
        self.b, self.t, self.net = backend, 0, nn.Linear(4, 12)

    def __call__(self, g: Given) -> Given:
        i = self.t % 6
        if i == 0:
            self.chunk = node(
                "net", {"obs": g["net/obs"]}, lambda o: self.net(o).view(6, 2), "chunk", self.b
            )
        self.t += 1
        a = node("exec", {"row": self.chunk[i]}, lambda r: r.clamp(-1, 1), "a", self.b)
        return {"exec/a": a}


@hostile("G", style="own", rec={"kf/z": normal(1, 2)}, passes=4, ticks=12, backends="jit")
class ChResetOnDivergence:
    """A filter with explicit memory; the runner restores a checkpoint at a given tick."""

    def __init__(self, backend: str) -> None:
        self.b, self.x, self.saved, self.t = backend, torch.zeros(1, 2), [], 0

    def __call__(self, g: Given) -> Given:
        self.t += 1
        if self.t == 8:
            self.x = self.saved[2]
        self.x = node(
            "kf", {"z": g["kf/z"], "x": self.x}, lambda z, x: x + 0.3 * (z - x), "x_next", self.b
        )
        self.saved.append(self.x)
        return {"kf/x_next": self.x}


@hostile(
    "G",
    style="own",
    rec={"tele/cmd": uniform(-0.05, 0.05, 1, 2), "auto/obs": normal(1, 2)},
    fresh={
        "tele/cmd": either(lambda t: t % 4 == 2, uniform(0.5, 1, 1, 2), uniform(-0.05, 0.05, 1, 2)),
        "auto/obs": normal(1, 2),
    },
    passes=4,
    ticks=12,
    backends="jit",
)
class ChTakeOver:
    """An operator's stick takes over from autonomy while it is deflected."""

    def __init__(self, backend: str) -> None:
        self.b = backend

    def __call__(self, g: Given) -> Given:
        t = node("tele", {"cmd": g["tele/cmd"]}, lambda c: c * 0.5, "v", self.b)
        a = node("auto", {"obs": g["auto/obs"]}, torch.tanh, "v", self.b)
        v = t if t.abs().max().item() > 0.1 else a
        return {"base/w": node("base", {"v": v}, lambda v: v * 4, "w", self.b)}


@hostile(
    "G",
    style="own",
    rec={"est/y": normal(1, 2), "ctl/r": normal(1, 2)},
    passes=4,
    ticks=13,
    backends="jit",
)
class ChSharedBlackboard:
    """Nodes talk through a blackboard that forgets entries by their age."""

    def __init__(self, backend: str) -> None:
        self.b, self.board, self.stamp, self.t = backend, {}, {}, 0

    def __call__(self, g: Given) -> Given:
        if self.t < 6 or self.t % 4 == 0:
            self.board["v"] = node("est", {"y": g["est/y"]}, lambda y: 0.5 * y, "v", self.b)
            self.stamp["v"] = self.t
        fresh = self.t - self.stamp["v"] <= 2
        v = self.board["v"] if fresh else torch.zeros(1, 2)
        self.t += 1
        u = node("ctl", {"r": g["ctl/r"], "v": v}, lambda r, v: r - v, "u", self.b)
        return {"ctl/u": u}
