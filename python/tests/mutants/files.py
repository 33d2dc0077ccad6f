"""Faults in the files of a finished bundle: by a wrong tool, a bad disk, a slip of hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import safetensors.numpy
from onnx import helper, numpy_helper

Edit = Callable[[Path], None]


def _onnx(name: str, change: Callable[[onnx.GraphProto], None]) -> Edit:
    def edit(folder: Path) -> None:
        model = onnx.load(folder / name)
        change(model.graph)
        onnx.save(model, folder / name)

    return edit


def _node(graph: onnx.GraphProto, kind: str) -> onnx.NodeProto:
    return next(node for node in graph.node if node.op_type == kind)


def _without_relu(graph: onnx.GraphProto) -> None:
    relu = _node(graph, "Relu")
    for node in graph.node:
        node.input[:] = [relu.input[0] if name == relu.output[0] else name for name in node.input]
    graph.node.remove(relu)


def _set_attribute(kind: str, name: str, value: float) -> Callable[[onnx.GraphProto], None]:
    def change(graph: onnx.GraphProto) -> None:
        node = _node(graph, kind)
        kept = [attribute for attribute in node.attribute if attribute.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, value)])

    return change


def _weights(graph: onnx.GraphProto) -> list[onnx.TensorProto]:
    floats = [one for one in graph.initializer if one.data_type == onnx.TensorProto.FLOAT]
    return sorted(floats, key=lambda one: -int(np.prod(one.dims)))


def _change_weight(
    change: Callable[[np.ndarray], np.ndarray],
) -> Callable[[onnx.GraphProto], None]:
    def edit(graph: onnx.GraphProto) -> None:
        weight = _weights(graph)[0]
        values = change(numpy_helper.to_array(weight).copy())
        weight.CopyFrom(numpy_helper.from_array(values, weight.name))

    return edit


def _flip_bit(values: np.ndarray) -> np.ndarray:
    values.reshape(-1).view(np.uint32)[7] ^= np.uint32(1 << 21)
    return values


def _plant_nan(values: np.ndarray) -> np.ndarray:
    values.reshape(-1)[0] = np.nan
    return values


def _swap_outputs(graph: onnx.GraphProto) -> None:
    """Exchange what the first two outputs are called: same shapes, other values."""
    first, second = graph.output[0].name, graph.output[1].name
    other = {first: second, second: first}
    for node in graph.node:
        node.output[:] = [other.get(name, name) for name in node.output]
        node.input[:] = [other.get(name, name) for name in node.input]


def _exchange_operator(before: str, after: str) -> Callable[[onnx.GraphProto], None]:
    def change(graph: onnx.GraphProto) -> None:
        nodes = [node for node in graph.node if node.op_type == before]
        assert nodes, f"there is no {before}"
        for node in nodes:
            node.op_type = after
            # Only one of the two has this.
            kept = [one for one in node.attribute if one.name != "storage_order"]
            del node.attribute[:]
            node.attribute.extend(kept)

    return change


def _text(pattern: str, replacement: str) -> Edit:
    def edit(folder: Path) -> None:
        path = folder / "arm.yaml"
        text = path.read_text()
        changed = re.sub(pattern, replacement, text, count=1, flags=re.DOTALL)
        assert changed != text, pattern
        path.write_text(changed)

    return edit


def _initial_value(folder: Path) -> None:
    path = folder / "arm_initial_values.safetensors"
    values = safetensors.numpy.load_file(path)
    values["memory/state"] = values["memory/state"][:, ::-1].copy()
    safetensors.numpy.save_file(values, path)


#: What can be done to any bundle.
BUNDLE_FAULTS: dict[str, Edit] = {
    "file: edges swapped": _text(
        r"vision/features: \[memory/features, head/features\]\n    memory/mixed: \[head/mixed\]",
        "vision/features: [memory/features, head/mixed]\n    memory/mixed: [head/features]",
    ),
    "file: another output fed back": _text(
        r"memory/updated: \[memory/state\]",
        "memory/mixed: [memory/state]",
    ),
    "file: initial value reversed": _initial_value,
}
#: Where ports go by position.
POSITION_FAULTS: dict[str, Edit] = {
    "file: outputs listed the other way round": _text(
        r"- name: mixed\n(.*?)- name: updated\n",
        r"- name: updated\n\1- name: mixed\n",
    ),
}
ONNX_FAULTS: dict[str, Edit] = {
    "file: relu taken out": _onnx("vision.onnx", _without_relu),
    "file: epsilon attribute": _onnx(
        "memory.onnx", _set_attribute("LayerNormalization", "epsilon", 1e-2)
    ),
    "file: axis attribute": _onnx("head.onnx", _set_attribute("Softmax", "axis", 0)),
    "file: bit of a weight": _onnx("memory.onnx", _change_weight(_flip_bit)),
    "file: weight scaled": _onnx("vision.onnx", _change_weight(lambda w: w * np.float32(1.001))),
    "file: weight is not a number": _onnx("head.onnx", _change_weight(_plant_nan)),
    "file: weights zeroed": _onnx("memory.onnx", _change_weight(np.zeros_like)),
    "file: outputs renamed": _onnx("memory.onnx", _swap_outputs),
    "file: tanh becomes sigmoid": _onnx("memory.onnx", _exchange_operator("Tanh", "Sigmoid")),
    "file: maximum becomes average": _onnx(
        "vision.onnx", _exchange_operator("MaxPool", "AveragePool")
    ),
}


def faults_of(backend: str) -> dict[str, Edit]:
    """Return the faults that the files of a bundle with this backend can have."""
    special = ONNX_FAULTS if backend == "onnx" else POSITION_FAULTS
    return BUNDLE_FAULTS | special
