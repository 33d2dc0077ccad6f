"""Tiny, huge and mixed scales, where a decomposed operator loses what torch keeps."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import double, fixed, integers, normal, row, uniform
from attacks.registry import clean, hostile

both = ("onnx", "pt2")


def at(scale: float, *shape: int):
    return {"rec": {"x": normal(*shape, s=scale)}, "fresh": {"x": normal(*shape, s=scale)}}


def between(lo: float, hi: float, *shape: int):
    return {"rec": {"x": uniform(lo, hi, *shape)}, "fresh": {"x": uniform(lo, hi, *shape)}}


@hostile("D", **at(1e-9, 5), backends=both)
def expm1_of_little(x: Tensor) -> Tensor:
    return torch.expm1(x)


@hostile("D", **at(1e-9, 5), backends=both)
def log1p_of_little(x: Tensor) -> Tensor:
    return torch.log1p(x)


@hostile("D", **between(3.5, 6.0, 5), backends=both)
def tail_of_gauss(x: Tensor) -> Tensor:
    return torch.erfc(x)


@hostile("D", **between(-9.0, -7.0, 5), backends=both)
def gelu_far_left(x: Tensor) -> Tensor:
    return F.gelu(x)


@hostile("D", **between(-60.0, -30.0, 5), backends=both)
def sigmoid_far_left(x: Tensor) -> Tensor:
    return torch.sigmoid(x)


@hostile("D", **between(-60.0, -30.0, 5), backends=both)
def softplus_far_left(x: Tensor) -> Tensor:
    return F.softplus(x) + F.silu(x) * 1e-3


@hostile("D", **at(1e-6, 5), backends=both)
def tanh_and_asinh_of_little(x: Tensor) -> Tensor:
    return torch.stack([torch.tanh(x), torch.asinh(x), torch.atanh(x), torch.sinh(x)])


@hostile("D", **at(1e-5, 5), backends=both)
def one_minus_cosine(x: Tensor) -> Tensor:
    return 2 * torch.sin(x / 2) ** 2


@hostile("D", rec={"x": normal(3, 8, m=1e4)}, fresh={"x": normal(3, 8, m=1e4)}, backends=both)
def variance_on_an_offset(x: Tensor) -> Tensor:
    return x.var(-1) + x.std(-1)


@hostile("D", rec={"x": normal(3, 8, m=1e3)}, fresh={"x": normal(3, 8, m=1e3)}, backends=both)
def layer_norm_on_an_offset(x: Tensor) -> Tensor:
    return F.layer_norm(x, (8,))


@hostile("D", rec={"x": normal(30, 3, m=1e3)}, fresh={"x": normal(30, 3, m=1e3)}, backends=both)
def distances_far_from_origin(x: Tensor) -> Tensor:
    return torch.cdist(x, x[:4])


@hostile("D", rec={"x": normal(3, m=500.0)}, fresh={"x": normal(3, m=500.0)}, backends=both)
def distance_of_two(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x - torch.full((3,), 500.0))


@hostile("D", **at(1e-20, 4), backends=both)
def direction_of_little(x: Tensor) -> Tensor:
    return x / x.norm().clamp(min=1e-30)


@hostile("D", **at(1e-14, 4), backends=both)
def normalised_little(x: Tensor) -> Tensor:
    return F.normalize(x, dim=0, eps=1e-30)


@hostile("D", **at(1e25, 4), backends=both)
def norm_of_much(x: Tensor) -> Tensor:
    return x.norm()


@hostile("D", **between(80.0, 88.0, 4), backends=both)
def cosh_of_much(x: Tensor) -> Tensor:
    return torch.cosh(x) * 1e-30


@hostile("D", **between(1e-12, 1e-9, 4), backends=both)
def logit_of_little(x: Tensor) -> Tensor:
    return torch.logit(x) + torch.special.xlogy(x, x)


@hostile(
    "D",
    rec={"x": double(uniform(100.0, 101.0, 2))},
    fresh={"x": double(uniform(100.0, 101.0, 2))},
    backends=("jit", "onnx", "pt2"),
)
def double_offset(x: Tensor) -> Tensor:
    return (x - 100.1) * 1e6


@hostile("D", rec={"k": integers(0, 2**40, 3)}, backends=("jit", "onnx", "pt2"))
def big_integers_by_float(k: Tensor) -> Tensor:
    return (k / 3).floor().long()


@hostile("D", rec={"x": normal(2, 64)}, backends="onnx")
class MaskedByBillions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(torch.arange(64) % 2 == 0, self.net(x), torch.tensor(-1e9))


@hostile("D", rec={"x": normal(1, 8)}, passes=3)
class MilliAndMega(nn.Module):
    """One head in nanometres, one in megahertz, in one port."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 4)
        self.register_buffer("units", torch.tensor([1e-9, 1e-3, 1.0, 1e6]))

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x) * self.units
        return torch.cat([y[:, :1] * (1.0 if float(x[0, 0]) < 3 else -1.0), y[:, 1:]], -1)


