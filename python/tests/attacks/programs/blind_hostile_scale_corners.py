"""Errors that hide below a tolerance, and values where engines part."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array as as_array
from attacks.draws import by_tick, double, fixed, integers, normal, row, uniform
from attacks.registry import ALL, hostile

NAN, INF = float("nan"), float("inf")
R = {"x": normal(1, 4)}
ODD = {
    "x": row(
        [[NAN, 1.0, -2.0, 0.5]],
        [[INF, -INF, 0.0, -0.0]],
        [[1.0, 1.0, NAN, 1.0]],
        [[-0.0, 0.0, -1.0, 2.5]],
    )
}
TIES = {
    "x": row(
        [[2.0, 2.0, 1.0, 1.0]],
        [[0.5, 1.5, 2.5, -0.5]],
        [[0.0, -0.0, 0.0, -0.0]],
        [[3.0, 3.0, 3.0, 3.0]],
    )
}


@hostile("D", rec={"x": normal(4)}, passes=4)
def BhFrozenNano(x: Tensor) -> Tensor:
    """A Python number goes into currents of nanoamperes: far below an absolute tolerance."""
    return x * 1e-9 * (2.0 + math.sin(x[0].item()))


@hostile("D", rec={"x": normal(4)}, passes=5)
class BhTinyMemory:
    """A memory of 1e-8 beside nothing else."""

    def __init__(self) -> None:
        self.bias = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        self.bias = 0.9 * self.bias + float(x[0])
        return torch.full((4,), 1e-8) * self.bias + x * 1e-9


@hostile("D", rec={"x": normal(3)}, passes=4)
def BhPressureAndStrain(x: Tensor) -> Tensor:
    """Pascals and strains in one vector; the strain is computed by Python."""
    strain = math.tanh(x[1].item()) * 1e-6
    return torch.stack([x[0] * 1e5 + 101325.0, x[2] * 1e5, torch.tensor(strain), x[1] * 1e-6])


@hostile("D", rec={"x": normal(3, s=1e-3)}, fresh={"x": normal(3)}, passes=4)
def BhSecondOrderAtRest(x: Tensor) -> Tensor:
    """The value that is frozen only matters to second order while the robot rests."""
    return x + x * x[0].item() * 1e-2 + x.square() * (1.0 + 50.0 * round(abs(x[1].item())))


@hostile("D", rec={"x": normal(3, s=1e-5)}, fresh={"x": normal(3, s=2.0)}, passes=4)
def BhLinearNearZero(x: Tensor) -> Tensor:
    """`np.sin` of copied numbers, added: near zero it is lost in rounding of a large offset."""
    extra = np.sin(np.array(x.tolist())).astype(np.float32) ** 3
    return x + torch.from_numpy(extra) * 10


@hostile(
    "D",
    rec={"t": double(fixed(1.7e9))},
    fresh={"t": by_tick(lambda t: torch.tensor(1.7e9 + 0.013 * t, dtype=torch.float64))},
    passes=4,
    backends=ALL,
)
def BhTimeStampPhase(t: Tensor) -> Tensor:
    """A phase of a Unix time in float64; float32 anywhere on the way ruins it."""
    return torch.sin(2 * math.pi * torch.remainder(t, 1.0)).float()


@hostile("D", rec={"x": normal(3)}, passes=4, backends=ALL)
def BhCancellation(x: Tensor) -> Tensor:
    """(1e4 + x) - 1e4 by two orders of evaluation, scaled up again in float64 in between."""
    wide = x.double() + 1e8
    return ((wide - 1e8) * 1.0).float() + (x * 1e-7).square().sqrt() * 1e7


@hostile("F", rec=R, fresh=ODD, backends=ALL, passes=4)
def BhClampOfNan(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Clamp, maximum and relu with NaN and infinities."""
    return x.clamp(-1, 1), torch.maximum(x, x.flip(-1)), torch.relu(x)


