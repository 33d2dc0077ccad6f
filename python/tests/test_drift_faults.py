"""`veracity drift` proves no fault that hides, and every clean pair beside them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from drift_graphs import (
    MODELS,
    Edit,
    at,
    attribute,
    constant,
    model,
    node,
    normal,
    operator,
    reads,
    saved,
)
from onnx import ModelProto, TensorProto, numpy_helper

BINARY = Path(__file__).parents[2] / "target/debug/veracity"
PROVED, DISPROVED, NOT_COMPARABLE = 0, 1, 3
HOW: dict[str, Any] = {
    "env": {"VIRTUAL_ENV": sys.prefix},
    "capture_output": True,
    "text": True,
    "check": False,
}


def code(tmp_path: Path, reference: ModelProto, candidate: ModelProto, *more: str) -> int:
    for name, proto in (("a.onnx", reference), ("b.onnx", candidate)):
        (tmp_path / name).write_bytes(saved(proto))
    command = [BINARY, "drift", "a.onnx", "b.onnx", "--engine", "ort", "--no-causes", *more]
    done = subprocess.run(command, cwd=tmp_path, **HOW)
    assert done.returncode in (0, 1, 3), done.stderr
    return done.returncode


def less_eps(proto: ModelProto) -> None:
    attribute("n", epsilon=1e-6)(proto)


def negated(values: np.ndarray) -> np.ndarray:
    return -values


def zero(values: np.ndarray) -> np.ndarray:
    return values * 0


def times(factor: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda values: values * np.asarray(factor, values.dtype)


def swapped(values: np.ndarray) -> np.ndarray:
    return values[::-1].copy()


FAULTS: list[tuple[str, str, Edit]] = [
    ("attention", "no scale", constant("scale", lambda _: 1.0)),
    ("attention", "scale 1 % off", constant("scale", times(1.01))),
    ("attention", "scale of another width", constant("scale", lambda _: 16**-0.5)),
    ("attention", "weights negated", constant("wq", negated)),
    ("attention", "one weight of the keys", constant("wk", at((3, 4), lambda v: v + 0.05))),
    ("attention", "values negated", constant("wv", negated)),
    ("attention", "queries are keys", reads("dots", "k kt")),
    ("attention", "one masked place open", constant("mask", at((0, 3), lambda _: 0.0))),
    ("attention", "one open place masked", constant("mask", at((3, 1), lambda _: -1e9))),
    ("attention", "the mask the other way", constant("mask", lambda m: m.T.copy())),
    ("attention", "softmax over rows", attribute("weights", axis=1)),
    ("attention", "a mask too weak", constant("mask", lambda m: np.maximum(m, -3.0))),
    ("attention", "scores shifted", constant("mask", at((5, 2), lambda v: v + 0.01))),
    ("open attention", "the mask is gone", constant("mask", zero)),
    (
        "open attention",
        "one column off",
        constant("mask", at((slice(None), 2), lambda v: v + 1e-3)),
    ),
    ("attention -inf", "one masked place open", constant("mask", at((1, 4), lambda _: 0.0))),
    ("attention -inf", "scale off", constant("scale", times(1.001))),
    ("where", "the mask the other way", reads("masked", "keep fill x")),
    ("where", "fills with zeros", constant("fill", zero)),
    ("where", "a fill too weak", constant("fill", lambda _: -2.0)),
    ("embedding", "a row far in the table", constant("table", at(731, lambda v: v + 1))),
    ("embedding", "the last row", constant("table", at(999, negated))),
    ("embedding", "one element of a row", constant("table", at((500, 3), lambda v: v * 1.01))),
    ("embedding", "two rows exchanged", constant("table", at([7, 840], swapped))),
    ("embedding", "off by one", constant("table", lambda t: np.roll(t, 1, axis=0))),
    ("embedding", "half of the table is zero", constant("table", at(slice(500, None), zero))),
    ("embedding", "places negated", constant("places", negated)),
    ("embedding", "the first place", constant("places", at(0, lambda v: v + 1e-3))),
    ("shifted", "one row on", constant("two", lambda _: [1])),
    ("shifted", "a row that only the end reads", constant("table", at(39, zero))),
    ("one hot", "a weight of a rare class", constant("w", at(29, lambda v: v + 1))),
    ("one hot", "off and on", constant("values", swapped)),
    ("clipped", "another upper end", constant("six", lambda _: 7.0)),
    ("clipped", "another lower end", constant("zero", lambda _: -0.1)),
    ("clipped", "another slope", attribute("gate", alpha=0.2)),
    ("clipped", "another offset", attribute("gate", beta=0.4)),
    ("clipped", "no clip", operator("gate", "Sigmoid")),
    ("wide clip", "another upper end", constant("high", lambda _: 50.0)),
    ("wide clip", "another lower end", constant("low", lambda _: -50.0)),
    ("wide clip", "no clip", reads("y", "x half")),
    ("rounded", "down instead of near", operator("r", "Floor")),
    ("rounded", "up instead of near", operator("r", "Ceil")),
    ("rounded", "near instead of down", operator("f", "Round")),
    ("rounded", "down instead of up", operator("c", "Floor")),
    ("rounded", "no sign", operator("s", "Abs")),
    ("rounded", "not rounded at all", operator("r", "Identity")),
    ("rounded", "a step too wide", constant("four", lambda _: 4.01)),
    ("small", "all weights negated", constant("v", negated)),
    ("small", "weights zero", constant("v", zero)),
    ("small", "one weight", constant("v", at((2, 1), lambda v: v * 1.1))),
    ("small", "columns in another order", constant("v", lambda v: v[:, ::-1].copy())),
    ("small", "another activation", operator("t", "Softsign")),
    ("mixed", "a channel beside the huge one", constant("w", at(2, lambda v: v * 1.01))),
    ("mixed", "a small channel negated", constant("scale", at((0, 3), negated))),
    ("mixed", "two small channels exchanged", constant("w", at([1, 2], swapped))),
    ("mixed", "the shift of a small channel", constant("shift", at((0, 1), lambda v: v + 1e-3))),
    ("mixed", "a bias of a small channel", constant("b", at(3, lambda v: v + 1e-3))),
    ("normed", "another eps", less_eps),
    ("normed", "eps gone", attribute("n", epsilon=0.0)),
    ("normed", "a gain", constant("g", at(5, lambda v: v * 1.001))),
    ("flat rows", "another eps", less_eps),
    ("flat rows", "a little other eps", attribute("n", epsilon=1.1e-5)),
    ("chosen", "least instead of most", operator("best", "ArgMin")),
    ("chosen", "another limit", constant("limit", lambda _: 0.3)),
    ("chosen", "below instead of above", operator("above", "Less")),
    ("chosen", "fills with something", constant("zero", lambda _: 1e-3)),
    ("gated", "another root", constant("root", lambda _: 0.7)),
    ("gated", "half is not half", constant("half", lambda _: 0.5001)),
    ("gated", "tanh for erf", operator("e", "Tanh")),
    ("gated", "an approximate sigmoid", operator("s", "HardSigmoid")),
]


@pytest.mark.parametrize(
    ("name", "edit"),
    [(name, edit) for name, _, edit in FAULTS],
    ids=[f"{n}: {f}" for n, f, _ in FAULTS],
)
def test_no_planted_fault_is_proved(tmp_path: Path, name: str, edit: Edit) -> None:
    candidate = MODELS[name]()
    edit(candidate)
    assert code(tmp_path, MODELS[name](), candidate) in (DISPROVED, NOT_COMPARABLE)


# Clean pairs


def same(proto: ModelProto) -> ModelProto:
    return proto


def with_constant_nodes(proto: ModelProto) -> ModelProto:
    """Constants as nodes, as other exporters write them."""
    nodes = [
        onnx.helper.make_node("Constant", [], [each.name], value=each)
        for each in proto.graph.initializer
    ]
    kept = list(proto.graph.node)
    del proto.graph.node[:], proto.graph.initializer[:]
    proto.graph.node.extend([*nodes, *kept])
    return proto


def other_opset(proto: ModelProto) -> ModelProto:
    return onnx.version_converter.convert_version(proto, 21)


def other_sum(proto: ModelProto) -> ModelProto:
    """Products in another order: `(x w)` as `((w' x')')`."""
    found = next((each for each in proto.graph.node if each.op_type == "MatMul"), None)
    if found is None:
        return proto
    left, right = found.input
    at_place = list(proto.graph.node).index(found)
    weight = next((each for each in proto.graph.initializer if each.name == right), None)
    if weight is None:
        return proto
    array = numpy_helper.to_array(weight)
    halves = np.array_split(array, 2, axis=0)
    made = [numpy_helper.from_array(half.copy(), f"half{n}") for n, half in enumerate(halves)]
    proto.graph.initializer.extend(made)
    proto.graph.initializer.append(
        numpy_helper.from_array(np.array([len(half) for half in halves], np.int64), "sizes")
    )
    nodes = [
        onnx.helper.make_node("Split", [left, "sizes"], ["left0", "left1"], axis=-1),
        node("MatMul", "left0 half0", "part0"),
        node("MatMul", "left1 half1", "part1"),
        onnx.helper.make_node("Add", ["part0", "part1"], list(found.output)),
    ]
    proto.graph.node.remove(found)
    for offset, each in enumerate(nodes):
        proto.graph.node.insert(at_place + offset, each)
    return proto


VARIANTS = {
    "itself": same,
    "constants as nodes": with_constant_nodes,
    "another opset": other_opset,
    "another order of sums": other_sum,
}
CLEAN = [(name, variant) for name in MODELS for variant in VARIANTS]


@pytest.mark.parametrize(("name", "variant"), CLEAN)
def test_clean_pairs_are_proved(tmp_path: Path, name: str, variant: str) -> None:
    assert code(tmp_path, MODELS[name](), VARIANTS[variant](MODELS[name]())) == PROVED


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("level", ["basic", "all"])
def test_what_onnx_runtime_makes_of_them_is_proved(tmp_path: Path, name: str, level: str) -> None:
    found = code(tmp_path, MODELS[name](), MODELS[name](), "--level", level)
    assert found == PROVED


def test_long_sums_that_cancel_are_proved(tmp_path: Path) -> None:
    def long(op_type: str, first: str, second: str) -> ModelProto:
        nodes = [node("MatMul", f"x {first}", "a"), node(op_type, f"a {second}", "y")]
        constants = {"w": normal(2048, 16), "b": normal(16, scale=30)}
        ports = {"x": (TensorProto.FLOAT, [8, 2048])}, {"y": (TensorProto.FLOAT, [8, 16])}
        return model(nodes, *ports, constants)

    reference = long("Add", "w", "b")
    assert code(tmp_path, reference, other_sum(long("Add", "w", "b"))) == PROVED
