"""NumPy code whose sizes, orders, dtypes and corners depend on data."""

from __future__ import annotations

import io

import numpy as np
import torch

from attacks.draws import array, double, fixed, flags, integers, normal, row, uniform
from attacks.registry import hostile


@hostile(
    "C",
    passes=4,
    rec={"speed": array(uniform(1.1, 1.9, 3))},
    fresh={"speed": array(uniform(-1.0, 4.0, 3))},
    backends="jit",
)
def NdPiecewise(speed: np.ndarray) -> np.ndarray:
    """Functions by region; only one region was seen."""
    return np.piecewise(
        speed, [speed < 0, speed > 2], [lambda v: -v, lambda v: v * v, lambda v: v + 1]
    )


@hostile(
    "C",
    passes=3,
    rec={"err": array(uniform(-0.4, 0.4, 3))},
    fresh={"err": array(normal(3, s=2.0))},
    backends="jit",
)
class NdVectorized:
    """A Python function with a branch, vectorised."""

    def __init__(self) -> None:
        self.huber = np.vectorize(self._huber, otypes=[np.float32])

    def _huber(self, e: float) -> float:
        return 0.5 * e * e if abs(e) < 1.0 else abs(e) - 0.5

    def __call__(self, err: np.ndarray) -> np.ndarray:
        return self.huber(err)


@hostile(
    "C",
    passes=6,
    rec={"x": array(row([[1.0, 3.0, 2.0], [5.0, 9.0, 7.0]], [[0.0, 4.0, 1.0], [2.0, 6.0, 3.0]]))},
    fresh={"x": array(normal(2, 3))},
    backends="jit",
)
def NdApplyAlong(x: np.ndarray) -> np.ndarray:
    """A function per row that finds the peak and looks at its neighbour."""
    return np.apply_along_axis(lambda r: r[np.argmax(r)] - r[np.argmax(r) - 1], 1, x)


