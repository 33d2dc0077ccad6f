"""Outputs and wiring: aliases, nests, glue between nodes, nodes that run twice, not at all, or in another order."""

from __future__ import annotations

from collections import deque, namedtuple

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import array, by_tick, fixed, flags, integers, normal, row, uniform
from attacks.registry import hostile


@hostile("G", passes=4, rec={"x": normal(1, 3)}, backends="onnx")
def NdSameTwice(x: Tensor) -> dict:
    """One tensor under three names, one of them the input itself."""
    y = x * 2
    return {"a": y, "b": y, "nest": {"c": [y, x], "d": y.view(3)}}


@hostile("G", passes=4, rec={"x": normal(1, 3)}, backends="onnx")
class NdOutputIsState:
    """An output is the state itself, another is a view of it, a third what it was."""

    def __init__(self) -> None:
        self.h = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> dict:
        before = self.h.clone()
        self.h.mul_(0.5).add_(x)
        return {"h": self.h, "first": self.h[:, :1], "before": before}


@hostile("G", passes=3, rec={"x": normal(1, 3)}, style="method", backends="jit")
class NdInputOverwritten:
    """The node writes into its input, and gives it back."""

    def step(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.sum(-1)
        x.clamp_(-0.5, 0.5)
        x[:, 0] = y
        return x, y


@hostile("G", passes=5, rec={"x": normal(1, 3)}, backends="jit")
class NdConstantOutput:
    """Outputs that depend on no input: a constant, a number that NumPy made, and an empty one."""

    def __call__(self, x: Tensor) -> dict:
        return {
            "y": x + 1,
            "kp": torch.full((3,), 20.0),
            "rate": torch.tensor(np.float32(50.0)),
            "none": x[:, 3:],
        }


_Out = namedtuple("_Out", ["action", "aux"])  # noqa: PYI024


@hostile("G", passes=6, rec={"x": normal(1, 3)}, fresh={"x": normal(1, 3, s=2.0)}, backends="jit")
class NdOrderOfDict:
    """Outputs are put into the dict in an order that depends on their size."""

    def __init__(self) -> None:
        self.w = torch.randn(3, 2)

    def __call__(self, x: Tensor) -> dict:
        out = _Out(x @ self.w, x.sum(-1, keepdim=True))
        names = sorted(out._fields, key=lambda f: float(getattr(out, f).abs().max()))
        return {name: getattr(out, name) for name in names}


@hostile(
    "G",
    passes=3,
    style="own",
    rec={"est/imu": uniform(0.1, 1.0, 1, 3), "ctl/goal": normal(1, 3)},
    fresh={"est/imu": normal(1, 3), "ctl/goal": normal(1, 3)},
    backends="jit",
)
class NdGlueBranch:
    """Glue between two nodes decides what the second is given."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __call__(self, given: dict) -> dict:
        imu = annotate.input_tensors("est", {"imu": given["est/imu"]})
        state, safe = torch.cumsum(imu, -1), imu * 0.0
        annotate.output_tensors("est", {"state": state, "safe": safe}, export_with=self.backend)
        chosen = state if float(state.min()) > 0 else safe
        state, goal = annotate.input_tensors("ctl", {"state": chosen, "goal": given["ctl/goal"]})
        action = goal - state
        annotate.output_tensors("ctl", {"action": action}, export_with=self.backend)
        return {"ctl/action": action}


@hostile(
    "G",
    passes=8,
    style="own",
    rec={"est/imu": uniform(0.1, 1.0, 1, 3)},
    fresh={"est/imu": normal(1, 3)},
    backends="pt2",
)
class NdGlueComputes:
    """Glue clamps and scales in between, outside of any node; the clamp does nothing while recorded."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __call__(self, given: dict) -> dict:
        imu = annotate.input_tensors("est", {"imu": given["est/imu"]})
        state = imu * 3.0
        annotate.output_tensors("est", {"state": state}, export_with=self.backend)
        state = annotate.input_tensors("ctl", {"state": torch.clamp(state, min=0.0)})
        action = state + 1.0
        annotate.output_tensors("ctl", {"action": action}, export_with=self.backend)
        return {"ctl/action": action}


@hostile(
    "G",
    passes=4,
    style="own",
    rec={"est/imu": uniform(0.1, 1.0, 1, 3)},
    fresh={"est/imu": normal(1, 3)},
    backends="onnx",
)
class NdGlueInPlace:
    """Glue writes into the tensor between two nodes; nothing changes while recorded."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __call__(self, given: dict) -> dict:
        imu = annotate.input_tensors("est", {"imu": given["est/imu"]})
        state = imu * 3.0
        annotate.output_tensors("est", {"state": state}, export_with=self.backend)
        state.clamp_(min=0.0)
        state = annotate.input_tensors("ctl", {"state": state})
        action = state + 1.0
        annotate.output_tensors("ctl", {"action": action}, export_with=self.backend)
        return {"ctl/action": action}


@hostile(
    "G", passes=5, style="own", rec={"slow/x": normal(1, 2), "fast/x": normal(1, 2)}, backends="jit"
)
class NdEverySecond:
    """A slow node runs in every second tick; the fast one is given what it last said."""

    def __init__(self, backend: str) -> None:
        self.backend, self.tick, self.plan = backend, 0, None

    def __call__(self, given: dict) -> dict:
        if self.tick % 2 == 0:
            x = annotate.input_tensors("slow", {"x": given["slow/x"]})
            self.plan = torch.tanh(x)
            annotate.output_tensors("slow", {"plan": self.plan}, export_with=self.backend)
        self.tick += 1
        x, plan = annotate.input_tensors("fast", {"x": given["fast/x"], "plan": self.plan})
        action = x + plan
        annotate.output_tensors("fast", {"action": action}, export_with=self.backend)
        return {"fast/action": action}


@hostile(
    "G",
    passes=6,
    style="own",
    rec={"gate/x": uniform(0.1, 1.0, 1, 2), "act/x": normal(1, 2)},
    fresh={"gate/x": normal(1, 2), "act/x": normal(1, 2)},
    backends="jit",
)
class NdSkippedByData:
    """A node does not run when another says so; the last action is then held."""

    def __init__(self, backend: str) -> None:
        self.backend, self.action = backend, torch.zeros(1, 2)

    def __call__(self, given: dict) -> dict:
        x = annotate.input_tensors("gate", {"x": given["gate/x"]})
        go = x.sum() > 0
        annotate.output_tensors("gate", {"go": go}, export_with=self.backend)
        if go:
            x = annotate.input_tensors("act", {"x": given["act/x"]})
            self.action = x * 2
            annotate.output_tensors("act", {"y": self.action}, export_with=self.backend)
        return {"gate/go": go, "act/y": self.action}


@hostile(
    "G", passes=4, style="own", rec={"leg/q": normal(1, 2), "body/v": normal(1, 2)}, backends="jit"
)
class NdSharedAttribute:
    """Two nodes speak through an attribute, not through ports."""

    def __init__(self, backend: str) -> None:
        self.backend, self.load = backend, torch.ones(1, 2)

    def __call__(self, given: dict) -> dict:
        q = annotate.input_tensors("leg", {"q": given["leg/q"]})
        torque = q * self.load
        annotate.output_tensors("leg", {"torque": torque}, export_with=self.backend)
        v = annotate.input_tensors("body", {"v": given["body/v"]})
        self.load = 0.5 * self.load + 0.5 * v
        power = v.square()
        annotate.output_tensors("body", {"power": power}, export_with=self.backend)
        return {"leg/torque": torque, "body/power": power}


@hostile("G", passes=6, style="own", rec={"a/x": normal(1, 2), "b/x": normal(1, 2)}, backends="jit")
class NdOrderAlternates:
    """The order of two nodes that share a filter alternates."""

    def __init__(self, backend: str) -> None:
        self.backend, self.names, self.level = backend, deque(["a", "b"]), torch.zeros(1, 2)

    def _run(self, name: str, x: Tensor) -> Tensor:
        x = annotate.input_tensors(name, {"x": x})
        self.level = 0.5 * self.level + x
        y = self.level * 1.0
        annotate.output_tensors(name, {"y": y}, export_with=self.backend)
        return y

    def __call__(self, given: dict) -> dict:
        found = {f"{name}/y": self._run(name, given[f"{name}/x"]) for name in list(self.names)}
        self.names.rotate(1)
        return found


@hostile("G", passes=8, style="own", rec={"leg/q": normal(1, 2)}, backends="jit")
class NdTwicePerTick:
    """A node is called twice in a tick, the second time with its own answer; its filter moves twice."""

    def __init__(self, backend: str) -> None:
        self.backend, self.level = backend, torch.zeros(1, 2)

    def _leg(self, q: Tensor) -> Tensor:
        q = annotate.input_tensors("leg", {"q": q})
        self.level = 0.9 * self.level + 0.1 * q
        y = q - self.level
        annotate.output_tensors("leg", {"y": y}, export_with=self.backend)
        return y

    def __call__(self, given: dict) -> dict:
        return {"leg/y": self._leg(self._leg(given["leg/q"]))}


@hostile("G", passes=7, style="own", rec={"pol/x": normal(1, 2)}, backends="jit")
class NdDelayedFeedback:
    """An action comes back after two ticks, through a deque that begins with something else than zeros."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.past = deque([torch.full((1, 2), 0.3), torch.full((1, 2), -0.2)], maxlen=2)

    def __call__(self, given: dict) -> dict:
        x, last = annotate.input_tensors("pol", {"x": given["pol/x"], "last": self.past[0]})
        action, value = torch.tanh(x + last), (x * last).sum(-1)
        annotate.output_tensors("pol", {"action": action, "value": value}, export_with=self.backend)
        self.past.append(action)
        return {"pol/value": value}


@hostile(
    "G",
    passes=5,
    style="own",
    rec={"pol/x": uniform(-0.3, 0.3, 1, 2)},
    fresh={"pol/x": normal(1, 2, s=3.0)},
    backends="jit",
)
class NdFeedbackReset:
    """The fed-back state is put to zero by the glue when it gets large, which it did not."""

    def __init__(self, backend: str) -> None:
        self.backend, self.h = backend, torch.zeros(1, 2)

    def __call__(self, given: dict) -> dict:
        x, h = annotate.input_tensors("pol", {"x": given["pol/x"], "h": self.h})
        new = 0.8 * h + x
        action = new * 2.0
        annotate.output_tensors("pol", {"h_new": new, "action": action}, export_with=self.backend)
        self.h = new if new.norm() < 2.0 else torch.zeros(1, 2)
        return {"pol/action": action}


@hostile(
    "G",
    passes=5,
    style="own",
    rec={"left/x": normal(1, 2), "right/x": normal(1, 2)},
    backends="jit",
)
class NdSharedModule:
    """Two nodes share a module with a buffer that both move."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.norm = nn.BatchNorm1d(2, momentum=0.5)
        self.norm.eval()
        self.norm.register_buffer("count", torch.zeros(1))

    def _side(self, name: str, x: Tensor) -> Tensor:
        x = annotate.input_tensors(name, {"x": x})
        self.norm.count.add_(x.abs().sum())
        y = self.norm(x) / (1.0 + self.norm.count)
        annotate.output_tensors(name, {"y": y}, export_with=self.backend)
        return y

    def __call__(self, given: dict) -> dict:
        return {f"{name}/y": self._side(name, given[f"{name}/x"]) for name in ("left", "right")}


@hostile(
    "G",
    passes=5,
    style="own",
    rec={"see/img": array(uniform(0.0, 0.4, 2, 3)), "act/cmd": normal(1, 3)},
    fresh={"see/img": array(uniform(0.0, 2.0, 2, 3)), "act/cmd": normal(1, 3)},
    backends="jit",
)
class NdGlueThroughMessage:
    """A message of bytes lies between two nodes: uint8, scaled, clipped."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __call__(self, given: dict) -> dict:
        img = annotate.input_tensors("see", {"img": given["see/img"]})
        heat = img.mean(axis=0, keepdims=True)
        annotate.output_tensors("see", {"heat": heat}, export_with=self.backend)
        message = np.clip(np.asarray(heat) * 255, 0, 255).astype(np.uint8).tobytes()
        back = torch.from_numpy(np.frombuffer(message, np.uint8).copy()).float().reshape(1, 3) / 255
        back, cmd = annotate.input_tensors("act", {"heat": back, "cmd": given["act/cmd"]})
        y = back * cmd
        annotate.output_tensors("act", {"y": y}, export_with=self.backend)
        return {"act/y": y}


@hostile(
    "G",
    passes=3,
    style="own",
    rec={"m0/x": row([[3.0, 1.0]], [[4.0, 2.0]]), "m1/x": uniform(-1, 0, 1, 2)},
    fresh={"m0/x": normal(1, 2), "m1/x": normal(1, 2)},
    backends="jit",
)
class NdEnsembleBest:
    """Two experts; the glue hands the better one's action to the mixer, by `max` with a key."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __call__(self, given: dict) -> dict:
        found = []
        for name in ("m0", "m1"):
            x = annotate.input_tensors(name, {"x": given[f"{name}/x"]})
            a, value = torch.sin(x), x.sum()
            annotate.output_tensors(name, {"a": a, "value": value}, export_with=self.backend)
            found.append((value, a))
        a = annotate.input_tensors("mix", {"a": max(found, key=lambda pair: pair[0])[1]})
        y = a * 10.0
        annotate.output_tensors("mix", {"y": y}, export_with=self.backend)
        return {"mix/y": y}


@hostile(
    "G",
    passes=4,
    style="own",
    rec={"a/x": by_tick(lambda t: [[0.5 + 0.1 * t, 1.0]])},
    fresh={"a/x": by_tick(lambda t: [[0.5 - 0.3 * t, 1.0]])},
    backends="jit",
)
class NdNodeSpoilsInput:
    """One node cuts its input in place; another is given the same tensor after it."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __call__(self, given: dict) -> dict:
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        y = x * 2
        annotate.output_tensors("a", {"y": y}, export_with=self.backend)
        inner = annotate.input_tensors("b", {"y": y})
        z = inner.relu_() - 1
        annotate.output_tensors("b", {"z": z}, export_with=self.backend)
        inner = annotate.input_tensors("c", {"y": y})
        w = inner + 3
        annotate.output_tensors("c", {"w": w}, export_with=self.backend)
        return {"b/z": z, "c/w": w}


@hostile(
    "G",
    passes=5,
    style="own",
    rec={"pol/x": normal(1, 2), "pol/done": flags(0.0, 1)},
    fresh={"pol/x": normal(1, 2), "pol/done": flags(0.3, 1)},
    backends="jit",
)
class NdResetHook:
    """The runner resets the policy's memory when an episode is done; none was while recorded."""

    def __init__(self, backend: str) -> None:
        self.backend, self.h = backend, torch.zeros(1, 2)

    def reset(self, done: Tensor) -> None:
        self.h[done.nonzero().flatten()] = 0.0

    def __call__(self, given: dict) -> dict:
        x, done = annotate.input_tensors("pol", {"x": given["pol/x"], "done": given["pol/done"]})
        self.h = 0.9 * self.h + x
        y = self.h * 1.0
        annotate.output_tensors("pol", {"y": y}, export_with=self.backend)
        self.reset(done)
        return {"pol/y": y}


@hostile(
    "G",
    passes=5,
    style="own",
    rec={"obs/x": normal(1, 2), "pol/g": fixed([[1.0, 2.0]])},
    fresh={"obs/x": normal(1, 2), "pol/g": normal(1, 2)},
    backends="pt2",
)
class NdLateInput:
    """A node takes inputs at two places, and the second is one that stood still."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def __call__(self, given: dict) -> dict:
        x = annotate.input_tensors("obs", {"x": given["obs/x"]})
        f = x / (1 + x.abs())
        annotate.output_tensors("obs", {"f": f}, export_with=self.backend)
        f = annotate.input_tensors("pol", {"f": f})
        h = torch.tanh(f * 2)
        g = annotate.input_tensors("pol", {"g": given["pol/g"]})
        y = h * g
        annotate.output_tensors("pol", {"y": y}, export_with=self.backend)
        return {"pol/y": y}


@hostile(
    "G",
    passes=6,
    style="own",
    rec={"pol/x": uniform(0.1, 1.0, 1, 2), "pol/k": integers(0, 1, 1)},
    fresh={"pol/x": normal(1, 2), "pol/k": integers(0, 2, 1)},
    backends="jit",
)
class NdMethodWithOption:
    """A decorated method gets an option that the caller makes from data."""

    def __init__(self, backend: str) -> None:
        def policy(x, k, scale):  # noqa: ANN001, ANN202
            y = x * scale + k
            return y

        self.policy = annotate.method(node_name="pol", export_with=backend)(policy)

    def __call__(self, given: dict) -> dict:
        scale = (1.0, -2.0)[int(given["pol/k"])]
        return {"pol/y": self.policy(given["pol/x"], given["pol/k"], scale)}


@hostile(
    "G",
    passes=6,
    style="own",
    rec={"lo/x": uniform(0.1, 1.0, 1, 2)},
    fresh={"lo/x": normal(1, 2)},
    backends="onnx",
)
class NdStaleBuffer:
    """A node's output is written into a buffer of the glue only where it is positive; the next node reads the buffer."""

    def __init__(self, backend: str) -> None:
        self.backend, self.buffer = backend, torch.zeros(1, 2)

    def __call__(self, given: dict) -> dict:
        x = annotate.input_tensors("lo", {"x": given["lo/x"]})
        y = x * 2
        annotate.output_tensors("lo", {"y": y}, export_with=self.backend)
        self.buffer[y > 0] = y[y > 0]
        b = annotate.input_tensors("hi", {"b": self.buffer})
        z = b + 1
        annotate.output_tensors("hi", {"z": z}, export_with=self.backend)
        return {"hi/z": z}
