"""Several nodes: wiring, feedback between them, glue, outputs that come back as inputs."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import fixed, normal, uniform
from attacks.registry import ALL, clean, hostile


def _mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


@clean(
    "G",
    style="own",
    rec={"observe/q": normal(1, 4), "observe/cmd": normal(1, 2)},
    backends=ALL,
)
def observe_and_act(backend: str):
    net = _mlp(6, 8, 2)

    def step(given):
        q, cmd = annotate.input_tensors(
            "observe", {"q": given["observe/q"], "cmd": given["observe/cmd"]}
        )
        obs = torch.cat([q * 0.5, cmd], -1)
        annotate.output_tensors("observe", {"obs": obs}, export_with=backend)
        obs = annotate.input_tensors("policy", {"obs": obs})
        action = net(obs)
        annotate.output_tensors("policy", {"action": action}, export_with=backend)
        return {"policy/action": action}

    return step


@clean("G", style="own", rec={"obs/q": normal(1, 3)}, passes=5, in_tests=True)
def last_action_comes_back(backend: str):
    """`last_action` is an input of the next tick and an output of this one."""
    net, last = _mlp(5, 2), torch.zeros(1, 2)

    def step(given):
        nonlocal last
        q, prev = annotate.input_tensors("obs", {"q": given["obs/q"], "last_action": last})
        x = torch.cat([q, prev], -1)
        annotate.output_tensors("obs", {"x": x}, export_with=backend)
        x = annotate.input_tensors("act", {"x": x})
        action = net(x)
        annotate.output_tensors("act", {"action": action}, export_with=backend)
        last = action
        return {"act/action": action}

    return step


@clean("G", style="own", rec={"act/q": normal(1, 3)}, passes=5)
def only_output_is_fed_back(backend: str):
    net, last = _mlp(5, 2), torch.zeros(1, 2)

    def step(given):
        nonlocal last
        q, prev = annotate.input_tensors("act", {"q": given["act/q"], "last_action": last})
        action = net(torch.cat([q, prev], -1))
        annotate.output_tensors("act", {"action": action}, export_with=backend)
        last = action
        return {"act/action": action}

    return step


@clean("G", style="own", rec={"est/z": normal(1, 2)}, passes=4)
def three_stages(backend: str):
    """Estimator with state, policy, filter with state."""
    net = _mlp(2, 6, 2)
    s, f = torch.zeros(1, 2), torch.zeros(1, 2)

    def step(given):
        nonlocal s, f
        z = annotate.input_tensors("est", {"z": given["est/z"]})
        old = annotate.state_tensors("est", {"s": s})
        s = 0.7 * old + 0.3 * z
        annotate.update_state("est", {"s": s})
        e = s * 2
        annotate.output_tensors("est", {"e": e}, export_with=backend)
        e = annotate.input_tensors("policy", {"e": e})
        a = net(e)
        annotate.output_tensors("policy", {"a": a}, export_with="jit")
        a = annotate.input_tensors("filter", {"a": a})
        old = annotate.state_tensors("filter", {"f": f})
        f = 0.5 * old + 0.5 * a
        annotate.update_state("filter", {"f": f})
        u = f.clamp(-1, 1)
        annotate.output_tensors("filter", {"u": u}, export_with=backend)
        return {"filter/u": u}

    return step


@clean("G", style="own", rec={"encode/x": normal(1, 6)}, passes=3)
def methods_in_a_row(backend: str):
    enc, head = _mlp(6, 4), _mlp(4, 2)

    @annotate.method("encode", export_with=backend)
    def encode(x: Tensor) -> Tensor:
        latent = enc(x)
        return latent

    @annotate.method("head", export_with=backend)
    def act(latent: Tensor) -> Tensor:
        action = head(latent) * 0.25
        return action

    return lambda given: {"head/action": act(encode(given["encode/x"]))}


class _Robot:
    """A class whose methods are nodes, with states of its own."""

    def __init__(self) -> None:
        self.net = _mlp(4, 6, 2)
        self.h = torch.zeros(1, 2)

    @annotate.method("observe", export_with="jit")
    def observe(self, q: Tensor, qd: Tensor) -> Tensor:
        obs = torch.cat([q, 0.05 * qd], -1)
        return obs

    @annotate.method("act", export_with="onnx")
    def act(self, obs: Tensor) -> Tensor:
        self.h = 0.6 * self.h + self.net(obs)
        target = self.h.tanh()
        return target


@clean(
    "G",
    style="own",
    rec={"observe/q": normal(1, 2), "observe/qd": normal(1, 2)},
    backends="jit",
    in_tests=True,
)
def robot_of_methods(backend: str):
    robot = _Robot()
    return lambda given: {
        "act/target": robot.act(robot.observe(given["observe/q"], given["observe/qd"]))
    }


@clean("G", style="own", rec={"a/x": normal(2)}, passes=4)
def two_heads(backend: str):
    """One output feeds two nodes."""

    def step(given):
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        z = x.sin()
        annotate.output_tensors("a", {"z": z}, export_with=backend)
        left = annotate.input_tensors("b", {"z": z})
        l = left * 2
        annotate.output_tensors("b", {"l": l}, export_with=backend)
        right = annotate.input_tensors("c", {"z": z})
        r = right - 1
        annotate.output_tensors("c", {"r": r}, export_with=backend)
        return {"b/l": l, "c/r": r}

    return step


@clean("G", style="own", rec={"est/imu": normal(1, 3)}, passes=5)
def feedback_across_nodes(backend: str):
    """The filter of this tick is what the estimator sees in the next."""
    u_last = torch.zeros(1, 3)

    def step(given):
        nonlocal u_last
        imu, u = annotate.input_tensors("est", {"imu": given["est/imu"], "u": u_last})
        e = imu - 0.1 * u
        annotate.output_tensors("est", {"e": e}, export_with=backend)
        e = annotate.input_tensors("ctl", {"e": e})
        u_new = 0.8 * e
        shown = e.abs().sum()
        annotate.output_tensors("ctl", {"u": u_new, "cost": shown}, export_with=backend)
        u_last = u_new
        return {"ctl/cost": shown}

    return step


@clean(
    "G",
    style="own",
    rec={
        "n/obs": lambda t, g: {
            "joint": torch.randn(1, 2, generator=g),
            "base": torch.randn(1, 3, generator=g),
        }
    },
)
def nested_inputs(backend: str):
    """A dict of tensors as one input."""

    def step(given):
        obs = annotate.input_tensors("n", {"obs": given["n/obs"]})
        y = torch.cat([obs["joint"], obs["base"]], -1).tanh()
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        return {"n/y": y}

    return step


@clean("G", style="own", rec={"n/x": normal(3)}, passes=3, session={"non_traced": "sensor"})
def a_node_that_is_not_traced(backend: str):
    """`non_traced` by request is no warning."""

    def step(given):
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        y = x * 2
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        return {"n/y": y}

    return step


@clean("G", style="own", rec={"n/x": normal(2)}, passes=4)
def declared_gru(backend: str):
    cell, h = nn.GRUCell(2, 3), torch.zeros(1, 3)

    def step(given):
        nonlocal h
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        old = annotate.state_tensors("n", {"h": h})
        h = cell(x.unsqueeze(0), old)
        annotate.update_state("n", {"h": h})
        y = h.mean()
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        return {"n/y": y}

    return step


@clean("G", style="own", rec={"n/x": normal(2)}, passes=4)
def state_as_plain_input(backend: str):
    """LEAPP's way: the hidden state is an input and an output."""
    h = torch.zeros(2)

    def step(given):
        nonlocal h
        x, h_in = annotate.input_tensors("n", {"x": given["n/x"], "h_in": h})
        h_out = 0.5 * h_in + x
        y = h_out.cos()
        annotate.output_tensors("n", {"y": y, "h_out": h_out}, export_with=backend)
        h = h_out
        return {"n/y": y}

    return step


