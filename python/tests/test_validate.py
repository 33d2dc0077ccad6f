"""Checking exported models: every sample, shape and dtype first, statistics for what differs."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from nodes_by_hand import make_node
from veracity.export.log import ExportLog, Progress
from veracity.export.models import make_models
from veracity.export.validate import FROZEN_HINT, NodeVerdict, Tolerance, check_node
from veracity.tracing.nodes import Node, Sample

BACKENDS = ["jit", "onnx", "pt2"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = [*FLOATS, "int8", "int16", "int32", "int64", "uint8", "bool"]


@pytest.fixture
def log(tmp_path: Path) -> Any:
    with ExportLog(tmp_path / "log") as made:
        yield made


@pytest.fixture
def check(tmp_path: Path, log: ExportLog) -> Callable[..., NodeVerdict]:
    def run(node: Node, judged: Node | None = None, **tolerance: Any) -> NodeVerdict:
        (made,) = make_models([node], Path(tempfile.mkdtemp(dir=tmp_path)), log, Progress(1))
        assert made.exported is not None
        names = [port.name for port in made.inputs]
        return check_node(judged or node, made.exported, names, Tolerance(**tolerance), log)

    return run


def node_with(reference: torch.Tensor, export_with: str = "jit") -> Node:
    """Return a node that doubles its input and is said to have computed `reference`."""
    node = make_node("n", lambda x: x * 2, {"x": torch.ones(4)}, ["y"], export_with=export_with)
    node.samples[0].outputs["y"] = reference
    return node


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "dtype",
    [
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "bool",
    ],
)
def test_every_dtype_is_checked_on_every_backend(
    backend: str, dtype: str, check: Callable[..., NodeVerdict]
) -> None:
    value = torch.tensor([[0, 1, 1]]).to(getattr(torch, dtype))
    node = make_node("n", lambda x: x.flip([1]), {"x": value}, ["y"], export_with=backend)
    wrong = node.samples[0].outputs["y"].clone()
    wrong[0, 0] = not wrong[0, 0]
    inputs = node.samples[0].inputs
    node.samples.append(Sample(inputs, {"y": wrong}))
    verdict = check(node)
    assert [found.message.split(":")[0] for found in verdict.diagnostics] == ["n/y sample 1"]
    assert verdict.diagnostics[0].code == "VER1005"


@pytest.mark.parametrize(
    ("reference", "options", "passed"),
    [
        (torch.full((4,), 2.0), {}, True),
        (torch.full((4,), 2.001), {}, True),
        (torch.full((4,), 2.1), {}, False),
        (torch.full((4,), 2.1), {"rtol": 0.1}, True),
        (torch.full((4,), 2.1), {"atol": 0.2}, True),
        (torch.full((4,), 2.0, dtype=torch.float64), {}, False),
        (torch.full((1,), 2.0), {"rtol": 1.0}, False),
        (torch.full((1, 4), 2.0), {}, False),
        (torch.tensor([2.0, 2.0, 2.0, float("nan")]), {"rtol": 1.0}, False),
        (torch.tensor([2.0, 2.0, 2.0, float("inf")]), {"rtol": 1.0}, False),
    ],
)
def test_only_values_within_the_tolerance_in_the_same_shape_and_dtype_pass(
    reference: torch.Tensor,
    options: dict[str, float],
    passed: bool,
    check: Callable[..., NodeVerdict],
) -> None:
    assert check(node_with(reference), **options).passed == passed


@pytest.mark.parametrize("backend", ["jit", "onnx"])
@pytest.mark.parametrize(
    ("fill", "equal_nan", "passed"),
    [
        (float("inf"), False, True),  # LEAPP fails it; a mask of -inf is a value like any other
        (float("-inf"), False, True),
        (float("nan"), False, False),
        (float("nan"), True, True),
    ],
)
def test_equal_infinities_pass_and_nan_only_when_asked_for(
    backend: str, fill: float, equal_nan: bool, passed: bool, check: Callable[..., NodeVerdict]
) -> None:
    node = make_node(
        "n",
        lambda x: x.masked_fill(x > 0, fill),
        {"x": torch.tensor([-1.0, 1.0])},
        ["y"],
        export_with=backend,
    )
    assert check(node, equal_nan=equal_nan).passed == passed


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_integers_and_truth_values_are_compared_exactly_with_statistics(
    dtype: torch.dtype, check: Callable[..., NodeVerdict], log: ExportLog
) -> None:
    value = torch.tensor([0, 1, 0]).to(dtype)
    node = make_node("n", lambda x: x.clone(), {"x": value}, ["y"])
    node.samples[0].outputs["y"] = torch.tensor([0, 0, 0]).to(dtype)
    verdict = check(node, rtol=10.0, atol=10.0)
    assert not verdict.passed
    assert "1 of 3 values are outside of atol 0 + rtol 0" in verdict.diagnostics[0].message
    text = log.path.read_text()
    assert "n/y sample 0: Mismatch detected (rtol=10.0, atol=10.0). Please check" in text
    assert "Diff percentiles: p50=0.000000e+00" in text
    assert "Worst at [1]" in text


def test_large_outputs_get_statistics_too(
    check: Callable[..., NodeVerdict], log: ExportLog
) -> None:
    value = torch.zeros(17_000_000)  # LEAPP's quantile ends at 2^24
    node = make_node("n", lambda x: x + 1, {"x": value}, ["y"])
    node.samples[0].outputs["y"] = torch.ones_like(value).index_fill_(0, torch.tensor([5]), 3.0)
    verdict = check(node)
    assert "the largest error is 2 at [5]" in verdict.diagnostics[0].message
    assert "1 of 17000000 outside" in log.path.read_text()


def test_a_value_that_froze_is_hinted_at_when_a_later_sample_fails(
    check: Callable[..., NodeVerdict], log: ExportLog
) -> None:
    node = make_node("n", lambda x: x * 2, [{"x": torch.ones(3)}] * 3, ["y"])
    node.samples[2] = Sample({"x": torch.ones(3)}, {"y": torch.zeros(3)})
    verdict = check(node)
    assert not verdict.passed
    assert verdict.diagnostics[0].hints == (FROZEN_HINT,)
    assert "n/y sample 2" in verdict.diagnostics[0].message
    assert f"n: {FROZEN_HINT}" in log.path.read_text()
    node.samples[0] = node.samples[2]
    assert check(node).diagnostics[0].hints == ()


def test_another_number_of_outputs_is_told(check: Callable[..., NodeVerdict]) -> None:
    node = make_node("n", lambda x: (x + 1, x + 2), {"x": torch.ones(3)}, ["y", "z"])
    verdict = check(node, dataclasses.replace(node, outputs=node.outputs[:1]))
    assert not verdict.passed
    assert verdict.diagnostics[0].code == "VER1004"


def test_a_model_that_cannot_run_is_not_passed(
    check: Callable[..., NodeVerdict], log: ExportLog
) -> None:
    node = make_node("n", lambda x: x @ torch.ones(3, 2), {"x": torch.ones(1, 3)}, ["y"])
    node.samples.append(Sample({"x": torch.ones(1, 4)}, {"y": torch.ones(1, 2)}))
    verdict = check(node)
    assert not verdict.passed
    assert verdict.diagnostics[0].code == "VER1006"
    assert "n sample 1: the model does not run: RuntimeError" in log.path.read_text()


def test_a_node_without_samples_is_not_passed(check: Callable[..., NodeVerdict]) -> None:
    node = make_node("n", lambda x: x + 1, {"x": torch.ones(1)}, ["y"])
    verdict = check(node, dataclasses.replace(node, samples=[]))
    assert not verdict.passed
    assert "no recorded sample" in verdict.diagnostics[0].message


def test_nan_and_infinities_are_counted_in_the_log(
    check: Callable[..., NodeVerdict], log: ExportLog
) -> None:
    check(node_with(torch.tensor([2.0, float("nan"), float("inf"), 2.0])))
    assert "source has 1 NaN (25.000%) and 1 Inf (25.000%)" in log.path.read_text()


def test_static_outputs_and_scalars_and_empty_tensors_are_checked(
    check: Callable[..., NodeVerdict],
) -> None:
    for backend in BACKENDS:
        node = make_node(
            "n",
            lambda x, e: (x.sum(), e + 1),
            {"x": torch.ones(3), "e": torch.ones(0, 3)},
            ["y", "z"],
            static_outputs={"kp": torch.tensor([1.0, 2.0])},
            export_with=backend,
        )
        assert check(node).passed
        node.samples[0].outputs["kp"] = torch.tensor([1.0, 3.0])
        assert not check(node).passed


def test_models_do_not_get_the_samples_themselves(check: Callable[..., NodeVerdict]) -> None:
    node = make_node("n", lambda x: x.add_(1) * 1, {"x": torch.zeros(3)}, ["y"])
    assert check(node).passed
    assert torch.equal(node.samples[0].inputs["x"], torch.zeros(3))
