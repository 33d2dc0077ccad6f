"""Reports of drift: the files of per-layer parity reports, byte for byte, and the page."""

from __future__ import annotations

import json
import math
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 (as everybody calls it)
from torch import Tensor, nn
from veracity import VeracityError
from veracity.parity import ParityResult, parity

#: Where shortest digits, fixed notation and exponents change.
ODD_FLOATS = (
    0.0, 1e-5, 1e-4, 9.9999e-5, 1e15, 1e16, 9999999999999998.0, 123456789.123, 5e-324,
    2.2250738585072014e-308, 1.7976931348623157e308, 1 / 3, 0.1 + 0.2, 1234567890122.5,
    1234567890123.5, 2.0**-30, 1e22, 1.5e300,
)  # fmt: skip
ODD_NAMES = ("layer1.0.conv", "größe", "关节", "𝄞", 'quo"te', "back\\slash", "tab\t", "\x7f", "a/b")


def figures(max_abs: float, mean_abs: float, mismatching: int = 0) -> dict[str, Any]:
    return {"max_abs": max_abs, "mean_abs": mean_abs, "mismatching": mismatching}


def row(name: str, max_abs: float = 0.0, mean_abs: float = 0.0, **changes: Any) -> dict[str, Any]:
    """Return a row of a leaf module of the same name."""
    return {
        "name": f"value of {name}",
        "op_type": "Relu",
        "module": name,
        "dtype": "float32",
        "shape": [1, 2],
        "scale": 1.0,
        "accumulated": figures(max_abs, mean_abs),
        "introduced": figures(0.0, 0.0),
        "budget": 1e-5,
        "verdict": "proved",
        **changes,
    }


def report(rows: list[dict[str, Any]], **changes: Any) -> ParityResult:
    leaves = [each["module"] for each in rows]
    return ParityResult(
        {
            "schema_version": "1.0",
            "model": "tiny",
            "session": {"node": "", "engine": "ort", "engine_version": "1", "device": "cpu"},
            "graph": {"leaves": leaves} if leaves else {},
            "verdict": "proved" if rows else "not_comparable",
            "tolerance": 1e-4,
            "rows": rows,
            "unmapped": [],
            "program": [],
            "notes": [],
            **changes,
        }
    )


def written(result: ParityResult, folder: Path, ending: str) -> str:
    paths = {path.name: path for path in result.write_reports(folder / "out")}
    return paths[f"out{ending}"].read_text(encoding="utf-8")