@hostile("F", rec={"x": uniform(0.5, 2, 3)}, fresh={"x": row([-8.0, 0.0, 4.0])}, backends=both)
def negative_to_a_third(x: Tensor) -> Tensor:
    return x ** (1 / 3)


@hostile(
    "F",
    rec={"x": normal(3), "y": uniform(0.5, 3.0, 3)},
    fresh={"x": row([-2.0, 0.0, -0.5]), "y": row([2.0, 0.0, 3.0])},
    backends=both,
)
def power_of_tensors(x: Tensor, y: Tensor) -> Tensor:
    return torch.pow(x.abs(), y) + torch.float_power(x.abs() + 1, 2).float()


@hostile("F", rec={"x": uniform(-0.9, 0.9, 3)}, fresh={"x": row([1.5, -1.0, 1.0])}, backends=both)
def arc_functions_outside(x: Tensor) -> Tensor:
    return torch.stack([torch.asin(x), torch.acos(x), torch.atanh(x)])


@hostile(
    "F",
    rec={"x": uniform(0.5, 2, 4)},
    fresh={"x": row([0.0, -1.0, float("inf"), 1.0])},
    backends=both,
)
def logs_of_nothing(x: Tensor) -> Tensor:
    return torch.stack([x.log(), x.log2(), x.sqrt(), x.rsqrt(), x.reciprocal()])


@hostile(
    "F",
    rec={"x": normal(5)},
    fresh={"x": row([float("inf"), 1.0, -float("inf"), 0.0, 2.0])},
    backends=both,
)
def infinite_inputs(x: Tensor) -> Tensor:
    return torch.stack(
        [x.tanh(), x.sigmoid(), x.clamp(-2, 2), torch.nan_to_num(x, 0.0, 9.0, -9.0), F.relu(x)]
    )


@hostile(
    "F", rec={"x": normal(5)}, fresh={"x": row([float("nan"), 1.0, -1.0, 0.0, 2.0])}, backends=both
)
def nan_comparisons(x: Tensor) -> Tensor:
    return torch.stack(
        [
            torch.where(x > 0, 1.0, -1.0),
            torch.where(x == x, x, 0.0),
            torch.nan_to_num(x),
            (x != 0).float(),
            (~(x <= 0)).float(),
        ]
    )


@hostile(
    "F", rec={"x": normal(5)}, fresh={"x": row([3.0, float("nan"), -1.0, 0.0, 2.0])}, backends=both
)
def nan_in_reductions(x: Tensor) -> dict[str, Tensor]:
    return {
        "sum": x.sum(),
        "min": x.min(),
        "which": x.argmax(),
        "sorted": x.sort().values,
        "any": x.isnan().any(),
    }


@hostile(
    "F",
    rec={"x": normal(2, 5)},
    fresh={"x": row([[1.0, 1.0, 1.0, 1.0, 1.0], [0.0, -0.0, 0.0, -0.0, 0.0]])},
    backends=both,
)
def all_the_same(x: Tensor) -> dict[str, Tensor]:
    values, index = x.topk(2)
    return {"v": values, "i": index, "m": x.max(-1).indices, "n": x.min(-1).indices}


@hostile(
    "F",
    rec={"x": uniform(-3, 3, 6)},
    fresh={"x": row([-0.5, 0.5, 1.5, -1.5, 2.5, -0.0])},
    backends=both,
)
def quantised(x: Tensor) -> Tensor:
    return torch.fake_quantize_per_tensor_affine(x, 1.0, 0, -2, 2) + x.trunc() + x.frac()


@hostile(
    "F",
    rec={"x": uniform(-3, 3, 6)},
    fresh={"x": row([-2.7, 2.7, -0.5, 0.5, 3.999, -3.999])},
    backends=both,
)
def casts_towards_zero(x: Tensor) -> Tensor:
    return x.int() * 100 + x.long().to(torch.int32) + x.to(torch.int8).int()


@hostile(
    "F",
    rec={"x": normal(1, 1, 4, 4)},
    fresh={"x": row([[[[1.0, 1, 2, 2], [1, 1, 2, 2], [0, 0, 0, 0], [0, 0, 0, 0]]]])},
    backends="onnx",
)
def pooled_positions(x: Tensor) -> dict[str, Tensor]:
    y, i = F.max_pool2d(x, 2, return_indices=True)
    return {"y": y, "i": i}


