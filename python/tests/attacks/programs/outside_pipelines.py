"""More nodes: transport between them, nested marks, nodes that start late or stop."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import by_tick, normal, uniform
from attacks.registry import ALL, clean, hostile


def _carried(how):
    """Two nodes, and something that carries the value from one to the other."""

    def build(backend: str):
        net = nn.Linear(3, 2)

        def step(given):
            x = annotate.input_tensors("a", {"x": given["a/x"]})
            y = x.sin()
            annotate.output_tensors("a", {"y": y}, export_with=backend)
            z = annotate.input_tensors("b", {"z": how(y)})
            u = net(z)
            annotate.output_tensors("b", {"u": u}, export_with=backend)
            return {"b/u": u}

        return step

    return build


_ONE = {"a/x": normal(1, 3)}
clean("G", style="own", rec=_ONE, passes=3, name="outside_carried_clone")(
    _carried(lambda y: y.detach().clone())
)
clean("G", style="own", rec=_ONE, passes=3, name="outside_carried_to")(
    _carried(lambda y: y.to(torch.float32).cpu())
)
clean("G", style="own", rec=_ONE, passes=3, name="outside_carried_contiguous")(
    _carried(lambda y: y.contiguous())
)
hostile("G", style="own", rec=_ONE, passes=3, name="outside_carried_deepcopy")(
    _carried(copy.deepcopy)
)
hostile("G", style="own", rec=_ONE, passes=3, name="outside_carried_array")(
    _carried(lambda y: torch.from_numpy(y.numpy().copy()))
)
hostile("G", style="own", rec=_ONE, passes=3, name="outside_carried_flip")(
    _carried(lambda y: y.flip(-1))
)
hostile("G", style="own", rec=_ONE, passes=3, name="outside_carried_list")(
    _carried(lambda y: torch.tensor(y.tolist()))
)
hostile("G", style="own", rec=_ONE, passes=3, name="outside_carried_half")(
    _carried(lambda y: y.half().float())
)


@hostile("G", style="own", rec={"a/x": normal(1, 4)}, passes=4)
def outside_part_of_output(backend: str):
    """The second node gets two of four columns."""

    def step(given):
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        y = x * 2
        annotate.output_tensors("a", {"y": y}, export_with=backend)
        legs = annotate.input_tensors("b", {"legs": y[:, 1:3]})
        z = legs + 1
        annotate.output_tensors("b", {"z": z}, export_with=backend)
        return {"a/y": y, "b/z": z}

    return step


@hostile("G", style="own", rec={"a/x": normal(1, 3)}, passes=5)
def outside_starts_late(backend: str):
    """The second node has no input in the first two ticks, and gives zeros then."""
    n = [0]

    def step(given):
        n[0] += 1
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        y = x * 2
        annotate.output_tensors("a", {"y": y}, export_with=backend)
        if n[0] <= 2:
            return {"a/y": y, "b/z": torch.zeros(1, 3)}
        y_in = annotate.input_tensors("b", {"y": y})
        z = y_in + 1
        annotate.output_tensors("b", {"z": z}, export_with=backend)
        return {"a/y": y, "b/z": z}

    return step


@hostile("G", style="own", rec={"a/x": normal(1, 3)}, passes=5)
def outside_stops_early(backend: str):
    """The second node ends after three ticks; its last output is used on."""
    n, held = [0], [torch.zeros(1, 3)]

    def step(given):
        n[0] += 1
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        y = x * 2
        annotate.output_tensors("a", {"y": y}, export_with=backend)
        if n[0] <= 3:
            y_in = annotate.input_tensors("b", {"y": y})
            held[0] = y_in + 1
            annotate.output_tensors("b", {"z": held[0]}, export_with=backend)
        return {"a/y": y, "b/z": held[0]}

    return step


@hostile("G", style="own", rec={"outer/x": normal(1, 3)}, passes=4)
def outside_nested_nodes(backend: str):
    """A node inside of a node."""
    net = nn.Linear(3, 3)

    def step(given):
        x = annotate.input_tensors("outer", {"x": given["outer/x"]})
        h = x * 2
        inner = annotate.input_tensors("inner", {"h": h})
        y = net(inner)
        annotate.output_tensors("inner", {"y": y}, export_with=backend)
        z = y.tanh() + x
        annotate.output_tensors("outer", {"z": z}, export_with=backend)
        return {"outer/z": z}

    return step


@hostile("G", style="own", rec={"n/x": normal(1, 3)}, passes=4)
def outside_one_tensor_two_inputs(backend: str):
    """One tensor is given as two inputs, and one of them written."""

    def step(given):
        x = given["n/x"]
        a, b = annotate.input_tensors("n", {"x": x, "b": x})
        a.mul_(2.0)
        y = a + b
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        return {"n/y": y}

    return step


@hostile(
    "G",
    style="own",
    rec={"n/x": normal(1, 3), "n/speed": by_tick(lambda t: 0.5 + 0.1 * t)},
    passes=4,
)
def outside_number_as_input(backend: str):
    """A Python number that changes is used beside the marked input."""

    def step(given):
        speed = float(given["n/speed"])
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        y = x * speed
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        return {"n/y": y}

    return step


@hostile("G", rec={"x": uniform(0.0, 1.0, 1, 2)}, fresh={"x": uniform(0.0, 40.0, 1, 2)}, passes=4)
def outside_alarm_never_rings(x: Tensor) -> Tensor:
    """An output that is zero while recorded."""
    return torch.where(x > 10.0, x - 10.0, torch.zeros_like(x))


@hostile("G", style="own", rec={"a/x": normal(1, 2)}, passes=4, backends=ALL)
def outside_crossed_feedback(backend: str):
    """Two outputs come back crossed, and both begin as the same tensor."""
    zero = torch.zeros(1, 2)
    back = [zero, zero]

    def step(given):
        x, left, right = annotate.input_tensors(
            "a", {"x": given["a/x"], "left": back[0], "right": back[1]}
        )
        p, q = x + 0.5 * left, x.cos() - 0.3 * right
        annotate.output_tensors("a", {"p": p, "q": q}, export_with=backend)
        back[0], back[1] = q, p
        return {"a/p": p, "a/q": q}

    return step


@clean(
    "G",
    style="own",
    rec={"pre/q": normal(1, 4), "pre/cmd": normal(1, 2)},
    passes=4,
    backends=("jit", "onnx"),
)
def outside_nested_values(backend: str):
    """Nested dicts go in and come out, and the next node takes parts of them by name."""
    net = nn.Linear(6, 2)

    def step(given):
        q, cmd = annotate.input_tensors("pre", {"q": given["pre/q"], "cmd": given["pre/cmd"]})
        obs = {"body": q - 0.1, "command": cmd * 2}
        annotate.output_tensors("pre", obs, export_with=backend)
        body, command = annotate.input_tensors(
            "policy", {"body": obs["body"], "command": obs["command"]}
        )
        u = net(torch.cat([body, command], -1))
        annotate.output_tensors("policy", {"u": u}, export_with=backend)
        return {"policy/u": u}

    return step


@clean("G", style="own", rec={"imu/w": normal(3), "leg/q": normal(4)}, passes=4)
def outside_fusion_with_states(backend: str):
    """Two estimators with memory, and a third that joins them with a covariance."""
    bias, odom = torch.zeros(3), torch.zeros(3)
    joined, cov = torch.zeros(3), torch.eye(3)
    J = torch.randn(3, 4, generator=torch.Generator().manual_seed(3))

    def step(given):
        nonlocal bias, odom, joined, cov
        w = annotate.input_tensors("imu", {"w": given["imu/w"]})
        rate = w - bias
        bias = bias + 0.01 * rate
        annotate.output_tensors("imu", {"rate": rate}, export_with=backend)
        q = annotate.input_tensors("leg", {"q": given["leg/q"]})
        v = J @ q.sin()
        odom = odom + 0.02 * v
        annotate.output_tensors("leg", {"v": v, "p": odom * 1.0}, export_with=backend)
        rate, v = annotate.input_tensors("fuse", {"rate": rate, "v": v})
        cov = cov + 0.01 * torch.eye(3)
        gain = cov @ torch.linalg.inv(cov + torch.eye(3))
        joined = joined + gain @ (v - joined) + 0.01 * rate
        cov = cov - gain @ cov
        annotate.output_tensors("fuse", {"velocity": joined * 1.0}, export_with=backend)
        return {"fuse/velocity": joined * 1.0, "leg/p": odom * 1.0}

    return step


@clean("G", style="own", rec={"obs/q": normal(1, 2)}, passes=5, backends=("jit", "onnx"))
def outside_default_action(backend: str):
    """The action that comes back begins as a pose, not as zeros."""
    last, net = torch.tensor([[0.3, -0.7]]), nn.Linear(4, 2)

    def step(given):
        nonlocal last
        q, before = annotate.input_tensors("obs", {"q": given["obs/q"], "last_action": last})
        x = torch.cat([q, before], -1)
        annotate.output_tensors("obs", {"x": x}, export_with=backend)
        x = annotate.input_tensors("act", {"x": x})
        u = net(x).tanh()
        annotate.output_tensors("act", {"u": u}, export_with=backend)
        last = u
        return {"act/u": u}

    return step


@clean(
    "G",
    style="own",
    rec={"net/image": uniform(0.0, 1.0, 1, 1, 6, 6), "safe/u_max": uniform(0.5, 1.0, 1, 2)},
    passes=3,
)
def outside_nodes_as_objects(backend: str):
    """A base class of nodes, as people have them in ROS."""

    class Node:
        name = ""

        def spin(self, **given: Tensor) -> Tensor:
            values = annotate.input_tensors(self.name, given)
            out = self.run(*(values if len(given) > 1 else (values,)))
            annotate.output_tensors(self.name, {"out": out}, export_with=backend)
            return out

        def run(self, *values: Tensor) -> Tensor:
            raise NotImplementedError

    class Net(Node):
        name = "net"

        def __init__(self) -> None:
            self.conv = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 2))

        def run(self, image: Tensor) -> Tensor:
            return self.conv(image)

    class Safe(Node):
        name = "safe"

        def run(self, u: Tensor, u_max: Tensor) -> Tensor:
            return torch.maximum(torch.minimum(u, u_max), -u_max)

    net, safe = Net(), Safe()

    def step(given):
        u = net.spin(image=given["net/image"])
        return {"safe/out": safe.spin(u=u, u_max=given["safe/u_max"])}

    return step


@clean("G", style="own", rec={"pre/raw": normal(8)}, passes=3)
def outside_arrays_between_nodes(backend: str):
    """Both nodes work on arrays, and hand one over as it is."""

    def step(given):
        raw = annotate.input_tensors("pre", {"raw": given["pre/raw"].numpy()})
        y = np.tanh(raw).reshape(2, 4)
        annotate.output_tensors("pre", {"y": y}, export_with=backend)
        y = annotate.input_tensors("post", {"y": y})
        z = y.mean(axis=0) * np.float32(2.0)
        annotate.output_tensors("post", {"z": z}, export_with=backend)
        return {"post/z": z}

    return step
