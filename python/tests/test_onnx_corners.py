"""ONNX files compute what torch computes on corners: NaN, infinities, small and large numbers.

The file is run in ONNX Runtime and held against torch; the rewriting is also held against the
operations that it stands for, in torch alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import onnx
import onnxruntime
import pytest
import torch
from torch import fx
from torch.nn import functional
from veracity.export.backends import onnx_corners
from veracity.export.backends.contract import Ports
from veracity.export.backends.onnx import Dynamo

NAN, INF = math.nan, math.inf
ODD = torch.tensor([[1.0, 2.0, NAN], [NAN, 1.0, 0.0], [INF, -1.0, 2.0], [-INF, 0.0, -0.0]])
LARGE = torch.tensor([[89.0, -100.0, 1000.0], [3.0, -1.5, 0.0], [1e-8, -1e-12, -33333.7]])
WHOLE = torch.tensor([[2**31 - 1, -(2**31), 2**31], [2**40, -(2**40), -7], [7, -8, 0]])


def exported(function: Callable[..., torch.Tensor], given: torch.Tensor, folder: Path) -> Path:
    """Export a function as a node with one input and one output."""

    class Node(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            return (function(x),)

    module = fx.symbolic_trace(Node())
    path = folder / "n.onnx"
    Dynamo().export(module, Ports("n", ["x"], ["y"], [given]), {}, path)
    return path


def run(path: Path, given: torch.Tensor) -> torch.Tensor:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return torch.as_tensor(session.run(None, {"x": given.numpy()})[0])


CASES: dict[str, tuple[Callable[..., torch.Tensor], torch.Tensor]] = {
    "amax": (lambda x: x.amax(1), ODD),
    "amin": (lambda x: x.amin(1), ODD),
    "argmax": (lambda x: x.argmax(1), ODD),
    "max pooling": (lambda x: functional.max_pool1d(x.unsqueeze(0), 2, 1), ODD),
    "sorting": (lambda x: torch.sort(x, 1)[0], ODD[:2]),
    "clamp below": (lambda x: functional.normalize(x, dim=1), ODD),
    "sgn": (torch.sgn, ODD),
    "signbit": (lambda x: torch.signbit(torch.nan_to_num(x)), ODD),
    "remainder": (lambda x: torch.remainder(x, 2 * math.pi), LARGE),
    "division to floor": (lambda x: torch.div(x, 0.3, rounding_mode="floor"), LARGE),
    "small constants": (lambda x: torch.rsqrt(x * x + 1e-12), LARGE),
    "nearly one": (lambda x: x * 1.000005 - x, LARGE),
    "clamp of integers": (lambda x: x.clamp(-2, 2), WHOLE),
    "truncated integers": (lambda x: torch.div(x, 3, rounding_mode="trunc"), WHOLE),
    "shifts": (lambda x: x >> 2, WHOLE),
    "added bools": (lambda x: (x > 0) + (x > 8), WHOLE),
}


@pytest.mark.parametrize("name", CASES)
def test_a_corner_comes_out_as_in_torch(name: str, tmp_path: Path) -> None:
    function, given = CASES[name]
    found = run(exported(function, torch.ones_like(given), tmp_path), given)
    torch.testing.assert_close(found, function(given), equal_nan=True, rtol=1e-5, atol=1e-12)


TAKEN_APART: dict[str, tuple[Callable[..., torch.Tensor], Callable[..., torch.Tensor]]] = {
    "hypot": (onnx_corners.hypot, torch.hypot),
    "copysign": (onnx_corners.copysign, torch.copysign),
    "heaviside": (onnx_corners.heaviside, torch.heaviside),
    "logaddexp2": (onnx_corners.logaddexp2, torch.logaddexp2),
    "log1p": (lambda x, _: onnx_corners.log1p(x), lambda x, _: torch.log1p(x)),
    "expm1": (lambda x, _: onnx_corners.expm1(x), lambda x, _: torch.expm1(x)),
    "remainder": (onnx_corners.remainder, torch.remainder),
    "floor_divide": (onnx_corners.floor_divide, torch.floor_divide),
    "fmax": (onnx_corners.larger_number, torch.fmax),
    "fmin": (onnx_corners.smaller_number, torch.fmin),
}


@pytest.mark.parametrize("name", TAKEN_APART)
@pytest.mark.parametrize("second", [2.0, -1.5, 0.0, -0.0, INF])
def test_what_is_taken_apart_is_the_same_operation(name: str, second: float) -> None:
    ours, torchs = TAKEN_APART[name]
    first = torch.tensor([0.0, -0.0, 1.0, -2.5, 89.0, 3.0e38, -1e-40, INF, -INF, NAN])
    other = torch.full((10,), second)
    torch.testing.assert_close(ours(first, other), torchs(first, other), equal_nan=True)


@pytest.mark.parametrize("places", [0, 1, 5, 62, 63])
def test_shifts_keep_the_sign(places: int) -> None:
    value = torch.tensor([0, 1, -1, 7, -8, 2**62, -(2**63)])
    assert torch.equal(onnx_corners.shift_right(value, places), value >> places)


def test_names_of_values_stay(tmp_path: Path) -> None:
    """What is put around an operator does not take its name: reports speak of it."""
    path = exported(
        lambda x: functional.max_pool1d(x.unsqueeze(0), 2) + 1, torch.ones(2, 4), tmp_path
    )
    made = {name for node in onnx.load(path).graph.node for name in node.output}
    assert {"max_pool1d", "y"} <= made
