"""Corners of torch's own operators that recorded values do not reach: ties, signs, holes, overflow, rare branches."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import double, flags, integers, normal, row, uniform
from attacks.registry import hostile

NAN, INF = float("nan"), float("inf")


@hostile(
    "F",
    passes=3,
    rec={"x": normal(1, 6)},
    fresh={
        "x": row(
            [[1.0, 3.0, 3.0, 0.0, 3.0, -1.0]],
            [[2.0, 2.0, 2.0, 2.0, 2.0, 2.0]],
            [[0.0, -0.0, -1.0, 0.0, -2.0, -0.0]],
        )
    },
    backends="onnx",
)
def NdArgTies(x: Tensor) -> Tensor:
    """First or last of equals: argmax, argmin, and max with indices."""
    return torch.stack([x.argmax(-1), x.argmin(-1), x.max(-1).indices, x.flip(-1).argmax(-1)])


@hostile(
    "F",
    passes=6,
    rec={"x": normal(1, 6)},
    fresh={"x": row([[1.0, 3.0, 3.0, 0.0, 3.0, -1.0]], [[2.0, 2.0, 2.0, 2.0, 2.0, 2.0]])},
    backends="onnx",
)
def NdSortTies(x: Tensor) -> Tensor:
    """Stable orders of equals, up and down."""
    up = torch.sort(x, dim=-1, stable=True).indices
    down = torch.argsort(x, dim=-1, descending=True, stable=True)
    return torch.cat([up, down])


@hostile(
    "F",
    passes=3,
    rec={"x": normal(1, 5)},
    fresh={"x": row([[1.0, NAN, 3.0, 0.0, 2.0]], [[INF, -INF, 0.0, NAN, 1.0]])},
    backends="onnx",
)
def NdNanThrough(x: Tensor) -> Tensor:
    """NaN in clamps, maxima, relu, sign and comparisons."""
    other = torch.zeros_like(x)
    return torch.cat(
        [
            x.clamp(-1, 1),
            torch.maximum(x, other),
            torch.fmax(x, other),
            torch.relu(x),
            x.sign(),
            torch.minimum(x, other),
            F.hardtanh(x),
            F.leaky_relu(x, 0.1),
        ]
    )


@hostile(
    "F",
    passes=3,
    rec={"x": normal(1, 5)},
    fresh={"x": row([[1.0, NAN, 3.0, 0.0, 2.0]], [[NAN, NAN, 0.0, -1.0, 1.0]])},
    backends="onnx",
)
def NdNanOrder(x: Tensor) -> Tensor:
    """Where NaN goes in a sort, a top-k, a maximum and a median."""
    return torch.cat(
        [
            x.sort(-1).values[0],
            x.topk(2, -1).values[0],
            x.amax(-1),
            x.median(-1).values,
            x.cummax(-1).values[0],
        ]
    )


@hostile(
    "F",
    passes=4,
    rec={"a": integers(1, 9, 4), "b": integers(1, 5, 4)},
    fresh={"a": integers(-9, 9, 4), "b": row([3, -3, 2, -2], [-4, 5, -1, 7])},
    backends="onnx",
)
def NdIntSigns(a: Tensor, b: Tensor) -> Tensor:
    """Integer division and remainders with signs."""
    return torch.stack(
        [
            a // b,
            a % b,
            torch.fmod(a, b),
            torch.div(a, b, rounding_mode="trunc"),
            a.floor_divide(3),
            (-a) % 4,
        ]
    )


@hostile(
    "F",
    passes=4,
    rec={"a": uniform(0.1, 5, 4), "b": uniform(0.5, 2, 4)},
    fresh={"a": normal(4, s=5.0), "b": row([2.0, -2.0, 0.7, -0.7], [INF, -INF, 3.0, 0.0])},
    backends="onnx",
)
def NdFloatRemainders(a: Tensor, b: Tensor) -> Tensor:
    """Remainders of floats: signs, infinities and zero."""
    return torch.stack(
        [torch.remainder(a, b), torch.fmod(a, b), torch.floor_divide(a, b), a % 1.0, a.frac()]
    )


@hostile(
    "F",
    passes=3,
    rec={"x": normal(1, 6)},
    fresh={
        "x": row(
            [[0.5, 1.5, 2.5, -0.5, -1.5, -2.5]], [[0.125, 0.375, 2.675, 1e7 + 1, -0.0, 0.49999997]]
        )
    },
    backends="onnx",
)
def NdRoundHalf(x: Tensor) -> Tensor:
    """Halves: round to even, with decimals, and by hand."""
    return torch.cat(
        [
            x.round(),
            torch.round(x, decimals=2),
            (x + 0.5).floor(),
            x.trunc(),
            x.ceil(),
            torch.round(x, decimals=-1),
        ]
    )


@hostile(
    "F",
    passes=4,
    rec={"x": uniform(0.0, 100.0, 5)},
    fresh={"x": row([-1.5, 256.7, 300.0, -0.9, 127.9], [1e10, -1e10, 70000.0, 2.9, -2.9])},
    backends="onnx",
)
def NdNarrowCasts(x: Tensor) -> Tensor:
    """Floats become integers that are too narrow; first wide, so that it is defined."""
    wide = x.to(torch.int64)
    return torch.stack(
        [
            wide.to(torch.uint8).long(),
            wide.to(torch.int8).long(),
            wide.to(torch.int16).long(),
            wide.to(torch.int32).long(),
        ]
    )


@hostile(
    "F",
    passes=4,
    rec={"n": integers(0, 50, 3, dtype=torch.int32)},
    fresh={"n": integers(-(2**31), 2**31 - 1, 3, dtype=torch.int32)},
    backends="pt2",
)
def NdHashOverflow(n: Tensor) -> Tensor:
    """A hash of voxels in int32 that wraps."""
    h = n * 73856093
    return (h ^ (h >> 13)) % 1024 + (n * n - n).sum().to(torch.int32)


@hostile(
    "F",
    passes=3,
    rec={"i": integers(0, 5, 3), "x": normal(5)},
    fresh={"i": integers(-5, 5, 3), "x": normal(5)},
    backends="onnx",
)
def NdIndexWraps(i: Tensor, x: Tensor) -> Tensor:
    """Negative indices count from the end, in reads and writes."""
    y = x.clone()
    y[i] = 7.0
    return torch.cat([x[i], y, x[i - 0].cumsum(0)])


@hostile(
    "F",
    passes=5,
    rec={"i": row([0, 1, 2], [4, 3, 0]), "v": normal(3)},
    fresh={"i": integers(0, 3, 3), "v": normal(3)},
    backends="onnx",
)
def NdScatterTwice(i: Tensor, v: Tensor) -> Tensor:
    """The same place is hit twice: sums, maxima, and an accumulating write."""
    base = torch.zeros(5)
    summed = base.scatter_add(0, i, v)
    top = base.scatter_reduce(0, i, v, "amax", include_self=False)
    put = base.index_put((i,), v, accumulate=True)
    return torch.stack([summed, top, put, base.index_add(0, i, v, alpha=2.0)])


@hostile(
    "F",
    passes=3,
    rec={"x": uniform(0.5, 2.0, 1, 4)},
    fresh={"x": row([[0.0, -1.0, 1.0, 2.0]], [[-0.0, INF, NAN, 1e-30]])},
    backends="onnx",
)
def NdPowersOfNothing(x: Tensor) -> Tensor:
    """Powers, logarithms and products at zero and below it."""
    return torch.cat(
        [
            x**0.0,
            x**2.0,
            x**-1.0,
            x**0.5,
            torch.xlogy(x, x),
            torch.special.entr(x),
            torch.pow(2.0, x),
            x**3,
        ]
    )


@hostile(
    "F",
    passes=4,
    rec={"logits": normal(2, 3)},
    fresh={
        "logits": row([[0.0, 1.0, 2.0], [-INF, -INF, 0.0]], [[-INF, -INF, -INF], [1e4, -1e4, 0.0]])
    },
    backends="onnx",
)
def NdSoftmaxOfNothing(logits: Tensor) -> Tensor:
    """Softmax and logsumexp where all is masked."""
    return torch.cat(
        [
            logits.softmax(-1),
            logits.log_softmax(-1),
            logits.logsumexp(-1, keepdim=True).expand(2, 3),
            torch.logcumsumexp(logits, -1),
        ]
    )


@hostile(
    "F",
    passes=3,
    rec={"x": normal(1, 2, 3, 3)},
    fresh={
        "x": row(
            [[[[1.0, 1, 1], [1, 1, 1], [1, 1, 1]]] * 2],
            [[[[-1.0, 0, 0], [0, 0, -0.0], [2, 2, 2]]] * 2],
        )
    },
    backends="onnx",
)
def NdPoolTies(x: Tensor) -> tuple[Tensor, Tensor]:
    """Which of equals a pooling names, and where it is put back."""
    top, where = F.max_pool2d(x, 2, stride=1, return_indices=True)
    return top, where


@hostile(
    "F",
    passes=4,
    rec={"img": normal(1, 1, 4, 4), "grid": uniform(-0.7, 0.7, 1, 2, 2, 2)},
    fresh={"img": normal(1, 1, 4, 4), "grid": uniform(-1.6, 1.6, 1, 2, 2, 2)},
    backends="onnx",
)
def NdGridBorders(img: Tensor, grid: Tensor) -> Tensor:
    """Samples beyond the borders: zeros, border, reflection, and nearest."""
    return torch.cat(
        [
            F.grid_sample(img, grid, padding_mode="zeros", align_corners=False),
            F.grid_sample(img, grid, padding_mode="border", align_corners=True),
            F.grid_sample(img, grid, padding_mode="reflection", align_corners=False),
        ]
    )


@hostile("F", passes=3, rec={"img": normal(1, 1, 3, 3)}, backends="onnx")
def NdResizeKinds(img: Tensor) -> Tensor:
    """Resizing with the corners aligned and not, up and down."""
    return torch.cat(
        [
            F.interpolate(img, (5, 5), mode="bilinear", align_corners=True),
            F.interpolate(img, (5, 5), mode="bilinear", align_corners=False),
            F.interpolate(img, (5, 5), mode="nearest-exact"),
            F.interpolate(img, (5, 5), mode="bicubic", align_corners=False),
            F.interpolate(F.interpolate(img, (7, 7)), (5, 5), mode="area"),
        ]
    )


@hostile(
    "F",
    passes=3,
    rec={"x": uniform(0.1, 0.9, 5)},
    fresh={"x": row([0.0, 0.25, 0.5, 1.0, 2.0], [-1.0, 1.0, 0.75, NAN, INF])},
    backends="onnx",
)
class NdBucketEdges:
    """Edges of buckets, from both sides, with values on them."""

    def __init__(self) -> None:
        self.edges = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0])

    def __call__(self, x: Tensor) -> Tensor:
        return torch.bucketize(x, self.edges) * 10 + torch.searchsorted(self.edges, x, right=True)


@hostile(
    "F",
    passes=3,
    rec={"x": uniform(0.2, 0.8, 1, 3), "stop": flags(0.0, 1, 3)},
    fresh={"x": uniform(-0.2, 1.2, 1, 3), "stop": flags(0.3, 1, 3)},
    style="module",
    backends="pt2",
)
class NdRareWhere(nn.Module):
    """Branches of `where` that no recorded value reaches, one within another."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 3)
        self.register_buffer("hold", torch.tensor([[1.0, -2.0, 3.0]]))

    def forward(self, x: Tensor, stop: Tensor) -> Tensor:
        y = torch.where(x < 0, self.hold * x, torch.where(x > 1, torch.log(x), self.net(x)))
        return y.masked_fill(stop, -1.0)