@hostile(
    "F",
    rec={"n": integers(1, 6, 2), "x": normal(2, 5, 3)},
    fresh={"n": integers(1, 6, 2)},
    passes=4,
)
class PackedSequence(nn.Module):
    """Lengths become numbers inside of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)

    def forward(self, n: Tensor, x: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True, enforce_sorted=False)
        return self.rnn(packed)[1][0]


@hostile("F", rec={"x": normal(4), "t": fixed(0.5)}, fresh={"t": row(0.5, 2.0, -1.0)})
def quantile_asked_for(x: Tensor, t: Tensor) -> Tensor:
    return torch.quantile(x, t.clamp(0, 1)) + x


@hostile(
    "E", rec={"x": normal(2, 3), "k": integers(0, 3, 2)}, backends=("jit", "onnx"), runner="cli"
)
def integer_ports(x: Tensor, k: Tensor) -> dict[str, Tensor]:
    return {"picked": x.gather(1, k[:, None]), "next": (k + 1) % 3, "ok": k > 0}


@hostile("E", rec={"x": double(normal(3))}, backends=("jit", "onnx"), runner="cli")
def double_ports(x: Tensor) -> Tensor:
    return x * (1.0 / 3.0)


@hostile("E", rec={"x": row(1.0, -2.0, 3.0)}, backends=("jit", "onnx"), runner="cli")
def scalar_ports(x: Tensor) -> dict[str, Tensor]:
    return {"double": x * 2, "positive": x > 0}


@hostile("E", rec={"x": normal(2, 3)}, backends=("jit", "onnx"), runner="cli")
def half_ports(x: Tensor) -> dict[str, Tensor]:
    return {"h": x.half(), "b": (x > 0).to(torch.uint8), "i": x.to(torch.int32)}


# A small number added before a division: an exporter that takes it for zero divides by zero.


@clean(
    "F",
    rec={"goal": normal(3), "at": normal(3)},
    fresh={"goal": fixed([1.0, 2.0, 3.0]), "at": row([1.0, 2.0, 3.0], [1.0, 2.0, 2.0])},
    backends=both,
)
def direction_to_goal(goal: Tensor, at: Tensor) -> Tensor:
    d = goal - at
    return d / (d.norm() + 1e-8)


@hostile("F", rec={"x": normal(3)}, fresh={"x": row([3.7, 1.0, 2.0])}, backends=both)
def side_of_the_setpoint(x: Tensor) -> Tensor:
    d = x - torch.tensor(3.7)
    return d / (d.abs() + 1e-9)


@clean(
    "F",
    rec={"x": normal(4, m=3.0)},
    fresh={"x": row([0.5, 1.0, 0.0, 1.9], [3.0, 4.0, 1.0, 2.0])},
    backends=both,
)
def weights_above_threshold(x: Tensor) -> Tensor:
    w = F.relu(x - 2.0)
    return w / (w.sum() + 1e-8)


@clean(
    "F",
    rec={"x": normal(4), "m": row([True, False, True, True], [True, True, False, False])},
    fresh={"m": row([False] * 4, [True, False, False, False])},
    backends=both,
)
def masked_mean_with_epsilon(x: Tensor, m: Tensor) -> Tensor:
    return (x * m).sum() / (m.sum() + 1e-8)


@clean(
    "F",
    rec={"a": normal(4), "b": normal(4)},
    fresh={"a": row([0.0, 0, 0, 0]), "b": normal(4)},
    backends=both,
)
def cosine_with_epsilon(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum() / (a.norm() * b.norm() + 1e-8)


@clean("F", rec={"p": uniform(0.05, 1.0, 4)}, fresh={"p": row([0.0, 0.5, 0.5, 0.0])}, backends=both)
def entropy_with_epsilon(p: Tensor) -> Tensor:
    return -(p * torch.log(p + 1e-8)).sum()


@clean(
    "F", rec={"x": normal(2, 4)}, fresh={"x": row([[1.0] * 4, [1.0, 2.0, 3.0, 4.0]])}, backends=both
)
def standardised_rows(x: Tensor) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-8)


@hostile(
    "F", rec={"q": uniform(-1, 1, 2)}, fresh={"q": row([0.5, 0.5], [0.25, -0.75])}, backends=both
)
def slope_between_joints(q: Tensor) -> Tensor:
    return (q[0] * 2 - 1).sign() / ((q[0] - q[1]).abs() + 1e-8)


@hostile("F", rec={"x": normal(3, s=1e-4)}, fresh={"x": normal(3, s=1e-4)}, backends=both)
def nearly_one(x: Tensor) -> Tensor:
    return x * 1.000001 - x
