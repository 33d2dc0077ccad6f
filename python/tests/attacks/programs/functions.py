"""Single functions of torch on values that nobody recorded: NaN, infinities, ends of ranges, large integers.

A table rather than functions: each is one expression.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from attacks.draws import fixed, flags, integers, normal, row, uniform
from attacks.registry import clean, hostile

NAN, INF = math.nan, math.inf
ODD = row(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5],
    [1.0, 2.0, -1.0, 0.0, 3.0, NAN],
    [NAN, 1.0, 2.0, -1.0, 0.0, 3.0],
    [INF, 1.0, 2.0, -1.0, 0.0, 3.0],
    [-INF, 1.0, 2.0, -1.0, 0.0, 3.0],
    [NAN] * 6,
)
LARGE = row(
    [89.0, -89.0, 100.0, -100.0, 1000.0, -1000.0],
    [3.0, -1.0, 3.0, -1.5, 3.5, 2.0],
    [2.5, -2.5, 1.5, -1.5, 0.5, -0.5],
    [1e-8, -1e-8, 0.0, 1e-12, 1e5, -33333.7],
)
WHOLE = row(
    [2**31 - 1, -(2**31), 2**31, -(2**31) - 1, 2**40, -(2**40)],
    [7, -7, 5, -5, 8, -8],
    [0, 1, -1, 2, -2, 3],
)


def matrix(x):
    return x.reshape(2, 3)


def image(x):
    return x.reshape(1, 1, 2, 3)


#: On values that are not finite.
NOT_FINITE = {
    "amax_nan": lambda x: x.amax(0, keepdim=True),
    "max_and_place_nan": lambda x: tuple(matrix(x).max(1)),
    "argmin_nan": lambda x: matrix(x).argmin(1),
    "pool_nan": lambda x: F.max_pool2d(image(x), 2, 1),
    "pool_padded_nan": lambda x: F.max_pool1d(x.reshape(1, 1, 6), 3, 2, 1),
    "pool_to_one_nan": lambda x: F.adaptive_max_pool2d(image(x), 1),
    "sort_nan": lambda x: x.sort().values,
    "unit_vector_inf": lambda x: x / x.norm().clamp(min=1e-8),
    "floored_division_inf": lambda x: x // 2.0,
    "largest_number": lambda x: torch.fmax(x, torch.zeros(6)),
    "step_nan": lambda x: torch.heaviside(x, torch.tensor([0.5])),
    "sgn_nan": lambda x: x.sgn(),
    "largest_norm_nan": lambda x: x.norm(INF).reshape(1),
    "range_nan": lambda x: torch.stack(tuple(x.aminmax())),
    "chebyshev_nan": lambda x: (x - x.mean()).abs().amax(0, keepdim=True),
}
#: On finite values far from those that were recorded.
FAR = {
    "log_add_exp_2": lambda x: torch.logaddexp2(x, torch.zeros(6)),
    "log_cumulative": lambda x: x.logcumsumexp(0),
    "cross_entropy_of_logits": lambda x: F.binary_cross_entropy_with_logits(
        x, torch.ones(6), reduction="none"
    ),
    "division_to_floor": lambda x: torch.div(x, 0.3, rounding_mode="floor"),
    "angle_by_remainder": lambda x: torch.remainder(x + math.pi, 2 * math.pi) - math.pi,
    "plus_epsilon": lambda x: torch.rsqrt(x * x + 1e-12),
    "standardised_epsilon": lambda x: (x - x.mean()) / (x.std() + 1e-8),
    "nearly_one": lambda x: x * 1.000005 - x,
    "hypotenuse": lambda x: torch.hypot(x, x.flip(0)),
    "quantised": lambda x: torch.floor(x / 0.1 + 0.5) * 0.1,
    "huber_clip": lambda x: x.sign() * x.abs().clamp(max=1),
}
#: On integers that 32 bits do not hold.
INTEGERS = {
    "clamped_stamp": lambda k: k.clamp(-2, 2),
    "later_stamp": lambda k: torch.maximum(k, torch.tensor(0)),
    "truncated_ticks": lambda k: torch.div(k, 3, rounding_mode="trunc"),
    "floored_ticks": lambda k: torch.div(k, 3, rounding_mode="floor"),
    "remainder_of_c": lambda k: torch.fmod(k, 3),
    "bits_of_a_word": lambda k: (k.unsqueeze(-1) >> torch.arange(8)) & 1,
}

for name, function in NOT_FINITE.items():
    hostile(
        "F",
        name=f"torch_{name}",
        rec={"x": normal(6)},
        fresh={"x": ODD},
        ticks=6,
        backends=("onnx",),
        in_tests=name in ("amax_nan", "pool_nan"),
    )(function)
for name, function in FAR.items():
    hostile(
        "F",
        name=f"torch_{name}",
        rec={"x": normal(6)},
        fresh={"x": LARGE},
        ticks=4,
        backends=("onnx",),
        in_tests=name == "standardised_epsilon",
    )(function)
for name, function in INTEGERS.items():
    hostile(
        "F",
        name=f"torch_{name}",
        rec={"k": integers(0, 9, 6)},
        fresh={"k": WHOLE},
        ticks=3,
        backends=("onnx",),
        in_tests=name == "clamped_stamp",
    )(function)


@hostile("F", rec={"m": flags(0.3, 1, 4)}, fresh={"m": fixed([[True] * 4])}, backends=("onnx",))
def nothing_attended(m):
    scores = torch.arange(4.0).reshape(1, 4).masked_fill(m, -1e9)
    return scores.softmax(-1)


#: Right on every backend, with what policies are made of.
PLAIN = {
    "standardised": lambda x: (x - x.mean()) / (x.std() + 1e-6),
    "unit_quaternion": lambda x: F.normalize(x[:4], dim=0),
    "wrapped_angle": lambda x: torch.atan2(torch.sin(3 * x), torch.cos(3 * x)),
    "angle_near_pi": lambda x: torch.remainder(x + math.pi, 2 * math.pi),
    "rolled_quaternion": lambda x: torch.where(x[:1] < 0, -x[:4], x[:4]),
    "pitch": lambda x: torch.asin((2 * x).clamp(-1, 1)),
    "heading": lambda x: torch.atan2(x[:3], 1.5 + x[3:].abs()),
    "clipped": lambda x: x.clamp(-0.5, 0.5),
    "clipped_below": lambda x: x.clamp(min=0.1),
    "dead_zone": lambda x: torch.where(x.abs() < 0.1, 0.0, x),
    "half_steps": lambda x: torch.floor(x * 4) / 4 + x,
    "group_normed": lambda x: F.group_norm(x.reshape(1, 6), 2),
    "layer_normed": lambda x: F.layer_norm(x, (6,)),
    "pooled": lambda x: F.max_pool2d(image(x), 2, 1),
    "mean_pooled": lambda x: F.adaptive_avg_pool1d(x.reshape(1, 1, 6), 3),
    "points": lambda x: matrix(x).max(0).values,
    "greedy": lambda x: x.argmax(0, keepdim=True),
    "one_hot": lambda x: F.one_hot(x.argmax(), 6).float(),
    "mixed_scales": lambda x: x * torch.tensor([1e6, 1.0, 1e-3, 1e-6, 10.0, 1e3]),
    "masked_by_a_billion": lambda x: x.masked_fill(torch.arange(6) > 3, -1e9).softmax(0),
    "offset": lambda x: x + 4.5e4,
    "in_nanoamperes": lambda x: x * 1e-9 + 1e-9,
    "log_prob": lambda x: x.log_softmax(0),
    "soft_plus": lambda x: F.softplus(x) + F.silu(x) + F.gelu(x),
    "symmetric_log": lambda x: torch.sign(x) * torch.log1p(x.abs()),
    "ordered": lambda x: x.sort(descending=True).values,
    "interpolated": lambda x: F.interpolate(x.reshape(1, 1, 6), size=9, mode="linear"),
    "cross_product": lambda x: torch.linalg.cross(x[:3], x[3:]),
    "counted": lambda x: (x > 0).sum(),
    "polynomial": lambda x: x**3 - 0.5 * x**2 + 2,
}
BACKENDS = ("onnx", "jit", "onnx", "pt2")
for number, (name, function) in enumerate(PLAIN.items()):
    clean(
        "F",
        name=f"torch_{name}",
        rec={"x": normal(6)},
        fresh={"x": uniform(-2, 2, 6)},
        backends=(BACKENDS[number % len(BACKENDS)],),
        in_tests=name in ("standardised", "pooled"),
    )(function)
