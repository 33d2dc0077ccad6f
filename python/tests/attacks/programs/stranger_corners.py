"""Operators whose engines disagree where nobody looks, and outputs that a lax judge lets pass."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import array, double, fixed, integers, normal, row, uniform
from attacks.registry import hostile

three = ("jit", "onnx", "pt2")


@hostile(
    "F", rec={"x": uniform(1, 2, 4)}, fresh={"x": row([-0.0, 0.0, 1.0, -1.0])}, backends="onnx"
)
def reciprocal_of_signed_zero(x: Tensor) -> Tensor:
    return 1.0 / x


@hostile("F", rec={"x": normal(4)}, fresh={"x": row([-0.0, 0.0, 2.0, -2.0])}, backends=three)
def copysign_of_zero(x: Tensor) -> Tensor:
    return torch.copysign(torch.full((4,), 0.5), x)


@hostile("F", rec={"x": normal(4)}, fresh={"x": row([-0.0, 0.0, 2.0, -2.0])}, backends="onnx")
def signbit(x: Tensor) -> Tensor:
    return torch.where(torch.signbit(x), -1.0, 1.0)


@hostile(
    "F",
    rec={"a": integers(1, 20, 4), "b": integers(1, 5, 4)},
    fresh={"a": integers(-20, 20, 4)},
    backends=three,
)
def integer_floor_division(a: Tensor, b: Tensor) -> Tensor:
    return a // b + 10 * (a % b)


@hostile("F", rec={"a": uniform(0, 9, 4)}, fresh={"a": uniform(-9, 9, 4)}, backends="onnx")
def two_remainders(a: Tensor) -> Tensor:
    return torch.stack([torch.fmod(a, 2.5), torch.remainder(a, 2.5), a // 2.5, a % -2.5])


@hostile(
    "F", rec={"x": uniform(0, 3, 5)}, fresh={"x": row([0.5, 1.5, 2.5, -0.5, -1.5])}, backends="onnx"
)
def half_to_even(x: Tensor) -> Tensor:
    return torch.round(x)


@hostile(
    "F",
    rec={"x": uniform(0, 3, 5)},
    fresh={"x": row([0.125, 1.375, 2.625, -0.125, -1.5])},
    backends="onnx",
)
def rounded_to_cents(x: Tensor) -> Tensor:
    return torch.round(x, decimals=2)


@hostile("F", rec={"k": integers(0, 100, 4)}, fresh={"k": integers(-100, 100, 4)}, backends=three)
def shifted_integers(k: Tensor) -> Tensor:
    return (k >> 2) + (k << 1) + (k & 5) + (~k)


@hostile(
    "F", rec={"x": normal(6)}, fresh={"x": row([1.0, 3.0, 3.0, 2.0, 3.0, 1.0])}, backends=three
)
def argmax_of_ties(x: Tensor) -> Tensor:
    return torch.stack([x.argmax(), x.argmin()])


@hostile(
    "F", rec={"x": normal(6)}, fresh={"x": row([1.0, 3.0, 3.0, 2.0, 3.0, 1.0])}, backends=three
)
def stable_order(x: Tensor) -> Tensor:
    return torch.sort(x, stable=True, descending=True).indices


@hostile(
    "F", rec={"x": normal(6)}, fresh={"x": row([1.0, 3.0, 3.0, 2.0, 3.0, 1.0])}, backends="onnx"
)
def lower_median(x: Tensor) -> Tensor:
    return x.median() + x.kthvalue(2).values


@hostile("F", rec={"x": uniform(0, 5, 4)}, fresh={"x": row([1.0, 2.0, 0.0, 4.0])}, backends=three)
def bucket_edges(x: Tensor) -> Tensor:
    edges = torch.tensor([0.0, 1.0, 2.0, 4.0])
    return torch.searchsorted(edges, x, right=True) * 10 + torch.bucketize(x, edges)


@hostile(
    "F",
    rec={"x": normal(3, 4)},
    fresh={"x": row([[0.0] * 4, [1.0] * 4, [0.0, 0, 0, 3]])},
    backends=three,
)
def normalised_rows(x: Tensor) -> Tensor:
    return F.normalize(x, dim=-1) + F.cosine_similarity(x, torch.ones(4), dim=-1)[:, None]


@hostile(
    "F",
    rec={"x": normal(2, 4), "m": fixed([[True, False, True, True], [True, True, True, False]])},
    fresh={"m": fixed([[False] * 4, [True, True, True, False]])},
    backends=three,
)
def attention_without_anything(x: Tensor, m: Tensor) -> Tensor:
    return x.masked_fill(~m, float("-inf")).softmax(-1)


@hostile(
    "F", rec={"x": normal(4)}, fresh={"x": row([1.0, float("nan"), -3.0, 3.0])}, backends=three
)
def clamped_nan(x: Tensor) -> Tensor:
    return torch.clamp(x, -1, 1)


@hostile(
    "F", rec={"x": normal(4)}, fresh={"x": row([1.0, float("nan"), -3.0, 3.0])}, backends=three
)
def relu_and_maximum_of_nan(x: Tensor) -> Tensor:
    return F.relu(x) + torch.maximum(x, torch.zeros(4)) + x.amax()


@hostile("F", rec={"x": uniform(0, 1, 3)}, fresh={"x": row([0.0, -8.0, 8.0])}, backends="onnx")
def odd_powers(x: Tensor) -> Tensor:
    return torch.stack([x**0, x**3, x.pow(2.0), x.abs() ** (1 / 3)])


@hostile("F", rec={"x": uniform(-0.9, 0.9, 3)}, fresh={"x": row([1.0, -1.0, 0.0])}, backends=three)
def inverse_error_function(x: Tensor) -> Tensor:
    return torch.erfinv(x).clamp(-9, 9)


@hostile("F", rec={"x": normal(4)}, fresh={"x": row([100.0, -100.0, 20.5, 19.5])}, backends=three)
def softplus_far_out(x: Tensor) -> Tensor:
    return F.softplus(x) + F.softplus(x, beta=3, threshold=4) + F.logsigmoid(x)


@hostile(
    "F", rec={"x": normal(4)}, fresh={"x": row([200.0, -200.0, 88.0, -104.0])}, backends="onnx"
)
def log_sum_exp_far_out(x: Tensor) -> Tensor:
    return torch.logsumexp(x, 0) + x.log_softmax(0)


@hostile("F", rec={"x": normal(2, 3, s=2.0)}, fresh={"x": normal(2, 3, s=1e20)}, backends="onnx")
def hypotenuse(x: Tensor) -> Tensor:
    return torch.hypot(x[0], x[1])


@hostile(
    "F",
    rec={"i": fixed([0, 1, 2, 3]), "v": normal(4)},
    fresh={"i": row([0, 0, 2, 2])},
    backends=three,
)
def added_where_indexed(i: Tensor, v: Tensor) -> Tensor:
    return torch.zeros(4).index_add(0, i, v) + torch.zeros(4).index_put((i,), v, accumulate=True)


@hostile(
    "F",
    rec={"i": fixed([0, 1, 2, 3]), "v": normal(4)},
    fresh={"i": row([0, 0, 2, 2])},
    backends=three,
)
def largest_where_indexed(i: Tensor, v: Tensor) -> Tensor:
    return torch.zeros(4).scatter_reduce(0, i, v, "amax", include_self=False)


@hostile(
    "F",
    rec={"i": integers(0, 4, 3), "x": normal(4)},
    fresh={"i": integers(-4, 4, 3)},
    backends=three,
)
def index_from_the_end(i: Tensor, x: Tensor) -> Tensor:
    return x[i]


@hostile("F", rec={"x": normal(1, 2, 5, 5)}, backends=three)
def half_pixel(x: Tensor) -> Tensor:
    near = F.interpolate(x, size=(3, 3), mode="nearest")
    exact = F.interpolate(x, size=(3, 3), mode="nearest-exact")
    cubic = F.interpolate(x, size=(3, 3), mode="bicubic", align_corners=False)
    return torch.cat([near, exact, cubic], 1)


@hostile(
    "F",
    rec={"x": normal(1, 1, 4, 4), "g": uniform(-0.9, 0.9, 1, 3, 3, 2)},
    fresh={"g": uniform(-1.6, 1.6, 1, 3, 3, 2)},
    backends=three,
)
def sampled_outside(x: Tensor, g: Tensor) -> Tensor:
    return torch.cat(
        [
            F.grid_sample(x, g, padding_mode=p, align_corners=False)
            for p in ("zeros", "border", "reflection")
        ],
        1,
    )


@hostile("F", rec={"x": normal(5)}, fresh={"x": row([1.0, 2.0, 2.0, 0.0, 2.0])}, backends="onnx")
def running_best(x: Tensor) -> Tensor:
    return torch.cummax(x, 0).values


@hostile("F", rec={"x": uniform(0, 1, 3)}, fresh={"x": row([0.0, 2.0, -2.0])}, backends="onnx")
def step_function(x: Tensor) -> Tensor:
    return torch.heaviside(x, torch.tensor(0.25)) + torch.sgn(x)


@hostile("F", rec={"x": uniform(-1, 1, 4)}, fresh={"x": normal(4, s=3)}, backends=three)
def rare_branch_of_where(x: Tensor) -> Tensor:
    return torch.where(x > 2.75, x * float(x.max()), x)


@hostile("F", rec={"x": uniform(-1, 1, 4)}, fresh={"x": normal(4, s=3)})
def rare_branch_of_numbers(x: Tensor) -> Tensor:
    limit = 2.0 if x.max() < 2.75 else 0.0
    return x.clamp(max=limit)


@hostile("D", rec={"x": normal(3)}, backends=three)
def two_scales_at_once(x: Tensor) -> Tensor:
    return torch.stack([x[0] * 1e6, x[1], torch.tensor(x[2].item() * 1e-4)])


@hostile("D", rec={"x": uniform(-1, 1, 3)}, fresh={"x": normal(3, s=3)})
def torque_and_bias(x: Tensor) -> dict[str, Tensor]:
    return {"torque": x * 40.0, "bias": x * 1e-9 * (1.0 if x[0] < 1.5 else -1.0)}


@hostile("D", rec={"x": uniform(-1, 1, 3)}, fresh={"x": normal(3, s=3)})
def picofarads(x: Tensor) -> Tensor:
    farads = [1e-12, 3e-12, 9e-12]
    return x.abs() * farads[min(2, int(x.abs().max()))]


@hostile("D", rec={"x": normal(3)}, passes=5)
class TinyIntegral:
    def __init__(self) -> None:
        self.total = np.zeros(3, np.float32)

    def __call__(self, x: Tensor) -> Tensor:
        self.total += 1e-7 * x.numpy()
        return torch.from_numpy(self.total.copy())


@hostile("D", rec={"x": normal(3, s=1e-3)}, fresh={"x": normal(3, s=1e-3)}, passes=5)
class NanoDrift:
    """Moves by a hundred-millionth of its offset in a tick."""

    def __init__(self) -> None:
        self.bias = 0.0

    def __call__(self, x: Tensor) -> dict[str, Tensor]:
        self.bias += 1e-8
        return {"y": x, "bias": torch.tensor([self.bias])}


@hostile("D", rec={"x": normal(2, 8)}, backends=three)
class HalfPrecision(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 4).half()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x.half()).float()


@hostile("D", rec={"x": normal(2, 8)}, backends=three)
class Bfloat(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 4).bfloat16()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x.bfloat16()).float()


@hostile("D", rec={"x": uniform(0, 1, 6)}, fresh={"x": uniform(0, 1, 6)}, backends=three)
def eight_bits(x: Tensor) -> Tensor:
    levels = (x * 255).round().to(torch.uint8)
    return levels + levels


@hostile(
    "D",
    rec={"t": double(uniform(1.7e9, 1.7e9 + 10, 1))},
    fresh={"t": double(uniform(1.7e9, 1.7e9 + 10, 1))},
    backends=three,
)
def seconds_since_epoch(t: Tensor) -> Tensor:
    return (t - 1.7e9) * 2.0


@hostile("D", rec={"t": integers(1_700_000_000_000, 1_700_000_010_000, 1)}, backends=three)
def stamp_in_milliseconds(t: Tensor) -> Tensor:
    return (t - 1_700_000_000_000).float() / 1000.0


@hostile(
    "D", rec={"k": integers(0, 10, 3)}, fresh={"k": integers(2**24, 2**24 + 9, 3)}, backends=three
)
def integers_past_float(k: Tensor) -> Tensor:
    return k * 3 + 1


@hostile(
    "D",
    rec={"k": integers(0, 1000, 3, dtype=torch.int32)},
    fresh={"k": integers(2**30, 2**31 - 1, 3, dtype=torch.int32)},
    backends=three,
)
def wraps_around(k: Tensor) -> Tensor:
    return k * 2 + 7


@hostile("E", rec={"x": normal(2, 6)}, backends=three, runner="cli")
def every_other_column(x: Tensor) -> Tensor:
    return x[:, ::2] * 2.0 + x.flip(1)[:, 1::2]


@hostile("E", rec={"x": normal(3, 4)}, backends=three, runner="cli")
class ViewsOfOneTable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(24.0).reshape(4, 6))
        self.tail = self.table[1:, 2:]
        self.turned = self.table.T[::2, 1:]

    def forward(self, x: Tensor) -> Tensor:
        return x * self.tail + self.turned @ x + x.T.contiguous().T


@hostile("E", rec={"x": normal(2, 3)}, backends=three, runner="cli")
def kinds_of_outputs(x: Tensor) -> dict[str, Tensor]:
    return {
        "flag": (x > 0).any(),
        "which": x.argmax(-1),
        "mean": x.mean(),
        "exact": x.double() * 3,
        "none": x[:, :0],
    }


@hostile("E", rec={"x": normal(1, 3, 6, 6)}, backends=three, runner="cli")
class ChannelsLastPolicy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1).to(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x.to(memory_format=torch.channels_last))
        return y.permute(0, 2, 3, 1).flatten(1)


@hostile("E", rec={"x": normal(2, 5)}, backends=three, runner="cli")
def expanded_and_split(x: Tensor) -> Tensor:
    one = torch.ones(1).expand(2, 5)
    a, b = (x + one).split([2, 3], 1)
    return torch.cat([b[:, :2] * a, x.unfold(1, 3, 1).sum(-1)], 1)


@hostile("E", rec={"x": normal(4)}, backends=three, runner="cli")
def input_given_back(x: Tensor) -> dict[str, Tensor]:
    return {"same": x, "view": x.view(2, 2), "y": x + 1}


@hostile("F", rec={"x": array(normal(6))}, fresh={"x": array(row([2.0, 1.0, 2.0, 0.0, 0.0, 1.0]))})
def numpy_order_of_ties(x: np.ndarray) -> np.ndarray:
    return np.argsort(x, kind="stable")


@hostile(
    "F",
    rec={"x": array(uniform(0.1, 3, 4))},
    fresh={"x": array(row([0.5, 1.5, -0.5, -2.5]))},
    backends="onnx",
)
def numpy_rint_and_mod(x: np.ndarray) -> np.ndarray:
    return np.rint(x) + np.mod(x, np.float32(2)) + np.fix(x)


@hostile(
    "F",
    rec={"x": normal(3, 3)},
    fresh={"x": row([[1.0, 0, 0], [0, -1.0, 0], [0, 0, -1.0]], torch.eye(3).tolist())},
    backends=three,
)
def quaternion_by_branches(x: Tensor) -> Tensor:
    """The four branches of rotation to quaternion, by the trace in Python."""
    if x.trace() > 0:
        s = (x.trace() + 1).sqrt() * 2
        return torch.stack([s / 4, (x[2, 1] - x[1, 2]) / s])
    s = (1 + x[0, 0] - x[1, 1] - x[2, 2]).clamp(min=1e-6).sqrt() * 2
    return torch.stack([(x[2, 1] - x[1, 2]) / s, s / 4])
