"""`veracity.parity`: clean exports raise no alarm, and what cannot be compared is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 (as everybody calls it)
from onnx import ModelProto
from planted import NETWORKS, by, changed_weight, compared_with, guilty, network, nodes, normal
from torch import Tensor, nn
from veracity import VeracityError
from veracity.export.backends.onnx_tables import kept_tables
from veracity.parity import parity

pytestmark = pytest.mark.usefixtures("one_thread")


# Clean exports


@pytest.mark.parametrize("name", NETWORKS)
def test_a_right_export_is_proved_value_by_value(name: str) -> None:
    result = parity(network(name), NETWORKS[name][1])
    assert (result.verdict, result.origin, result.drift_origin) == ("proved", None, None), result
    assert result.coverage.share == 1.0 and not result.coverage.not_mapped
    floats = [row for row in result.rows if row.dtype == "float32"]
    assert floats and all(row.float64 is not None for row in floats)
    assert all(max(row.float64.reference, row.float64.candidate) < 1e-5 for row in floats)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["cnn", "attention", "lstm"])
def test_a_file_that_torch_wrote_is_proved(name: str, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    model, args = network(name), NETWORKS[name][1]
    with kept_tables():
        torch.onnx.export(model, args, file, dynamo=True, verbose=False)
    result = parity(model, args, onnx=file, float64=False)
    assert result.verdict == "proved", result
    assert result.coverage.share == 1.0


class _Pytree(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(
        self, batch: dict[str, Any], scale: float, *, mask: Tensor, unused: None = None
    ) -> dict[str, Any]:
        x = self.table(batch["tokens"]) * scale + batch["pair"][0] - batch["pair"][1]
        picked = torch.where(mask, x, torch.zeros_like(x))
        return {"values": (picked, x.argmax(-1)), "any": mask.any(), "tokens": batch["tokens"] + 1}


def test_inputs_and_outputs_of_any_structure_and_dtype() -> None:
    batch = {"tokens": torch.tensor([1, 7, 3]), "pair": [normal(3, 4), normal(3, 4, seed=2)]}
    mask = torch.tensor([[True], [False], [True]])
    result = parity(_Pytree().eval(), (batch, 2.0), {"mask": mask})
    assert result.verdict == "proved", result
    assert {"float32", "int64", "bool"} <= {row.dtype for row in result.rows}


@pytest.mark.parametrize(
    ("model", "args"),
    [
        (nn.Sequential(nn.Linear(4, 4), nn.Softmax(-1)), normal(2, 4)),
        (nn.Sequential(nn.Conv1d(2, 3, 3), nn.GroupNorm(1, 3), nn.GELU()).half(),
         normal(1, 2, 9).half()),
        (nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)).half(), normal(2, 8).half()),
        (nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Tanh()), normal(2, 4)),
        (nn.Linear(4, 4).double(), normal(2, 4).double()),
        (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), normal(1, 3, 8)),
    ],
    ids=["sequential", "conv fp16", "layer norm fp16", "dropout", "float64", "fast path"],
)  # fmt: skip
def test_common_layers_raise_no_alarm(model: nn.Module, args: Tensor) -> None:
    result = parity(model.eval(), args)
    assert result.verdict == "proved", result


@pytest.mark.parametrize("causal", [False, True])
def test_masks_of_attention_are_seen_through(causal: bool) -> None:
    class Masked(nn.Module):
        def forward(self, q: Tensor, mask: Tensor) -> Tensor:
            if causal:
                return F.scaled_dot_product_attention(q, q, q, is_causal=True)
            return F.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    mask = torch.ones(4, 4, dtype=torch.bool).tril()
    mask[2] = False  # may look at nothing
    result = parity(Masked(), (normal(1, 2, 4, 8), mask))
    assert result.verdict == "proved", result
    assert "Softmax" in result.by_op_type() and result.coverage.share == 1.0


def test_the_module_is_left_as_it_was() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("steps", torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            self.steps.add_(1.0)
            x.mul_(2.0)
            return x + self.steps

    model, x = Counting(), normal(3)
    before = x.clone()
    result = parity(model, x)
    assert result.verdict == "proved", result
    assert torch.equal(x, before) and model.steps.item() == 0.0


# What others let pass


def test_the_final_output_is_a_row_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def renamed(model: ModelProto) -> None:
        last, output = model.graph.node[-1], model.graph.output[0]
        last.output[0] = output.name = "answer"

    clean = compared_with("cnn", tmp_path, renamed, monkeypatch)
    assert clean.verdict == "proved" and clean.rows[-1].name == "answer"
    assert clean.rows[-1].op_type == "Gemm" and clean.coverage.share == 1.0

    def renamed_and_wrong(model: ModelProto) -> None:
        changed_weight("Gemm", 0, 1, by(1.01))(model)
        renamed(model)

    wrong = compared_with("cnn", tmp_path, renamed_and_wrong, monkeypatch)
    assert wrong.verdict == "disproved" and guilty(wrong) == ["answer"]


def test_an_output_that_shows_another_value_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rewired(model: ModelProto) -> None:
        inner = nodes(model, "Relu")[0].output[0]
        model.graph.output[0].name = inner

    assert compared_with("shared", tmp_path, rewired, monkeypatch).verdict == "disproved"


def test_a_missing_output_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_off(model: ModelProto) -> None:
        del model.graph.output[-1]

    result = compared_with("gru", tmp_path, cut_off, monkeypatch)
    assert result.verdict == "disproved" and "1 outputs" in result.reasons[0]


def test_nan_is_never_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def poisoned(model: ModelProto) -> None:
        changed_weight("Gemm", 0, 1, by(float("nan")))(model)

    result = compared_with("cnn", tmp_path, poisoned, monkeypatch)
    assert (result.verdict, guilty(result)) == ("disproved", [result.rows[-1].name])
    assert result.rows[-1].introduced == float("inf")
    monkeypatch.undo()

    class Root(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.sqrt(x) + 1

    both = parity(Root(), torch.tensor([4.0, -1.0]))
    assert (both.verdict, both.origin) == ("not_comparable", None)
    assert json.loads(both.to_json())["verdict"] == "not_comparable"


def test_each_call_of_a_shared_module_has_its_row() -> None:
    rows = parity(network("shared"), NETWORKS["shared"][1], float64=False).rows
    assert [(row.module, row.op_type) for row in rows] == [
        ("layer", "Gemm"), ("act", "Relu"), ("layer", "Gemm"), ("act", "Relu"),
    ]  # fmt: skip


def test_a_constant_output_is_not_silently_proved() -> None:
    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("value", normal(3))

        def forward(self, x: Tensor) -> Tensor:
            return self.value

    result = parity(Constant(), normal(3))
    assert result.rows or (result.verdict == "not_comparable" and result.reasons)


def test_a_program_that_is_not_the_module_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Moody(nn.Module):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * self.calls

    result = parity(Moody(), normal(3))
    assert result.verdict == "disproved" and result.origin is None
    assert "is not the module" in result.reasons[0]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: parity(_Branching(), normal(3)), "VER1001"),
        (lambda: parity(nn.Dropout(0.5).train(), normal(3)), "VER0916"),
        (lambda: parity(len, normal(3)), "VER0707"),
        (lambda: parity(nn.Tanh(), normal(3), memory="much"), "VER0707"),
        (lambda: parity(nn.Tanh(), normal(3), budget=0.0), "VER0803"),
        (lambda: parity(nn.Tanh(), normal(3), tolerance=float("nan")), "VER0803"),
        (lambda: parity(nn.Tanh(), normal(3), onnx="/nowhere.onnx"), "VER0001"),
        (lambda: parity(nn.Tanh(), normal(3), onnx=__file__), "VER0501"),
    ],
    ids=["branch", "random", "no module", "memory", "budget", "nan", "no file", "no model"],
)
def test_what_cannot_be_compared_is_refused(call: Callable[[], Any], code: str) -> None:
    with pytest.raises(VeracityError) as refused:
        call()
    assert refused.value.diagnostics[0].code == code


class _Branching(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x


def test_less_memory_gives_the_same_answer() -> None:
    model, args = network("cnn"), NETWORKS["cnn"][1]
    whole = parity(model, args, float64=False)
    assert parity(model, args, float64=False, memory=1).rows == whole.rows


# What is shown


def test_rows_say_where_they_come_from_and_sum_up() -> None:
    result = parity(network("cnn"), NETWORKS["cnn"][1], name="my cnn")
    first = result.rows[0]
    assert (first.op_type, first.module, first.shape) == ("Conv", "bn1", (1, 6, 8, 8))
    assert Path(first.source.rsplit(":", 1)[0]).name == "planted.py"
    folded = {value.name: value.into for value in result.coverage.program if value.into}
    assert folded["conv2d"] == (first.name,)
    assert result.by_op_type()["Conv"].rows == 2
    assert result.by_module()["act"].disproved == 0
    assert sum(group.rows for group in result.by_source().values()) == len(result.rows)


def test_the_text_is_a_screen_and_leads_with_the_worst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit = changed_weight("Conv", 1, 1, by(1.01))
    result = compared_with("cnn", tmp_path, edit, monkeypatch)
    lines = str(result).splitlines()
    assert len(lines) < 40
    assert lines[0].startswith("_Cnn: disproved on ort")
    assert any(line.startswith(f"origin: {result.origin.name} (Conv) in bn2 at") for line in lines)
    worst = lines[lines.index("") + 2]
    assert "✗ Conv" in worst and result.origin.name in worst
    assert any("weight_bit_mismatch" in line for line in lines)
    report = json.loads(result.to_json())
    assert report["origin"] == result.origin.name and report["schema_version"]


def test_single_operators_may_have_tolerances_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit = changed_weight("Conv", 1, 1, by(1.01))
    rules = tmp_path / "tolerances.json"
    wrong = compared_with("cnn", tmp_path, edit, monkeypatch)
    assert wrong.verdict == "disproved" and wrong.origin is not None
    rules.write_text(json.dumps({"rules": [{"name": wrong.origin.name, "atol": 10.0}]}))
    monkeypatch.undo()
    allowed = compared_with("cnn", tmp_path, edit, monkeypatch, tolerances=rules)
    assert allowed.verdict == "proved"
    monkeypatch.undo()
    rules.write_text('{"rules": [{"nam": "x", "atol": 1}]}')
    with pytest.raises(VeracityError, match="VER1212"):
        parity(nn.ReLU(), normal(3), tolerances=rules)


def test_a_baseline_tells_what_got_worse_and_only_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh()).eval()
    before = parity(model, normal(2, 4))
    saved = tmp_path / "drift.json"
    saved.write_text(before.to_json())
    assert before.worse_than(saved) == []
    wrong = compared_with("cnn", tmp_path, changed_weight("Conv", 1, 1, by(1.01)), monkeypatch)
    found = wrong.worse_than(saved)
    assert {one.code for one in found} == {"VER1214"}
    assert any(wrong.origin is not None and wrong.origin.name in str(one) for one in found)
    saved.write_text("{}")
    with pytest.raises(VeracityError, match="VER1213"):
        before.worse_than(saved)
