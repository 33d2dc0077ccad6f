"""Scales: what is tiny beside what is large, and what hardly changes."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import array, by_tick, double, flags, integers, normal, row, uniform
from attacks.registry import hostile


@hostile(
    "D",
    passes=4,
    rec={"x": uniform(0.1, 1.0, 1, 3)},
    fresh={"x": uniform(1e-9, 1e-7, 1, 3)},
    backends="onnx",
)
def NdTinyLogs(x: Tensor) -> Tensor:
    """`log1p`, `expm1` and their like keep what is tiny."""
    return torch.cat(
        [
            torch.log1p(x),
            torch.expm1(x),
            torch.sinh(x),
            torch.tanh(x),
            torch.asinh(x),
            torch.atanh(x * 0.5),
            torch.special.log1p(-x * 0.5),
            torch.erf(x),
        ]
    )


@hostile(
    "D",
    passes=4,
    rec={"x": array(uniform(0.1, 1.0, 1, 3))},
    fresh={"x": array(normal(1, 3))},
    backends="jit",
)
def NdTinyBehindMask(x: np.ndarray) -> np.ndarray:
    """Logits of 1e-3 beside a mask of -1e9; how arrays are told apart matters only to the first."""
    small = x * np.float32(1e-3) if type(x) is np.ndarray else np.abs(x) * np.float32(1e-3)
    return np.concatenate([small, np.full((1, 2), -1e9, np.float32)], axis=1)


@hostile("D", passes=5, rec={"x": normal(1, 3)}, backends="jit")
class NdTinyDrift:
    """A bias of nanometres that grows in Python, on positions of metres."""

    def __init__(self) -> None:
        self.bias = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        self.bias += 3e-9
        return torch.cat([x * 1e-8 + self.bias, x * 1e-8], -1)


@hostile("D", passes=5, rec={"x": normal(1, 3)}, backends="jit")
class NdGpsTick:
    """Degrees of latitude that hardly change, with what a counter adds."""

    def __init__(self) -> None:
        self.ticks = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.ticks += 1
        latitude = 47.3769 + 1e-7 * x.double() + 1e-7 * (self.ticks % 3)
        return torch.cat([latitude[:, :1], latitude - 47.3769], -1)


@hostile(
    "D",
    passes=6,
    rec={"x": uniform(0.5, 1.0, 1, 2)},
    fresh={"x": uniform(-1.0, 1.0, 1, 2)},
    backends="jit",
)
def NdSmallChannelBranch(x: Tensor) -> Tensor:
    """A branch that only a channel of 1e-7 shows, beside one of thousands."""
    leak = x[:, :1] * 1e-7 if torch.all(x > 0) else x[:, :1] * -3e-7
    return torch.cat([x[:, :1] * 5000.0, leak, leak * 0.5], -1)


@hostile(
    "D",
    passes=4,
    rec={"x": uniform(0.5, 1.0, 1, 4)},
    fresh={"x": uniform(1e-23, 1e-21, 1, 4)},
    backends="onnx",
)
def NdSquaresUnderflow(x: Tensor) -> Tensor:
    """Squares of what is tiny vanish in float32, in a norm maybe not."""
    return torch.cat(
        [
            x.norm(dim=-1),
            torch.hypot(x[:, 0], x[:, 1]),
            x.square().sum(-1).sqrt(),
            torch.linalg.vector_norm(x, ord=3, dim=-1),
            x.abs().sum(-1),
        ]
    )


@hostile(
    "D",
    passes=4,
    rec={"x": uniform(-1.0, 1.0, 1, 6)},
    fresh={"x": uniform(9999.0, 10001.0, 1, 6)},
    backends="onnx",
)
def NdVarianceOfOffset(x: Tensor) -> Tensor:
    """Variance of what hardly varies around a large mean."""
    return torch.cat(
        [
            x.var(-1),
            x.std(-1, correction=0),
            (x - x.mean()).square().mean(-1),
            F.layer_norm(x, (6,))[0],
        ]
    )


@hostile(
    "D",
    passes=3,
    rec={"p": uniform(-1.0, 1.0, 30, 2)},
    fresh={"p": uniform(999.0, 1001.0, 30, 2)},
    backends="onnx",
)
def NdDistancesFarAway(p: Tensor) -> Tensor:
    """`cdist` of more than 25 points multiplies matrices; far away that cancels."""
    return torch.cdist(p.double(), p.double()).float()[:3, :6]


@hostile(
    "D",
    passes=4,
    rec={"t": by_tick(lambda t: [0.02 * t])},
    fresh={"t": by_tick(lambda t: [1.7e5 + 0.02 * t])},
    backends="onnx",
)
def NdLargeAngles(t: Tensor) -> Tensor:
    """A phase out of the time since the start, which was seconds and is days."""
    phase = (t.double() * 1.25) % 1.0
    return torch.cat([torch.sin(2 * torch.pi * phase), torch.cos(t.double() * 7.0), phase])


@hostile(
    "D",
    passes=4,
    rec={"x": normal(1, 4)},
    fresh={"x": normal(1, 4, s=1e-6)},
    style="module",
    backends="onnx",
)
class NdNanometres(nn.Module):
    """An actuator of nanometres: weights of 1e-9, and a correction that is thousand times less."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2, bias=False)
        with torch.no_grad():
            self.net.weight.mul_(1e-9)

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x)
        return torch.cat([y, 1e-3 * torch.sin(1e9 * y) * 1e-9, y.sign() * 1e-12], -1)


