"""What people who had not read the code tried, and what became of it: one test for each class."""

from __future__ import annotations

import collections
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import veracity
from torch import Tensor, nn
from veracity import annotate
from veracity.errors import VeracityError


def recorded(
    folder: Path, step: Callable[[Tensor], Tensor], *, backend: str, **options: Any
) -> Any:
    """Record five passes of a node and compile it."""
    draw = options.get("draw", lambda: torch.randn(1, 3))
    with torch.no_grad(), veracity.session("s", save_path=folder):
        for _ in range(5):
            x = annotate.input_tensors("n", {"x": draw()})
            annotate.output_tensors("n", {"y": step(x)}, export_with=backend)
    return veracity.compile_graph(visualize=False, strict=options.get("strict", False))


def codes(result: Any) -> set[str]:
    return {one.code for one in result.diagnostics if one.severity != "note"}


class Window:
    """A mean of the last three, by Python's own `sum`."""

    def __init__(self) -> None:
        """Start at rest."""
        self.held = collections.deque([torch.zeros(1, 3) for _ in range(3)], maxlen=3)

    def __call__(self, x: Tensor) -> Tensor:
        """Add one."""
        self.held.append(x)
        return sum(self.held) / len(self.held)  # type: ignore[return-value]


class Friction:
    """Friction by the magnitude of a velocity that is kept."""

    def __init__(self) -> None:
        """Start at rest."""
        self.velocity = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        """Move on."""
        y = x - 0.1 * (1 + abs(self.velocity)) * self.velocity
        self.velocity = 0.5 * self.velocity + x
        return y


@pytest.mark.parametrize("kind", [Window, Friction])
def test_builtins_are_followed_after_python_has_specialised_their_calls(
    kind: type[Window | Friction], tmp_path: Path
) -> None:
    for _ in range(20):
        kind()(torch.randn(1, 3))
    assert recorded(tmp_path, kind(), backend="jit").verdict == "proved"


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: x * (100 // (x[0, 0] * 3).int()),
        lambda x: x * (100 % (x[0, 0] * 3).int()),
        lambda x: x[0, (x[0] > -9).nonzero()[0]],
    ],
)
def test_what_raises_for_some_values_is_told_where_that_is_caught(
    answer: Callable[[Tensor], Tensor], tmp_path: Path
) -> None:
    def step(x: Tensor) -> Tensor:
        try:
            return answer(x) + 0.0
        except (RuntimeError, IndexError, ZeroDivisionError):
            return x

    result = recorded(tmp_path, step, backend="jit", draw=lambda: torch.rand(1, 3) + 1.0)
    assert "VER0933" in codes(result)


@pytest.mark.parametrize("backend", ["onnx", "onnx-torchscript"])
def test_16_bit_floats_round_in_every_operator(backend: str, tmp_path: Path) -> None:
    """Between two operators 90,000 is infinite: ONNX Runtime would go on with the number."""

    def step(x: Tensor) -> Tensor:
        half = x.half()
        return 1 / (1 + (half * half).float() / 1e5)

    assert recorded(tmp_path / "a", step, backend=backend).verdict == "proved"
    manager = veracity.InferenceManager(tmp_path / "a/s")
    given = torch.tensor([[300.0, 1.0, -2.5]])
    assert torch.equal(manager.run_policy({"n/x": given})["n/y"], step(given))


@pytest.mark.parametrize("backend", ["jit", "onnx", "pt2"])
def test_a_picture_with_its_channels_last_becomes_a_row_of_patches(
    backend: str, tmp_path: Path
) -> None:
    convolution = nn.Conv2d(3, 8, kernel_size=4, stride=4)

    def step(rgb: Tensor) -> Tensor:
        return convolution(rgb.permute(0, 3, 1, 2)).flatten(2).transpose(1, 2).mean(-1)

    result = recorded(tmp_path, step, backend=backend, draw=lambda: torch.rand(1, 16, 16, 3))
    assert result.verdict == "proved", result.diagnostics


def test_a_state_that_changes_its_type_is_told_as_that(tmp_path: Path) -> None:
    class Clock:
        def __init__(self) -> None:
            self.time = torch.zeros(1, 1, dtype=torch.float16)

        def __call__(self, x: Tensor) -> Tensor:
            self.time = self.time + torch.full((1, 1), 0.25)
            return x + self.time

    with pytest.raises(VeracityError, match="another type or shape") as refused:
        recorded(tmp_path, Clock(), backend="jit", strict=True)
    assert [one.code for one in refused.value.diagnostics if one.severity == "error"] == ["VER0930"]


@pytest.mark.parametrize("backend", ["jit", "onnx"])
def test_an_angle_of_sums_that_cancel_is_no_evidence(backend: str, tmp_path: Path) -> None:
    around = torch.linspace(-torch.pi, torch.pi, 13)[:-1]

    def step(x: Tensor) -> Tensor:
        weights = torch.softmax(x, -1)
        return torch.atan2((weights * around.sin()).sum(), (weights * around.cos()).sum())

    result = recorded(tmp_path, step, backend=backend, draw=lambda: torch.randn(12))
    assert result.verdict == "proved", result.diagnostics


def test_outputs_that_are_used_again_where_data_says_so_are_told(tmp_path: Path) -> None:
    last: list[Tensor] = []

    def driver(x: Tensor) -> Tensor:
        held = last[-1] if last else torch.zeros(1, 3)
        if x.abs().max() > 1e-3:
            x = annotate.input_tensors("n", {"x": x})
            held = x * 2
            annotate.output_tensors("n", {"y": held}, export_with="jit")
            last.append(held)
        return held

    with torch.no_grad(), veracity.session("s", save_path=tmp_path):
        for _ in range(5):
            driver(torch.randn(1, 3))
    assert "VER0917" in codes(veracity.compile_graph(visualize=False, strict=False))
