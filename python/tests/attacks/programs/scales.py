"""Units in which a wrong output is small in numbers: amperes, teslas, farads; and masks that are huge."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attacks.draws import fixed, normal, uniform
from attacks.registry import ALL, clean, hostile

MICRO, NANO = 1e-6, 1e-9


@hostile("D", rec={"i": normal(3, s=1e-7)}, in_tests=True)
class LeakageCurrent:
    """Nanoamperes with a gain that a counter changes."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, i: Tensor) -> Tensor:
        self.n += 1
        return i * (1.0 + self.n)


@hostile("D", rec={"b": uniform(-5e-7, 5e-7, 3)}, passes=4, in_tests=True)
class HardIron:
    """An offset in teslas that is learnt."""

    def __init__(self) -> None:
        self.offset = torch.zeros(3)

    def __call__(self, b: Tensor) -> Tensor:
        self.offset = self.offset + 0.3 * (b - self.offset)
        return b - self.offset


@hostile(
    "D",
    rec={"x": uniform(0, 1e-7, 2)},
    fresh={"x": uniform(-1e-7, 1e-7, 2)},
    passes=3,
    in_tests=True,
)
def tiny_branch(x: Tensor) -> Tensor:
    return x if x.min() >= 0 else -3 * x


@hostile("D", rec={"x": normal(2)}, passes=4)
class MicroTorqueIntegral:
    """Torque in newton metres of a watch: 1e-8."""

    def __init__(self) -> None:
        self.s = torch.zeros(2)

    def __call__(self, x: Tensor) -> Tensor:
        self.s = 0.9 * self.s + x * 1e-8
        return self.s * 1.0


@hostile("D", rec={"x": normal(2)}, passes=3)
def tiny_noise():
    """Shot noise that is all there is."""
    return lambda *g: g[0] * 1e-8 + torch.randn(2) * 1e-8


@hostile("D", rec={"x": normal(1, 4)}, passes=4)
class TinyHead(nn.Module):
    """A network whose last layer is scaled to picofarads and drifts."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.k = 0

    def forward(self, x: Tensor) -> Tensor:
        self.k += 1
        return self.net(x) * 1e-9 * (-1) ** self.k


@hostile("D", rec={"x": normal(3)}, passes=4)
class MixedChannels:
    """One channel in kilometres, three in micrometres that a state moves."""

    def __init__(self) -> None:
        self.s = torch.zeros(3)

    def __call__(self, x: Tensor) -> Tensor:
        self.s = self.s + 1e-6 * x.abs()
        return torch.cat([x[:1] * 1e4, self.s])


@hostile("D", rec={"x": normal(4)}, passes=3)
class BigOffset:
    """A GPS position whose motion is below its tolerance."""

    def __init__(self) -> None:
        self.p = torch.full((4,), 4.5e4)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.p = self.p + 0.5 * x
        return self.p * 1.0, self.p - 4.5e4


@hostile(
    "D",
    rec={"s": uniform(0.2, 0.8, 1, 4)},
    fresh={"s": uniform(-1, 1, 1, 4)},
    passes=4,
    in_tests=True,
)
def masked_scores(s: Tensor) -> Tensor:
    """Scores beside a mask of -1e9, with a limit that Python decides."""
    floor = 0.1 if float(s.min()) > 0 else 0.5
    return torch.cat([torch.full((1, 2), -1e9), s.clamp(min=floor)], -1)


@hostile("D", rec={"x": normal(3)}, passes=4)
class MaskedMemory:
    """A state that hides beside the lowest float."""

    def __init__(self) -> None:
        self.h = torch.zeros(3)

    def __call__(self, x: Tensor) -> Tensor:
        self.h = 0.5 * self.h + 1e-3 * x
        return torch.cat([self.h, torch.finfo(torch.float32).min * torch.ones(1)])


@hostile("D", rec={"x": fixed([1e-7, 2e-7])}, fresh={"x": normal(2, s=1e-6)}, passes=5)
class TinyLatch:
    def __init__(self) -> None:
        self.on = torch.zeros(2)

    def __call__(self, x: Tensor) -> Tensor:
        self.on = torch.maximum(self.on, (x > 5e-7).float())
        return x + 1e-6 * self.on


@hostile("D", rec={"x": normal(2)}, passes=4)
class SmallPhase:
    """A Python float that moves 1e-6 in a tick, amplified when it is read out in other units."""

    def __init__(self) -> None:
        self.t = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        self.t += 1e-6
        return x * 1e-6 + self.t


@hostile("D", rec={"x": normal(2, s=1e-4)}, passes=4)
class ProbabilityFloor:
    """Likelihoods near 1e-9."""

    def __init__(self) -> None:
        self.p = torch.full((2,), 1e-9)

    def __call__(self, x: Tensor) -> Tensor:
        self.p = self.p * (1 + x.abs() * 1e3)
        return self.p * 1.0


@clean("D", rec={"i": normal(3, s=1e-7)}, backends=ALL)
def tiny_gain(i: Tensor) -> Tensor:
    return i * 2.5


@clean("D", rec={"x": normal(1, 4)}, passes=3)
class TinyNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) * 1e-7


@clean("D", rec={"x": normal(4)}, passes=3)
def huge_gain(x: Tensor) -> Tensor:
    return x * 3e8


@clean("D", rec={"x": normal(4)}, passes=3)
def mixed_units(x: Tensor) -> Tensor:
    return x * torch.tensor([1e6, 1.0, 1e-3, 1e-8])


@clean("D", rec={"x": normal(1, 4)}, passes=3)
def attention_mask(x: Tensor) -> Tensor:
    mask = torch.tensor([[0.0, 0.0, -1e9, 0.0]])
    return (x + mask).softmax(-1)


@clean("D", rec={"x": normal(1, 4)}, passes=3)
def mask_of_infinity(x: Tensor) -> Tensor:
    return x.masked_fill(torch.tensor([[False, True, False, False]]), float("-inf")).softmax(-1)


@clean("D", rec={"x": normal(3, s=1e-7)}, passes=5)
class TinyFilter:
    def __init__(self) -> None:
        self.y = torch.zeros(3)

    def __call__(self, x: Tensor) -> Tensor:
        self.y = 0.6 * self.y + 0.4 * x
        return self.y * 1.0


@clean("D", rec={"x": normal(3)}, passes=3)
def constant_output(x: Tensor) -> Tensor:
    """An output that is zero for almost everything."""
    return torch.relu(x - 0.2) * 1e-3


@clean("D", rec={"x": normal(16)}, passes=3)
def cancellation(x: Tensor) -> Tensor:
    return (x + 100.0).var() - 0.5