@hostile("D", passes=4, rec={"x": normal(1, 3)}, fresh={"x": normal(1, 3, s=1e-3)}, backends="jit")
def NdDenormals(x: Tensor) -> Tensor:
    """Products below the smallest normal number, scaled up again."""
    tiny = x * 1e-37
    return torch.cat([(tiny * 0.01) * 1e30 * 1e9, (tiny != 0).float()], -1)


@hostile(
    "D",
    passes=4,
    rec={"logits": normal(1, 4), "ok": flags(0.6, 1, 4)},
    fresh={"logits": normal(1, 4), "ok": flags(0.3, 1, 4)},
    backends="pt2",
)
def NdMaskedLogits(logits: Tensor, ok: Tensor) -> dict[str, Tensor]:
    """Actions that are not allowed get -1e9, maybe all of them; the logits go out as well."""
    masked = logits + (~ok) * -1e9
    return {
        "masked": masked,
        "dist": {
            "p": masked.softmax(-1),
            "entropy": -(masked.softmax(-1) * masked.log_softmax(-1)).sum(-1),
        },
    }


@hostile("D", passes=3, rec={"x": normal(1, 3)}, backends="onnx")
class NdFloat64Gain:
    """A filter in doubles whose poles are near one, read out in float32 differences."""

    def __init__(self) -> None:
        self.level = torch.full((1, 3), 1e6, dtype=torch.float64)

    def __call__(self, x: Tensor) -> Tensor:
        before = self.level
        self.level = self.level * 0.99999999 + x.double() * 1e-3
        return (self.level - before).float()


@hostile(
    "D",
    passes=4,
    rec={"x": double(uniform(-1.0, 1.0, 3))},
    fresh={"x": double(uniform(-1.0, 1.0, 3))},
    backends="jit",
)
class NdQuietReject:
    """An outlier is thrown away: it changes the last digits only, as the gain is tiny."""

    def __init__(self) -> None:
        self.origin = torch.tensor([4.2e6, 1.7e5, 4.8e6], dtype=torch.float64)

    def __call__(self, x: Tensor) -> Tensor:
        gain = 1e-8 if x.abs().max().item() < 0.95 else 0.0
        return (self.origin + gain * x) - self.origin


@hostile(
    "D", passes=5, rec={"n": integers(1, 5, 3)}, fresh={"n": integers(1, 60, 3)}, backends="onnx"
)
def NdUnitsByPower(n: Tensor) -> Tensor:
    """Powers of ten, two and one half by an integer."""
    return torch.stack(
        [
            torch.pow(10.0, -n.float()),
            torch.ldexp(torch.ones(3), -n),
            torch.pow(0.5, n),
            torch.exp2(-n.float()),
        ]
    )


@hostile("D", passes=4, rec={"x": row([1e-12, 1.0, 1e12], [2e-12, 3.0, 4e12])}, backends="jit")
def NdMixedUnits(x: Tensor) -> Tensor:
    """One output has 24 decades; each is scaled by its own number in Python."""
    return torch.stack([v * float(f"{k}e0") for k, v in enumerate(x, start=1)]) * torch.tensor(
        [1.0, -1.0, 1.0]
    )
