"""A proof is about how it is run: bundles run by the `veracity` program, pt2 in torch's own runner."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attacks.draws import integers, normal
from attacks.registry import clean, hostile


def run_by_program(**options):
    options = {"rec": {"x": normal(2, 4)}, "passes": 3, "backends": "pt2", "ticks": 5} | options
    return hostile("E", runner="cli", **options)


@run_by_program(in_tests=True)
def sliced_input(x: Tensor) -> Tensor:
    return x[:, 1:3] * 2.0


@run_by_program()
def transposed_input(x: Tensor) -> Tensor:
    return x.t() + 1.0


@run_by_program()
def strided_input(x: Tensor) -> Tensor:
    return x[:, ::2] - x[:, 1::2]


@run_by_program()
def expanded(x: Tensor) -> Tensor:
    return x[:1].expand(3, 4) * torch.arange(3.0).unsqueeze(1)


@run_by_program(in_tests=True)
def view_constant():
    """A constant that is a view with an offset."""
    table = torch.arange(12.0).reshape(3, 4)
    row = table[1]
    return lambda *g: g[0] * row


@run_by_program()
def column_constant():
    table = torch.arange(12.0).reshape(4, 3)
    column = table[:, 2]
    return lambda *g: g[0] + column


@run_by_program()
class SlicedWeight(nn.Module):
    """A part of a larger parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(6, 6))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.w[2:, 1:4]


@run_by_program()
class TransposedBuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("m", torch.randn(3, 4).t())

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.m


@run_by_program(rec={"x": normal(1, 2, 6, 6)})
class ChannelsLast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3).to(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x.contiguous(memory_format=torch.channels_last)).flatten(1)


@run_by_program()
def chunks(x: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=1)
    return a * b.sigmoid()


@run_by_program(rec={"k": integers(0, 5, 3)})
class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.e = nn.Embedding(5, 4)

    def forward(self, k: Tensor) -> Tensor:
        return self.e(k).sum(0)


@run_by_program()
class AddInPlaceOnView:
    def __call__(self, x: Tensor) -> Tensor:
        y = x.clone()
        y[:, 1:3].add_(1.0)
        return y.flip(1)


@run_by_program(backends="jit")
class ScriptWithState:
    def __init__(self) -> None:
        self.h = torch.zeros(2, 4)

    def __call__(self, x: Tensor) -> Tensor:
        self.h = 0.5 * self.h + x
        return self.h[:, 1:] * 2


@run_by_program(backends="onnx")
def softplus_and_erf(x: Tensor) -> Tensor:
    return torch.nn.functional.softplus(x) + torch.erf(x)


def proved_by_program(**options):
    options = {"rec": {"x": normal(1, 4)}, "passes": 3, "ticks": 5} | options
    return clean("E", runner="cli", **options)


class _Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ELU(), nn.Linear(8, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


for _backend in ("jit", "onnx", "pt2"):
    proved_by_program(
        name=f"policy_by_program_{_backend}", backends=_backend, in_tests=_backend != "jit"
    )(_Small)


@proved_by_program(backends="pt2")
def plain_maths(x: Tensor) -> Tensor:
    return (x * 2 + 1).tanh().sum(-1)