def main_file(result: ParityResult, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(written(result, folder, ".json"))
    return found


# Byte for byte


def kept(value: float) -> float:
    """Return 13 significant digits of a number."""
    return float(f"{value:.12e}")


def expected_main(rows: list[dict[str, Any]], model: str, tolerance: float) -> str:
    """Write the main file as Python writes it."""
    layers = [
        {
            "layer": each["module"],
            "shape": each["shape"],
            "max_abs_diff": kept(each["accumulated"]["max_abs"]),
            "mean_abs_diff": kept(each["accumulated"]["mean_abs"]),
            "exceeds_tol": kept(each["accumulated"]["max_abs"]) > tolerance,
        }
        for each in rows
    ]
    over = [layer["layer"] for layer in layers if layer["exceeds_tol"]]
    whole = {
        "model": model,
        "tolerance": tolerance,
        "layers": layers,
        "drift_origin": over[0] if over else None,
        "layers_total": len(layers),
        "layers_exceeding": len(over),
    }
    return json.dumps(whole, indent=2, sort_keys=True) + "\n"


def any_float(draw: random.Random) -> float:
    """Return a finite number of any size, each bit pattern as likely as any other."""
    value: float = struct.unpack("<d", draw.getrandbits(63).to_bytes(8, "little"))[0]
    return value if math.isfinite(value) else any_float(draw)


def test_the_main_file_is_what_python_would_write(tmp_path: Path) -> None:
    draw = random.Random(5)
    numbers = [*ODD_FLOATS, *(any_float(draw) for _ in range(2000))]
    numbers += [draw.random() * 10.0 ** draw.randint(-20, 20) for _ in range(2000)]
    rows = [
        row(f"{draw.choice(ODD_NAMES)}{index}", number, draw.choice(numbers), shape=shape)
        for index, number in enumerate(numbers)
        for shape in ([[], [0], [1, 64, 112, 112]][index % 3],)
    ]
    found = written(report(rows, model=ODD_NAMES[1]), tmp_path, ".json")
    assert found == expected_main(rows, ODD_NAMES[1], 1e-4)


@pytest.mark.parametrize("tolerance", [1e-4, 1 / 3e4, 0.0, 1e-05, 1.0, 12345678.9, 1e22])
def test_tolerances_are_written_as_python_writes_them(tmp_path: Path, tolerance: float) -> None:
    rows = [row("a", 1e-6), row("b", 2.0)]
    result = report(rows, tolerance=tolerance)
    assert written(result, tmp_path, ".json") == expected_main(rows, "tiny", tolerance)
    page = written(result, tmp_path, ".md")
    assert f"Tolerance: {tolerance:g}  ·  layers checked: 2" in page


def test_numbers_of_the_markdown_are_written_as_python_writes_them(tmp_path: Path) -> None:
    draw = random.Random(6)
    numbers = [*ODD_FLOATS[1:], *(any_float(draw) for _ in range(500))]
    rows = [row(f"l{index}", number) for index, number in enumerate(numbers)]
    lines = written(report(rows), tmp_path, ".md").splitlines()
    shown = [line.split(" | ")[2] for line in lines if line.startswith("| `")]
    assert shown == [f"{kept(number):.3e}" for number in numbers]


# The contract of per-layer parity reports


@pytest.mark.parametrize(
    ("error", "exceeds"),
    [(1e-4, False), (math.nextafter(1e-4, 1), False), (1.000000000001e-4, True), (0.0, False)],
)
def test_exceeding_is_strict_after_rounding(tmp_path: Path, error: float, exceeds: bool) -> None:
    (layer,) = main_file(report([row("a", error)]), tmp_path)["layers"]
    assert layer["exceeds_tol"] is exceeds


def test_the_first_violator_in_order_is_the_origin(tmp_path: Path) -> None:
    rows = [row("z"), row("m", 0.001), row("a", 0.5)]
    found = main_file(report(rows), tmp_path)
    assert found["drift_origin"] == "m"
    assert [layer["layer"] for layer in found["layers"]] == ["z", "m", "a"]
    assert (found["layers_total"], found["layers_exceeding"]) == (3, 2)


def test_identical_values_are_zero_and_have_no_origin(tmp_path: Path) -> None:
    result = report([row("a"), row("b")])
    found = main_file(result, tmp_path)
    assert found["drift_origin"] is None and found["layers_exceeding"] == 0
    assert {layer["max_abs_diff"] for layer in found["layers"]} == {0.0}
    page = written(result, tmp_path, ".md")
    assert page.endswith("\n\nNo drift detected at tolerance 0.0001 across 2 layers.\n")
    assert "| `a` | (1,2) | 0.0 | 0.0 | — |" in page
    assert json.loads(written(result, tmp_path, "_causes.json"))["causes"] == []


def test_nothing_compared_is_not_called_clean(tmp_path: Path) -> None:
    result = report([])
    assert main_file(result, tmp_path)["layers_total"] == 0
    assert "No drift" not in written(result, tmp_path, ".md")
    assert str(result).startswith("tiny: not comparable")


def test_keys_are_sorted_and_bytes_repeat(tmp_path: Path) -> None:
    result = report([row("a", 1.0)])
    text = written(result, tmp_path, ".json")
    orders: list[list[str]] = []
    json.loads(text, object_pairs_hook=lambda pairs: orders.append([key for key, _ in pairs]))
    assert len(orders) == 2 and all(order == sorted(order) for order in orders)
    assert text == written(result, tmp_path / "again", ".json")


CAUSES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"kind": "weight_bit_mismatch", "detail": "conv.weight"}, "weight_bit_mismatch"),
    ({"kind": "precision_loss", "detail": "float16"}, "precision_loss"),
    ({"kind": "op_implementation", "detail": "BatchNormalization"}, "op_implementation"),
    ({"kind": "unknown", "detail": "Relu"}, "unknown"),
)


@pytest.mark.parametrize(("cause", "name"), CAUSES, ids=[name for _, name in CAUSES])
def test_causes_have_a_file_of_their_own(tmp_path: Path, cause: dict[str, Any], name: str) -> None:
    guilty = row("conv", 1.0, introduced=figures(1.0, 0.5), verdict="disproved", cause=cause)
    rows = [row("before"), guilty, row("behind", 0.5)]
    result = report(rows, origin=guilty["name"])
    found = json.loads(written(result, tmp_path, "_causes.json"))
    assert list(found) == ["causes", "model", "tolerance"]
    first, second = found["causes"]
    assert first == {"cause": name, "detail": cause["detail"], "layer": "conv"}
    assert (second["cause"], second["layer"]) == ("propagated", "behind")
    assert "cause" not in written(result, tmp_path, ".json")
    page = written(result, tmp_path, ".md")
    assert f"- `conv` → **{name}** ({cause['detail']})" in page
    assert "| `before` | (1,2) | 0.0 | 0.0 | — | — |" in page


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"accumulated": figures(0.0, 0.0, 1), "verdict": "disproved"}, "Infinity"),
        ({"problem": "another shape", "verdict": "disproved"}, "Infinity"),
        ({"problem": "the original has NaN here", "verdict": "not_comparable"}, "NaN"),
    ],
    ids=["one side", "shape", "both sides"],
)
def test_what_is_no_number_is_flagged_in_legal_json(
    tmp_path: Path, changes: dict[str, Any], text: str
) -> None:
    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is no JSON")

    result = report([row("a", **changes)])
    found = json.loads(written(result, tmp_path, ".json"), parse_constant=refuse)
    (layer,) = found["layers"]
    assert (layer["max_abs_diff"], layer["exceeds_tol"]) == (text, True)
    assert found["drift_origin"] == "a"
    assert not math.isfinite(float(layer["max_abs_diff"]))


