"""Checking exported models: every sample, shape and dtype first, statistics for what differs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from nodes_by_hand import make_node, recording
from veracity.export import loading
from veracity.export.compile import CompileResult, compile_recording
from veracity.export.validate import FROZEN_HINT
from veracity.tracing.nodes import Node, Sample

BACKENDS = ["jit", "onnx", "pt2"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = [*FLOATS, "int8", "int16", "int32", "int64", "uint8", "bool"]
Check = Callable[..., CompileResult]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Compile a node; fresh inputs are left out, so that only what was recorded counts."""

    def run(node: Node, **options: Any) -> CompileResult:
        folder = Path(tempfile.mkdtemp(dir=tmp_path)) / "b"
        result = compile_recording(
            recording(folder, [node]), strict=False, fresh_inputs=False, **options
        )
        assert isinstance(result, CompileResult)
        return result

    return run


def samples_of(result: CompileResult) -> list[dict[str, Any]]:
    """Return what the proof says about each sample of the only output."""
    assert result.proof is not None
    ((port,),) = (node["ports"] for node in json.loads(result.proof.to_json())["nodes"])
    return list(port["samples"])


def node_with(reference: torch.Tensor, export_with: str = "jit") -> Node:
    """Return a node that doubles its input and is said to have computed `reference`."""
    node = make_node("n", lambda x: x * 2, {"x": torch.ones(4)}, ["y"], export_with=export_with)
    node.samples[0].outputs["y"] = reference
    return node


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_checked_on_every_backend(backend: str, dtype: str, check: Check) -> None:
    value = torch.tensor([[0, 1, 1]]).to(getattr(torch, dtype))
    node = make_node("n", lambda x: x.flip([1]), {"x": value}, ["y"], export_with=backend)
    wrong = node.samples[0].outputs["y"].clone()
    wrong[0, 0] = not wrong[0, 0]
    inputs = node.samples[0].inputs
    node.samples.append(Sample(inputs, {"y": wrong}))
    result = check(node)
    assert [found.message.split(":")[0] for found in result.diagnostics] == ["n/y sample 1"]
    assert result.diagnostics[0].code == "VER1005"
    assert [sample["verdict"] for sample in samples_of(result)] == ["proved", "disproved"]


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
    check: Check,
) -> None:
    assert check(node_with(reference), **options) == {"n": passed}


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
    backend: str, fill: float, equal_nan: bool, passed: bool, check: Check
) -> None:
    node = make_node(
        "n",
        lambda x: x.masked_fill(x > 0, fill),
        {"x": torch.tensor([-1.0, 1.0])},
        ["y"],
        export_with=backend,
    )
    assert check(node, equal_nan=equal_nan) == {"n": passed}


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_integers_and_truth_values_are_compared_exactly_with_statistics(
    dtype: torch.dtype, check: Check
) -> None:
    value = torch.tensor([0, 1, 0]).to(dtype)
    node = make_node("n", lambda x: x.clone(), {"x": value}, ["y"])
    node.samples[0].outputs["y"] = torch.tensor([0, 0, 0]).to(dtype)
    result = check(node, rtol=10.0, atol=10.0)
    assert result == {"n": False}
    assert "1 of 3 values are outside of atol 0 + rtol 0" in result.diagnostics[0].message
    (sample,) = samples_of(result)
    assert sample["measurement"]["differing"] == 1
    assert sample["measurement"]["worst"]["index"] == [1]
    assert sample["measurement"]["percentiles"]["p50"] == 0


def test_a_value_that_froze_is_hinted_at_when_a_later_sample_fails(check: Check) -> None:
    node = make_node("n", lambda x: x * 2, [{"x": torch.ones(3)}] * 3, ["y"])
    node.samples[2] = Sample({"x": torch.ones(3)}, {"y": torch.zeros(3)})
    result = check(node)
    assert result == {"n": False}
    assert result.diagnostics[0].hints == (FROZEN_HINT,)
    assert "n/y sample 2" in result.diagnostics[0].message
    assert "the first sample passes and a later one fails" in str(result.proof).replace(
        "\n    ", " "
    )
    node.samples[0] = node.samples[2]
    assert check(node).diagnostics[0].hints == ()


