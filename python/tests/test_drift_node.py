"""Parity of a pipeline's nodes: their models against the recorded programs, value by value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
import veracity
from onnx import ModelProto, numpy_helper
from torch import Tensor, nn
from veracity import VeracityError, annotate
from veracity.drift import node
from veracity.export import compile as compiling
from veracity.export.models import Made
from veracity.parity import ParityResult

Observe = Callable[[Made], Any]


pytestmark = pytest.mark.usefixtures("one_thread")


class _Policy(nn.Module):
    """Attention, normalisation and writes: what recorded programs are made of."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        found = self.attention(x, x, x, need_weights=False)[0] + x
        found = self.norm(found).clone()
        found[:, 0] = found[:, 1] * 2
        return torch.tanh(self.head(found.relu()))


def compiled(
    folder: Path,
    backend: str,
    monkeypatch: pytest.MonkeyPatch,
    observe: Observe | None = None,
    *,
    drift: bool = False,
) -> Path:
    """Record and compile a pipeline of one node; `observe` sees it before it is written."""
    model = _Policy().eval()
    written = compiling._write

    def write(outcome: Any, *rest: Any) -> None:
        for made in outcome.made if observe else ():
            assert observe is not None
            observe(made)
        written(outcome, *rest)

    monkeypatch.setattr(compiling, "_write", write)
    with torch.no_grad(), veracity.session("b", save_path=folder):
        for seed in range(2):
            generator = torch.Generator(torch.get_default_device()).manual_seed(seed)
            given = torch.randn(2, 4, 8, generator=generator)
            x, spare = annotate.input_tensors("policy", {"x": given, "spare": torch.ones(3)})
            # The exporters see that only the shape of `spare` matters, and leave it out.
            action = model(x) + torch.zeros_like(spare)
            annotate.output_tensors("policy", {"action": action}, export_with=backend)
    result = veracity.compile_graph(fresh_inputs=False, drift=drift)
    assert isinstance(result, compiling.CompileResult) and result == {"policy": True}
    assert {name: found.verdict for name, found in result.drift.items()} == (
        {"policy": "proved"} if drift else {}
    )
    return folder / "b"


def with_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Compile an ONNX node and keep its program in the bundle."""
    return compiled(folder, "onnx", monkeypatch, drift=True)


def guilty(result: ParityResult) -> list[str]:
    return [row.name for row in result.rows if row.verdict == "disproved"]


def test_an_onnx_node_is_proved_value_by_value_while_it_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[ParityResult] = []
    compiled(tmp_path, "onnx", monkeypatch, lambda made: found.append(node.parity_of_made(made)))
    (result,) = found
    assert result.verdict == "proved" and result.coverage.share == 1.0, result
    assert len(result.rows) > 8 and not result.notes
    # Lines are the user's: recorded programs have no modules.
    assert any(Path(__file__).name in row.source for row in result.rows), result.by_source()


@pytest.mark.parametrize("backend", ["jit", "pt2"])
def test_the_file_is_the_program_of_other_formats(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[ParityResult] = []
    bundle = compiled(
        tmp_path, backend, monkeypatch, lambda made: found.append(node.parity_of_made(made))
    )
    for result in (*found, node.parity_of_bundle(bundle, "policy")):
        assert result.verdict == "proved", result
        assert any(f"its {backend} program" in note for note in result.notes)
        # TorchScript computes sizes that nothing reads.
        rest = [value for value in result.coverage.program if value.status == "not_mapped"]
        assert all(value.reason == "no output depends on it" for value in rest)
        assert backend == "jit" or not rest
    assert len(found) == 1


def test_a_bundle_with_its_program_is_compared_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = with_program(tmp_path, monkeypatch)
    result = node.parity_of_bundle(bundle, "policy", sample=1)
    assert result.verdict == "proved" and result.coverage.share == 1.0, result
    description = (bundle / "b.yaml").read_text()
    assert "policy.program.pt2: {size" in description
    assert json.loads(result.to_json())["model"] == "policy"


def test_a_fault_in_a_bundle_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = with_program(tmp_path, monkeypatch)
    model = onnx.load(bundle / "policy.onnx")
    _shift_bias(model)
    onnx.save(model, bundle / "policy.onnx")
    with pytest.raises(VeracityError, match="VER0205"):
        node.parity_of_bundle(bundle, "policy")
    veracity.seal(bundle)
    result = veracity.parity(bundle, node="policy")
    (name,) = guilty(result)
    assert result.origin is not None and result.origin.name == name
    assert name.startswith("linear"), result


def _shift_bias(model: ModelProto) -> None:
    """Move the bias of the head, which has three elements."""
    for tensor in model.graph.initializer:
        if list(tensor.dims) == [3]:
            value = numpy_helper.to_array(tensor).copy()
            value[1] += 0.05
            tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
            return
    pytest.fail("there is no bias of three elements")


def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = compiled(tmp_path, "onnx", monkeypatch)
    cases = {
        ("policy", 0): ("VER1235", "policy.program.pt2"),
        ("polcy", 0): ("VER1236", "'policy'"),
        ("policy", 2): ("VER1105", "sample 2"),
    }
    for (name, sample), (code, part) in cases.items():
        with pytest.raises(VeracityError) as refused:
            node.parity_of_bundle(bundle, name, sample=sample)
        assert code in str(refused.value) and part in str(refused.value)