# Real networks


class _Leaves(nn.Module):
    """A shared in-place activation, a functional operator between leaves and one at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.first(x))
        x = torch.sigmoid(x) + x
        return F.softmax(self.act(self.second(x)), -1)


@pytest.fixture(scope="module")
def real() -> ParityResult:
    torch.manual_seed(0)
    return parity(_Leaves().eval(), torch.randn(3, 6), name="leaves")


def test_layers_are_calls_of_leaves_functional_operators_and_outputs(
    real: ParityResult, tmp_path: Path
) -> None:
    found = main_file(real, tmp_path)
    expected = ["first", "act", "sigmoid", "add", "second", "act#2", "softmax"]
    assert [layer["layer"] for layer in found["layers"]] == expected
    mapped = json.loads(written(real, tmp_path, "_layer_map.json"))
    assert (mapped["model"], mapped["input_name"]) == ("leaves", "x")
    assert (mapped["final_output"], mapped["values"]["softmax"]) == ("softmax", "softmax")
    assert mapped["layers"] == expected and mapped["opset_version"] >= 18


def test_figures_are_those_that_numpy_gives(tmp_path: Path) -> None:
    import onnxruntime

    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 8)).eval()
    x = torch.randn(32, 64) * 50
    file = tmp_path / "model.onnx"
    torch.onnx.export(network, (x,), dynamo=True, verbose=False).save(file)
    found = main_file(parity(network, x, onnx=file), tmp_path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(file), options, ["CPUExecutionProvider"])
    (theirs,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    with torch.no_grad():
        error = np.abs(theirs.astype(np.float64) - network(x).numpy().astype(np.float64))
    last = found["layers"][-1]
    assert last["shape"] == [32, 8]
    assert last["max_abs_diff"] == kept(float(error.max()))
    assert last["mean_abs_diff"] == pytest.approx(kept(float(error.mean())), rel=1e-12)


def test_nodes_of_the_overlay_are_those_of_the_file(tmp_path: Path) -> None:
    import onnx

    torch.manual_seed(0)
    network, x = _Leaves().eval(), torch.randn(3, 6)
    file = tmp_path / "model.onnx"
    torch.onnx.export(network, (x,), dynamo=True, verbose=False).save(file)
    result = parity(network, x, onnx=file)
    data = json.loads(written(result, tmp_path, "_model_explorer.json"))
    names = {node.name for node in onnx.load(file).graph.node}
    assert data["results"] and set(data["results"]) <= names
    assert all(0 <= entry["value"] <= 1 for entry in data["results"].values())


def test_the_text_and_the_markdown_lead_with_the_answer(real: ParityResult) -> None:
    lines = str(real).splitlines()
    assert lines[0].startswith("leaves: proved on ort")
    assert lines[-1] == "7 proved, 0 disproved, 0 not comparable"
    assert max(map(len, lines)) <= 80 and len(lines) <= 40
    assert "**proved: on these inputs none of 7 values" in real.to_markdown()


def test_the_page_is_one_file(real: ParityResult, tmp_path: Path) -> None:
    path = real.to_html(tmp_path / "deep" / "report.html")
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert page.count('<tr id="row-') == 7
    assert "http" not in page.replace("http-equiv", "")
    assert [each.name for each in path.parent.iterdir()] == ["report.html"]


def test_a_report_survives_its_file(real: ParityResult, tmp_path: Path) -> None:
    again = ParityResult(json.loads(written(real, tmp_path, "_drift.json")))
    assert again.rows == real.rows and str(again) == str(real)
    assert (again.coverage, again.notes) == (real.coverage, real.notes)


def test_files_that_cannot_be_written_are_refused(real: ParityResult, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(VeracityError) as caught:
        real.write_reports(tmp_path / "file" / "base")
    assert "file" in str(caught.value)
    with pytest.raises(VeracityError):
        real.to_html(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file"]


def test_what_is_no_report_is_refused() -> None:
    broken = report([row("a")])
    broken._report["rows"][0]["verdict"] = "maybe"
    with pytest.raises(VeracityError, match="not a drift report"):
        broken.to_markdown()