def test_another_number_of_outputs_is_told_with_both_numbers(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    from veracity.export import validate

    def one_too_many(*args: Any, **options: Any) -> loading.Run:
        run = loading.load(*args, **options)
        return lambda inputs: [*run(inputs), torch.ones(1)]

    monkeypatch.setattr(validate, "load", one_too_many)
    result = check(make_node("n", lambda x: x + 1, {"x": torch.ones(3)}, ["y"]))
    assert result == {"n": False}
    assert [(one.code, one.message) for one in result.diagnostics] == [
        ("VER1108", "n: sample 0: the model has 2 outputs and the node 1")
    ]
    assert "number of outputs" in str(result.proof)


def test_a_model_that_does_not_run_on_a_sample_is_disproved(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    from veracity.export import validate

    def failing(*_: Any, **__: Any) -> loading.Run:
        def run(_inputs: list[torch.Tensor]) -> list[torch.Tensor]:
            raise RuntimeError("too cold\nfor this")

        return run

    monkeypatch.setattr(validate, "load", failing)
    result = check(make_node("n", lambda x: x + 1, {"x": torch.ones(3)}, ["y"]))
    assert result == {"n": False}
    message = "n: sample 0: the model does not run: RuntimeError: too cold"
    assert [(one.code, one.message) for one in result.diagnostics] == [("VER1107", message)]
    assert result.proof is not None
    assert result.proof.verdict == "disproved"


def test_an_engine_that_is_missing_makes_nothing_wrong(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    from veracity.errors import refuse
    from veracity.export import validate

    def missing(*_: Any, **__: Any) -> loading.Run:
        raise refuse("VER1006", "ONNX Runtime is needed")

    monkeypatch.setattr(validate, "load", missing)
    result = check(make_node("n", lambda x: x + 1, {"x": torch.ones(3)}, ["y"]))
    assert result == {"n": False}, "nothing is known about it"
    assert result.proof is not None
    assert result.proof.verdict == "not_comparable"


@pytest.mark.parametrize(
    ("reference", "counts"),
    [
        ([2.0, float("nan"), float("inf"), 2.0], {"reference_nan": 1, "reference_inf": 1}),
        ([2.0, 2.0, 2.0, float("-inf")], {"reference_nan": 0, "reference_inf": 1}),
    ],
)
def test_nan_and_infinities_are_counted_on_both_sides(
    reference: list[float], counts: dict[str, int], check: Check
) -> None:
    result = check(node_with(torch.tensor(reference)))
    (sample,) = samples_of(result)
    found = sample["measurement"]["non_finite"]
    assert {key: found[key] for key in counts} == counts
    assert (found["candidate_nan"], found["candidate_inf"]) == (0, 0)
    percent = f"{100 * counts['reference_inf'] / 4:.0f}"
    assert percent in str(result.proof)


def test_static_outputs_and_scalars_and_empty_tensors_are_checked(check: Check) -> None:
    for backend in BACKENDS:
        node = make_node(
            "n",
            lambda x, e: (x.sum(), e + 1),
            {"x": torch.ones(3), "e": torch.ones(0, 3)},
            ["y", "z"],
            static_outputs={"kp": torch.tensor([1.0, 2.0])},
            export_with=backend,
        )
        assert check(node) == {"n": True}
        node.samples[0].outputs["kp"] = torch.tensor([1.0, 3.0])
        assert check(node) == {"n": False}


def test_models_do_not_get_the_samples_themselves(check: Check) -> None:
    node = make_node("n", lambda x: x.add_(1) * 1, {"x": torch.zeros(3)}, ["y"])
    assert check(node) == {"n": True}
    assert torch.equal(node.samples[0].inputs["x"], torch.zeros(3))
