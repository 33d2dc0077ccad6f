"""Memory that is shared, reused, replaced or begun in odd ways."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import fixed, flags, integers, normal
from attacks.registry import ALL, clean, hostile


@hostile("A", style="own", rec={"n/x": normal(1, 3)}, passes=4)
def outside_reused_input_buffer(backend: str):
    """A driver writes every observation into one buffer, which the code keeps as 'the last one'."""
    buffer = torch.zeros(1, 3)
    last: list[Tensor] = []

    def step(given):
        buffer.copy_(given["n/x"])
        x = annotate.input_tensors("n", {"x": buffer})
        y = x - last[0] if last else x * 0
        last[:] = [x]
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        return {"n/y": y}

    return step


@hostile("A", style="own", rec={"n/x": normal(1, 3)}, passes=4, backends=ALL)
def outside_reused_buffer_from_start(backend: str):
    """The same without a first tick of its own: the last is this one, always."""
    buffer = torch.zeros(1, 3)
    last = buffer

    def step(given):
        nonlocal last
        buffer.copy_(given["n/x"])
        x = annotate.input_tensors("n", {"x": buffer})
        y = x - 0.5 * last
        last = x
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        return {"n/y": y}

    return step


@hostile("G", style="own", rec={"a/obs": normal(1, 3)}, passes=4)
def outside_clamped_for_both(backend: str):
    """The first node clamps the observation in place, and the second gets the clamped one."""

    def step(given):
        obs = given["a/obs"]
        seen = annotate.input_tensors("a", {"obs": obs})
        seen.clamp_(-0.5, 0.5)
        y = seen * 2
        annotate.output_tensors("a", {"y": y}, export_with=backend)
        other = annotate.input_tensors("b", {"obs": obs})
        z = other + 1
        annotate.output_tensors("b", {"z": z}, export_with=backend)
        return {"a/y": y, "b/z": z}

    return step


@hostile("A", style="own", rec={"n/x": normal(1, 2)}, passes=4)
def outside_simulator_refresh(backend: str):
    """A simulator's buffer that nobody marked is refreshed in every tick; the robot rests."""
    root, tick = torch.zeros(1, 2), [0]

    def refresh() -> None:
        tick[0] += 1
        root.copy_(torch.full((1, 2), 0.0 if tick[0] < 7 else 1.0))

    def step(given):
        refresh()
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        y = x - root
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        return {"n/y": y}

    return step


@hostile("A", rec={"e": normal(1, 3)}, passes=4, backends=ALL)
class OutsidePidFromZero:
    """The integral begins as a Python number and becomes a tensor."""

    def __init__(self) -> None:
        self.integral: Any = 0.0
        self.last: Any = 0.0

    def __call__(self, e: Tensor) -> Tensor:
        self.integral += e * 0.02
        d = (e - self.last) / 0.02
        self.last = e
        return 2.0 * e + 0.5 * self.integral + 0.01 * d


@hostile("A", rec={"e": fixed([[0.0, 0.0]])}, fresh={"e": normal(1, 2)}, passes=4)
class OutsidePidFromZeroAtRest:
    """The same at rest."""

    def __init__(self) -> None:
        self.integral: Any = 0

    def __call__(self, e: Tensor) -> Tensor:
        self.integral = self.integral + e * 0.02
        return 2.0 * e + 0.5 * self.integral


@hostile("A", rec={"x": normal(1, 3)}, passes=4, backends=("jit", "onnx"))
class OutsideShapeGrows:
    """The memory begins as a vector and becomes a row."""

    def __init__(self) -> None:
        self.h = torch.zeros(3)

    def __call__(self, x: Tensor) -> Tensor:
        self.h = 0.5 * self.h + x
        return self.h * 2