@hostile("F", rec=R, fresh=ODD, backends=ALL, passes=3)
def BhReduceWithNan(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Reductions, `nan_to_num`, and a where that hides a NaN."""
    return x.amax(-1), torch.where(x > 0, x, 0.0).nan_to_num(9.0).sum(-1), (x != x).float()


@hostile("F", rec=R, fresh=TIES, backends=ALL, passes=4)
def BhTies(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Argmax, stable sort and rounding where values are equal or halves."""
    return x.argmax(-1), torch.sort(x, dim=-1, descending=True, stable=True).indices, x.round()


@hostile("F", rec=R, fresh=ODD, backends=ALL, passes=4)
def BhMinusZero(x: Tensor) -> tuple[Tensor, Tensor]:
    """The sign of zero by `atan2` and by a division."""
    return torch.atan2(x * 0.0, -torch.ones_like(x)), (1.0 / x).sign()


@hostile(
    "F",
    rec={"i": integers(-9, 9, 4)},
    fresh={"i": row([-7, 7, -1, 5], [2**62, -(2**62), 3, -3])},
    backends=ALL,
    passes=4,
)
def BhIntegerDivision(i: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Floor, truncated and modular division of negative and of huge integers."""
    return i // 4, torch.fmod(i, 4), i % 4


@hostile(
    "F",
    rec={"i": integers(0, 100, 3)},
    fresh={"i": row([2**40 + 1, 2**53 + 1, -(2**61)], [5, 6, 7])},
    backends=ALL,
    passes=4,
)
def BhBigIntegers(i: Tensor) -> tuple[Tensor, Tensor]:
    """Identifiers of 61 bits: added, multiplied, compared, never floats."""
    return i * 3 + 1, (i - i.roll(1)).sign()


@hostile(
    "F",
    rec={"i": integers(0, 9, 4, dtype=torch.int32)},
    fresh={
        "i": by_tick(lambda t: torch.tensor([2**31 - 1, 2**30, -(2**31), t], dtype=torch.int32))
    },
    backends=("jit", "onnx"),
    passes=4,
)
def BhInt32Wraps(i: Tensor) -> tuple[Tensor, Tensor]:
    """An encoder of 32 bits overflows; differences stay right."""
    i = i.to(torch.int32)
    return i + 5, (i * 2).to(torch.int64)


@hostile(
    "F",
    rec={"x": uniform(0, 100, 4)},
    fresh={"x": row([300.7, -1.5, 255.9, 1e6], [12.0, 256.0, -256.0, 3.0])},
    backends=("jit", "onnx"),
    passes=4,
)
def BhPixelWraps(x: Tensor) -> Tensor:
    """An image in uint8 by way of int32: what is too large wraps around."""
    return x.to(torch.int32).to(torch.uint8) + torch.ones(4, dtype=torch.uint8)


@hostile(
    "F",
    rec={"x": normal(1, 4), "m": fixed([[True, True, False, True]])},
    fresh={"m": row([[False] * 4], [[True, False, False, False]])},
    backends=ALL,
    passes=4,
)
def BhNothingVisible(x: Tensor, m: Tensor) -> Tensor:
    """Attention over a mask that hides everything: NaN in torch."""
    return x.masked_fill(~m, -INF).softmax(-1) * x


@hostile(
    "F",
    rec={"x": uniform(0.1, 1.0, 4)},
    fresh={"x": row([0.0, -1.0, 1.0, 2.0], [-0.5, 0.0, INF, NAN])},
    backends=ALL,
    passes=4,
)
def BhPowersAndLogs(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Powers of negative bases, `xlogy` at zero, `log1p` below its end."""
    return x**0.5, torch.xlogy(x, x), torch.pow(x, 3) + torch.log1p(x)


@hostile(
    "F",
    rec={"x": normal(4)},
    fresh={"x": row([0.0, 0.0, 0.0, 0.0], [1e-30, 0.0, 0.0, 0.0], [1e30, 1e30, 0.0, 1.0])},
    backends=ALL,
    passes=4,
)
def BhNormalizeZero(x: Tensor) -> tuple[Tensor, Tensor]:
    """Unit vectors of nothing, of something denormal, and of what overflows when squared."""
    return nn.functional.normalize(x, dim=0), x / x.norm()


@hostile(
    "F",
    rec={"x": uniform(-1, 1, 1, 1, 4, 4), "g": uniform(-0.9, 0.9, 1, 2, 2, 2)},
    fresh={"g": uniform(-3, 3, 1, 2, 2, 2)},
    backends=("jit", "onnx"),
    passes=4,
)
def BhSampledOutside(x: Tensor, g: Tensor) -> Tensor:
    """A map is sampled inside while recorded, and far outside later, with reflection."""
    return nn.functional.grid_sample(x, g, padding_mode="reflection", align_corners=False)


@hostile(
    "F",
    rec={"x": as_array(uniform(0.2, 1.0, 4))},
    fresh={"x": as_array(row([0.0, NAN, 1.0, 2.0], [0.4, 0.5, 1.5, 2.5]))},
    passes=4,
)
def BhNumpyNanMean(x: np.ndarray) -> np.ndarray:
    """`np.nanmean`, `np.fmax` and `np.rint` as they are with NaN and halves."""
    return np.rint(x) + np.fmax(x, np.float32(0.3)) - np.nanmean(x, dtype=np.float32)


@hostile(
    "F",
    rec={"x": uniform(0.0, 0.9, 4)},
    fresh={"x": row([1.0, 2.0, 0.0, -1.0], [1.5, 3.0, NAN, INF])},
    backends=ALL,
    passes=4,
)
def BhBucketsAtEdges(x: Tensor) -> Tensor:
    """`bucketize` exactly on edges, both sides."""
    edges = torch.tensor([0.0, 1.0, 2.0, 3.0])
    return torch.bucketize(x, edges) * 10 + torch.bucketize(x, edges, right=True)
