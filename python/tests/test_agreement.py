"""Two results of one computation: rounding is no difference, everything else is."""

from __future__ import annotations

import math

import pytest
import torch
from torch import fx, nn
from veracity.tracing.agreement import rounding_explains, same_value

UNIT = torch.finfo(torch.float32).eps

SAME = {
    "equal": ([1.0, 2.0], [1.0, 2.0]),
    "a rounding": ([1.0 + 4 * UNIT, 2.0], [1.0, 2.0]),
    "kilometres": ([5000.0 * (1 + 4 * UNIT), 0.0], [5000.0, 0.0]),
    "what large elements leave": ([1e4, 1e-4], [1e4, 3e-4]),
    "infinities": ([math.inf, 1.0], [math.inf, 1.0]),
    "no number": ([math.nan, 1.0], [math.nan, 1.0]),
    "nothing": ([], []),
}
OTHER = {
    "a sign": ([1e-7, 2e-7], [-1e-7, -2e-7]),
    "a small state that creeps": ([1.0e-7], [1.1e-7]),
    "an integral that moves a little": ([1.0 + 1e-4], [1.0]),
    "zero": ([0.0], [1e-9]),
    "an infinity": ([math.inf], [1.0]),
    "the other infinity": ([math.inf], [-math.inf]),
    "no number in place of one": ([math.nan], [1.0]),
}


@pytest.mark.parametrize("name", SAME)
def test_rounding_is_the_same_value(name: str) -> None:
    got, want = map(torch.tensor, SAME[name])
    assert same_value(got, want)
    assert same_value(got.double(), got.double())


@pytest.mark.parametrize("name", OTHER)
def test_another_value_is_another_value(name: str) -> None:
    got, want = map(torch.tensor, OTHER[name])
    assert not same_value(got, want)


def test_the_precision_of_the_dtype_counts() -> None:
    one, other = torch.tensor([1.0], dtype=torch.float64), torch.tensor([1.0 + 1e-8]).double()
    other[0] = 1.0 + 1e-8
    assert not same_value(one, other)
    assert same_value(one.float(), other.float())


@pytest.mark.parametrize("other", [torch.tensor([1]), torch.tensor([[1.0]]), torch.ones(2)])
def test_dtype_and_shape_are_part_of_the_value(other: torch.Tensor) -> None:
    assert not same_value(torch.tensor([1.0]), other)


def cancelling(x: torch.Tensor) -> torch.Tensor:
    return (x * 3 + 1e4) - 1e4 - x * 3


def turning(x: torch.Tensor) -> torch.Tensor:
    return torch.atan2((x * math.pi).sin(), (x * math.pi).cos())


def explained(module: fx.GraphModule, x: torch.Tensor, want: torch.Tensor) -> bool:
    return rounding_explains(module, [x], [module(x)], [want])


def _adding() -> fx.GraphModule:
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_method("clone", (x,))
    part = graph.call_method("select", (y, 0, 0))
    graph.call_method("add_", (part, 1.0))
    graph.output(graph.call_method("mul", (y, 2)))
    return fx.GraphModule(nn.Module(), graph)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_cancels_may_differ_by_the_rounding_of_what_was_there(dtype: torch.dtype) -> None:
    x = torch.tensor([0.1, 0.2, 0.3], dtype=dtype)
    residual = 1e4 * torch.finfo(dtype).eps
    assert explained(fx.symbolic_trace(cancelling), x, torch.full_like(x, residual))
    assert not explained(fx.symbolic_trace(cancelling), x, torch.full_like(x, 1e3 * residual))


def test_an_angle_may_turn_over_at_half_a_turn_only() -> None:
    x = torch.tensor([1.0, 0.5])
    got = turning(x)
    assert explained(fx.symbolic_trace(turning), x, torch.stack([-got[0], got[1]]))
    assert not explained(fx.symbolic_trace(turning), x, torch.stack([got[0], -got[1]]))


def test_writes_stay_writes_while_roundings_are_tried() -> None:
    x = torch.tensor([1.0, 2.0])
    assert explained(_adding(), x, torch.tensor([4.0, 4.0]) * (1 + 2 * UNIT))
    assert not explained(_adding(), x, torch.tensor([2.0, 4.0]))
