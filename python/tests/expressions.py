"""Torch expressions that people write in policies: name -> (function, maker of example inputs).

Each maker draws new inputs from the generator that it is given; shapes stay, values change.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

Maker = Callable[[torch.Generator], list[torch.Tensor]]
Case = tuple[Callable[..., Any], Maker]


def normal(*shapes: tuple[int, ...]) -> Maker:
    return lambda source: [torch.randn(shape, generator=source) for shape in shapes]


def positive(*shapes: tuple[int, ...]) -> Maker:
    return lambda source: [torch.rand(shape, generator=source) + 0.5 for shape in shapes]


def unit(*shapes: tuple[int, ...]) -> Maker:
    return lambda source: [torch.rand(shape, generator=source) * 1.8 - 0.9 for shape in shapes]


def integers(*shapes: tuple[int, ...], low: int = -9, high: int = 9) -> Maker:
    return lambda source: [torch.randint(low, high, shape, generator=source) for shape in shapes]


def indexed(shape: tuple[int, ...], index: tuple[int, ...], high: int) -> Maker:
    return lambda source: [
        torch.randn(shape, generator=source),
        torch.randint(0, high, index, generator=source),
    ]


def masked(shape: tuple[int, ...]) -> Maker:
    return lambda source: [
        torch.randn(shape, generator=source),
        torch.rand(shape, generator=source) > 0.5,
    ]


def flags(*shapes: tuple[int, ...]) -> Maker:
    return lambda source: [torch.rand(shape, generator=source) > 0.5 for shape in shapes]


def definite(size: int) -> Maker:
    def make(source: torch.Generator) -> list[torch.Tensor]:
        root = torch.randn(size, size, generator=source)
        return [root @ root.T + size * torch.eye(size)]

    return make


X = normal((3, 4))
XY = normal((3, 4), (3, 4))
IMAGE = normal((2, 3, 8, 8))
TABLE = torch.linspace(-2, 2, 12).reshape(3, 4)

torch.manual_seed(7)
LINEAR = torch.nn.Linear(4, 5).eval()
MLP = torch.nn.Sequential(
    torch.nn.Linear(4, 8),
    torch.nn.ELU(),
    torch.nn.Linear(8, 8),
    torch.nn.ELU(),
    torch.nn.Linear(8, 2),
).eval()
CONV1D = torch.nn.Conv1d(3, 5, 3, padding=1).eval()
CONV2D = torch.nn.Conv2d(3, 6, 3, stride=2, padding=1).eval()
CONV_DEPTHWISE = torch.nn.Conv2d(3, 3, 3, groups=3, dilation=2).eval()
CONV_TRANSPOSE = torch.nn.ConvTranspose2d(3, 4, 2, stride=2).eval()
CONV3D = torch.nn.Conv3d(2, 3, 2).eval()
BATCH_NORM = torch.nn.BatchNorm2d(3).eval()
BATCH_NORM.running_mean = torch.tensor([0.1, -0.2, 0.3])
BATCH_NORM.running_var = torch.tensor([1.5, 0.5, 2.0])
LAYER_NORM = torch.nn.LayerNorm(4).eval()
GROUP_NORM = torch.nn.GroupNorm(3, 3).eval()
INSTANCE_NORM = torch.nn.InstanceNorm2d(3, affine=True).eval()
EMBEDDING = torch.nn.Embedding(10, 4).eval()
GRU = torch.nn.GRU(4, 6).eval()
GRU_BATCH = torch.nn.GRU(4, 6, num_layers=2, batch_first=True).eval()
LSTM = torch.nn.LSTM(4, 6).eval()
RNN = torch.nn.RNN(4, 6).eval()
GRU_CELL = torch.nn.GRUCell(4, 6).eval()
LSTM_CELL = torch.nn.LSTMCell(4, 6).eval()
ATTENTION = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
ENCODER = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
PRELU = torch.nn.PReLU().eval()
BILINEAR = torch.nn.Bilinear(4, 4, 3).eval()


def add_in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y += 1
    y.mul_(2).sub_(x)
    return y


def add_in_place_row(x: torch.Tensor) -> torch.Tensor:
    y = x * 1
    y[0] += 3
    y[1:3] *= x[:2]
    return y


def writes_its_input(x: torch.Tensor) -> torch.Tensor:
    x[1] = 0
    return x + 1


def writes_a_view(x: torch.Tensor) -> torch.Tensor:
    y = x + 0
    view = y[:, 1:3]
    view.mul_(10)
    return y


def set_row(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(3, 4)
    y[1] = x[2]
    return y


def set_column_number(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, 2] = 7
    return y


def set_slice(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[1:, ::2] = x[:2, 1::2] * 3
    return y


def set_mask_number(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[y > 0] = -1.0
    return y


def set_mask_tensor(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[mask] = torch.tensor(0.5)
    return y


def set_index(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(3, 4)
    y[index] = x[index]
    return y


def ring_buffer(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    buffer = torch.zeros(3, 4)
    buffer[index] = x[1]
    return buffer


def set_scalar_element(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[1, index] = 8
    return y


def set_scalar_column(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[..., index] = x[None, :, 3]
    return y


def set_two_indices(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[torch.tensor([0, 2]), torch.tensor([1, 3])] = torch.tensor([5.0, 6.0])
    return y


def set_broadcast(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(2, 3, 4)
    y[:, 1:] = x[0]
    return y


def set_ellipsis(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[..., -1] = x[..., 0]
    return y


def set_where_own(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[y < 0] = y[y < 0] * 0.1
    return y


def copy_in(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(3, 4)
    y.copy_(x)
    y[0].fill_(2)
    y[1].zero_()
    return y


def out_argument(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(3, 4)
    torch.add(x, 1, out=y)
    return y * 2


def out_of_calls_that_are_replaced(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(3, 4)
    torch.addmm(x[0], x, torch.eye(4), out=y)
    z = torch.empty(3, 4)
    torch.frac(input=y, out=z)
    return y + z + torch.addmm(input=x[1], mat1=x, mat2=torch.eye(4)) + torch.frac(input=x)


def masked_fill_in_place(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return x.clone().masked_fill_(mask, 9.0)


def index_add_in_place(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(3, 4).index_add_(0, torch.tensor([0, 2, 0]), x)


def constant_written(x: torch.Tensor) -> torch.Tensor:
    buffer = torch.ones(3, 4)
    buffer[1] = 5.0
    buffer.add_(x)
    return buffer


def aten_layers(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Compute as code does that is seen below autograd only, such as script modules."""
    aten = torch.ops.aten
    weight = aten.t.default(aten.detach.default(TABLE))
    hidden = aten.addmm.default(aten.lift_fresh.default(torch.zeros(3)), x, weight)
    normed = aten.native_layer_norm.default(hidden, [3], None, None, 1e-5)[0]
    joined = aten.cat.default([normed, aten.slice.Tensor(y, 1, 0, 2)], 1)
    return aten._softmax.default(aten.view.default(joined, [5, 3]), -1, False)