@hostile("A", rec={"x": normal(3)}, passes=4)
class OutsideTypeGrows:
    """The memory begins as integers and becomes floats."""

    def __init__(self) -> None:
        self.h = torch.zeros(3, dtype=torch.long)

    def __call__(self, x: Tensor) -> Tensor:
        self.h = self.h * 0.5 + x
        return self.h * 2


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideGrowingMap:
    """A map that grows with every tick."""

    def __init__(self) -> None:
        self.map = torch.zeros(0, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.map = torch.cat([self.map, x])
        return self.map.mean(0)


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideDataAssigned:
    """`tensor.data = ...` puts another memory under a tensor."""

    def __init__(self) -> None:
        self.h = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        y = x + self.h
        self.h.data = 0.5 * y
        return y


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideSetUnder:
    """`set_` does the same."""

    def __init__(self) -> None:
        self.h = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        y = x + self.h
        self.h.set_((0.5 * y).clone())
        return y * 1.0


@hostile("A", rec={"x": fixed([[0.0, 0.0, 0.0]])}, fresh={"x": normal(1, 3)}, passes=4)
class OutsideArrayUnderTensor:
    """The state is written through an array on the memory of a tensor, at rest."""

    def __init__(self) -> None:
        self.h = torch.zeros(1, 3)
        self.array = self.h.numpy()

    def __call__(self, x: Tensor) -> Tensor:
        y = x + self.h
        self.array[:] = 0.5 * y.numpy()
        return y * 1.0


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideNewParameter(nn.Module):
    """A new parameter in every tick."""

    def __init__(self) -> None:
        super().__init__()
        self.h = nn.Parameter(torch.zeros(1, 3), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.tanh(x + self.h)
        self.h = nn.Parameter(y.clone(), requires_grad=False)
        return y * 2


@hostile("A", style="own", rec={"n/x": normal(1, 2)}, passes=5)
def outside_reset_to_another(backend: str):
    """A new episode begins in the fourth tick, from another state than the first."""
    h, n = torch.zeros(1, 2), 0

    def step(given):
        nonlocal h, n
        if n == 3:
            h = torch.ones(1, 2)
        n += 1
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        h = 0.5 * h + x
        y = h * 2
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        return {"n/y": y}

    return step


@hostile("A", style="own", rec={"n/x": normal(1, 2)}, passes=3)
def outside_warm_up_before(backend: str):
    """Three ticks of warm-up run before anything is marked."""
    h = torch.zeros(1, 2)
    for k in range(3):
        h = 0.5 * h + torch.full((1, 2), float(k))

    def step(given):
        nonlocal h
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        h = 0.5 * h + x
        y = h * 2
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        return {"n/y": y}

    return step


@hostile("G", rec={"x": normal(1, 3)}, passes=4)
class OutsideGainsGivenOut(nn.Module):
    """Constants are given out beside what is computed, without `static_outputs`."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.kp = nn.Linear(3, 2), torch.full((1, 2), 20.0)

    def forward(self, x: Tensor) -> dict:
        return {"target": self.net(x), "kp": self.kp, "kd": torch.full((1, 2), 0.5)}


@hostile("G", rec={"x": normal(6)}, passes=4)
def outside_positive_only(x: Tensor) -> Tensor:
    """As many values as are positive."""
    return x[x > 0]


@hostile("G", rec={"k": integers(0, 4, 6)}, passes=4)
def outside_unique_ids(k: Tensor) -> Tensor:
    return torch.unique(k).float().mean().reshape(1)


# Clean


@clean("A", rec={"x": normal(1, 3)}, passes=4, backends=ALL)
class OutsideZerosLike:
    """`None` at first; zeros in the shape of the input then."""

    def __init__(self) -> None:
        self.h: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        if self.h is None:
            self.h = torch.zeros_like(x)
        self.h = 0.8 * self.h + 0.2 * x
        return x - self.h


@clean("A", rec={"x": normal(2, 3)}, passes=5)
class OutsideZerosByBatch(nn.Module):
    """The hidden state is made for the batch that comes first."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.h = nn.GRUCell(3, 4), None

    def forward(self, x: Tensor) -> Tensor:
        if self.h is None or self.h.shape[0] != x.shape[0]:
            self.h = torch.zeros(x.shape[0], 4, device=x.device, dtype=x.dtype)
        self.h = self.cell(x, self.h)
        return self.h


@clean("A", rec={"x": normal(1, 3)}, passes=5)
class OutsideShiftRegister:
    """Three attributes in a row."""

    def __init__(self) -> None:
        self.a, self.b, self.c = (torch.zeros(1, 3) for _ in range(3))

    def __call__(self, x: Tensor) -> Tensor:
        self.c, self.b, self.a = self.b, self.a, x * 1.0
        return self.a - self.c


@clean("A", rec={"x": normal(2, 3), "done": flags(0.4, 2)}, passes=5, backends=("jit", "onnx"))
class OutsideMaskedReset:
    """`h[done] = 0`, as vectorised environments do."""

    def __init__(self) -> None:
        self.h = torch.zeros(2, 3)

    def __call__(self, x: Tensor, done: Tensor) -> Tensor:
        self.h[done] = 0.0
        self.h = self.h * 0.5 + x
        return self.h.sum(-1)


@clean("A", rec={"x": normal(1, 3), "leg": integers(0, 4, 1)}, passes=5)
class OutsideTableOfLegs:
    """A row for each leg; the input says which."""

    def __init__(self) -> None:
        self.table = torch.zeros(4, 3)

    def __call__(self, x: Tensor, leg: Tensor) -> Tensor:
        self.table = self.table.index_add(0, leg, x)
        return self.table.index_select(0, leg)


@clean("A", style="own", rec={"n/x": normal(1, 2)}, passes=6)
def outside_filter_as_object(backend: str):
    """A filter that is an object beside the node, over six ticks."""

    class Filter:
        def __init__(self) -> None:
            self.h = torch.zeros(1, 2)

        def step(self, x: Tensor) -> Tensor:
            self.h = 0.5 * self.h + x
            return self.h * 2

    f = Filter()

    def step(given):
        x = annotate.input_tensors("n", {"x": given["n/x"]})
        y = f.step(x)
        annotate.output_tensors("n", {"y": y}, export_with=backend)
        return {"n/y": y}

    return step


@clean("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideNonPersistent(nn.Module):
    """Buffers that are not saved, written in place under `no_grad`."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("trace", torch.zeros(1, 3), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.trace.mul_(0.9).add_(x)
        return self.trace.tanh()


@clean("A", rec={"x": normal(1, 2)}, passes=5, backends=("jit", "onnx"))
class OutsideWideState:
    """States of several types: double, integer, flag."""

    def __init__(self) -> None:
        self.sum = torch.zeros(1, 2, dtype=torch.float64)
        self.n = torch.zeros(1, dtype=torch.int32)
        self.armed = torch.zeros(1, dtype=torch.bool)

    def __call__(self, x: Tensor) -> dict:
        self.sum = self.sum + x.double()
        self.n = self.n + 1
        self.armed = self.armed | (x.sum(-1) > 0.5)
        mean = (self.sum / self.n).float()
        return {"mean": mean + 0 * x, "go": torch.where(self.armed, x, -x)}


@clean("A", rec={"z": normal(2), "u": normal(1)}, passes=4)
class OutsideExtendedKalman:
    """A unicycle with a range sensor: Jacobians by hand, Joseph form."""

    def __init__(self) -> None:
        self.x, self.P = torch.tensor([1.0, 0.5, 0.1]), torch.eye(3) * 0.1

    def __call__(self, z: Tensor, u: Tensor) -> Tensor:
        th = self.x[2]
        x = self.x + 0.05 * torch.stack([u[0] * th.cos(), u[0] * th.sin(), torch.tensor(0.1)])
        F = torch.eye(3)
        F[0, 2], F[1, 2] = -0.05 * u[0] * th.sin(), 0.05 * u[0] * th.cos()
        P = F @ self.P @ F.T + 0.01 * torch.eye(3)
        r = torch.sqrt(x[0] ** 2 + x[1] ** 2 + 0.1)
        H = torch.stack(
            [torch.stack([x[0] / r, x[1] / r, torch.zeros(())]), torch.tensor([0.0, 0, 1])]
        )
        S = H @ P @ H.T + 0.5 * torch.eye(2)
        K = torch.linalg.solve(S, H @ P).T
        x = x + K @ (0.1 * z - torch.stack([r, x[2]]))
        I_KH = torch.eye(3) - K @ H
        self.x, self.P = x, I_KH @ P @ I_KH.T + 0.5 * K @ K.T
        return self.x


@clean("A", rec={"q": normal(1, 4), "cmd": normal(1, 3)}, passes=4, backends=("jit", "onnx"))
class OutsideGaitPolicy(nn.Module):
    """Phase, last action, history and a recurrent core, all in one."""

    def __init__(self) -> None:
        super().__init__()
        self.core, self.head = nn.GRUCell(4 + 3 + 2 + 2, 8), nn.Linear(8, 2)
        self.h, self.action = torch.zeros(1, 8), torch.zeros(1, 2)
        self.phase = torch.zeros(1, 1)

    def forward(self, q: Tensor, cmd: Tensor) -> dict:
        self.phase = torch.fmod(self.phase + 0.02 * (1 + cmd[:, :1].abs()), 1.0)
        clock = torch.cat([(2 * math.pi * self.phase).sin(), (2 * math.pi * self.phase).cos()], -1)
        self.h = self.core(torch.cat([q, cmd, clock, self.action], -1), self.h)
        self.action = torch.tanh(self.head(self.h))
        return {"action": self.action, "torque": 20 * (self.action * 0.25 - q[:, :2])}


@clean("H", rec={"q": normal(1, 3)}, passes=4)
def outside_array_writes_through(q: Tensor) -> Tensor:
    """An array on a tensor's memory is written, and the tensor used."""
    y = q * 2.0
    view = y.numpy()
    view[:, 0] += 1.0
    np.clip(view, -1.0, 1.0, out=view)
    return y + q
