"""`veracity drift` on what other tools make of a model: half precision, int8, optimised graphs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import save_onnx
from onnx import helper, numpy_helper

BINARY = Path(__file__).parents[2] / "target/debug/veracity"
SHAPE = [2, 3, 12, 12]


def constants() -> dict[str, np.ndarray]:
    """Return weights of two convolutions and a linear layer, scaled to keep values near 1."""
    generator = np.random.default_rng(7)
    shapes = {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 8, 3, 3), "b2": (8,), "w3": (5, 8)}
    drawn = {name: generator.standard_normal(shape) for name, shape in shapes.items()}
    fan_in = {name: max(int(np.prod(shape[1:])), 4) for name, shape in shapes.items()}
    return {
        name: (value / np.sqrt(fan_in[name])).astype(np.float32) for name, value in drawn.items()
    }


def nodes() -> list[onnx.NodeProto]:
    """Return conv, relu, conv, residual add, relu, pooling, linear, softmax."""
    pads = {"pads": [1, 1, 1, 1]}
    return [
        helper.make_node("Conv", ["x", "w1", "b1"], ["conv1"], **pads),
        helper.make_node("Relu", ["conv1"], ["relu1"]),
        helper.make_node("Conv", ["relu1", "w2", "b2"], ["conv2"], **pads),
        helper.make_node("Add", ["conv2", "relu1"], ["added"]),
        helper.make_node("Relu", ["added"], ["relu2"]),
        helper.make_node("GlobalAveragePool", ["relu2"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w3"], ["logits"], transB=1),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]


VALUES = ["conv1", "relu1", "conv2", "added", "relu2", "pooled", "flat", "logits", "y"]


def save(path: Path, weights: dict[str, np.ndarray] | None = None) -> Path:
    """Save the network."""
    ports = {"x": ("float32", SHAPE)}, {"y": ("float32", [2, 5])}
    return save_onnx(path, nodes(), *ports, weights or constants())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the network, what was made of it, and inputs."""
    folder = tmp_path_factory.mktemp("drift")
    save(folder / "net.onnx")
    np.savez(folder / "x.npz", x=sample(0))
    _half(folder)
    _quantised(folder)
    return folder


def sample(seed: int) -> np.ndarray:
    """Return inputs."""
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)


def _half(folder: Path) -> None:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    for name, keep in (("half", False), ("half_inside", True)):
        model = convert_float_to_float16(onnx.load(folder / "net.onnx"), keep_io_types=keep)
        onnx.save(model, folder / f"{name}.onnx")


def _quantised(folder: Path) -> None:
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        """Gives the very inputs that are compared later: nothing is clipped."""

        def __init__(self, scale: float) -> None:
            self.samples: Iterator[dict[str, np.ndarray]] = iter([{"x": sample(0) * scale}])

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.samples, None)

    for name, per_channel, scale in (
        ("int8", False, 1.0),
        ("int8_channels", True, 1.0),
        ("int8_narrow", False, 0.4),
    ):
        quantize_static(
            folder / "net.onnx",
            folder / f"{name}.onnx",
            Reader(np.float32(scale)),
            quant_format=QuantFormat.QDQ,
            per_channel=per_channel,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )


