"""Planted faults: the guilty operator first, its cause by experiment, and a repro that shows it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
import pytest
import torch
from onnx import ModelProto, numpy_helper
from planted import (
    FAULTS,
    NETWORKS,
    by,
    changed_weight,
    compared_with,
    exchanged,
    exported,
    guilty,
    network,
    normal,
)
from torch import Tensor, nn
from veracity import VeracityError
from veracity.drift import comparison, program, rerun
from veracity.parity import ParityResult, Row, parity

pytestmark = pytest.mark.usefixtures("one_thread")


def origin(result: ParityResult) -> Row:
    assert result.origin is not None, str(result)
    return result.origin


def disproved_with(
    name: str,
    edit: Callable[[ModelProto], Any],
    tmp_path: Path,
    patch: pytest.MonkeyPatch,
    **more: Any,
) -> Row:
    return origin(compared_with(name, tmp_path, edit, patch, **more))


# The table


def test_every_fault_names_its_operator_first_and_nine_of_ten_their_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(FAULTS) >= 60 and {name for name, *_ in FAULTS.values()} >= {
        "cnn",
        "attention",
        "lstm",
    }
    lines, right = [], 0
    for fault, (name, edit, expected) in FAULTS.items():
        told: list[str] = []
        result = compared_with(name, tmp_path, lambda model: told.append(edit(model)), monkeypatch)  # noqa: B023
        row = origin(result)
        # A value without counterpart is judged by the one that it is part of.
        named = result.coverage.parts.get(told[0], told[0])
        if fault.startswith(("gru: ", "lstm: ")) and row.module == "memory":
            # One operator with several outputs.
            assert {r.module for r in result.rows if r.name in guilty(result)} == {"memory"}, fault
        else:
            assert (row.name, guilty(result)) == (named, [named]), f"{fault}\n{result}"
        assert row.cause is not None
        right += row.cause.kind == expected
        mark = "" if row.cause.kind == expected else f"  <- expected {expected}"
        lines.append(f"{fault}: {row.name} ({row.op_type}): {row.cause}: {row.cause.detail}{mark}")
    print("\n".join(lines))
    assert right >= 0.9 * len(FAULTS), "\n".join(line for line in lines if "<- expected" in line)


@pytest.mark.parametrize(
    ("fault", "detail"),
    [
        ("conv: a channel +0.05", "`conv1.weight` differs from the original in 27 of 162 elements"),
        ("linear: transposed, weight x 1.001", "`output.weight` differs from the original in 480"),
        ("wide: first weight transposed", "`first.weight` is the original's, transposed"),
        ("attention: softmax axis", "axis: -1 in the original, -2 in the export"),
        ("attention: layer norm eps", "epsilon: 1e-5 in the original, 0.01 in the export"),
        ("parameters: clamp to 0.45", "input 2 of Clip: 0.4 in the original, 0.45 in the export"),
        ("functional: difference exchanged", "Sub(y, x) in the original, Sub(x, y) in the export"),
        ("relu is abs", "Relu in the original, Abs in the export"),
        ("cnn: relu in NHWC", "in the order [0, 3, 1, 2]: it is [1, 8, 8, 6] in the export"),
        ("attention: up in int8", "narrow numbers (QuantizeLinear, DequantizeLinear): off by"),
    ],
)  # fmt: skip
def test_a_cause_says_what_was_seen(
    fault: str, detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, edit, _ = FAULTS[fault]
    cause = disproved_with(name, edit, tmp_path, monkeypatch).cause
    assert cause is not None and detail in cause.detail


def test_what_was_tried_before_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, edit, _ = FAULTS["linear: bias dropped"]
    cause = disproved_with(name, edit, tmp_path, monkeypatch).cause
    assert cause is not None
    tried = [line.split(":")[0] for line in cause.ruled_out]
    assert tried == ["nondeterminism", "layout", "weights", "attributes"]


# Where the original's weights come from


def test_an_exporter_that_writes_another_weight_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    exported_program, proto = exported("wide")
    model = onnx.load_from_string(proto)
    changed_weight("Gemm", 1, 1, by(1.001))(model)
    made = program.Program(exported_program, onnx_ir.from_proto(model))
    monkeypatch.setattr(comparison, "export", lambda *_, **__: made)
    row = origin(parity(network("wide"), NETWORKS["wide"][1]))
    assert row.name == "linear_1" and row.cause is not None
    assert row.cause.kind == "weight_bit_mismatch" and "`second.weight`" in row.cause.detail


def test_a_weight_is_found_in_a_file_whose_batch_norms_are_not_folded(tmp_path: Path) -> None:
    model, args = network("cnn"), NETWORKS["cnn"][1]
    made = torch.onnx.export(model, args, dynamo=True, verbose=False, optimize=False)
    assert made is not None
    proto = made.model_proto
    weight = next(each for each in proto.graph.initializer if each.name == "conv2.weight")
    array = numpy_helper.to_array(weight) * np.float32(1.001)
    weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    onnx.save(proto, tmp_path / "unfolded.onnx")
    row = origin(parity(model, args, onnx=tmp_path / "unfolded.onnx", float64=False))
    assert row.op_type == "Conv" and row.cause is not None
    assert row.cause.kind == "weight_bit_mismatch" and "`conv2.weight`" in row.cause.detail


def test_operators_beyond_the_first_few_say_that_they_were_not_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_wrong(model: ModelProto) -> None:
        for which in (0, 1):
            changed_weight("Gemm", which, 1, by(1.01))(model)

    result = compared_with("wide", tmp_path, all_wrong, monkeypatch, causes=1)
    first, second = (row.cause for row in result.rows if row.verdict == "disproved")
    assert first is not None and first.kind == "weight_bit_mismatch"
    assert second is not None and second.kind == "unknown"
    assert "only the first 1" in second.detail
    without = compared_with("wide", tmp_path, all_wrong, monkeypatch, causes=False)
    assert [row.cause for row in without.rows if row.verdict == "disproved"] == [None, None]


# A repro


FILES = ["README.md", "model.onnx", "repro.json", "values.safetensors"]


def test_a_repro_shows_the_fault_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "repro"
    for _ in range(2):  # a repro that is there is replaced
        row = disproved_with(
            "wide", changed_weight("Gemm", 0, 1, by(1.01)), tmp_path, monkeypatch, repro=folder
        )
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    model = onnx.load(folder / "model.onnx")
    assert [node.op_type for node in model.graph.node] == ["Gemm"]
    assert [value.name for value in model.graph.input] == ["x"], "the weights are inside"
    again = rerun(folder)
    assert (again.value, again.shows, again.repeats) == (row.name, True, True), str(again)
    assert again.error == pytest.approx(row.introduced)
    other = rerun(folder, engine="embedded")
    assert other.shows and other.engine.startswith("embedded"), str(other)
    record = json.loads((folder / "repro.json").read_text())
    assert record["cause"]["kind"] == "weight_bit_mismatch"


def test_a_repro_runs_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit = exchanged("Relu", 0, "Abs")
    disproved_with("cnn", edit, tmp_path, monkeypatch, repro=tmp_path / "repro")
    code = (
        "import sys; from veracity.drift import rerun; "
        f"print(rerun({str(tmp_path / 'repro')!r}).shows, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_a_value_of_another_shape_has_a_repro(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, edit, _ = FAULTS["cnn: relu in NHWC"]
    disproved_with(name, edit, tmp_path, monkeypatch, repro=tmp_path / "repro")
    again = rerun(tmp_path / "repro")
    assert (again.shows, again.repeats, again.error) == (True, True, float("inf"))


def test_a_fault_that_is_gone_does_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "repro"
    disproved_with("cnn", exchanged("Relu", 0, "Abs"), tmp_path, monkeypatch, repro=folder)
    model = onnx.load(folder / "model.onnx")
    model.graph.node[0].op_type = "Relu"
    onnx.save(model, folder / "model.onnx")
    again = rerun(folder)
    assert (again.shows, again.repeats) == (False, False) and "does not show" in str(again)


def test_a_folder_that_holds_something_else_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit = exchanged("Relu", 0, "Abs")
    for what, name in [("a stranger", "notes.txt"), ("a model of somebody", "model.onnx")]:
        folder = tmp_path / what
        folder.mkdir()
        (folder / name).write_text("mine")
        with pytest.raises(VeracityError) as refused:
            compared_with("cnn", tmp_path, edit, monkeypatch, repro=folder)
        assert refused.value.diagnostics[0].code == "VER1201"
        assert [path.name for path in folder.iterdir()] == [name]


def test_nothing_wrong_means_no_repro(tmp_path: Path) -> None:
    result = parity(nn.Tanh(), normal(3), repro=tmp_path / "repro")
    assert result.verdict == "proved" and not (tmp_path / "repro").exists()
    assert any("nothing to write a repro of" in note for note in result.notes)


@pytest.mark.parametrize("content", [None, "{}", "not json", '{"schema_version": "9.0"}'])
def test_what_is_no_repro_is_refused(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "repro.json").write_text(content)
    with pytest.raises(VeracityError) as refused:
        rerun(tmp_path)
    assert refused.value.diagnostics[0].code == "VER1202"


# Files that say wrong things, and what engines lack


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("relu", [1, 6, 8, 9]), ("relu", [1, 6, 64]), ("linear", [1, 7]), ("view", [2, 48])],
)
def test_a_wrong_shape_in_the_file_is_a_row(
    name: str, sizes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lie(model: ModelProto) -> None:
        values = [*model.graph.value_info, *model.graph.output]
        shape = next(value for value in values if value.name == name).type.tensor_type.shape
        del shape.dim[:]
        for size in sizes:
            shape.dim.add().dim_value = size

    result = compared_with("cnn", tmp_path, lie, monkeypatch)
    assert guilty(result) == [name]
    assert origin(result).problem is not None and str(sizes) in str(origin(result).problem)
    cause = origin(result).cause
    assert cause is not None and "right when it is run" in cause.detail


def test_an_operator_that_gives_another_shape_than_the_file_says_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, edit, _ = FAULTS["parameters: mean over another axis"]
    result = compared_with(name, tmp_path, edit, monkeypatch)
    assert guilty(result) == ["mean"] and "another shape" in str(origin(result).problem)
    behind = result.rows[-1]
    assert behind.introduced == 0.0, "it is right on what the module computed"
    assert behind.accumulated == float("inf"), "and cannot be computed from the inputs"


def test_values_inside_of_branches_are_part_of_the_branch() -> None:
    class Branching(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            def yes(x: Tensor) -> Tensor:
                return x.relu() * 2

            def no(x: Tensor) -> Tensor:
                return x.abs() + 1

            return torch.cond(x.sum() > 0, yes, no, (x,)).tanh()

    result = parity(Branching(), normal(2, 3))
    assert result.verdict == "proved", result
    branch = next(row.name for row in result.rows if row.op_type == "If")
    inside = [name for name, part_of in result.coverage.parts.items() if part_of == branch]
    assert len(inside) == 4 and all(name.startswith(f"{branch}/") for name in inside)


def test_bfloat16_is_proved_or_refused_with_the_operator() -> None:
    class Moved(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.transpose(0, 1).reshape(-1)

    assert parity(Moved(), normal(2, 3).bfloat16()).verdict == "proved"
    for model, shape in [(nn.Linear(8, 8), (2, 8)), (nn.Conv1d(2, 3, 3), (1, 2, 8))]:
        with pytest.raises(VeracityError) as refused:
            parity(model.bfloat16().eval(), normal(*shape).bfloat16())
        found = refused.value.diagnostics[0]
        assert found.code in ("VER0604", "VER0606")
        assert "Gemm" in found.message or "Conv" in found.message
