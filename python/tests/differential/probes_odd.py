"""Code that is odd and legal: it must come out right, or be told."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from differential.probes import right, right_everywhere, told


def _seeded(make: Any) -> Any:
    torch.manual_seed(5)
    return make().eval()


# Compiled code


@torch.jit.script
def _scripted(x: Tensor) -> Tensor:
    return x.tanh() * 2


_SCRIPTED = torch.jit.script(_seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh())))
_TRACED = torch.jit.trace(_seeded(lambda: nn.Linear(4, 3)), torch.zeros(2, 4))
_COMPILED = torch.compile(_seeded(lambda: nn.Linear(4, 3)), backend="eager")


@right_everywhere()
def scripted_function(x: Tensor) -> Tensor:
    return _scripted(x) + 1


@right_everywhere()
def scripted_module(x: Tensor) -> Tensor:
    return _SCRIPTED(x) + 1


@right_everywhere()
def traced_module(x: Tensor) -> Tensor:
    return _TRACED(x) + 1


@right()
def compiled_module(x: Tensor) -> Tensor:
    return _COMPILED(x) + 1


@told("VER0920", "VER0911", "VER1001")
def higher_order_condition(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,))  # told


# Transformations of functions


@right_everywhere()
def vectorised(x: Tensor) -> Tensor:
    return torch.vmap(lambda row: row * row.sum())(x)


@right()
def gradient_by_transformation(x: Tensor) -> Tensor:
    return torch.func.grad(lambda v: (v**3).sum())(x)


@told("VER0920", "VER1001", context=torch.enable_grad)
def gradient_by_autograd(x: Tensor) -> Tensor:
    leaf = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad((leaf**3).sum(), leaf)  # told
    return slope.detach()


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 3

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * 3


@right()
def autograd_function(x: Tensor) -> Tensor:
    return _Scaled.apply(x) + 1


@right()
def checkpointed(x: Tensor) -> Tensor:
    return checkpoint(lambda v: v.sin() * 2, x, use_reentrant=False)


_LINEAR = _seeded(lambda: nn.Linear(4, 4))


@right()
def functional_call(x: Tensor) -> Tensor:
    weights = {"weight": torch.eye(4) * 2, "bias": torch.ones(4)}
    return torch.func.functional_call(_LINEAR, weights, (x,))


@right()
def forward_hooks(x: Tensor) -> Tensor:
    handle = _LINEAR.register_forward_hook(lambda module, given, out: out * 2)
    try:
        return _LINEAR(x)
    finally:
        handle.remove()


# Modes and contexts


@right()
def autocast(x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return _LINEAR(x).float()


@right()
def torch_function_switched_off(x: Tensor) -> Tensor:
    with torch._C.DisableTorchFunction():
        y = x * 2
        y += 1
    return y * 3


@right()
def torch_function_of_subclasses_switched_off(x: Tensor) -> Tensor:
    with torch._C.DisableTorchFunctionSubclass():
        y = x * 2
    return y * 3


@right()
def inference_mode_inside(x: Tensor) -> Tensor:
    with torch.inference_mode():
        y = x * 2
        y += 1
    return y.clone()


@right()
def gradients_on_inside(x: Tensor) -> Tensor:
    with torch.enable_grad():
        return (x * 2).detach()


@right()
def a_device_context_inside(x: Tensor) -> Tensor:
    with torch.device("cpu"):
        offset = torch.ones(4)
    return x + offset


@right()
def a_thread_started_inside(x: Tensor) -> Tensor:
    results: list[Tensor] = []
    thread = threading.Thread(target=lambda: results.append(x * 2))
    thread.start()
    thread.join()
    return results[0] + 1


@contextlib.contextmanager
def _doubling(x: Tensor) -> Iterator[Tensor]:
    yield x * 2


@right()
def a_context_manager_of_the_user(x: Tensor) -> Tensor:
    with _doubling(x) as y:
        return y + 1


@right()
def a_generator(x: Tensor) -> Tensor:
    return torch.stack(list(row * i for i, row in enumerate(x)))  # noqa: C400 - the generator counts


# Tensors by other ways


@right()
def array_round_trip(x: Tensor) -> Tensor:
    return torch.from_numpy(x.numpy()) * 2


@right()
def dlpack_round_trip(x: Tensor) -> Tensor:
    return torch.from_dlpack(x * 1.0) * 2


@right()
def a_parameter_made_of_the_input(x: Tensor) -> Tensor:
    return nn.Parameter(x, requires_grad=False) * 2


@right()
def set_to_another_storage(x: Tensor) -> Tensor:
    y = torch.empty(0)
    y.set_(x * 2)
    return y + 1


@right()
def written_through_data(x: Tensor) -> Tensor:
    y = x * 2
    y.data.add_(1)
    return y * 3


@right()
def data_rebound(x: Tensor) -> Tensor:
    y = torch.zeros(2, 4)
    y.data = x * 2
    return y + 1


@right()
def deep_copy(x: Tensor) -> Tensor:
    return copy.deepcopy(x) * 2


@right()
def shallow_copy(x: Tensor) -> Tensor:
    return copy.copy(x) * 2


_TABLE = np.arange(8, dtype=np.float32).reshape(2, 4)


@right()
def a_constant_from_numpy(x: Tensor) -> Tensor:
    return x + torch.from_numpy(_TABLE)


@right()
def a_constant_from_bytes(x: Tensor) -> Tensor:
    return x + torch.frombuffer(bytearray(16), dtype=torch.float32)


@right()
def a_tensor_of_elements(x: Tensor) -> Tensor:
    return torch.tensor([x[0, 0], x[1, 1]]) * 2


_VIEW = torch.arange(8.0).reshape(2, 4)[:, 1:3]


@right()
def a_view_made_before_the_session(x: Tensor) -> Tensor:
    return x[:, :2] * _VIEW


@right()
def a_sparse_operand(x: Tensor) -> Tensor:
    eye = torch.eye(4).to_sparse()
    return torch.sparse.mm(eye, x.t()).t()


@told("VER0920", "VER0924", "VER1001", "VER0902", "VER0908")
def a_nested_tensor(x: Tensor) -> Tensor:
    nested = torch.nested.nested_tensor([x[0], x[1]])  # told
    return torch.nested.to_padded_tensor(nested * 2, 0.0)  # told


# Operators and indexing


@right_everywhere()
def reflected_operators(x: Tensor) -> Tensor:
    return (2 - x) + 2 / (x.abs() + 1) + 2**x


@right_everywhere()
def attributes_that_are_tensors(x: Tensor) -> Tensor:
    return x.T @ x.mT.T + x.real.T @ x.data


@right_everywhere()
def an_augmented_slice(x: Tensor) -> Tensor:
    y = x * 1
    y[0:1] += 5
    y[:, 1:3] *= 2
    return y


@right()
def iteration(x: Tensor) -> Tensor:
    total = torch.zeros(4)
    for row in x:
        total = total + row
    return total


@right_everywhere()
def indices_of_every_kind(x: Tensor) -> Tensor:
    picked = x[..., None, ::2] + x[:, [0, 2]].unsqueeze(1)
    return picked + x[-1, -1]


@right_everywhere()
def integer_operators(x: Tensor) -> Tensor:
    n = (x * 10).long()
    return (n // 3) + (n % 3) + (n & 1) + (n << 1)


@right()
def an_inverted_mask(x: Tensor) -> Tensor:
    return torch.where(~(x > 0), x, -x)


@right()
def complex_numbers(x: Tensor) -> Tensor:
    spectrum = torch.fft.rfft(x)
    return torch.fft.irfft(spectrum * 2, n=4) + spectrum.abs().sum()


# TorchScript has no such view: scripted, it forgets the dtype; traced, it stops.
@told("VER1001")
def bits_seen_as_integers(x: Tensor) -> Tensor:
    return (x.view(torch.int32) & 0x7FFFFFFF).view(torch.float32)  # told


@right()
def strides_by_hand(x: Tensor) -> Tensor:
    return x.as_strided((2, 2), (4, 1), 1) * 2


@right()
def unfolded(x: Tensor) -> Tensor:
    return x.unfold(1, 2, 1).sum(-1)


@right()
def operators_by_their_aten_name(x: Tensor) -> Tensor:
    return torch.ops.aten.add.Tensor(torch.ops.aten.relu(x), x, alpha=2)


@right_everywhere()
def contraction(x: Tensor) -> Tensor:
    return torch.einsum("ij,kj->ik", x, x + 1)


@right()
def grids(x: Tensor) -> Tensor:
    rows, columns = torch.meshgrid(x[0], x[1], indexing="ij")
    return rows * columns


# Writes


@right_everywhere()
def written_through_a_part(x: Tensor) -> Tensor:
    whole = x * 2
    part = whole[:, :2]
    part += 1
    return whole * 3


@right()
def written_through_a_part_of_a_part(x: Tensor) -> Tensor:
    whole = x * 2
    whole.view(-1)[2:6].view(2, 2).t()[0] = -1.0
    return whole * 3


@right()
def a_part_read_after_the_whole_was_written(x: Tensor) -> Tensor:
    whole = x * 2
    part = whole[:, :2]
    whole.mul_(10)
    return part + 1


@right_everywhere()
def written_with_out(x: Tensor) -> Tensor:
    target = torch.empty(2, 4)
    torch.mul(x, 3, out=target)
    return target + 1


@right()
def written_with_out_into_a_part(x: Tensor) -> Tensor:
    target = torch.zeros(4, 4)
    torch.mul(x, 3, out=target[1:3])
    return target


@right_everywhere()
def masked_write(x: Tensor) -> Tensor:
    y = x * 2
    y[x > 0] = -1.0
    return y


@right()
def indexed_write(x: Tensor) -> Tensor:
    y = torch.zeros(2, 4)
    y[torch.tensor([1, 0])] = x
    return y


@right()
def the_input_is_written(x: Tensor) -> Tensor:
    x += 1
    x[:, 0] = 0
    return x * 2


@right()
def initialised_by_keyword(x: Tensor) -> Tensor:
    y = torch.empty(2, 4)
    nn.init.constant_(tensor=y, val=0.5)
    return x + y


_SCRATCH = torch.zeros(2, 4)


@right()
def a_scratch_buffer_that_is_overwritten(x: Tensor) -> Tensor:
    _SCRATCH.copy_(x)
    _SCRATCH.mul_(2)
    return _SCRATCH + 1


@right()
def a_list_changed_after_the_call(x: Tensor) -> Tensor:
    parts = [x, x * 2]
    joined = torch.cat(parts)
    parts.clear()
    return joined + 1


@right()
def a_loop_that_fills_a_buffer(x: Tensor) -> Tensor:
    out = torch.empty(4, 2)
    for column in range(4):
        out[column] = x[:, column] * column
    return out


# Modules


def _module(name: str, make: Any, draw: tuple[int, ...], *, everywhere: bool = True) -> None:
    module = _seeded(make)

    def compute(x: Tensor) -> Any:
        result = module(x)
        return result[0] if isinstance(result, tuple) else result

    compute.__name__ = name
    (right_everywhere if everywhere else right)(draw=draw)(compute)


class _SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.attention(x, x, x, need_weights=False)[0]
        return out


_module("module_gru", lambda: nn.GRU(4, 6, batch_first=True), (1, 3, 4))
_module("module_lstm", lambda: nn.LSTM(4, 6, batch_first=True), (1, 3, 4))
_module("module_attention", _SelfAttention, (1, 3, 8))
_module(
    "module_transformer_layer",
    lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
    (1, 3, 8),
)
_module(
    "module_weight_norm",
    lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)),
    (2, 4),
    everywhere=False,
)
_module("module_batch_norm", lambda: nn.BatchNorm1d(4), (2, 4))
_module("module_group_norm", lambda: nn.GroupNorm(2, 4), (2, 4))
_module("module_pixel_shuffle", lambda: nn.PixelShuffle(2), (1, 4, 3, 3))
_module("module_transposed_convolution", lambda: nn.ConvTranspose2d(2, 3, 2), (1, 2, 3, 3))


_TRAINED = nn.BatchNorm1d(4).train()


@right()
def batch_norm_in_training(x: Tensor) -> Tensor:
    return _TRAINED(x) * 2


@right()
def padded_sequence(x: Tensor) -> Tensor:
    return nn.utils.rnn.pad_sequence([x[0], x[1, :2]], batch_first=True)


@right()
def scaled_attention(x: Tensor) -> Tensor:
    q = x.unsqueeze(0)
    return functional.scaled_dot_product_attention(q, q + 1, q * 2)
