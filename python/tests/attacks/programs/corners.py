"""Corners on which engines differ; the recorded passes keep away from them."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from attacks.draws import fixed, integers, normal, row, uniform
from attacks.registry import hostile

NAN, INF = math.nan, math.inf
ODD = row(
    [0.0, -0.0, 1.0],
    [-0.0, -0.0, -1.0],
    [NAN, 1.0, 2.0],
    [INF, -INF, 0.0],
    [1e38, -1e38, 1e-40],
    [2.5, -2.5, 0.5],
)
TIES = row(
    [1.0, 1.0, 0.5, 1.0], [0.0, -0.0, 0.0, 0.0], [2.0, 2.0, 2.0, 2.0], [-1.0, 3.0, 3.0, -1.0]
)


def corner(rec, fresh, **options):
    options = {"backends": ("onnx",), "ticks": 6, "passes": 3} | options
    return hostile("F", rec=rec, fresh=fresh, **options)


def odd(**options):
    return corner({"x": normal(3)}, {"x": ODD}, **options)


def ties(**options):
    return corner({"x": normal(4)}, {"x": TIES}, **options)


@corner(
    {"a": normal(3), "b": normal(3)},
    {"a": ODD, "b": fixed([-1.0, -1.0, -0.0])},
    in_tests=True,
    backends=("onnx", "jit"),
)
def atan2(a: Tensor, b: Tensor) -> Tensor:
    return torch.atan2(a, b)


@ties(in_tests=True)
def topk_indices(x: Tensor) -> Tensor:
    return x.topk(2).indices


@ties()
def argmax(x: Tensor) -> Tensor:
    return x.argmax(0, keepdim=True)


@ties()
def argmin(x: Tensor) -> Tensor:
    return x.argmin(0, keepdim=True)


@ties()
def max_with_index(x: Tensor) -> tuple[Tensor, Tensor]:
    v, i = x.max(0)
    return v, i


@ties()
def argsort_stable(x: Tensor) -> Tensor:
    return torch.argsort(x, stable=True)


@ties()
def median(x: Tensor) -> Tensor:
    return x.median().reshape(1)


@ties()
def bucketize(x: Tensor) -> Tensor:
    return torch.bucketize(x, torch.tensor([0.0, 1.0, 2.0]), right=True)


@corner({"x": normal(1, 1, 4)}, {"x": fixed([[[1.0, NAN, 0.5, 2.0]]])})
def max_pool_nan(x: Tensor) -> Tensor:
    return F.max_pool1d(x, 2)


@corner(
    {"a": normal(3), "b": normal(3)},
    {"a": fixed([INF, 1e4, -INF]), "b": fixed([1.0, 1e4, -INF])},
    in_tests=True,
)
def log_add_exp(a: Tensor, b: Tensor) -> Tensor:
    return torch.logaddexp(a, b)


@odd()
def maximum_nan(x: Tensor) -> Tensor:
    return torch.maximum(x, torch.zeros(3))


@odd()
def clamp_nan(x: Tensor) -> Tensor:
    return x.clamp(-1, 1)


@odd(in_tests=True)
def sign_nan(x: Tensor) -> Tensor:
    return torch.sign(x) * 2


@odd()
def relu_nan(x: Tensor) -> Tensor:
    return F.relu(x) + F.hardtanh(x) + F.relu6(x)


@odd()
def round_half(x: Tensor) -> Tensor:
    return torch.round(x)


@odd()
def soft_max(x: Tensor) -> Tensor:
    return x.softmax(0)


@odd()
def log_sum_exp(x: Tensor) -> Tensor:
    return x.logsumexp(0, keepdim=True)


@odd()
def comparisons(x: Tensor) -> Tensor:
    return (x >= 0).float() - (x < 0).float() + (x != x).float()


@odd()
def nan_to_num(x: Tensor) -> Tensor:
    return x.nan_to_num(0.5, 10.0, -10.0)


@odd()
def is_finite(x: Tensor) -> Tensor:
    return torch.where(torch.isfinite(x), x, torch.zeros(3))


@odd()
def reciprocal_of_zero(x: Tensor) -> Tensor:
    return 1.0 / x


@odd()
def normalised(x: Tensor) -> Tensor:
    return F.normalize(x, dim=0)


@odd(backends=("jit", "pt2"))
def cumulative_max(x: Tensor) -> Tensor:
    return torch.cummax(x, 0).values


@odd()
def min_max_of_row(x: Tensor) -> Tensor:
    return torch.stack([x.amin(), x.amax()])


@corner({"x": uniform(0.5, 3, 3)}, {"x": row([-5.5, 5.5, -0.5], [3.0, -3.0, 0.0])})
def remainder(x: Tensor) -> Tensor:
    return torch.remainder(x, 2.0) + torch.fmod(x, 2.0)


@corner({"x": uniform(0.5, 3, 3)}, {"x": row([-5.5, 5.5, -0.5], [3.0, -3.0, 0.0])})
def floor_divide(x: Tensor) -> Tensor:
    return x // 2.0 + torch.div(x, 2.0, rounding_mode="trunc")


@corner({"k": integers(1, 9, 3)}, {"k": integers(-9, 9, 3)})
def integer_division(k: Tensor) -> Tensor:
    return k // 4 + k % 4


@corner({"k": integers(0, 3, 2)}, {"k": integers(-4, 4, 2)})
def negative_index(k: Tensor) -> Tensor:
    return torch.arange(4.0)[k]


@corner({"x": uniform(0, 100, 3)}, {"x": row([1e10, -1e10, 300.0], [-1.5, 254.7, -0.5])})
def to_integer(x: Tensor) -> Tensor:
    return x.clamp(-1e6, 1e6).to(torch.int32)


@corner({"x": uniform(0.5, 2, 3)}, {"x": row([-2.0, 0.0, 2.0], [-0.5, -0.0, 1.0])})
def power(x: Tensor) -> Tensor:
    return x**3 + x.abs() ** 0.5


@corner({"x": uniform(0.5, 2, 3)}, {"x": row([-2.0, 0.0, 2.0], [-0.5, -0.0, 1.0])})
def negative_base(x: Tensor) -> Tensor:
    return torch.pow(x, torch.tensor([2.0, 0.5, 3.0]))


@corner(
    {"x": uniform(-0.9, 0.9, 1, 1, 4, 4), "g": uniform(-0.9, 0.9, 1, 2, 2, 2)},
    {"g": uniform(-1.8, 1.8, 1, 2, 2, 2)},
)
def grid_sample(x: Tensor, g: Tensor) -> Tensor:
    return F.grid_sample(x, g, align_corners=False)


@corner({"x": uniform(0.1, 0.9, 3)}, {"x": row([0.0, 1.0, 0.5], [-0.0, 1.0, 1.0])})
def entropy(x: Tensor) -> Tensor:
    return torch.special.entr(x) + torch.xlogy(x, x)


@corner({"x": uniform(-0.9, 0.9, 3)}, {"x": row([-1.0, 1.0, 0.0], [2.0, -2.0, 0.5])})
def inverse_sines(x: Tensor) -> Tensor:
    return torch.asin(x) + torch.atanh(x)


@corner({"x": normal(3)}, {"x": fixed([0.0, 0.0, 0.0])})
def cosine_of_zero(x: Tensor) -> Tensor:
    return F.cosine_similarity(x, torch.ones(3), dim=0).reshape(1)


@corner({"x": normal(3)}, {"x": fixed([0.0, 0.0, 0.0])})
def heaviside(x: Tensor) -> Tensor:
    return torch.heaviside(x, torch.tensor([0.5])) + torch.sign(x)


@corner({"x": normal(1, 5)}, {"x": fixed([[90.0, -90.0, 1000.0, -1000.0, 20.0]])})
def saturating(x: Tensor) -> Tensor:
    return F.softplus(x) + F.gelu(x) + F.silu(x) + F.logsigmoid(x)


@corner({"x": normal(4)}, {"x": fixed([3e38, 3e38, -3e38, 1.0])})
def mean_overflow(x: Tensor) -> Tensor:
    return x.mean().reshape(1) + x.norm()