@hostile(
    "G",
    style="own",
    rec={"a/x": uniform(0, 1, 2)},
    fresh={"a/x": uniform(0, 9, 2)},
    passes=3,
    in_tests=True,
)
def glue_between_nodes(backend: str):
    """A product between two nodes that nobody marked."""

    def step(given):
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        z = x + 1
        annotate.output_tensors("a", {"z": z}, export_with=backend)
        z = z * 3
        z = annotate.input_tensors("b", {"z": z})
        y = z - 1
        annotate.output_tensors("b", {"y": y}, export_with=backend)
        return {"b/y": y}

    return step


@hostile(
    "G", style="own", rec={"a/x": uniform(0, 0.5, 2)}, fresh={"a/x": uniform(0, 9, 2)}, passes=4
)
def clip_between_nodes(backend: str):
    """A clip between two nodes that does nothing while recorded."""

    def step(given):
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        z = x * 1.0
        annotate.output_tensors("a", {"z": z}, export_with=backend)
        z = annotate.input_tensors("b", {"z": z.clamp(-1, 1)})
        y = z * 2
        annotate.output_tensors("b", {"y": y}, export_with=backend)
        return {"b/y": y}

    return step


@hostile("G", style="own", rec={"a/x": normal(2)}, passes=4, in_tests=True)
def numpy_between_nodes(backend: str):
    """A value that leaves for plain arrays and comes back with noise of the world."""
    rng = np.random.default_rng(1)

    def step(given):
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        z = x * 1.0
        annotate.output_tensors("a", {"z": z}, export_with=backend)
        noisy = torch.from_numpy(z.numpy() + rng.normal(size=2).astype(np.float32) * 1e-7)
        z = annotate.input_tensors("b", {"z": noisy * 2})
        y = z * 2
        annotate.output_tensors("b", {"y": y}, export_with=backend)
        return {"b/y": y}

    return step


