"""Faults that normal numbers, small integers and axes of size 1 never show.

Each pair of models differs on some inputs and not on those that are usually drawn. Clean pairs are
the same function written otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import ModelProto, TensorProto, helper, numpy_helper
from test_drift_faults import DISPROVED, PROVED, code
from torch import Tensor, nn
from veracity.parity import parity

FLOAT, WHOLE = TensorProto.FLOAT, TensorProto.INT64
Nodes = Sequence[tuple[str, str, str, dict[str, Any]]]


def model(
    nodes: Nodes,
    inputs: dict[str, tuple[int, list[Any]]],
    output: tuple[int, list[Any]],
    **constants: Any,
) -> ModelProto:
    """Return a model that gives `y`; operators with what they read and give, by names."""
    graph = helper.make_graph(
        [
            helper.make_node(kind, given.split(), made.split(), **more)
            for kind, given, made, more in nodes
        ],
        "g",
        [helper.make_tensor_value_info(name, *of) for name, of in inputs.items()],
        [helper.make_tensor_value_info("y", *output)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def one(kind: str, given: str, inputs: dict[str, tuple[int, list[Any]]], **more: Any) -> ModelProto:
    constants = {name: more.pop(name) for name in list(more) if name in given.split()}
    output = more.pop("output", next(iter(inputs.values())))
    return model([(kind, given, "y", more)], inputs, output, **constants)


X = {"x": (FLOAT, [1, 4])}
N = {"n": (WHOLE, [1, 3])}
TABLE = np.random.default_rng(0).standard_normal((300, 4)).astype(np.float32)


def changed(row: int) -> np.ndarray:
    table = TABLE.copy()
    table[row, 1] += 0.1
    return table


def steps(*nodes: tuple[Any, ...], **constants: Any) -> ModelProto:
    whole = [(kind, given, made, dict(*more)) for kind, given, made, *more in nodes]
    return model(whole, X, (FLOAT, [1, 4]), **constants)


def looked_up(table: np.ndarray, name: str) -> ModelProto:
    """Return a table that is read by a code of ones and zeros: nothing shows its range."""
    return model(
        [
            ("Equal", f"i all{name}", f"hit{name}", {}),
            ("Cast", f"hit{name}", f"code{name}", {"to": FLOAT}),
            ("MatMul", f"code{name} table{name}", "y", {}),
        ],
        {"i": (WHOLE, [1, 1])},
        (FLOAT, [1, 4]),
        **{f"all{name}": np.arange(300), f"table{name}": table},
    )


def over_axis(axis: int) -> ModelProto:
    return model(
        [("Softmax", "x", "y", {"axis": axis})], {"x": (FLOAT, ["n", "m"])}, (FLOAT, ["n", "m"])
    )


FAULTS: dict[str, tuple[ModelProto, ModelProto]] = {
    "the sign of a remainder": (
        one("Mod", "n k", N, k=np.int64(5), fmod=0),
        one("Mod", "n k", N, k=np.int64(5), fmod=1),
    ),
    "a modulus that small numbers never reach": (
        one("Mod", "n k", N, k=np.int64(64)),
        one("Mod", "n k", N, k=np.int64(128)),
    ),
    "above or from a number on": (
        one("Greater", "n k", N, k=np.int64(100), output=(TensorProto.BOOL, [1, 3])),
        one("GreaterOrEqual", "n k", N, k=np.int64(100), output=(TensorProto.BOOL, [1, 3])),
    ),
    "halves": (
        steps(("Round", "x", "y")),
        steps(("Add", "x half", "up"), ("Floor", "up", "y"), half=np.float32(0.5)),
    ),
    "whole numbers": (
        steps(("Ceil", "x", "y")),
        steps(("Floor", "x", "down"), ("Add", "down one", "y"), one=np.float32(1)),
    ),
    "a number exactly": (
        steps(("Greater", "x k", "c"), ("Where", "c x k", "y"), k=np.float32(0.7)),
        steps(
            ("Equal", "x k", "e"),
            ("Greater", "x k", "c"),
            ("Where", "c x k", "z"),
            ("Where", "e other z", "y"),
            k=np.float32(0.7),
            other=np.float32(9),
        ),
    ),
    "a tie": (
        one("ArgMax", "x", X, axis=1, output=(WHOLE, [1, 1])),
        one("ArgMax", "x", X, axis=1, select_last_index=1, output=(WHOLE, [1, 1])),
    ),
    "a row of a table that nothing shows the range of": (
        looked_up(TABLE, ""),
        looked_up(changed(203), "_"),
    ),
    "an epsilon": (
        one("LayerNormalization", "x s", X, s=np.ones(4, np.float32), epsilon=1e-5),
        one("LayerNormalization", "x s", X, s=np.ones(4, np.float32), epsilon=1e-8),
    ),
    "an axis of one": (over_axis(0), over_axis(1)),
    "a unit that seldom wakes": (
        steps(("Add", "x b", "h"), ("Relu", "h", "y"), b=np.float32([-500, 0, 0, 0])),
        steps(
            ("Add", "x b", "h"),
            ("Relu", "h", "r"),
            ("Mul", "r w", "y"),
            b=np.float32([-500, 0, 0, 0]),
            w=np.float32([-1, 1, 1, 1]),
        ),
    ),
    "what overflows": (
        steps(("Softplus", "x", "y")),
        steps(("Exp", "x", "e"), ("Add", "e one", "s"), ("Log", "s", "y"), one=np.float32(1)),
    ),
    "NaN that is replaced": tuple(
        steps(("IsNaN", "x", "odd"), ("Where", "odd k x", "y"), k=np.float32(k)) for k in (0, 1)
    ),  # type: ignore[dict-item]
}
CLEAN: dict[str, tuple[ModelProto, ModelProto]] = {
    "relu as a maximum": (
        steps(("Relu", "x", "y")),
        steps(("Max", "x zero", "y"), zero=np.float32(0)),
    ),
    "a sigmoid taken apart": (
        steps(("Sigmoid", "x", "gate"), ("Mul", "x gate", "y")),
        steps(
            ("Neg", "x", "m"),
            ("Exp", "m", "e"),
            ("Add", "e one", "total"),
            ("Div", "x total", "y"),
            one=np.float32(1),
        ),
    ),
    "another order of a sum": (
        steps(("Add", "x a", "h"), ("Add", "h b", "y"), a=TABLE[:1], b=TABLE[1:2]),
        steps(("Add", "x c", "y"), c=TABLE[:1] + TABLE[1:2]),
    ),
    "a clip as two limits": (
        steps(("Clip", "x low high", "y"), low=np.float32(-1), high=np.float32(2)),
        steps(
            ("Max", "x low", "h"),
            ("Min", "h high", "y"),
            low=np.float32(-1),
            high=np.float32(2),
        ),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_is_seldom_seen_is_found(name: str, tmp_path: Path) -> None:
    assert code(tmp_path, *FAULTS[name]) == DISPROVED


@pytest.mark.parametrize("name", CLEAN)
def test_the_same_function_is_proved(name: str, tmp_path: Path) -> None:
    assert code(tmp_path, *CLEAN[name]) == PROVED


class _Applied(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


@pytest.mark.parametrize(
    ("right", "wrong", "given"),
    [
        (torch.round, lambda x: torch.floor(x + 0.5), torch.randn(1, 4)),
        (lambda x: (x > 0.7).float(), lambda x: (x >= 0.7).float(), torch.randn(1, 4)),
        (lambda n: n.remainder(5), lambda n: n.fmod(5), torch.tensor([[3, 8]])),
        (lambda n: (n > 70).float(), lambda n: (n > 90).float(), torch.tensor([[3, 8]])),
    ],
)
def test_parity_finds_what_its_arguments_do_not_show(
    right: Any, wrong: Any, given: Tensor, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.onnx"
    torch.onnx.export(_Applied(wrong), (given,), path, dynamo=True, verbose=False)
    assert parity(_Applied(right), given).verdict == "proved"
    assert parity(_Applied(right), given, onnx=path).verdict == "disproved"
