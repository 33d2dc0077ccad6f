"""State that the driver keeps between nodes, and how a recording begins."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import fixed, normal
from attacks.registry import clean, hostile


@clean("A", style="own", rec={"act/obs": normal(1, 3)}, passes=5)
def last_action_cloned(backend: str):
    """`last_action = action.clone()` in the driver."""
    net, last = nn.Linear(5, 2), torch.zeros(1, 2)

    def step(given):
        nonlocal last
        obs, prev = annotate.input_tensors("act", {"obs": given["act/obs"], "last": last})
        action = net(torch.cat([obs, prev], -1)).tanh()
        annotate.output_tensors("act", {"action": action}, export_with=backend)
        last = action.clone()
        return {"act/action": action}

    return step


@clean("A", style="own", rec={"act/obs": normal(1, 3)}, passes=5)
def last_action_copied_in_place(backend: str):
    """`last_action.copy_(action)`, `[:] =` style."""
    net, last = nn.Linear(5, 2), torch.zeros(1, 2)

    def step(given):
        obs, prev = annotate.input_tensors("act", {"obs": given["act/obs"], "last": last})
        action = net(torch.cat([obs, prev], -1)).tanh()
        annotate.output_tensors("act", {"action": action}, export_with=backend)
        last[:] = action
        return {"act/action": action}

    return step


@clean("A", style="own", rec={"act/obs": normal(1, 3)}, passes=5)
def hidden_state_by_the_driver(backend: str):
    """The driver hands the hidden state in and takes it out."""
    cell, h = nn.GRUCell(3, 4), torch.zeros(1, 4)

    def step(given):
        nonlocal h
        obs, old = annotate.input_tensors("act", {"obs": given["act/obs"], "h": h})
        new = cell(obs, old)
        y = new.sum(-1)
        annotate.output_tensors("act", {"y": y, "h_next": new}, export_with=backend)
        h = new
        return {"act/y": y}

    return step


@hostile("A", style="own", rec={"act/obs": normal(1, 3)}, passes=5)
def read_unmarked(backend: str):
    """The driver's scaled action is read inside of the node without a mark."""
    net, held = nn.Linear(5, 2), {"last": torch.zeros(1, 2)}

    def step(given):
        obs = annotate.input_tensors("act", {"obs": given["act/obs"]})
        action = net(torch.cat([obs, held["last"]], -1)).tanh()
        annotate.output_tensors("act", {"action": action}, export_with=backend)
        held["last"] = action * 0.5
        return {"act/action": action}

    return step


@clean("A", style="own", rec={"act/obs": normal(1, 3)}, passes=5)
def clone_read_unmarked(backend: str):
    """A copy of the output that the driver keeps is read inside of the node without a mark."""
    net, held = nn.Linear(5, 2), {"last": torch.zeros(1, 2)}

    def step(given):
        obs = annotate.input_tensors("act", {"obs": given["act/obs"]})
        action = net(torch.cat([obs, held["last"]], -1)).tanh()
        annotate.output_tensors("act", {"action": action}, export_with=backend)
        held["last"] = action.clone()
        return {"act/action": action}

    return step


@hostile("A", style="own", rec={"act/obs": normal(1, 3)}, passes=5)
def integrated_by_a_plain_function(backend: str):
    """A plain function between passes integrates the action; the node reads the sum."""
    net, pose = nn.Linear(5, 2), torch.zeros(1, 2)

    def integrate(action: Tensor) -> None:
        pose.add_(action, alpha=0.1)

    def step(given):
        obs = annotate.input_tensors("act", {"obs": given["act/obs"]})
        action = net(torch.cat([obs, pose], -1)).tanh()
        annotate.output_tensors("act", {"action": action}, export_with=backend)
        integrate(action)
        return {"act/action": action}

    return step


@hostile("A", style="own", rec={"act/obs": fixed([[0.0, 0.0, 0.0]])}, passes=5)
def integrated_at_rest(backend: str):
    """The same with a sum that stays at zero while recorded."""
    net, pose = nn.Linear(5, 2, bias=False), torch.zeros(1, 2)

    def step(given):
        obs = annotate.input_tensors("act", {"obs": given["act/obs"]})
        action = net(torch.cat([obs, pose], -1)).tanh()
        annotate.output_tensors("act", {"action": action}, export_with=backend)
        pose.add_(action, alpha=0.1)
        return {"act/action": action}

    return step


integrated_at_rest_fresh = hostile(
    "A",
    name="integrated_at_rest_and_moved",
    style="own",
    rec={"act/obs": fixed([[0.0, 0.0, 0.0]])},
    fresh={"act/obs": normal(1, 3)},
    passes=6,
)(integrated_at_rest)


@hostile("A", style="own", rec={"n/x": normal(2)}, passes=5)
def counted_by_the_driver(backend: str):
    """A tensor that the driver counts up; no value of a node is in it."""
    t = torch.zeros(1)

    def step(given):
        nonlocal t
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        y = x * torch.exp(-t)
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        t = t + 0.1
        return {"n/y": y}

    return step


@hostile("A", style="own", rec={"n/x": normal(2)}, passes=5)
def observation_kept_by_the_driver(backend: str):
    """The driver keeps the raw input of the tick before, in memory of its own."""
    prev = torch.zeros(2)

    def step(given):
        nonlocal prev
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        y = x - prev
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        prev = given["n/x"].clone()
        return {"n/y": y}

    return step


