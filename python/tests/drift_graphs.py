"""Small ONNX models in which faults hide: beside masks, in tables, behind clips, at small sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Edit = Callable[[ModelProto], None]


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(sum(shape) + 5).standard_normal(shape) * scale).astype(np.float32)


def model(
    nodes: list[NodeProto],
    inputs: dict[str, tuple[int, list[int]]],
    outputs: dict[str, tuple[int, list[int]]],
    constants: dict[str, np.ndarray],
    opset: int = 20,
) -> ModelProto:
    def ports(all_of: dict[str, tuple[int, list[int]]]) -> list[Any]:
        return [helper.make_tensor_value_info(name, *port) for name, port in all_of.items()]

    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", ports(inputs), ports(outputs), held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def node(op_type: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), [output], **attributes)


F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def attention(fill: float = -1e9, causal: bool = True) -> ModelProto:
    """Scores, an additive mask, softmax, values."""
    mask = np.triu(np.full((6, 6), fill, np.float32), 1) if causal else np.zeros((6, 6), np.float32)
    mask[:, 5] = fill
    mask[5, 5] = 0.0
    nodes = [
        node("MatMul", "x wq", "q"),
        node("MatMul", "x wk", "k"),
        node("MatMul", "x wv", "v"),
        node("Transpose", "k", "kt", perm=[0, 2, 1]),
        node("MatMul", "q kt", "dots"),
        node("Mul", "dots scale", "scores"),
        node("Add", "scores mask", "masked"),
        node("Softmax", "masked", "weights", axis=-1),
        node("MatMul", "weights v", "y"),
    ]
    constants = {
        "wq": normal(8, 8, scale=0.4),
        "wk": normal(8, 9, scale=0.4)[:, :8].copy(),
        "wv": normal(9, 8, scale=0.4)[:8].copy(),
        "scale": np.float32(8**-0.5),
        "mask": mask,
    }
    return model(nodes, {"x": (F32, [2, 6, 8])}, {"y": (F32, [2, 6, 8])}, constants)


def where_mask() -> ModelProto:
    """A boolean mask as an input."""
    nodes = [
        node("Where", "keep x fill", "masked"),
        node("Softmax", "masked", "weights", axis=-1),
        node("MatMul", "weights w", "y"),
    ]
    constants = {"fill": np.float32(-1e9), "w": normal(8, 4)}
    inputs = {"x": (F32, [4, 8]), "keep": (BOOL, [4, 8])}
    return model(nodes, inputs, {"y": (F32, [4, 4])}, constants)


def embedding(rows: int = 1000) -> ModelProto:
    nodes = [
        node("Gather", "table ids", "found"),
        node("Add", "found places", "placed"),
        node("MatMul", "placed w", "y"),
    ]
    constants = {"table": normal(rows, 6), "places": normal(5, 6), "w": normal(6, 3)}
    return model(nodes, {"ids": (I64, [2, 5])}, {"y": (F32, [2, 5, 3])}, constants)


def shifted() -> ModelProto:
    """Positions that are looked up two rows on, as OPT does."""
    nodes = [node("Add", "ids two", "late"), node("Gather", "table late", "y")]
    constants = {"table": normal(40, 4), "two": np.array([2], np.int64)}
    return model(nodes, {"ids": (I64, [4])}, {"y": (F32, [4, 4])}, constants)


def one_hot() -> ModelProto:
    nodes = [node("OneHot", "ids depth values", "code", axis=-1), node("MatMul", "code w", "y")]
    constants = {
        "depth": np.array([30], np.int64),
        "values": np.array([0, 1], np.float32),
        "w": normal(30, 3),
    }
    return model(nodes, {"ids": (I64, [4])}, {"y": (F32, [4, 3])}, constants)


def clipped() -> ModelProto:
    nodes = [
        node("MatMul", "x w", "a"),
        node("Clip", "a zero six", "relu6"),
        node("HardSigmoid", "a", "gate", alpha=0.16666667, beta=0.5),
        node("Mul", "relu6 gate", "y"),
    ]
    constants = {"w": normal(6, 6, scale=0.3), "zero": np.float32(0), "six": np.float32(6)}
    return model(nodes, {"x": (F32, [3, 6])}, {"y": (F32, [3, 6])}, constants)


def wide_clip() -> ModelProto:
    """Ends that ordinary inputs never reach."""
    nodes = [node("Clip", "x low high", "c"), node("Mul", "c half", "y")]
    constants = {"low": np.float32(-40), "high": np.float32(40), "half": np.float32(0.5)}
    return model(nodes, {"x": (F32, [8, 8])}, {"y": (F32, [8, 8])}, constants)


def rounded() -> ModelProto:
    nodes = [
        node("Mul", "x four", "a"),
        node("Round", "a", "r"),
        node("Floor", "x", "f"),
        node("Ceil", "x", "c"),
        node("Sign", "x", "s"),
        node("Cast", "x", "whole", to=I64),
        node("Cast", "whole", "back", to=F32),
        node("Sum", "r f c s back", "y"),
    ]
    return model(nodes, {"x": (F32, [6, 8])}, {"y": (F32, [6, 8])}, {"four": np.float32(4.0)})


def small() -> ModelProto:
    """Outputs of about 1e-7."""
    nodes = [node("MatMul", "x w", "a"), node("Tanh", "a", "t"), node("MatMul", "t v", "y")]
    constants = {"w": normal(6, 6, scale=0.3), "v": normal(6, 4, scale=1e-7)}
    return model(nodes, {"x": (F32, [3, 6])}, {"y": (F32, [3, 4])}, constants)


def mixed() -> ModelProto:
    """One huge channel beside ordinary ones."""
    scale = np.ones((1, 4, 1, 1), np.float32)
    scale[0, 0] = 1e8
    nodes = [
        node("Conv", "x w b", "conv", pads=[1, 1, 1, 1]),
        node("Mul", "conv scale", "scaled"),
        node("Add", "scaled shift", "y"),
    ]
    constants = {
        "w": normal(4, 3, 3, 3, scale=0.2),
        "b": normal(4),
        "scale": scale,
        "shift": normal(1, 4, 1, 1),
    }
    return model(nodes, {"x": (F32, [1, 3, 6, 6])}, {"y": (F32, [1, 4, 6, 6])}, constants)


def normed(spread: float = 1.0) -> ModelProto:
    nodes = [
        node("Mul", "x spread", "a"),
        node("LayerNormalization", "a g b", "n", epsilon=1e-5, axis=-1),
        node("MatMul", "n w", "y"),
    ]
    constants = {
        "spread": np.float32(spread),
        "g": 1 + normal(16, scale=0.1),
        "b": normal(16, scale=0.1),
        "w": normal(16, 4),
    }
    return model(nodes, {"x": (F32, [4, 16])}, {"y": (F32, [4, 4])}, constants)


def chosen() -> ModelProto:
    nodes = [
        node("MatMul", "x w", "a"),
        node("ArgMax", "a", "best", axis=-1, keepdims=0),
        node("Greater", "a limit", "above"),
        node("Where", "above a zero", "kept"),
        node("ReduceSum", "kept axes", "y", keepdims=0),
    ]
    constants = {
        "w": normal(6, 7),
        "limit": np.float32(0.25),
        "zero": np.float32(0),
        "axes": np.array([1], np.int64),
    }
    outputs = {"y": (F32, [5]), "best": (I64, [5])}
    return model(nodes, {"x": (F32, [5, 6])}, outputs, constants)


def gated() -> ModelProto:
    """What exporters write for GELU and SiLU."""
    nodes = [
        node("Mul", "x root", "a"),
        node("Erf", "a", "e"),
        node("Add", "e one", "f"),
        node("Mul", "x f", "g"),
        node("Mul", "g half", "gelu"),
        node("Sigmoid", "x", "s"),
        node("Mul", "x s", "silu"),
        node("Add", "gelu silu", "y"),
    ]
    constants = {
        "root": np.float32(0.5**0.5),
        "one": np.float32(1),
        "half": np.float32(0.5),
    }
    return model(nodes, {"x": (F32, [8, 8])}, {"y": (F32, [8, 8])}, constants)


MODELS: dict[str, Callable[[], ModelProto]] = {
    "attention": attention,
    "open attention": lambda: attention(causal=False),
    "attention -inf": lambda: attention(fill=-np.inf),
    "where": where_mask,
    "embedding": embedding,
    "shifted": shifted,
    "one hot": one_hot,
    "clipped": clipped,
    "wide clip": wide_clip,
    "rounded": rounded,
    "small": small,
    "mixed": mixed,
    "normed": normed,
    "flat rows": lambda: normed(1e-3),
    "chosen": chosen,
    "gated": gated,
}


# Edits


def constant(name: str, change: Callable[[np.ndarray], Any]) -> Edit:
    def edit(proto: ModelProto) -> None:
        held = next(each for each in proto.graph.initializer if each.name == name)
        was = numpy_helper.to_array(held).copy()
        held.CopyFrom(numpy_helper.from_array(np.asarray(change(was), was.dtype), name))

    return edit


def attribute(output: str, **values: Any) -> Edit:
    def edit(proto: ModelProto) -> None:
        found = giving(proto, output)
        kept = [each for each in found.attribute if each.name not in values]
        del found.attribute[:]
        found.attribute.extend([*kept, *(helper.make_attribute(*item) for item in values.items())])

    return edit


def operator(output: str, op_type: str) -> Edit:
    def edit(proto: ModelProto) -> None:
        found = giving(proto, output)
        found.op_type = op_type
        del found.attribute[:]

    return edit


def reads(output: str, inputs: str) -> Edit:
    def edit(proto: ModelProto) -> None:
        giving(proto, output).input[:] = inputs.split()

    return edit


def giving(proto: ModelProto, output: str) -> NodeProto:
    return next(each for each in proto.graph.node if output in each.output)


def at(index: Any, change: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    def apply(values: np.ndarray) -> np.ndarray:
        values[index] = change(values[index])
        return values

    return apply


def saved(proto: ModelProto) -> bytes:
    onnx.checker.check_model(proto)
    return proto.SerializeToString()