def aten_in_place(x: torch.Tensor) -> torch.Tensor:
    aten = torch.ops.aten
    y = aten.clone.default(x)
    aten.copy_.default(aten.select.int(y, 0, 1), aten.select.int(x, 0, 2))
    aten.add_.Tensor(y, 1)
    aten.index_put_.default(y, [torch.tensor([0])], torch.tensor(5.0))
    return aten._to_copy.default(y, dtype=torch.float64)


def rotation_matrix(q: torch.Tensor) -> torch.Tensor:
    w, x, y, z = F.normalize(q, dim=-1).unbind(-1)
    rows = [
        torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
        torch.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
        torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
    ]
    return torch.stack(rows, -2)


def quaternion_apply(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    axis = q[:, 1:]
    twice = 2 * torch.cross(axis, v, dim=-1)
    return v + q[:, :1] * twice + torch.cross(axis, twice, dim=-1)


def history(x: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    return torch.cat([old[1:], x[None]], dim=0)


def set_behind_a_mask(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[..., mask] = 0.5
    y[:, mask, None] = x[:, :1, None]
    return y


def skew_symmetric(v: torch.Tensor) -> torch.Tensor:
    found = torch.zeros(v.shape[0], 3, 3)
    found[:, 0, 1], found[:, 0, 2], found[:, 1, 2] = -v[:, 2], v[:, 1], -v[:, 0]
    return found - found.mT


def diagonal_written(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(4, 4)
    y.diagonal().copy_(x[0])
    return y.fill_diagonal_(2.0) + y.T @ x[0]


def nearest_rotation(x: torch.Tensor) -> torch.Tensor:
    left, _, right = torch.linalg.svd(x)
    return left @ right


def square_root(x: torch.Tensor) -> torch.Tensor:
    values, vectors = torch.linalg.eigh(x)
    return vectors @ torch.diag(values.sqrt()) @ vectors.T


def projected_points(x: torch.Tensor) -> torch.Tensor:
    camera = torch.tensor([[500.0, 0.0, 320.0], [0.0, 500.0, 240.0], [0.0, 0.0, 1.0]])
    image = (x.abs() + 0.1) @ camera.T
    return image[:, :2] / image[:, 2:]


EXPRESSIONS: dict[str, Case] = {
    # arithmetic
    "add": (lambda x, y: x + y, XY),
    "sub": (lambda x, y: x - y, XY),
    "mul": (lambda x, y: x * y, XY),
    "div": (lambda x, y: x / y, positive((3, 4), (3, 4))),
    "scalar_right": (lambda x: (x + 1) * 2 - 3, X),
    "scalar_left_sub": (lambda x: 1 - x, X),
    "scalar_left_div": (lambda x: 2 / x, positive((3, 4))),
    "scalar_left_pow": (lambda x: 2**x, X),
    "numpy_scalar": (lambda x: x * np.float32(1.5) + np.int64(2), X),
    "pow_two": (lambda x: x**2, X),
    "pow_tensor": (lambda x, y: x**y, positive((3, 4), (3, 4))),
    "pow_half": (lambda x: x**0.5, positive((3, 4))),
    "negative": (lambda x: -x, X),
    "absolute": (lambda x: abs(x), X),
    "floor_divide": (lambda x: x // 2, X),
    "floor_divide_tensor": (lambda x, y: x // y, positive((3, 4), (3, 4))),
    "floor_divide_integers": (lambda x: x // 4, integers((3, 4))),
    "scalar_left_floor_divide": (lambda x: 7 // x, positive((3, 4))),
    "remainder": (lambda x: x % 2, X),
    "remainder_integers": (lambda x: x % 5, integers((3, 4))),
    "fmod": (lambda x: torch.fmod(x, 1.5), X),
    "div_trunc": (lambda x: torch.div(x, 0.7, rounding_mode="trunc"), X),
    "div_floor": (lambda x: torch.div(x, 0.7, rounding_mode="floor"), X),
    "addcmul": (lambda x, y: torch.addcmul(x, x, y, value=0.5), XY),
    "addcdiv": (lambda x, y: torch.addcdiv(x, x, y, value=0.5), positive((3, 4), (3, 4))),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3), XY),
    "lerp_tensor": (lambda x, y: torch.lerp(x, y, torch.sigmoid(x)), XY),
    "add_alpha": (lambda x, y: torch.add(x, y, alpha=3), XY),
    "rsub": (lambda x, y: torch.rsub(x, y), XY),
    "hypot": (lambda x, y: torch.hypot(x, y), XY),
    "atan2": (lambda x, y: torch.atan2(x, y), XY),
    "reciprocal": (lambda x: x.reciprocal(), positive((3, 4))),
    "sqrt_rsqrt": (lambda x: x.sqrt() + x.rsqrt(), positive((3, 4))),
    "exp_log": (lambda x: x.exp().log1p(), X),
    "expm1": (lambda x: torch.expm1(x), X),
    "log2_log10": (lambda x: x.log2() + x.log10() + x.log(), positive((3, 4))),
    "trigonometry": (lambda x: x.sin() + x.cos() * x.tan(), unit((3, 4))),
    "inverse_trigonometry": (lambda x: x.asin() + x.acos() + x.atan(), unit((3, 4))),
    "hyperbolic": (lambda x: x.sinh() + x.cosh() + x.tanh() + x.asinh(), X),
    "round": (lambda x: torch.round(x * 3), X),
    "round_decimals": (lambda x: torch.round(x, decimals=1), X),
    "floor_ceil": (lambda x: x.floor() + x.ceil() * 2, X),
    "trunc_frac": (lambda x: x.trunc() + x.frac(), X),
    "sign": (lambda x: x.sign(), X),
    "copysign": (lambda x, y: torch.copysign(x, y), XY),
    "erf": (lambda x: torch.erf(x), X),
    "logaddexp": (lambda x, y: torch.logaddexp(x, y), XY),
    "sinc": (lambda x: torch.sinc(x), X),
    "deg2rad": (lambda x: torch.deg2rad(x) + torch.rad2deg(x), X),
    "nan_to_num": (lambda x: torch.nan_to_num(x.log(), nan=1.0, neginf=-5.0), X),
    "xlogy": (lambda x, y: torch.xlogy(x, y), positive((3, 4), (3, 4))),
    # comparison and logic
    "compare": (lambda x, y: (x > y) | (x <= 0.1) & (x != y), XY),
    "invert_mask": (lambda x: ~(x > 0), X),
    "invert_integers": (lambda x: ~x, integers((3, 4))),
    "exclusive_or": (lambda a, b: a ^ b, flags((3, 4), (3, 4))),
    "logical": (
        lambda a, b: torch.logical_and(a, torch.logical_not(b)) | torch.logical_xor(a, b),
        flags((3, 4), (3, 4)),
    ),
    "bit_operations": (lambda x, y: (x & y) | (x ^ 3), integers((3, 4), (3, 4))),
    "shifts": (lambda x: (x << 2) + (x >> 1), integers((3, 4), low=0)),
    "isnan": (lambda x: torch.isnan(x.log()), X),
    "isfinite": (lambda x: torch.isfinite(x.log()), X),
    "isclose": (lambda x: torch.isclose(x, x.round(), atol=0.3), X),
    "where": (lambda x, y: torch.where(x > y, x, y), XY),
    "where_scalar": (lambda x: torch.where(x > 0, x, 0.0), X),
    "where_method": (lambda x, y: x.where(x > 0.3, y), XY),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), X),
    "clamp_tensor": (lambda x, y: torch.clamp(x, min=-y.abs(), max=y.abs()), XY),
    "clip_minimum": (lambda x: x.clip(min=0.1), X),
    "maximum": (lambda x, y: torch.maximum(x, y) - torch.minimum(x, y), XY),
    "masked_fill": (lambda x, m: x.masked_fill(m, -1e9), masked((3, 4))),
    "heaviside": (lambda x: torch.heaviside(x, torch.tensor(0.5)), X),
    # indexing
    "index_integer": (lambda x: x[1] + 1, X),
    "index_negative": (lambda x: x[-1, -2:] * 2, X),
    "index_slice": (lambda x: x[1:, :3] + 0, X),
    "index_step": (lambda x: x[::2, 1::2] + 0, X),
    "index_none": (lambda x: x[:, None, :, None] * 2, X),
    "index_ellipsis": (lambda x: x[..., 1] + x[..., -1], X),
    "index_whole": (lambda x: x[:] + 1, X),
    "index_list": (lambda x: x[[2, 0]] + 0, X),
    "index_numpy": (lambda x: x[:, np.array([3, 0, 1])] + 0, X),
    "index_tensor": (lambda x, i: x[i], indexed((3, 4), (5,), 3)),
    "index_tensor_column": (lambda x, i: x[:, i] * 2, indexed((3, 4), (2,), 4)),
    "index_tensor_scalar": (lambda x, i: x[i] * 2, indexed((3, 4), (), 3)),
    "index_tensor_scalar_column": (lambda x, i: x[1:, i - 4] * 2, indexed((3, 4), (), 4)),
    "index_scalar_ellipsis": (
        lambda x, i: x[..., i, None, :] * 2,
        indexed((2, 3, 4), (), 3),
    ),
    "index_two_scalars": (lambda x, i: x[i, 1, i] * 2, indexed((3, 2, 4), (), 3)),
    "index_two_tensors": (lambda x, i: x[torch.arange(3), i], indexed((3, 4), (3,), 4)),
    "index_mask_constant": (
        lambda x: x[torch.tensor([True, False, True])] + 1,
        X,
    ),
    "index_mask_sum": (lambda x: x[x > 0].sum(), X),
    "index_mixed": (lambda x, i: x[None, 1:, i] + 0, indexed((3, 4), (2,), 4)),
    "view_output": (lambda x: x[1:], X),
    "identity_output": (lambda x: x, X),
    "select": (lambda x: x.select(1, 2) + 0, X),
    "narrow": (lambda x: x.narrow(1, 1, 2) + 0, X),
    "index_select": (lambda x, i: x.index_select(1, i), indexed((3, 4), (3,), 4)),
    "take": (lambda x, i: torch.take(x, i), indexed((3, 4), (5,), 12)),
    "take_along_dim": (lambda x: torch.take_along_dim(x, x.argsort(1), 1), X),
    "masked_select_sum": (lambda x: torch.masked_select(x, x > 0).sum(), X),
    # assignment and in-place
    "add_in_place": (add_in_place, X),
    "add_in_place_row": (add_in_place_row, X),
    "writes_its_input": (writes_its_input, X),
    "writes_a_view": (writes_a_view, X),
    "set_row": (set_row, X),
    "set_column_number": (set_column_number, X),
    "set_slice": (set_slice, X),
    "set_mask_number": (set_mask_number, X),
    "set_mask_tensor": (set_mask_tensor, masked((3, 4))),
    "set_index": (set_index, indexed((3, 4), (2,), 3)),
    "ring_buffer": (ring_buffer, indexed((3, 4), (), 3)),
    "set_scalar_element": (set_scalar_element, indexed((3, 4), (), 3)),
    "set_scalar_column": (set_scalar_column, indexed((3, 4), (), 3)),
    "set_two_indices": (set_two_indices, X),
    "set_broadcast": (set_broadcast, X),
    "set_ellipsis": (set_ellipsis, X),
    "set_where_own": (set_where_own, X),
    "copy_in": (copy_in, X),
    "out_argument": (out_argument, X),
    "out_of_calls_that_are_replaced": (out_of_calls_that_are_replaced, X),
    "masked_fill_in_place": (masked_fill_in_place, masked((3, 4))),
    "index_add_in_place": (index_add_in_place, X),
    "constant_written": (constant_written, X),
    "relu_in_place": (lambda x: F.relu(x + 0, inplace=True), X),
    "clamp_in_place": (lambda x: (x * 2).clamp_(-1, 1), X),
    "squeeze_in_place": (lambda x: (x[:, None] + 1).squeeze_(1), X),
    # scatter and gather
    "gather": (lambda x, i: x.gather(1, i), indexed((3, 4), (3, 2), 4)),
    "scatter": (lambda x, i: torch.zeros(3, 6).scatter(1, i, x), indexed((3, 4), (3, 4), 1)),
    "scatter_number": (
        lambda x, i: x.scatter(1, i, 5.0),
        indexed((3, 4), (3, 1), 4),
    ),
    "scatter_add": (
        lambda x, i: torch.zeros(3, 6).scatter_add(1, i, x),
        indexed((3, 4), (3, 4), 6),
    ),
    "scatter_reduce": (
        lambda x, i: torch.zeros(3, 6).scatter_reduce(1, i, x, reduce="amax", include_self=False),
        indexed((3, 4), (3, 4), 6),
    ),
    "index_copy": (lambda x: torch.zeros(5, 4).index_copy(0, torch.tensor([4, 0, 2]), x), X),
    "index_put": (lambda x: x.index_put((torch.tensor([0, 2]),), torch.ones(2, 4)), X),
    "index_fill": (lambda x: x.index_fill(1, torch.tensor([0, 3]), -1.0), X),
    "one_hot": (lambda i: F.one_hot(i, 5), integers((4,), low=0, high=5)),
    "embedding": (lambda i: EMBEDDING(i), integers((2, 3), low=0, high=10)),
    "bucketize": (lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), X),
    "searchsorted": (lambda x: torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), x), X),
    # shapes
    "reshape": (lambda x: x.reshape(2, -1) + 1, X),
    "view": (lambda x: x.view(12) + 1, X),
    "flatten": (lambda x: x.flatten(1) * 2, normal((2, 3, 4))),
    "unflatten": (lambda x: x.unflatten(1, (2, 2)) * 2, X),
    "transpose": (lambda x: x.T @ x, X),
    "transpose_last": (lambda x: x.mT + 0, normal((2, 3, 4))),
    "adjoint": (lambda x: x.mH + 0, normal((2, 3, 4))),
    "permute": (lambda x: x.permute(2, 0, 1) * 2, normal((2, 3, 4))),
    "movedim": (lambda x: x.movedim(0, -1) * 2, normal((2, 3, 4))),
    "squeeze": (lambda x: x.unsqueeze(1).squeeze(1) + 1, X),
    "expand": (lambda x: x[:1].expand(5, -1) * 2, X),
    "expand_as": (lambda x, y: x[:, :1].expand_as(y) + y, XY),
    "broadcast_to": (lambda x: torch.broadcast_to(x[0], (3, 4)) + x, X),
    "repeat": (lambda x: x.repeat(2, 3), X),
    "tile": (lambda x: torch.tile(x, (2,)), X),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, dim=1), X),
    "cat": (lambda x, y: torch.cat([x, y, x], dim=-1), XY),
    "stack": (lambda x, y: torch.stack((x, y), dim=1), XY),
    "hstack_vstack": (lambda x, y: torch.vstack([torch.hstack([x, y]), torch.hstack([y, x])]), XY),
    "split": (lambda x: torch.cat(x.split([1, 3], dim=1)[::-1], dim=1), X),
    "chunk": (lambda x: x.chunk(2, dim=1)[1] * 2, X),
    "unbind": (lambda x: x.unbind(0)[1] + 1, X),
    "iterate": (lambda x: torch.stack([row.sum() for row in x]), X),
    "flip": (lambda x: x.flip(0) + x.flip([1]), X),
    "fliplr": (lambda x: torch.fliplr(x), X),
    "roll": (lambda x: x.roll(1, 0) + torch.roll(x, (1, -1), (0, 1)), X),
    "rot90": (lambda x: torch.rot90(x), X),
    "tril_triu": (lambda x: x.tril() + x.triu(1) * 2, X),
    "diagonal": (lambda x: x.diagonal() + 1, X),
    "diag_embed": (lambda x: torch.diag_embed(x), X),
    "meshgrid": (
        lambda x, y: torch.stack(torch.meshgrid(x, y, indexing="ij")),
        normal((3,), (4,)),
    ),
    "pad_constant": (lambda x: F.pad(x, (1, 2), value=3.0), X),
    "pad_reflect": (lambda x: F.pad(x, (1, 1, 2, 2), mode="reflect"), IMAGE),
    "pad_replicate": (lambda x: F.pad(x, (1, 1, 2, 2), mode="replicate"), IMAGE),
    "pad_circular": (lambda x: F.pad(x, (1, 1), mode="circular"), normal((2, 3, 5))),
    "unfold": (lambda x: x.unfold(1, 2, 1) * 2, X),
    "window_patches": (lambda x: F.unfold(x, 2), normal((1, 2, 4, 4))),
    "cartesian": (lambda x, y: torch.cartesian_prod(x, y), normal((2,), (3,))),
    "combinations": (lambda x: torch.combinations(x), normal((4,))),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), normal((1, 4, 3, 3))),
    "atleast": (lambda x: torch.atleast_3d(x) + 0, X),
    "as_strided": (lambda x: x.as_strided((2, 2), (4, 1)) + 1, X),
    # casts and creation
    "to_double": (lambda x: x.to(torch.float64) * 2, X),
    "to_half": (lambda x: (x.half() * 2).float(), X),
    "to_integers": (lambda x: (x * 5).long() + (x * 5).int(), X),
    "to_bool": (lambda x: x.round().bool(), X),
    "type_as": (lambda x, i: x.type_as(i), indexed((3, 4), (2,), 3)),
    "type_dtype": (lambda x: x.type(torch.float64), X),
    "type_name": (lambda x: x.type("torch.LongTensor"), X),
    "data": (lambda x: x.data * 2, X),
    "detach": (lambda x: x.detach().clone(), X),
    "deepcopy": (lambda x: copy.deepcopy(x) + 1, X),
    "contiguous": (lambda x: x.T.contiguous().view(-1) + 1, X),
    "zeros_like": (lambda x: torch.zeros_like(x) + x[0], X),
    "ones_like_full_like": (lambda x: torch.ones_like(x) * x + torch.full_like(x, 0.5), X),
    "new_tensors": (lambda x: x.new_zeros(3, 4) + x.new_full((4,), 2.0) + x, X),
    "tensor_of_scalars": (lambda x: torch.tensor([x[0, 0], x[1, 1], 2.0]), X),
    "tensor_of_tensor": (lambda x: torch.as_tensor(x, dtype=torch.float64) * 2, X),
    "arange_added": (lambda x: x + torch.arange(4), X),
    "eye_added": (lambda x: x @ torch.eye(4) + TABLE, X),
    "linspace_scaled": (lambda x: x[:, :1] * torch.linspace(0, 1, 5), X),
    "integer_mean": (lambda x: x.float().mean(0) + x, integers((3, 4))),
    "promotion": (lambda x, i: x[:2, :3] * i, indexed((3, 4), (2, 3), 9)),
    # reductions
    "sum": (lambda x: x.sum() + x.sum(0), X),
    "sum_keepdim": (lambda x: x / x.abs().sum(-1, keepdim=True), X),
    "mean": (lambda x: x.mean((0, 1)) + x.mean(dim=1), X),
    "prod": (lambda x: x.prod() + x.prod(1), X),
    "std": (lambda x: x.std() + x.std(dim=0), X),
    "variance": (lambda x: x.var(1, unbiased=False), X),
    "var_mean": (lambda x: torch.var_mean(x, dim=1)[0] + torch.var_mean(x, dim=1)[1], X),
    "maximum_value": (lambda x: x.max() + x.amax(1), X),
    "max_pair": (lambda x: x.max(dim=1), X),
    "min_values": (lambda x: x.min(dim=0).values, X),
    "aminmax": (lambda x: torch.aminmax(x, dim=1), X),
    "argmax": (lambda x: x.argmax(-1), X),
    "argmin_flat": (lambda x: x.argmin(), X),
    "all_any": (lambda x: (x > 0).any() | (x > 0).all(1), X),
    "any_dimension": (lambda x: (x > 1).any(-1), X),
    "count_nonzero": (lambda x: torch.count_nonzero(x > 0, dim=1), X),
    "cumsum": (lambda x: x.cumsum(1), X),
    "cumprod": (lambda x: x.cumprod(0), X),
    "cummax": (lambda x: x.cummax(1).values, X),
    "logsumexp": (lambda x: torch.logsumexp(x, 1), X),
    "median": (lambda x: x.median(), X),
    "quantile": (lambda x: torch.quantile(x, 0.3, dim=1), X),
    "norm": (lambda x: x.norm(), X),
    "norm_dimension": (lambda x: x.norm(dim=-1, keepdim=True), X),
    "norm_one": (lambda x: torch.norm(x, p=1, dim=0), X),
    "vector_norm": (lambda x: torch.linalg.vector_norm(x, dim=1), X),
    "linalg_norm": (lambda x: torch.linalg.norm(x, dim=-1), X),
    "normalize": (lambda x: F.normalize(x, dim=-1), X),
    "cosine_similarity": (lambda x, y: F.cosine_similarity(x, y, dim=1), XY),
    "diff": (lambda x: x.diff(dim=1), X),
    "histogram": (lambda x: torch.histc(x, 4, -2, 2), X),
    # sorting
    "sort": (lambda x: x.sort(dim=1), X),
    "sort_descending": (lambda x: torch.sort(x, descending=True)[0], X),
    "argsort": (lambda x: x.argsort(dim=0), X),
    "topk": (lambda x: torch.topk(x, 2, dim=1), X),
    "kthvalue": (lambda x: x.kthvalue(2, dim=1).values, X),
    # linear algebra
    "matmul": (lambda x, y: x @ y.T, XY),
    "matmul_batch": (lambda x, y: x @ y, normal((2, 3, 4), (4, 5))),
    "bmm": (lambda x, y: torch.bmm(x, y), normal((2, 3, 4), (2, 4, 5))),
    "baddbmm": (
        lambda c, x, y: torch.baddbmm(c, x, y, beta=0.5, alpha=2.0),
        normal((2, 3, 5), (2, 3, 4), (2, 4, 5)),
    ),
    "addmm": (lambda c, x, y: torch.addmm(c, x, y), normal((5,), (3, 4), (4, 5))),
    "mv_dot": (lambda x: torch.mv(x, x[0]).sum() + torch.dot(x[0], x[1]), X),
    "outer": (lambda x: torch.outer(x[0], x[1]), X),
    "kron": (lambda x: torch.kron(x, torch.eye(2)), X),
    "einsum": (lambda x, y: torch.einsum("bij,bjk->bik", x, y), normal((2, 3, 4), (2, 4, 5))),
    "einsum_trace": (lambda x, y: torch.einsum("ij,ij->i", x, y), XY),
    "tensordot": (lambda x, y: torch.tensordot(x, y, dims=([1], [1])), XY),
    "cross": (lambda x, y: torch.cross(x, y, dim=-1), normal((4, 3), (4, 3))),
    "cdist": (lambda x, y: torch.cdist(x, y), XY),
    "inverse": (lambda x: torch.linalg.inv(x), definite(3)),
    "solve": (lambda x: torch.linalg.solve(x, torch.ones(3, 1)), definite(3)),
    "determinant": (lambda x: torch.linalg.det(x), definite(3)),
    "cholesky": (lambda x: torch.linalg.cholesky(x), definite(3)),
    "matrix_power": (lambda x: torch.linalg.matrix_power(x, 3), definite(3)),
    "trace": (lambda x: torch.trace(x), definite(3)),
    "qr": (lambda x: torch.linalg.qr(x).Q, normal((5, 3))),
    "least_squares": (lambda x, y: torch.linalg.lstsq(x, y).solution, normal((6, 3), (6, 2))),
    "pseudo_inverse": (lambda x: torch.linalg.pinv(x), normal((5, 3))),
    "log_determinant": (lambda x: torch.linalg.slogdet(x).logabsdet, definite(4)),
    "triangle_solved": (
        lambda x: torch.linalg.solve_triangular(x, torch.ones(3, 2), upper=False),
        definite(3),
    ),
    "cholesky_solved": (
        lambda x: torch.cholesky_solve(torch.ones(3, 2), torch.linalg.cholesky(x)),
        definite(3),
    ),
    "whether_there_is_an_inverse": (lambda x: torch.linalg.inv_ex(x).info, definite(3)),
    "nearest_rotation": (nearest_rotation, definite(3)),
    "square_root_of_a_matrix": (square_root, definite(3)),
    "singular_values": (lambda x: torch.linalg.svdvals(x), normal((4, 3))),
    "transposed_times_vector": (lambda x, y: x.T @ y, normal((5, 3), (5,))),
    "skew_symmetric": (skew_symmetric, normal((4, 3))),
    "projected_points": (projected_points, normal((4, 3))),
    "matrix_exponential": (lambda x: torch.matrix_exp(x * 0.05), definite(3)),
    "rotation_matrix": (rotation_matrix, normal((5, 4))),
    "quaternion_apply": (quaternion_apply, normal((5, 4), (5, 3))),
    "history": (history, normal((4,), (3, 4))),
    # statistics and special functions
    "covariance": (lambda x: torch.cov(x), normal((3, 9))),
    "correlation": (lambda x: torch.corrcoef(x), normal((3, 9))),
    "cummin": (lambda x: x.cummin(1).values, X),
    "nanmedian": (lambda x: x.nanmedian(1).values, X),
    "pairwise_distances": (lambda x: F.pdist(x), normal((5, 3))),
    "erfinv": (lambda x: torch.erfinv(x), unit((3, 4))),
    "lgamma": (lambda x: torch.lgamma(x), positive((3, 4))),
    "digamma": (lambda x: torch.digamma(x), positive((3, 4))),
    "set_behind_a_mask": (
        set_behind_a_mask,
        lambda source: [*normal((2, 4))(source), *flags((4,))(source)],
    ),
    "diagonal_written": (diagonal_written, normal((3, 4))),
    # fft
    "irfft_padded": (lambda x: torch.fft.irfft(torch.fft.rfft(x), n=12), normal((3, 7))),
    "fft_magnitude": (lambda x: torch.fft.fft(x).abs(), normal((3, 8))),
    "rfft": (lambda x: torch.view_as_real(torch.fft.rfft(x)), normal((3, 8))),
    "irfft": (lambda x: torch.fft.irfft(torch.fft.rfft(x), n=8), normal((3, 8))),
    "fft_real_part": (lambda x: torch.fft.fft(x).real + torch.fft.fft(x).imag, normal((3, 8))),
    "fft_shift": (lambda x: torch.fft.fftshift(x), normal((3, 8))),
    # activations and losses
    "relu": (lambda x: F.relu(x) + torch.relu(-x) * 0.1, X),
    "elu_selu": (lambda x: F.elu(x) + F.selu(x), X),
    "gelu": (lambda x: F.gelu(x) + F.gelu(x, approximate="tanh"), X),
    "silu_mish": (lambda x: F.silu(x) + F.mish(x), X),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), X),
    "hard_activations": (lambda x: F.hardtanh(x) + F.hardswish(x) + F.hardsigmoid(x), X),
    "relu6": (lambda x: F.relu6(x * 4), X),
    "softplus": (lambda x: F.softplus(x) + F.softsign(x), X),
    "softmax": (lambda x: F.softmax(x, dim=-1), X),
    "softmax_method": (lambda x: x.softmax(0), X),
    "log_softmax": (lambda x: torch.log_softmax(x, 1), X),
    "sigmoid": (lambda x: torch.sigmoid(x) + F.logsigmoid(x), X),
    "glu": (lambda x: F.glu(x, dim=1), X),
    "threshold": (lambda x: F.threshold(x, 0.1, -1.0), X),
    "prelu": (lambda x: PRELU(x), X),
    "softmin": (lambda x: F.softmin(x, dim=1), X),
    "dropout_eval": (lambda x: F.dropout(x, 0.5, training=False), X),
    "mse_loss": (lambda x, y: F.mse_loss(x, y), XY),
    "smooth_l1_loss": (lambda x, y: F.smooth_l1_loss(x, y, reduction="none"), XY),
    "cross_entropy": (lambda x, i: F.cross_entropy(x, i), indexed((3, 4), (3,), 4)),
    # layers
    "linear": (lambda x: LINEAR(x), X),
    "mlp": (lambda x: MLP(x), X),
    "bilinear": (lambda x, y: BILINEAR(x, y), XY),
    "conv1d": (lambda x: CONV1D(x), normal((2, 3, 8))),
    "conv2d": (lambda x: CONV2D(x), IMAGE),
    "conv_depthwise": (lambda x: CONV_DEPTHWISE(x), IMAGE),
    "conv_transpose": (lambda x: CONV_TRANSPOSE(x), IMAGE),
    "conv3d": (lambda x: CONV3D(x), normal((1, 2, 4, 4, 4))),
    "batch_norm": (lambda x: BATCH_NORM(x), IMAGE),
    "layer_norm": (lambda x: LAYER_NORM(x), X),
    "group_norm": (lambda x: GROUP_NORM(x), IMAGE),
    "instance_norm": (lambda x: INSTANCE_NORM(x), IMAGE),
    "rms_norm": (lambda x: F.rms_norm(x, (4,)), X),
    "max_pool": (lambda x: F.max_pool2d(x, 2), IMAGE),
    "max_pool_indices": (lambda x: F.max_pool2d(x, 2, return_indices=True), IMAGE),
    "average_pool": (lambda x: F.avg_pool2d(x, 3, stride=2, padding=1), IMAGE),
    "adaptive_average_pool": (lambda x: F.adaptive_avg_pool2d(x, 1), IMAGE),
    "adaptive_max_pool": (lambda x: F.adaptive_max_pool2d(x, 2), IMAGE),
    "interpolate_nearest": (lambda x: F.interpolate(x, scale_factor=2), IMAGE),
    "interpolate_bilinear": (
        lambda x: F.interpolate(x, size=(5, 12), mode="bilinear", align_corners=False),
        IMAGE,
    ),
    "interpolate_corners": (
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
        IMAGE,
    ),
    "interpolate_bicubic": (lambda x: F.interpolate(x, size=(16, 16), mode="bicubic"), IMAGE),
    "grid_sample": (
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        lambda source: [
            torch.randn(2, 3, 8, 8, generator=source),
            torch.rand(2, 4, 4, 2, generator=source) * 1.6 - 0.8,
        ],
    ),
    "affine_grid": (
        lambda t: F.affine_grid(t, [2, 1, 4, 4], align_corners=False),
        normal((2, 2, 3)),
    ),
    "gru": (lambda x, h: GRU(x, h), normal((3, 2, 4), (1, 2, 6))),
    "gru_batch_first": (lambda x: GRU_BATCH(x)[0], normal((2, 3, 4))),
    "lstm": (lambda x, h, c: LSTM(x, (h, c))[0], normal((3, 2, 4), (1, 2, 6), (1, 2, 6))),
    "rnn": (lambda x: RNN(x)[1], normal((3, 2, 4))),
    "gru_cell": (lambda x, h: GRU_CELL(x, h), normal((2, 4), (2, 6))),
    "lstm_cell": (lambda x, h, c: LSTM_CELL(x, (h, c)), normal((2, 4), (2, 6), (2, 6))),
    "attention": (lambda x: ATTENTION(x, x, x), normal((2, 5, 8))),
    "attention_masked": (
        lambda x: ATTENTION(x, x, x, attn_mask=torch.ones(5, 5).triu(1).bool(), need_weights=False)[
            0
        ],
        normal((2, 5, 8)),
    ),
    "encoder_layer": (lambda x: ENCODER(x), normal((2, 5, 8))),
    "scaled_dot_product": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        normal((2, 2, 5, 4), (2, 2, 5, 4), (2, 2, 5, 4)),
    ),
    "scaled_dot_product_causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        normal((2, 2, 5, 4), (2, 2, 5, 4), (2, 2, 5, 4)),
    ),
    "aten_overload": (lambda x, y: torch.ops.aten.add.Tensor(x, y, alpha=2), XY),
    "aten_layers": (aten_layers, XY),
    "aten_in_place": (aten_in_place, X),
    "aten_packet": (lambda x: torch.ops.aten.relu(x), X),
    "aten_to_copy": (lambda x: torch.ops.aten._to_copy.default(x, dtype=torch.float64), X),
    "vmap_free_batch": (lambda x: (x[:, None] - x[None]).norm(dim=-1), X),
}