@hostile(
    "F",
    passes=4,
    rec={"a": array(normal(4)), "b": array(uniform(0.5, 1.0, 4))},
    fresh={"a": array(normal(4)), "b": array(row([0.0, 1.0, -0.0, 2.0], [1e-9, 0.5, 3.0, 0.0]))},
    backends="onnx",
)
def NdUfuncWhere(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Division only where the divisor is no zero; elsewhere `out` keeps what it had."""
    return np.divide(a, b, out=np.full_like(a, -7.0), where=np.abs(b) > 1e-6)


@hostile(
    "F",
    passes=3,
    rec={"idx": array(row([0, 1, 2], [2, 0, 1])), "v": array(normal(3))},
    fresh={"idx": array(integers(0, 4, 3)), "v": array(normal(3))},
    backends="jit",
)
def NdAddAt(idx: np.ndarray, v: np.ndarray) -> np.ndarray:
    """`np.add.at` counts an index twice, `+=` does not; they agree while recorded."""
    voxels, last = np.zeros(4, np.float32), np.zeros(4, np.float32)
    np.add.at(voxels, idx, v)
    last[idx] += v
    return np.stack([voxels, last])


@hostile(
    "F",
    passes=4,
    rec={"idx": array(row([0, 1, 2], [2, 0, 1])), "v": array(normal(3))},
    fresh={"idx": array(integers(-4, 4, 3)), "v": array(normal(3))},
    backends="onnx",
)
def NdAssignTwice(idx: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The last write wins, and negative indices count from the end."""
    cells = np.arange(4, dtype=np.float32)
    cells[idx] = v
    return cells


@hostile(
    "F",
    passes=4,
    rec={"x": array(double(uniform(0.2, 2.8, 4)))},
    fresh={"x": array(double(uniform(-2.0, 5.0, 4)))},
    backends="jit",
)
class NdInterpOutside:
    """A calibration curve; outside of it other values are given."""

    def __init__(self) -> None:
        self.xp, self.fp = np.array([0.0, 1.0, 1.0, 3.0]), np.array([0.0, 10.0, 20.0, 5.0])

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.interp(x, self.xp, self.fp, left=-1.0, right=99.0)


@hostile(
    "F",
    passes=3,
    rec={"x": array(double(uniform(0.1, 0.9, 5)))},
    fresh={
        "x": array(double(row([0.0, 0.25, 0.5, 1.0, 2.0], [-1.0, 1.0, 0.75, 0.5, float("nan")])))
    },
    backends="jit",
)
class NdDigitizeEdges:
    """Bins, and values exactly on their edges, from both sides."""

    def __init__(self) -> None:
        self.edges = np.array([0.0, 0.25, 0.5, 0.75, 1.0])

    def __call__(self, x: np.ndarray) -> np.ndarray:
        left = np.digitize(x, self.edges)
        return (
            left * 10
            + np.digitize(x, self.edges, right=True)
            + np.searchsorted(self.edges, x, side="right")
        )


@hostile(
    "F",
    passes=8,
    rec={"yaw": array(double(uniform(-0.5, 0.5, 6)))},
    fresh={"yaw": array(double(uniform(-9.0, 9.0, 6)))},
    backends="onnx",
)
def NdUnwrapped(yaw: np.ndarray) -> np.ndarray:
    """Phases are unwrapped, which does nothing while recorded."""
    return np.unwrap(yaw)


@hostile(
    "F",
    passes=3,
    rec={"x": array(double(normal(6)))},
    fresh={
        "x": array(
            double(row([0.5, 1.5, 2.5, -0.5, -1.5, 0.125], [0.015, 0.025, 2.675, -2.5, 1e9, -0.0]))
        )
    },
    backends="jit",
)
def NdRoundings(x: np.ndarray) -> np.ndarray:
    """Six ways to round."""
    return np.stack(
        [np.round(x, 2), np.rint(x), np.trunc(x), np.fix(x), np.around(x, -1), np.floor(x + 0.5)]
    )


@hostile(
    "F",
    passes=6,
    rec={"lo": array(uniform(-2, -1, 1)), "hi": array(uniform(1, 2, 1)), "x": array(normal(3))},
    fresh={
        "lo": array(normal(1)),
        "hi": array(normal(1)),
        "x": array(row([0.0, float("nan"), 5.0], [-3.0, 0.1, float("inf")])),
    },
    backends="onnx",
)
def NdClipInverted(lo: np.ndarray, hi: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Limits that cross, and NaN, in a clip."""
    return np.clip(x, lo, hi)


@hostile(
    "F",
    passes=4,
    rec={"x": array(normal(6))},
    fresh={"x": array(row([1.0, 0.0, 1.0, 0.0, -0.0, 1.0], [2.0, 2.0, 2.0, 1.0, 1.0, 1.0]))},
    backends="onnx",
)
def NdStableOrder(x: np.ndarray) -> np.ndarray:
    """A stable order with ties, and its inverse."""
    order = np.argsort(x, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(6)
    return rank


@hostile(
    "F",
    passes=4,
    rec={"a": array(integers(1, 9, 4)), "b": array(integers(1, 5, 4))},
    fresh={"a": array(integers(-9, 9, 4)), "b": array(row([3, -3, 2, -2], [-4, 5, -1, 7]))},
    backends="onnx",
)
def NdIntDivisions(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Quotients and remainders of integers of both signs."""
    q, r = np.divmod(a, b)
    return np.stack([a // b, a % b, np.fmod(a, b), q * b + r, np.remainder(-a, b)])


@hostile(
    "F",
    passes=4,
    rec={"a": array(integers(0, 20, 3, dtype=torch.int8))},
    fresh={"a": array(integers(-128, 127, 3, dtype=torch.int8))},
    backends="jit",
)
def NdInt8Wraps(a: np.ndarray) -> np.ndarray:
    """Sums of int8 wrap, a sum over an axis does not."""
    return np.stack([a + a, a * np.int8(3), -a, np.abs(a)]).sum(0) + (a + np.int8(100))


@hostile(
    "F",
    passes=6,
    rec={
        "img": array(integers(10, 40, 2, 3, dtype=torch.uint8)),
        "gain": array(uniform(0.5, 1.5, 1)),
    },
    fresh={
        "img": array(integers(0, 255, 2, 3, dtype=torch.uint8)),
        "gain": array(uniform(0.5, 4.0, 1)),
    },
    backends="onnx",
)
def NdUint8Image(img: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Brightness in bytes: differences wrap, gains are clipped."""
    brighter = np.clip(img * gain, 0, 255).astype(np.uint8)
    return brighter - img


@hostile(
    "F",
    passes=3,
    rec={"x": array(uniform(0.5, 4.0, 3))},
    fresh={"x": array(uniform(1e-4, 900.0, 3))},
    backends="jit",
)
def NdFastInverseRoot(x: np.ndarray) -> np.ndarray:
    """The bits of a float are read as an integer."""
    bits = np.int32(0x5F3759DF) - (x.view(np.int32) >> 1)
    y = bits.view(np.float32)
    return y * (np.float32(1.5) - np.float32(0.5) * x * y * y)


@hostile("C", passes=4, rec={"pose": array(normal(3, 2))}, backends="jit")
def NdStructuredArray(pose: np.ndarray) -> np.ndarray:
    """Fields of a structured array, sorted by one of them."""
    cloud = np.zeros(3, dtype=[("x", "f4"), ("y", "f4")])
    cloud["x"], cloud["y"] = pose[:, 0], pose[:, 1]
    cloud.sort(order="y")
    return cloud["x"] * np.float32(1)


@hostile("C", passes=5, rec={"x": normal(3)}, backends="jit")
def NdObjectArray(x: torch.Tensor) -> torch.Tensor:
    """Tensors inside of an array of objects, summed and compared by NumPy."""
    box = np.empty(3, dtype=object)
    for k in range(3):
        box[k] = x[k]
    return torch.stack([box.sum(), box.max()])


@hostile(
    "C",
    passes=6,
    rec={"sig": array(row([0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 1.0]))},
    fresh={"sig": array(row([0.0, 1.0, 1.0, 0.0], [5.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 2.0]))},
    backends="jit",
)
def NdTrimZeros(sig: np.ndarray) -> np.ndarray:
    """Zeros at the ends are trimmed; two of them in every recorded tick."""
    kept = np.trim_zeros(sig)
    return np.array([kept.mean(), kept[0]])


@hostile(
    "C",
    passes=6,
    rec={"x": array(row([0.1, 0.9, 0.2, 0.8], [0.7, 0.1, 0.9, 0.3], [0.6, 0.6, 0.1, 0.1]))},
    fresh={"x": array(uniform(0, 1, 4))},
    backends="pt2",
)
def NdWhereSize(x: np.ndarray) -> np.ndarray:
    """Indices of what is above a half: two in every recorded tick."""
    (hits,) = np.where(x > 0.5)
    return np.array([hits.size, hits.sum()], dtype=np.float32) / np.float32(4)


@hostile("C", passes=4, rec={"text": array(normal(1, 3))}, backends="jit")
def NdTextFile(text: np.ndarray) -> np.ndarray:
    """`savetxt` and `loadtxt` through a text in memory, with two digits."""
    file = io.StringIO()
    np.savetxt(file, text, fmt="%.2f")
    file.seek(0)
    return np.loadtxt(file, dtype=np.float32, ndmin=2)


@hostile(
    "C",
    passes=4,
    rec={"x": array(uniform(0.1, 0.9, 4))},
    fresh={"x": array(normal(4))},
    backends="jit",
)
def NdFromIter(x: np.ndarray) -> np.ndarray:
    """A generator with a condition fills an array."""
    good = np.fromiter((v if v > 0 else 0.5 for v in x), dtype=np.float32, count=4)
    return good * np.float32(2)


@hostile(
    "F",
    passes=4,
    rec={"x": array(normal(5))},
    fresh={
        "x": array(
            row(
                [1.0, float("nan"), 2.0, 4.0, 3.0],
                [float("nan")] * 4 + [1.0],
                [5.0, 1.0, 2.0, 2.0, 9.0],
            )
        )
    },
    backends="onnx",
)
def NdNanStatistics(x: np.ndarray) -> np.ndarray:
    """Statistics without the holes; no hole was seen."""
    return np.stack(
        [
            np.nanmean(x),
            np.nanmax(x),
            np.nanmin(x),
            np.nansum(x),
            np.nanmedian(x),
            np.nan_to_num(x)[1],
        ]
    )


@hostile(
    "F",
    passes=4,
    rec={"x": array(normal(4))},
    fresh={"x": array(row([0.0, -0.0, 1.0, -1.0], [-0.0, 0.0, -0.0, 3.0]))},
    backends="jit",
)
def NdNegativeZero(x: np.ndarray) -> np.ndarray:
    """The sign of zero: copysign, signbit, arctan2 and a reciprocal."""
    away = np.arctan2(x, np.full_like(x, -1.0))
    return np.stack(
        [np.copysign(np.float32(2), x), away, np.signbit(x).astype(np.float32), np.sign(x), -x + 0]
    )


@hostile(
    "F",
    passes=6,
    rec={"i": array(integers(0, 4, 3))},
    fresh={"i": array(integers(-9, 9, 3))},
    backends="onnx",
)
class NdTakeModes:
    """Indices beyond the end: wrapped, and clipped."""

    def __init__(self) -> None:
        self.table = np.array([0.5, 1.5, 2.5, 3.5], np.float32)

    def __call__(self, i: np.ndarray) -> np.ndarray:
        return np.stack(
            [
                np.take(self.table, i, mode="wrap"),
                np.take(self.table, i, mode="clip"),
                self.table[i % 4],
            ]
        )


@hostile(
    "F",
    passes=4,
    rec={"x": array(uniform(0.1, 0.9, 8))},
    fresh={"x": array(uniform(-0.5, 1.5, 8))},
    backends="jit",
)
def NdHistogramRange(x: np.ndarray) -> np.ndarray:
    """What is outside of the range is in no bin; the last bin has both its ends."""
    counts, _ = np.histogram(x, bins=4, range=(0.0, 1.0))
    return counts / 8.0


@hostile(
    "F",
    passes=4,
    rec={"x": array(normal(4, s=10.0))},
    fresh={"x": array(normal(4, s=40000.0))},
    backends="jit",
)
def NdHalfOverflows(x: np.ndarray) -> np.ndarray:
    """Half precision, beyond its largest number, and below its smallest."""
    half = x.astype(np.float16)
    small = (x * np.float32(1e-9)).astype(np.float16)
    return (half * np.float16(2)).astype(np.float32) + small.astype(np.float32) * np.float32(1e6)


@hostile(
    "F",
    passes=4,
    rec={"n": array(integers(0, 100, 2))},
    fresh={"n": array(row([2**31, -(2**31) - 5], [2**40 + 3, 7]))},
    backends="onnx",
)
def NdInt32Stamp(n: np.ndarray) -> np.ndarray:
    """A stamp goes through int32 and float32."""
    return np.stack([n.astype(np.int32).astype(np.int64), n.astype(np.float32).astype(np.int64)])


@hostile(
    "C",
    passes=3,
    rec={"x": array(row([3.0, 1.0, 2.0], [6.0, 4.0, 5.0])), "y": array(normal(3))},
    fresh={"x": array(row([1.0, 1.0, 0.0], [2.0, 3.0, 3.0])), "y": array(normal(3))},
    style="method",
    backends="jit",
)
class NdLexsorted:
    """Sorted by two keys, of which the second decides ties."""

    def step(self, x, y):  # noqa: ANN001, ANN201
        order = np.lexsort((y, x))
        z = y[order] + x[order[::-1]]
        return z


@hostile(
    "C",
    passes=4,
    rec={"label": array(row([0, 1, 1, 2], [2, 0, 2, 1])), "v": array(normal(4))},
    fresh={"label": array(integers(0, 3, 4)), "v": array(normal(4))},
    backends="jit",
)
def NdUniqueInverse(label: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Means by group; the groups are numbered by what there is."""
    found, inverse, counts = np.unique(label, return_inverse=True, return_counts=True)
    means = np.bincount(inverse, weights=v) / counts
    return np.array([means[0], means[-1], found[-1]], dtype=np.float64)


@hostile(
    "F",
    passes=3,
    rec={"on": array(flags(0.5, 4)), "bits": array(integers(0, 16, 4, dtype=torch.int32))},
    fresh={
        "on": array(flags(0.5, 4)),
        "bits": array(integers(-70000, 70000, 4, dtype=torch.int32)),
    },
    backends="onnx",
)
def NdBitFields(on: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """Shifts and masks of negative numbers, and booleans that are summed."""
    return np.stack([bits >> 2, bits & 0x0F, ~bits, bits ^ 0x55, (bits << 3) | 1]) + np.cumsum(
        on
    ).astype(np.int32)


@hostile(
    "F",
    passes=3,
    rec={"x": array(normal(3)), "c": fixed(1)},
    fresh={"x": array(normal(3)), "c": integers(0, 3)},
    backends="jit",
)
def NdChooseSelect(x: np.ndarray, c: torch.Tensor) -> np.ndarray:
    """`np.select` with conditions that overlap, and one that never was true."""
    kind = c.numpy()
    return np.select(
        [kind == 0, x > 5, kind == 1, x > -9], [x * 0, x * 100, x + 1, -x], default=np.float32(42)
    )