@hostile(
    "F",
    passes=4,
    rec={"a": normal(3), "t": uniform(0.0, 0.4, 3)},
    fresh={"a": normal(3, s=1e8), "t": uniform(-1.0, 2.0, 3)},
    backends="jit",
)
def NdLerpEnds(a: Tensor, t: Tensor) -> Tensor:
    """`lerp` changes its formula at one half; large ends show it."""
    return torch.lerp(a, torch.ones(3), t) - a * (1 - t)


@hostile(
    "F",
    passes=3,
    rec={"q": uniform(-0.8, 0.8, 1, 4)},
    fresh={
        "q": row(
            [[1.0, 0.0, 0.0, 0.0]],
            [[-1.0, 0.0, 0.0, 0.0]],
            [[1.0000001, 0.0, 0.5, 0.0]],
            [[0.7071068, 0.0, 0.7071068, 0.0]],
        )
    },
    backends="onnx",
)
def NdQuaternionPoles(q: Tensor) -> Tensor:
    """Euler angles at the poles: arcsin out of range, atan2 of zeros."""
    w, x, y, z = q.unbind(-1)
    sin = 2 * (w * y - z * x)
    pitch = torch.where(
        sin.abs() >= 1, torch.copysign(torch.full_like(sin, torch.pi / 2), sin), torch.asin(sin)
    )
    return torch.stack(
        [torch.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)), pitch, 2 * torch.acos(w)], -1
    )


