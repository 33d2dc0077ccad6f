"""How an episode begins: late nodes, states made of the first observation, one recorded pass."""

from __future__ import annotations

import collections

import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import fixed, normal, uniform
from attacks.registry import clean, hostile


@hostile("A", rec={"x": normal(3)}, passes=5, in_tests=True)
class FilledFromFirst:
    """A filter that begins at the first observation."""

    def __init__(self) -> None:
        self.y = None

    def __call__(self, x: Tensor) -> Tensor:
        self.y = x.clone() if self.y is None else 0.8 * self.y + 0.2 * x
        return self.y * 1.0


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class HistoryFilledFromFirst:
    """legged_gym: the first observation fills the history."""

    def __init__(self) -> None:
        self.hist = collections.deque(maxlen=3)

    def __call__(self, x: Tensor) -> Tensor:
        while len(self.hist) < 3:
            self.hist.append(x)
        self.hist.append(x)
        return torch.cat(tuple(self.hist), -1)


@hostile("A", rec={"x": normal(2)}, passes=4)
class ZeroedByFirst:
    """Everything is relative to the first position."""

    def __init__(self) -> None:
        self.origin = None

    def __call__(self, x: Tensor) -> Tensor:
        if self.origin is None:
            self.origin = x.clone()
        return x - self.origin


@hostile("A", rec={"x": fixed([0.5, -0.5])}, fresh={"x": normal(2)}, passes=4)
class ZeroedByFirstAtRest:
    """The same, and nothing moves while recorded."""

    def __init__(self) -> None:
        self.origin = None

    def __call__(self, x: Tensor) -> Tensor:
        if self.origin is None:
            self.origin = x.clone()
        return x - self.origin + x


@hostile("A", rec={"x": uniform(0.5, 1, 2)}, fresh={"x": uniform(3, 9, 2)}, passes=3)
def gravity_by_lru_cache():
    """A calibration of the first call that is cached."""
    held: dict[str, Tensor] = {}

    def step(x: Tensor) -> Tensor:
        bias = held.setdefault("bias", x.mean())
        return x - bias

    return step


@hostile("A", style="own", rec={"est/z": normal(2)}, passes=6)
def policy_that_starts_late(backend: str):
    """The estimator runs from the start, the policy from the third tick."""
    s, h, tick = torch.zeros(2), torch.zeros(2), 0

    def step(given):
        nonlocal s, h, tick
        z = annotate.input_tensors("est", {"z": given["est/z"]})
        held = annotate.state_tensors("est", {"s": s})
        s = 0.5 * held + z
        annotate.update_state("est", {"s": s})
        e = s * 1.0
        annotate.output_tensors("est", {"e": e}, export_with=backend)
        tick += 1
        if tick < 3:
            return {}
        e = annotate.input_tensors("act", {"e": e})
        old = annotate.state_tensors("act", {"h": h})
        h = old * 0.9 + e
        annotate.update_state("act", {"h": h})
        u = h.tanh()
        annotate.output_tensors("act", {"u": u}, export_with=backend)
        return {"act/u": u}

    return step


@hostile("A", style="own", rec={"n/x": normal(2)}, passes=4)
def declared_state_warmed_in_session(backend: str):
    """The state is warm when its node is first recorded: warm-up is outside of the node."""
    h, tick = torch.zeros(2), 0

    def step(given):
        nonlocal h, tick
        tick += 1
        if tick <= 2:
            h = 0.9 * h + given["n/x"]
            return {}
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        old = annotate.state_tensors("n", {"h": h})
        h = 0.9 * old + x
        annotate.update_state("n", {"h": h})
        y = h * 2
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        return {"n/y": y}

    return step


def _one_pass(name: str, make, **options) -> None:
    hostile("F", name=name, passes=1, **options)(make)


def _counter():
    n = torch.zeros(1)

    def step(x: Tensor) -> Tensor:
        nonlocal n
        n = n + 1
        return x * n

    return step


def _gru():
    cell, h = nn.GRUCell(3, 3), torch.zeros(1, 3)

    def step(x: Tensor) -> Tensor:
        nonlocal h
        h = cell(x, h)
        return h * 1.0

    return step


def _rolled():
    buf = torch.zeros(4, 3)

    def step(x: Tensor) -> Tensor:
        nonlocal buf
        buf = torch.cat([buf[1:], x])
        return buf.mean(0)

    return step


def _cached():
    cache = {}

    def step(x: Tensor) -> Tensor:
        if "scale" not in cache:
            cache["scale"] = 1 / (1 + x.abs().sum())
        return x * cache["scale"]

    return step


def _noisy():
    return lambda *g: g[0] + torch.rand(3)


def _alternating():
    sign = 1.0

    def step(x: Tensor) -> Tensor:
        nonlocal sign
        sign = -sign
        return x * sign

    return step


