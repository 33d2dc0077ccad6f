"""Models and bundles that many tests use, made in code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
import veracity
from onnx import TensorProto, helper

#: dtypes by name, as ONNX numbers them.
ONNX_DTYPES = {
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "int8": TensorProto.INT8,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "uint8": TensorProto.UINT8,
    "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
    "bool": TensorProto.BOOL,
}


def pytest_configure() -> None:
    """Make the tensors of all tests on the device of `VERACITY_TEST_DEVICE`, if there is one."""
    device = os.environ.get("VERACITY_TEST_DEVICE")
    if device:
        import torch

        torch.set_default_device(device)
        torch.backends.cudnn.allow_tf32 = False  # the tests know what float32 gives


#: What tests may lack, told by a word of their reason, and the command that brings it.
WHAT_BRINGS_IT = {
    "Chromium": "apt-get install chromium",
    "CUDA": "run the tests on a machine with an NVIDIA GPU and a CUDA build of torch",
}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """End with what was skipped, why, and the one command that brings it."""
    skipped: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        skipped[reason] = skipped.get(reason, 0) + 1
    if not skipped:
        return
    terminalreporter.section("skipped")
    for reason, count in sorted(skipped.items()):
        cures = [command for word, command in WHAT_BRINGS_IT.items() if word in reason]
        cure = f"; to run them: {cures[0]}" if cures else ""
        terminalreporter.line(f"{count} tests: {reason}{cure}")


def save_onnx(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[str, list[int]]],
    outputs: dict[str, tuple[str, list[int]]],
    constants: dict[str, np.ndarray] | None = None,
) -> Path:
    """Save a model of these operators."""

    def infos(ports: dict[str, tuple[str, list[int]]]) -> list[onnx.ValueInfoProto]:
        return [
            helper.make_tensor_value_info(name, ONNX_DTYPES[dtype], shape)
            for name, (dtype, shape) in ports.items()
        ]

    initializers = [onnx.numpy_helper.from_array(v, k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, path.stem, infos(inputs), infos(outputs), initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, path)
    return path


@pytest.fixture
def counter_bundle(tmp_path: Path) -> Path:
    """`count_out = count_in + step`, fed back, starting from 100; `shown` is the output."""
    port = ("float32", [1, 2])
    model = save_onnx(
        tmp_path / "counter.onnx",
        [
            helper.make_node("Add", ["step", "count_in"], ["count_out"]),
            helper.make_node("Identity", ["count_out"], ["shown"]),
        ],
        {"step": port, "count_in": port},
        {"shown": port, "count_out": port},
    )
    return veracity.write_bundle(
        tmp_path / "counter",
        nodes=[{"name": "count", "model": model}],
        feedback_flow={"count/count_out": ["count/count_in"]},
        initial_values={"count/count_in": np.full((1, 2), 100, np.float32)},
        frequency=50,
    )


@pytest.fixture
def identity_bundle(tmp_path: Path) -> Callable[[str, list[int]], Path]:
    """Return a maker of bundles whose output is their input."""

    def make(dtype: str, shape: list[int]) -> Path:
        name = f"identity_{dtype}_{'x'.join(map(str, shape)) or 'scalar'}"
        model = save_onnx(
            tmp_path / f"{name}.onnx",
            [helper.make_node("Identity", ["x"], ["y"])],
            {"x": (dtype, shape)},
            {"y": (dtype, shape)},
        )
        return veracity.write_bundle(tmp_path / name, nodes=[{"name": "same", "model": model}])

    return make


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Small operators on a busy machine wait longer for their threads than they compute."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