@hostile(
    "F",
    passes=4,
    rec={"x": normal(2, 4, s=5.0)},
    fresh={"x": normal(2, 4, s=30000.0)},
    backends="jit",
)
def NdHalfAccumulates(x: Tensor) -> Tensor:
    """Sums and means in half precision, beyond its range."""
    h = x.half()
    return torch.stack(
        [
            h.mean(-1).float(),
            (h * 2).float().sum(-1),
            h.sum(-1).float(),
            (h - h.amax()).exp().sum(-1).float(),
        ]
    )


@hostile(
    "F", passes=6, rec={"x": normal(1, 4)}, fresh={"x": normal(1, 4, s=1000.0)}, backends="jit"
)
def NdHalfOut(x: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs in half precision, and as booleans."""
    return (x * 3.14159).half(), x > 0


@hostile(
    "F",
    passes=4,
    rec={"n": integers(0, 1000, 2)},
    fresh={"n": row([2**24 + 1, 2**53 + 1], [2**62, -(2**62)])},
    backends="onnx",
)
def NdWideIntegers(n: Tensor) -> Tensor:
    """Stamps in nanoseconds: integers that no float holds."""
    return torch.stack(
        [n - n // 1000 * 1000, (n.float() - 1).long(), n.double().long() - n, n >> 3]
    )


@hostile(
    "F",
    passes=6,
    rec={"x": uniform(-0.9, 0.9, 1, 4)},
    fresh={"x": row([[1.0, -1.0, 0.0, 0.5]], [[2.0, -3.0, 30.0, -90.0]])},
    backends="onnx",
)
def NdSpecialEnds(x: Tensor) -> Tensor:
    """Inverse and special functions at and beyond the ends of where they live."""
    return torch.cat(
        [
            torch.erfinv(x),
            torch.atanh(x),
            torch.logit(x, eps=1e-6),
            torch.erfc(x),
            F.logsigmoid(x),
            F.softplus(x, threshold=5.0),
            torch.sinc(x),
            torch.lgamma(x.abs() + 0.5),
            torch.special.log_ndtr(x),
        ]
    )


@hostile(
    "F",
    passes=8,
    rec={"x": normal(1, 7)},
    fresh={"x": row([[1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0]], [[0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0]])},
    backends="pt2",
)
def NdModeMedian(x: Tensor) -> Tensor:
    """Mode, median, quantiles and k-th values with equals."""
    return torch.cat(
        [
            x.mode(-1).values,
            x.median(-1).values,
            x.quantile(0.3, -1),
            x[:, :6].median(-1).values,
            x.kthvalue(3, -1).values,
            x.quantile(0.5, -1, interpolation="nearest"),
        ]
    )


@hostile(
    "F", passes=4, rec={"t": integers(0, 3, 1)}, fresh={"t": integers(0, 8, 1)}, backends="jit"
)
class NdEmbeddingRenorm(nn.Module):
    """An embedding with `max_norm` writes into its own table when it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(8, 3, max_norm=1.0)

    def forward(self, t: Tensor) -> Tensor:
        before = self.table.weight.norm(dim=-1)
        return torch.cat([self.table(t)[0], before.detach() * 1.0])


@hostile(
    "F",
    passes=5,
    rec={"x": double(uniform(1e3, 2e3, 3))},
    fresh={"x": double(uniform(1e8, 2e8, 3))},
    backends="onnx",
)
def NdDoubleKept(x: Tensor) -> Tensor:
    """Doubles whose small differences count, with constants that are none in float32."""
    y = x * 1.0000001 - x
    return torch.stack([y, torch.sin(x), (x + 1e-6) - x, torch.cumsum(x, 0) - x.sum()])


@hostile(
    "F",
    passes=8,
    rec={"w": uniform(1.0, 2.0, 5)},
    fresh={"w": row([0.0, 0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0, 0.0])},
    backends="pt2",
)
def NdResampleEdges(w: Tensor) -> Tensor:
    """Systematic resampling of particles, with weights of zero and none at all."""
    total = w.cumsum(0) / w.sum()
    places = (torch.arange(5) + 0.5) / 5
    return torch.searchsorted(total, places).clamp(max=4)


@hostile(
    "F",
    passes=8,
    rec={
        "boxes": row([[0.0, 0, 1, 1], [5, 5, 6, 6], [9, 9, 10, 10]]),
        "score": row([0.9, 0.8, 0.7]),
    },
    fresh={
        "boxes": row(
            [[0.0, 0, 2, 2], [1, 1, 3, 3], [1.5, 1.5, 4, 4]],
            [[0.0, 0, 2, 2], [0.1, 0, 2, 2], [7, 7, 8, 8]],
        ),
        "score": uniform(0, 1, 3),
    },
    backends="jit",
)
def NdSuppression(boxes: Tensor, score: Tensor) -> Tensor:
    """Non-maximum suppression with a loop in Python; nothing overlaps while recorded."""
    order = score.argsort(descending=True).tolist()
    keep = torch.zeros(3, dtype=torch.bool)
    while order:
        best = order.pop(0)
        keep[best] = True
        overlap = lambda k: (
            (
                torch.minimum(boxes[k, 2:], boxes[best, 2:])
                - torch.maximum(boxes[k, :2], boxes[best, :2])
            )
            .clamp(min=0)
            .prod()
        )  # noqa: E731
        order = [k for k in order if overlap(k) < 0.1]
    return keep