def _in_place():
    total = torch.zeros(3)

    def step(x: Tensor) -> Tensor:
        total.add_(x[0])
        return total * 1.0

    return step


for _name, _make in (
    ("tensor_counter", _counter),
    ("gru", _gru),
    ("rolled", _rolled),
    ("cached", _cached),
    ("noisy", _noisy),
    ("alternating", _alternating),
    ("in_place", _in_place),
):
    _one_pass(
        f"one_pass_{_name}", _make, rec={"x": normal(1, 3)}, in_tests=_name in ("gru", "cached")
    )


@hostile("F", rec={"x": normal(1, 3)}, passes=2)
class TwoPassesDelayOfThree:
    """A delay of three ticks, two passes."""

    def __init__(self) -> None:
        self.line = [torch.zeros(1, 3) for _ in range(3)]

    def __call__(self, x: Tensor) -> Tensor:
        self.line.append(x)
        return self.line.pop(0) + 0.5 * x


@hostile("F", rec={"x": normal(1, 3)}, passes=2)
class TwoPassesToggle:
    """Every fourth tick is another one."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.n += 1
        return -x if self.n % 4 == 0 else x.clone()


@clean("A", rec={"x": normal(1, 3)}, passes=8)
class DelayOfThree:
    """The same delay with enough passes."""

    def __init__(self) -> None:
        self.line = [torch.zeros(1, 3) for _ in range(3)]

    def __call__(self, x: Tensor) -> Tensor:
        self.line.append(x)
        return self.line.pop(0) + 0.5 * x


@clean("A", rec={"x": normal(1, 3)}, passes=4)
class StartsAtOnes:
    def __init__(self) -> None:
        self.h = torch.ones(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.h = self.h * 0.5 + x
        return self.h - 1


@clean("A", rec={"x": normal(1, 3)}, passes=4)
class NoneThenZeros:
    """`if None: zeros` of a size that is known from the input."""

    def __init__(self) -> None:
        self.h = None
        self.cell = nn.RNNCell(3, 4)

    def __call__(self, x: Tensor) -> Tensor:
        if self.h is None:
            self.h = torch.zeros(x.shape[0], 4)
        self.h = self.cell(x, self.h)
        return self.h.sum(-1)


class _Warmed:
    """A filter that ran before it was recorded; a bundle would begin in the middle."""

    def __init__(self) -> None:
        self.y = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.y = 0.95 * self.y + x
        return self.y * 2


class _WarmedHidden:
    def __init__(self) -> None:
        self.lstm, self.hidden = nn.LSTM(3, 4).eval(), None

    def __call__(self, x: Tensor) -> Tensor:
        out, self.hidden = self.lstm(x.unsqueeze(0), self.hidden)
        return out[0]


class _WarmedBuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sum", torch.full((1, 3), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        self.sum = 0.9 * self.sum + x
        return self.sum.tanh()


def _warmed_closure():
    held = torch.ones(1, 3)

    def step(x: Tensor) -> Tensor:
        nonlocal held
        held = 0.9 * held + x
        return held * 2

    return step


def _warmed_declared(backend: str):
    h = torch.zeros(1, 3)

    def step(given):
        nonlocal h
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        h = 0.9 * annotate.state_tensors("n", {"h": h}) + x
        annotate.update_state("n", {"h": h})
        annotate.output_tensors("n", {"y": h * 2}, export_with=backend)
        return {"n/y": h * 2}

    return step


for _kind, _code in (
    ("attribute", _Warmed),
    ("hidden", _WarmedHidden),
    ("closure", _warmed_closure),
):
    hostile("A", name=f"warmed_{_kind}", rec={"x": normal(1, 3)}, warm=4)(_code)
hostile("A", name="warmed_buffer", rec={"x": normal(1, 3)}, warm=4, in_tests=True)(_WarmedBuffer)
hostile("A", name="warmed_declared", rec={"n/x": normal(1, 3)}, warm=4, style="own")(
    _warmed_declared
)


class _SetAfterwards:
    """It is filled with one number, and then with others."""

    def __init__(self) -> None:
        self.quat = torch.zeros(1, 4)
        self.pose = torch.zeros(1, 3)
        self.reset(torch.tensor([[0.1, 0.8, -1.5]]))

    def reset(self, home: Tensor) -> None:
        self.quat[:, 3] = 1.0
        self.pose = home.clone()

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.quat = nn.functional.normalize(self.quat + 0.1 * x[:, :1], dim=-1)
        self.pose = 0.9 * self.pose + 0.1 * x
        return self.quat * 1.0, self.pose * 1.0


clean("A", name="state_set_after_its_fill", rec={"x": normal(1, 3)}, in_tests=True)(_SetAfterwards)