@hostile(
    "G",
    style="own",
    rec={"a/x": fixed([0.5, 0.5]), "b/w": fixed([1.0, 1.0])},
    fresh={"a/x": normal(2), "b/w": normal(2)},
    passes=3,
)
def wired_by_equal_values(backend: str):
    """The second node takes an input of its own that happens to equal an output of the first."""

    def step(given):
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        z = x * 2
        annotate.output_tensors("a", {"z": z}, export_with=backend)
        w = annotate.input_tensors("b", {"w": given["b/w"]})
        y = w + 1
        annotate.output_tensors("b", {"y": y}, export_with=backend)
        return {"a/z": z, "b/y": y}

    return step


@hostile("G", style="own", rec={"a/x": normal(2)}, passes=4)
def state_of_another_node(backend: str):
    """The second node reads what the first wrote into a shared object one tick ago."""
    shared = {"v": torch.zeros(2), "old": torch.zeros(2)}

    def step(given):
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        shared["v"] = 0.5 * shared["v"] + x
        z = shared["v"] * 1.0
        annotate.output_tensors("a", {"z": z}, export_with=backend)
        z = annotate.input_tensors("b", {"z": z})
        y = z - shared["old"]
        shared["old"] = shared["v"]
        annotate.output_tensors("b", {"y": y}, export_with=backend)
        return {"b/y": y}

    return step


@hostile("G", style="own", rec={"a/x": fixed([0.0, 0.0])}, fresh={"a/x": normal(2)}, passes=5)
def fed_back_at_rest(backend: str):
    """An action of zeros that is fed back through a plain attribute."""
    last = torch.zeros(2)

    def step(given):
        nonlocal last
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        y = x + 0.5 * last
        annotate.output_tensors("a", {"y": y}, export_with=backend)
        last = y.detach().clone()
        return {"a/y": y}

    return step


@hostile("G", style="own", rec={"a/x": normal(2)}, passes=4)
def state_never_updated_late(backend: str):
    """A declared state whose update comes only in some ticks."""
    h, tick = torch.ones(2), 0

    def step(given):
        nonlocal h, tick
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        held = annotate.state_tensors("a", {"h": h})
        new = held * 0.5 + x
        if tick % 3 != 2:
            annotate.update_state("a", {"h": new})
            h = new
        else:
            annotate.update_state("a", {"h": held})
        tick += 1
        y = new * 1.0
        annotate.output_tensors("a", {"y": y}, export_with=backend)
        return {"a/y": y}

    return step