@hostile("A", style="own", rec={"n/x": normal(2)}, passes=5)
def kept_through_numpy(backend: str):
    """The driver keeps the output as an array."""
    held = {"prev": np.zeros(2, np.float32)}

    def step(given):
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        y = x - torch.from_numpy(held["prev"])
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        held["prev"] = 0.5 * y.numpy()
        return {"n/y": y}

    return step


@hostile("A", style="own", rec={"n/x": normal(2)}, passes=5)
def warm_before_its_node(backend: str):
    """Undeclared state that a plain call of the code has moved before recording begins."""
    h = torch.zeros(2)
    seen = 0

    def code(x: Tensor) -> Tensor:
        nonlocal h
        h = 0.5 * h + x
        return h * 1.0

    def step(given):
        nonlocal seen
        seen += 1
        if seen <= 2:
            return {} if code(given["n/x"]) is None else {}
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        y = code(x)
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        return {"n/y": y}

    return step


@hostile("A", style="own", rec={"fast/x": normal(2)}, passes=6)
def slow_node_every_third_tick(backend: str):
    """A planner that runs on every third tick; the controller uses its last plan."""
    plan, n = torch.zeros(2), 0

    def step(given):
        nonlocal plan, n
        if n % 3 == 0:
            z = annotate.input_tensors("slow", {"z": given["fast/x"]})
            plan = z.cumsum(0)
            annotate.output_tensors("slow", {"plan": plan}, export_with=backend)
        n += 1
        x, p = annotate.input_tensors("fast", {"x": given["fast/x"], "plan": plan})
        u = x - p
        annotate.output_tensors("fast", {"u": u}, export_with=backend)
        return {"fast/u": u}

    return step


@hostile("A", style="own", rec={"est/z": normal(2)}, passes=6)
def starts_late_with_own_state(backend: str):
    """The second node starts on the third tick, with state that nobody declares."""
    h, tick = torch.zeros(2), 0

    def step(given):
        nonlocal h, tick
        z = annotate.input_tensors("est", {"z": given["est/z"]})
        e = z * 2
        annotate.output_tensors("est", {"e": e}, export_with=backend)
        tick += 1
        if tick < 3:
            return {}
        e = annotate.input_tensors("act", {"e": e})
        h = h * 0.9 + e
        u = h.tanh()
        annotate.output_tensors("act", {"u": u}, export_with=backend)
        return {"act/u": u}

    return step


@hostile("A", rec={"x": normal(2)}, passes=5)
class PreviousFromFirst:
    """Finite differences that begin at the first observation."""

    def __init__(self) -> None:
        self.prev = None

    def __call__(self, x: Tensor) -> Tensor:
        if self.prev is None:
            self.prev = x
        v = (x - self.prev) * 10
        self.prev = x
        return v


@hostile("A", rec={"x": normal(2)}, passes=5)
class LimiterFromFirst:
    """A rate limiter whose first output is its first input."""

    def __init__(self) -> None:
        self.last = None

    def __call__(self, x: Tensor) -> Tensor:
        out = x if self.last is None else self.last + (x - self.last).clamp(-0.3, 0.3)
        self.last = out
        return out * 1.0


@hostile("A", rec={"x": fixed([0.3, 0.3])}, fresh={"x": normal(2)}, passes=6)
class PreviousFromFirstAtRest:
    """The same at rest: both branches give the same."""

    def __init__(self) -> None:
        self.prev = None

    def __call__(self, x: Tensor) -> Tensor:
        prev = x if self.prev is None else self.prev
        self.prev = x
        return x + (x - prev) * 10


@hostile("A", rec={"x": normal(1, 2)}, passes=6)
class TryExceptFirst:
    """`AttributeError` on the first pass fills the state."""

    def __call__(self, x: Tensor) -> Tensor:
        try:
            old = self.old
        except AttributeError:
            old = x * 0.5
        self.old = 0.5 * old + x
        return self.old.sin()


@hostile("A", rec={"x": normal(2)}, passes=5)
class ExpandedFirst:
    """The first observation is repeated into a history tensor."""

    def __init__(self) -> None:
        self.hist = None

    def __call__(self, x: Tensor) -> Tensor:
        if self.hist is None:
            self.hist = x.expand(4, 2).clone()
        self.hist = torch.cat([self.hist[1:], x[None]])
        return self.hist.mean(0)


@hostile("A", rec={"x": normal(2)}, passes=5)
class ShapeOfFirst:
    """`zeros_like` the first observation: filled by its shape and not by its value."""

    def __init__(self) -> None:
        self.h = None

    def __call__(self, x: Tensor) -> Tensor:
        if self.h is None:
            self.h = torch.zeros_like(x)
        self.h = 0.5 * self.h + x
        return self.h + 1


@hostile("A", rec={"x": normal(2)}, passes=5)
class FirstPassResets:
    """A flag in Python makes the first pass another one."""

    def __init__(self) -> None:
        self.first, self.h = True, torch.ones(2)

    def __call__(self, x: Tensor) -> Tensor:
        if self.first:
            self.h = torch.zeros(2)
            self.first = False
        self.h = 0.5 * self.h + x
        return self.h + 1