def drift(folder: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    """Run the command and return its report."""
    return run(folder, "drift", *arguments, "--engine", "ort", code=code)


def run(folder: Path, *arguments: str, code: int) -> dict[str, Any]:
    """Run a command and return its answer."""
    assert BINARY.exists(), "no command line binary: run `make build` first"
    done = subprocess.run(
        [BINARY, *arguments, "--format", "json"],
        cwd=folder,
        env={"VIRTUAL_ENV": sys.prefix},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def rows(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the rows by value."""
    return {row["name"]: row for row in report["rows"]}


def disproved(report: dict[str, Any]) -> list[str]:
    """Return the values whose operators are wrong."""
    return [row["name"] for row in report["rows"] if row["verdict"] == "disproved"]


@pytest.mark.parametrize("name", ["half", "half_inside"])
def test_half_precision_is_proved_with_the_budget_of_half_precision(
    folder: Path, name: str
) -> None:
    report = drift(folder, "net.onnx", f"{name}.onnx", "--inputs", "x.npz")
    found = rows(report)
    assert set(VALUES) <= set(found)
    assert found["conv2"]["dtype"] == "float16"
    assert found["conv2"]["reference"] == "float32"
    assert found["conv2"]["budget"] == pytest.approx(8 * 2**-10 * found["conv2"]["scale"])
    assert found["y"]["accumulated"]["max_abs"] > 1e-6, "it is half precision after all"


def test_a_wrong_weight_is_found_in_half_precision(folder: Path) -> None:
    half = halved(planted_weight(folder)[1])
    report = drift(folder, "net.onnx", half.name, "--inputs", "x.npz", code=1)
    assert disproved(report) == ["conv2"]
    assert report["origin"] == "conv2"
    assert rows(report)["conv2"]["cause"]["kind"] == "weight_bit_mismatch"


@pytest.mark.parametrize("name", ["int8", "int8_channels"])
def test_int8_is_proved_by_its_own_steps(folder: Path, name: str) -> None:
    report = drift(folder, "net.onnx", f"{name}.onnx", "--inputs", "x.npz")
    found = rows(report)
    weight = found["w1_DequantizeLinear_Output"]
    assert weight["reference"] == 'float32 constant "w1"'
    assert 0 < weight["introduced"]["max_abs"] <= weight["budget"] < 0.02
    # The quantiser leaves out the Relu: its range does the work.
    relu = found["relu1_DequantizeLinear_Output"]
    assert relu["reference"] == 'float32 "relu1"'
    assert relu["introduced"]["max_abs"] > 1e-3
    hidden = next(value for value in report["unmapped"] if value["name"] == "relu1")
    assert "only a quantiser reads it" in hidden["reason"]
    assert found["y"]["accumulated"]["max_abs"] > 1e-4


def test_a_range_that_clips_is_named(folder: Path) -> None:
    report = drift(folder, "net.onnx", "int8_narrow.onnx", "--inputs", "x.npz", code=1)
    assert report["origin"] == "x_DequantizeLinear_Output"
    problem = rows(report)["x_DequantizeLinear_Output"]["problem"]
    assert "more than half a step of the quantisation" in problem
    assert {row["cause"]["kind"] for row in report["rows"] if "cause" in row} == {"precision_loss"}


def test_a_wrong_quantised_weight_is_named_in_its_channel(folder: Path) -> None:
    model = onnx.load(folder / "int8_channels.onnx")
    tensor = next(t for t in model.graph.initializer if t.name == "w2_quantized")
    values = numpy_helper.to_array(tensor).copy()
    values[5, 0, 0, 0] = 120 if values[5, 0, 0, 0] < 0 else -120
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    onnx.save(model, folder / "int8_wrong.onnx")
    report = drift(folder, "net.onnx", "int8_wrong.onnx", "--inputs", "x.npz", code=1)
    assert disproved(report) == ["w2_DequantizeLinear_Output"]
    row = rows(report)["w2_DequantizeLinear_Output"]
    assert "1 of 576 elements" in row["problem"]
    assert row["cause"]["kind"] == "weight_bit_mismatch"
    assert "1 of 576 elements are not those of `w2`" in row["cause"]["detail"]


def operators_of(path: Path, level: str) -> set[str]:
    """Return the operators of the graph that ONNX Runtime makes here: machines differ in theirs."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(
        onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level.upper()}"
    )
    written = path.with_name(f"written-{level}.onnx")
    options.optimized_model_filepath = str(written)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    nodes = onnx.load(written).graph.node
    return {f"{n.domain}::{n.op_type}" if n.domain else n.op_type for n in nodes}


@pytest.mark.parametrize("level", ["basic", "extended", "all"])
def test_the_graph_that_onnx_runtime_makes_is_looked_at(folder: Path, level: str) -> None:
    report = drift(folder, "net.onnx", "--level", level, "--inputs", "x.npz")
    found = rows(report)
    assert "y" in found
    seen = {row["op_type"] for row in found.values()}
    seen |= {value["op_type"] for value in report["unmapped"]}
    made = operators_of(folder / "net.onnx", level)
    assert seen == made, "the operators are those of the graph that is run, not of the file"
    survive = f"{len(set(VALUES) & set(found))} of {len(VALUES)} values are left"
    assert survive in report["notes"][0]
    fate = {value["name"]: value for value in report["program"]}
    assert set(fate) == set(VALUES)
    for name in set(VALUES) - set(found):
        assert fate[name]["status"] == "folded", "what is gone went into a compared value"
        assert set(fate[name]["into"]) <= set(found)
    for value in report["unmapped"]:
        assert value.get("part_of") in found
        if value["op_type"].startswith("com.microsoft.nchwc"):
            assert "layout of ONNX Runtime's own" in value["reason"]


def test_weights_in_a_file_of_their_own_and_nodes_out_of_order_are_read(folder: Path) -> None:
    model = onnx.load(folder / "net.onnx")
    reordered = list(reversed(model.graph.node))
    del model.graph.node[:]
    model.graph.node.extend(reordered)
    onnx.save(
        model, folder / "apart.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    report = drift(folder, "net.onnx", "apart.onnx", "--inputs", "x.npz")
    assert list(rows(report)) == VALUES
    assert all(row["introduced"]["max_abs"] <= row["budget"] for row in report["rows"])


def test_little_memory_gives_the_same_report(folder: Path) -> None:
    arguments = ("net.onnx", "half.onnx", "--inputs", "x.npz")
    little, much = drift(folder, *arguments, "--memory", "1kB"), drift(folder, *arguments)
    assert little.pop("command") == much.pop("command").replace(
        " --engine", " --memory 1kB --engine"
    )
    assert little == much


def test_drawn_inputs_depend_on_the_seed_alone(folder: Path) -> None:
    first, again, other = (drift(folder, "net.onnx", "half.onnx", "--seed", s) for s in "112")
    assert first == again
    assert first["rows"] != other["rows"]
    assert "seed 1" in first["notes"][0]


def test_a_baseline_accepts_what_was_saved(folder: Path) -> None:
    arguments = ("net.onnx", "int8_narrow.onnx", "--inputs", "x.npz")
    drift(folder, *arguments, "--save", "drift.json", code=1)
    report = drift(folder, *arguments, "--baseline", "drift.json")
    assert report["worse"] == []


def planted_weight(folder: Path) -> tuple[Path, Path]:
    """Return the network and one with a wrong channel."""
    weights = constants()
    weights["w2"][3] += 0.05
    return folder / "net.onnx", save(folder / "weight.onnx", weights)


def planted_weight_in_half(folder: Path) -> tuple[Path, Path]:
    """Return the network and one in half precision with a wrong channel."""
    return folder / "net.onnx", halved(planted_weight(folder)[1], keep_io_types=True)


def planted_attribute(folder: Path) -> tuple[Path, Path]:
    """Return the network and one whose softmax goes over another axis."""
    model = onnx.load(folder / "net.onnx")
    model.graph.node[-1].attribute.append(helper.make_attribute("axis", 0))
    onnx.save(model, folder / "axis.onnx")
    return folder / "net.onnx", folder / "axis.onnx"


def planted_operator(folder: Path) -> tuple[Path, Path]:
    """Return the network and one with another activation."""
    model = onnx.load(folder / "net.onnx")
    model.graph.node[4].op_type = "Sigmoid"
    onnx.save(model, folder / "sigmoid.onnx")
    return folder / "net.onnx", folder / "sigmoid.onnx"


def planted_overflow(folder: Path) -> tuple[Path, Path]:
    """Return a norm whose squares are more than float16 holds, and that in float16."""
    body = [
        helper.make_node("Mul", ["x", "k"], ["scaled"]),
        helper.make_node("Mul", ["scaled", "scaled"], ["squares"]),
        helper.make_node("ReduceMean", ["squares"], ["mean"], keepdims=0),
        helper.make_node("Sqrt", ["mean"], ["y"]),
    ]
    ports = {"x": ("float32", SHAPE)}, {"y": ("float32", [])}
    plain = save_onnx(folder / "norm.onnx", body, *ports, {"k": np.float32([300])})
    return plain, halved(plain)


def planted_range(folder: Path) -> tuple[Path, Path]:
    """Return the network and one whose quantisation clips."""
    return folder / "net.onnx", folder / "int8_narrow.onnx"


def halved(path: Path, **options: bool) -> Path:
    """Save a model in half precision beside it."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    half = path.with_name(f"{path.stem}_half.onnx")
    onnx.save(convert_float_to_float16(onnx.load(path), **options), half)
    return half


CAUSES = [
    (planted_weight, "conv2", "weight_bit_mismatch", "`w2` differs from the original in 72 of 576"),
    (planted_weight_in_half, "conv2", "weight_bit_mismatch", "72 of 576 elements"),
    (planted_attribute, "y", "attribute_mismatch", "axis"),
    (planted_operator, "relu2", "operator_mismatch", "Relu in the original, Sigmoid in the export"),
    (planted_overflow, "squares", "precision_loss", "float16"),
    (planted_range, "x_DequantizeLinear_Output", "precision_loss", "133 of 864 elements"),
]


@pytest.mark.parametrize(("plant", "origin", "kind", "detail"), CAUSES)
def test_a_planted_fault_gets_its_cause_and_a_repro(
    folder: Path, tmp_path: Path, plant: Any, origin: str, kind: str, detail: str
) -> None:
    reference, candidate = plant(folder)
    arguments = (str(reference), str(candidate), "--inputs", "x.npz")
    report = drift(folder, *arguments, "--repro", str(tmp_path / "fault"), code=1)
    assert report["origin"] == origin
    cause = rows(report)[origin]["cause"]
    assert cause["kind"] == kind
    assert detail in cause["detail"]
    again = run(tmp_path, "rerun", "fault", code=1)
    assert again["value"] == origin
    assert again["shows"]
    assert again["repeats"]


def test_what_half_precision_rounds_off_is_a_loss_of_precision(folder: Path) -> None:
    arguments = ("net.onnx", "half.onnx", "--inputs", "x.npz", "--budget", "0.5")
    report = drift(folder, *arguments, code=1)
    causes = {name: rows(report)[name]["cause"]["kind"] for name in disproved(report)}
    assert {"conv1", "conv2", "logits"} <= set(causes), "the weights are rounded as well"
    assert set(causes.values()) == {"precision_loss"}


def test_only_the_first_wrong_operators_are_looked_into(folder: Path) -> None:
    body = [helper.make_node("Mul", [f"v{i}", "k"], [f"v{i + 1}"]) for i in range(10)]
    ports = {"v0": ("float32", [2])}, {"v10": ("float32", [2])}
    for name, factor in (("chain", 1.5), ("chain_wrong", 1.6)):
        save_onnx(folder / f"{name}.onnx", body, *ports, {"k": np.float32([factor, 2])})
    report = drift(folder, "chain.onnx", "chain_wrong.onnx", code=1)
    kinds = [row["cause"]["kind"] for row in report["rows"]]
    assert kinds == ["weight_bit_mismatch"] * 8 + ["unknown"] * 2
    assert "only the first 8" in report["rows"][-1]["cause"]["detail"]


def test_python_runs_a_repro_of_two_models_again(folder: Path, tmp_path: Path) -> None:
    from veracity.drift import rerun

    planted_weight(folder)
    arguments = ("net.onnx", "weight.onnx", "--inputs", "x.npz", "--repro", str(tmp_path / "fault"))
    drift(folder, *arguments, code=1)
    assert rerun(tmp_path / "fault").shows
    readme = (tmp_path / "fault" / "README.md").read_text()
    assert "weight_bit_mismatch" in readme


def test_pages_and_reports_are_written(folder: Path, tmp_path: Path) -> None:
    planted_weight(folder)
    files = ("--html", str(tmp_path / "page.html"), "--report-base", str(tmp_path / "drift"))
    drift(folder, "net.onnx", "weight.onnx", "--inputs", "x.npz", *files, code=1)
    assert "conv2" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "drift.json").read_text())["drift_origin"] == "conv2"
    saved = json.loads((tmp_path / "drift_drift.json").read_text())
    assert rows(saved)["conv2"]["cause"]["kind"] == "weight_bit_mismatch"
