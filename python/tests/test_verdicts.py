"""What a verdict rests on, and what `require_proof` makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import veracity
import veracity as leapp
from veracity import annotate
from veracity.errors import VeracityError
from veracity.export.compile import CompileResult


def _codes(refused: pytest.ExceptionInfo[VeracityError]) -> list[str]:
    return [found.code for found in refused.value.diagnostics]


def _policy(tmp_path: Path, passes: int = 3, **options: Any) -> CompileResult:
    """Export one node whose verdict has no open assumption."""
    weight = torch.arange(12.0).reshape(4, 3) / 7
    leapp.start("policy", save_path=str(tmp_path))
    for tick in range(passes):
        x = torch.linspace(-1, 1, 4).reshape(1, 4) * (tick + 1)
        x = annotate.input_tensors("policy", {"x": x})
        annotate.output_tensors("policy", {"action": torch.tanh(x @ weight)}, export_with="onnx")
    leapp.stop()
    return leapp.compile_graph(visualize=False, **options)


def test_random_numbers_in_the_only_pass_are_an_assumption(tmp_path: Path) -> None:
    leapp.start("demo", save_path=str(tmp_path))
    features = annotate.input_tensors("policy", {"features": torch.rand(1, 16)})
    action = features @ torch.randn(16, 4)
    annotate.output_tensors("policy", {"action": action}, export_with="onnx")
    leapp.stop()
    result = leapp.compile_graph()  # strict
    assert dict(result) == {"policy": True}
    assert result.verdict == "conditional"
    assert "VER0916" in [found.code for found in result.assumptions]
    bundle = tmp_path / "demo"
    checked = leapp.check(bundle)
    assert checked.verdict == "conditional"
    assert checked.assumptions == result.proof.assumptions
    with pytest.raises(VeracityError) as refused:
        leapp.InferenceManager(bundle, require_proof=True)
    assert _codes(refused) == ["VER1122"]
    leapp.InferenceManager(bundle, require_proof=True, accept_conditional=True)


def test_an_action_that_comes_back_stays_an_output(tmp_path: Path) -> None:
    leapp.start("walk", save_path=str(tmp_path))
    action = torch.zeros(1, 2)
    for tick in range(3):
        given = {"x": torch.full((1, 2), float(tick)), "last_action": action}
        x, last = annotate.input_tensors("policy", given)
        action = annotate.output_tensors("policy", {"action": x + 0.5 * last}, export_with="onnx")
    leapp.stop()
    leapp.compile_graph(visualize=False)
    manager = leapp.InferenceManager(tmp_path / "walk")
    assert manager.outputs == ["policy/action"]
    assert manager.feedback_inputs == ["policy/last_action"]


def test_a_node_without_model_by_request_is_a_note(tmp_path: Path) -> None:
    result = _policy(tmp_path)
    assert not [found for found in result.diagnostics if found.code == "VER1006"]


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [("kind: state/joint/position", "kind: target/joint/position", "VER1123")],
)
def test_ports_mean_what_they_meant_while_recording(
    tmp_path: Path, before: str, after: str, code: str
) -> None:
    leapp.start("joints", save_path=str(tmp_path))
    for tick in range(3):
        value = torch.full((1, 2), float(tick))
        spec = veracity.TensorSemantics(
            "position", value, kind="state/joint/position", element_names=[["left", "right"]]
        )
        x = annotate.input_tensors("policy", spec)
        annotate.output_tensors("policy", {"action": x * 2}, export_with="onnx")
    leapp.stop()
    leapp.compile_graph(visualize=False)
    bundle = tmp_path / "joints"
    assert leapp.check(bundle).verdict != "disproved"
    path = bundle / "joints.yaml"
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")
    leapp.seal(bundle)
    found = leapp.check(bundle)
    assert found.verdict == "disproved"
    assert code in str(found.data["nodes"][0]["reasons"])


def test_a_proof_is_about_the_engine_that_made_it(tmp_path: Path) -> None:
    _policy(tmp_path)
    bundle = tmp_path / "policy"
    options = {"require_proof": True, "accept_conditional": True}
    leapp.InferenceManager(bundle, engine="ort", **options)
    with pytest.raises(VeracityError) as refused:
        leapp.InferenceManager(bundle, engine="embedded", **options)
    assert _codes(refused) == ["VER1119"]
    leapp.InferenceManager(bundle, engine="embedded", prove=True, accept_conditional=True)


def test_a_wider_proof_than_the_exported_one_needs_a_ceiling(tmp_path: Path) -> None:
    _policy(tmp_path)
    bundle = tmp_path / "policy"
    leapp.check(bundle, tolerance={"atol": 0.1, "rtol": 0.1}).save()
    options = {"require_proof": True, "accept_conditional": True}
    with pytest.raises(VeracityError) as refused:
        leapp.InferenceManager(bundle, **options)
    assert _codes(refused) == ["VER1121"]
    leapp.InferenceManager(bundle, ceiling={"atol": 0.1, "rtol": 0.1}, **options)
    leapp.check(bundle).save()
    leapp.InferenceManager(bundle, **options)
