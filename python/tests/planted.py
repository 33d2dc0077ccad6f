"""Networks, and ways to make one operator of their exports wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 (as everybody calls it)
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from torch import Tensor, nn
from veracity.drift import comparison, program
from veracity.parity import ParityResult, parity

# Networks


class _Cnn(nn.Module):
    """Convolutions with batch norm, which the exporter folds, and an in-place ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.conv2, self.bn2 = nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.act = nn.ReLU(inplace=True)
        self.output = nn.Linear(6 * 16, 5)
        for norm in (self.bn1, self.bn2):
            nn.init.normal_(norm.running_mean)
            nn.init.uniform_(norm.running_var, 0.5, 2.0)

    def forward(self, image: Tensor) -> Tensor:
        x = self.act(self.bn1(self.conv1(image)))
        x = x + self.act(self.bn2(self.conv2(x)))
        return self.output(F.max_pool2d(x, 2).flatten(1))


class _Attention(nn.Module):
    """A transformer block."""

    def __init__(self) -> None:
        super().__init__()
        self.att = nn.MultiheadAttention(16, 2, batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.att(x, x, x, need_weights=False)[0]
        return x + self.down(F.gelu(self.up(self.norm(x))))


class _Policy(nn.Module):
    """A recurrent policy."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.encoder, self.memory, self.head = nn.Linear(4, 8), kind(8, 8), nn.Linear(8, 3)

    def forward(self, observation: Tensor, state: Any) -> tuple[Tensor, Any]:
        found, state = self.memory(self.encoder(observation), state)
        return torch.tanh(self.head(found)), state


class _Shared(nn.Module):
    """One ReLU and one layer, called twice each."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.act = nn.Linear(6, 6), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.layer(self.act(self.layer(x))))


class _Functional(nn.Module):
    """No modules at all."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        scores = F.softmax(x, dim=-1)
        mixed = torch.sigmoid(scores @ y) * torch.cat([x, y], dim=0)[:4]
        mixed = torch.where(mixed > 0.1, mixed, y - x).clamp(-0.5, 1.5)
        mixed = F.gelu(mixed, approximate="tanh") / (x.abs() + 1)
        mixed = F.layer_norm(mixed + mixed.mean(1, keepdim=True), (4,))
        return F.softmax(torch.tanh(mixed), dim=0)


class _Parameters(nn.Module):
    """Numbers in the code, which become constants of the export."""

    def forward(self, x: Tensor) -> Tensor:
        y = F.pad(x * 0.3, (1, 1), value=0.5).clamp(-0.5, 0.4)
        y = y[:, 1:5] + (y[:, 2:6].abs() + 0.1) ** 2.5
        return y.reshape(2, 2, -1).transpose(1, 2).sigmoid() - y.mean(1, keepdim=True).unsqueeze(2)


class _Wide(nn.Module):
    """Weights that are large enough to be handed over apart from the model."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.tanh(self.first(x)))


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(
        shape, generator=torch.Generator(torch.get_default_device()).manual_seed(seed)
    )


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[Any, ...]]] = {
    "cnn": (_Cnn, (normal(1, 3, 8, 8),)),
    "attention": (_Attention, (normal(2, 5, 16),)),
    "gru": (lambda: _Policy(nn.GRU), (normal(3, 1, 4), normal(1, 1, 8, seed=2))),
    "lstm": (
        lambda: _Policy(nn.LSTM),
        (normal(3, 1, 4), (normal(1, 1, 8, seed=2), normal(1, 1, 8, seed=3))),
    ),
    "shared": (_Shared, (normal(2, 6),)),
    "parameters": (_Parameters, (normal(2, 4),)),
    "wide": (_Wide, (normal(3, 64),)),
    "functional": (_Functional, (normal(4, 4), normal(4, 4, seed=5))),
}


@cache
def network(name: str) -> nn.Module:
    torch.manual_seed(3)
    return NETWORKS[name][0]().eval()


@cache
def exported(name: str) -> tuple[Any, bytes]:
    """Export a network once for all faults: the program, and the ONNX model."""
    made = program.export(network(name), NETWORKS[name][1], {}, open_attention=True)
    return made.exported, onnx_ir.serde.serialize_model(made.onnx).SerializeToString()


def compared_with(
    name: str,
    tmp_path: Path,
    edit: Callable[[ModelProto], Any],
    monkeypatch: pytest.MonkeyPatch,
    **options: Any,
) -> ParityResult:
    """Compare the live network with a file that was edited."""
    exported_program, proto = exported(name)
    model = onnx.load_from_string(proto)
    edit(model)
    onnx.save(model, tmp_path / "edited.onnx")
    # Exporting the same module again and again is most of the time.
    again = program.Program(exported_program, onnx_ir.from_proto(onnx.load_from_string(proto)))
    monkeypatch.setattr(comparison, "export", lambda *_, **__: again)
    options = {"float64": False, **options}
    return parity(network(name), NETWORKS[name][1], onnx=tmp_path / "edited.onnx", **options)


def guilty(result: ParityResult) -> list[str]:
    return [row.name for row in result.rows if row.verdict == "disproved"]


# Edits


def nodes(model: ModelProto, op_type: str) -> list[NodeProto]:
    return [node for node in model.graph.node if node.op_type == op_type]


def changed_weight(
    op_type: str, which: int, position: int, change: Callable[[np.ndarray], np.ndarray]
) -> Callable[[ModelProto], str]:
    """Change a weight of the nth operator of a type, which is then guilty."""

    def edit(model: ModelProto) -> str:
        node = nodes(model, op_type)[which]
        weight = next(w for w in model.graph.initializer if w.name == node.input[position])
        array = change(numpy_helper.to_array(weight).copy())
        weight.CopyFrom(numpy_helper.from_array(array.astype(np.float32), weight.name))
        return node.output[0]

    return edit


def changed_attribute(op_type: str, which: int, **values: Any) -> Callable[[ModelProto], str]:
    def edit(model: ModelProto) -> str:
        node = nodes(model, op_type)[which]
        kept = [each for each in node.attribute if each.name not in values]
        del node.attribute[:]
        node.attribute.extend(kept)
        node.attribute.extend(helper.make_attribute(*item) for item in values.items())
        return node.output[0]

    return edit


def exchanged(op_type: str, which: int, other: str, **attributes: Any) -> Callable[..., str]:
    def edit(model: ModelProto) -> str:
        node = nodes(model, op_type)[which]
        node.op_type = other
        del node.attribute[:]
        node.attribute.extend(helper.make_attribute(*item) for item in attributes.items())
        return node.output[0]

    return edit


def reordered(op_type: str, which: int, *order: int) -> Callable[[ModelProto], str]:
    """Exchange the inputs of an operator."""

    def edit(model: ModelProto) -> str:
        node = nodes(model, op_type)[which]
        node.input[:] = [node.input[position] for position in order]
        return node.output[0]

    return edit


def bypassed(op_type: str, which: int) -> Callable[[ModelProto], str]:
    """Let an operator hand through its first input."""

    def edit(model: ModelProto) -> str:
        node = nodes(model, op_type)[which]
        del node.input[1:], node.attribute[:]
        node.op_type = "Identity"
        return node.output[0]

    return edit


def one_channel(weight: np.ndarray) -> np.ndarray:
    weight[0] += 0.05
    return weight


def by(factor: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda weight: weight * factor


def first(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(weight: np.ndarray) -> np.ndarray:
        weight.flat[0] = value
        return weight

    return change


def both(
    one: Callable[[ModelProto], str], other: Callable[[ModelProto], str]
) -> Callable[[ModelProto], str]:
    def edit(model: ModelProto) -> str:
        one(model)
        return other(model)

    return edit


def held(model: ModelProto, name: str) -> Any:
    return next(weight for weight in model.graph.initializer if weight.name == name)


def changed_input(op_type: str, which: int, position: int, value: Any) -> Callable[..., str]:
    """Change a constant that says how an operator computes."""

    def edit(model: ModelProto) -> str:
        node = nodes(model, op_type)[which]
        name = f"other_{position}_{node.output[0]}"
        dtype = np.float32 if isinstance(value, float) else np.int64
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        node.input[position] = name
        return node.output[0]

    return edit


def without_input(op_type: str, which: int, position: int) -> Callable[[ModelProto], str]:
    def edit(model: ModelProto) -> str:
        node = nodes(model, op_type)[which]
        del node.input[position]
        return node.output[0]

    return edit


def renamed(op_type: str, which: int, position: int) -> Callable[[ModelProto], str]:
    """Give a weight another name, which changes nothing."""

    def edit(model: ModelProto) -> str:
        node = nodes(model, op_type)[which]
        weight = held(model, node.input[position])
        weight.name = node.input[position] = f"w{which}"
        return node.output[0]

    return edit


def transposed(op_type: str, which: int) -> Callable[[ModelProto], str]:
    """Store the weight of a Gemm the other way round, which changes nothing."""

    def edit(model: ModelProto) -> str:
        node = nodes(model, op_type)[which]
        weight = held(model, node.input[1])
        array = numpy_helper.to_array(weight).T.copy()
        weight.CopyFrom(numpy_helper.from_array(array, weight.name))
        return changed_attribute(op_type, which, transB=0)(model)

    return edit


def before(model: ModelProto, node: NodeProto, *added: NodeProto) -> None:
    """Put nodes in front of another."""
    position = list(model.graph.node).index(node)
    for offset, each in enumerate(added):
        model.graph.node.insert(position + offset, each)


def behind_transpose(op_type: str, which: int) -> Callable[[ModelProto], str]:
    """Let the export transpose a weight itself, which changes nothing."""

    def edit(model: ModelProto) -> str:
        node = nodes(model, op_type)[which]
        weight = held(model, node.input[1])
        array = numpy_helper.to_array(weight).T.copy()
        weight.CopyFrom(numpy_helper.from_array(array, "turned"))
        node.input[1] = "turned_back"
        before(model, node, helper.make_node("Transpose", ["turned"], ["turned_back"]))
        return node.output[0]

    return edit


def permuted(
    op_type: str, which: int, *order: int, back: bool = True
) -> Callable[[ModelProto], str]:
    """Compute a value in another order of axes; with `back` what reads it knows."""

    def edit(model: ModelProto) -> str:
        node = nodes(model, op_type)[which]
        name, undone = node.output[0], [order.index(axis) for axis in range(len(order))]
        position = list(model.graph.node).index(node)
        for reader in model.graph.node if back else ():
            reader.input[:] = [f"{name}_back" if each == name else each for each in reader.input]
        node.output[0] = f"{name}_plain"
        turned = helper.make_node("Transpose", [f"{name}_plain"], [name], perm=order)
        turned_back = helper.make_node("Transpose", [name], [f"{name}_back"], perm=undone)
        model.graph.node.insert(position + 1, turned)
        model.graph.node.insert(position + 2, turned_back)
        info = next(info for info in model.graph.value_info if info.name == name)
        sizes = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        for dim, axis in zip(info.type.tensor_type.shape.dim, order, strict=True):
            dim.dim_value = sizes[axis]
        return name

    return edit


def inserted(
    op_type: str, which: int, position: int, *made: Callable[[str, str], NodeProto]
) -> Callable[[ModelProto], str]:
    """Put operators between an operator and one of its inputs."""

    def edit(model: ModelProto) -> str:
        node = nodes(model, op_type)[which]
        names = [node.input[position], *(f"{node.output[0]}_step_{i}" for i in range(len(made)))]
        steps = [make(*pair) for make, *pair in zip(made, names[:-1], names[1:], strict=True)]
        before(model, node, *steps)
        node.input[position] = names[-1]
        return node.output[0]

    return edit


def cast(to: int) -> Callable[[str, str], NodeProto]:
    return lambda given, made: helper.make_node("Cast", [given], [made], to=to)


def rounded(op_type: str, which: int, to: int) -> Callable[[ModelProto], str]:
    """Round what an operator reads."""
    return inserted(op_type, which, 0, cast(to), cast(TensorProto.FLOAT))


def _scaled(operator: str) -> Callable[[str, str], NodeProto]:
    return lambda given, made: helper.make_node(operator, [given, "q_scale", "q_zero"], [made])


def _with_scale(model: ModelProto, scale: float) -> None:
    for name, value in (("q_scale", np.float32(scale)), ("q_zero", np.int8(0))):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))


def quantized(op_type: str, which: int) -> Callable[[ModelProto], str]:
    """Let what an operator reads go through 8 bits."""

    def edit(model: ModelProto) -> str:
        _with_scale(model, 0.02)
        steps = (_scaled("QuantizeLinear"), _scaled("DequantizeLinear"))
        return inserted(op_type, which, 0, *steps)(model)

    return edit


def _stored(
    op_type: str,
    which: int,
    position: int,
    narrow: Callable[[np.ndarray], np.ndarray],
    widen: Callable[[str, str], NodeProto],
) -> Callable[[ModelProto], str]:
    def edit(model: ModelProto) -> str:
        node = nodes(model, op_type)[which]
        weight = held(model, node.input[position])
        array = narrow(numpy_helper.to_array(weight))
        weight.CopyFrom(numpy_helper.from_array(array, weight.name))
        kept = [info for info in model.graph.value_info if info.name != weight.name]
        del model.graph.value_info[:]
        model.graph.value_info.extend(kept)
        return inserted(op_type, which, position, widen)(model)

    return edit


def stored_in_int8(op_type: str, which: int, position: int) -> Callable[[ModelProto], str]:
    def edit(model: ModelProto) -> str:
        _with_scale(model, 0.001)
        return _stored(
            op_type,
            which,
            position,
            lambda weight: np.clip(np.round(weight / 0.001), -128, 127).astype(np.int8),
            _scaled("DequantizeLinear"),
        )(model)

    return edit


def stored_in_half(op_type: str, which: int, position: int) -> Callable[[ModelProto], str]:
    return _stored(
        op_type, which, position, lambda weight: weight.astype(np.float16), cast(TensorProto.FLOAT)
    )


WEIGHT, ATTRIBUTE, OPERATOR = "weight_bit_mismatch", "attribute_mismatch", "operator_mismatch"
LAYOUT, PRECISION = "layout_mismatch", "precision_loss"

#: Network, edit, cause.
FAULTS: dict[str, tuple[str, Callable[[ModelProto], str], str]] = {
    "conv: a channel +0.05": ("cnn", changed_weight("Conv", 0, 1, one_channel), WEIGHT),
    "conv: weight x 1.001": ("cnn", changed_weight("Conv", 1, 1, by(1.001)), WEIGHT),
    "conv: bias x 1.01": ("cnn", changed_weight("Conv", 1, 2, by(1.01)), WEIGHT),
    "conv: pads moved": ("cnn", changed_attribute("Conv", 0, pads=[2, 1, 0, 1]), ATTRIBUTE),
    "relu is abs": ("cnn", exchanged("Relu", 0, "Abs"), OPERATOR),
    "relu is leaky": ("cnn", exchanged("Relu", 1, "LeakyRelu", alpha=0.01), OPERATOR),
    "relu left out": ("cnn", bypassed("Relu", 0), OPERATOR),
    "residual is a product": ("cnn", exchanged("Add", 0, "Mul"), OPERATOR),
    "max pool is average": (
        "cnn",
        exchanged("MaxPool", 0, "AveragePool", kernel_shape=[2, 2], strides=[2, 2]),
        OPERATOR,
    ),
    "linear: weight x 1.001": ("cnn", changed_weight("Gemm", 0, 1, by(1.001)), WEIGHT),
    "linear: alpha": ("cnn", changed_attribute("Gemm", 0, alpha=1.01, transB=1), ATTRIBUTE),
    "attention: softmax axis": ("attention", changed_attribute("Softmax", 0, axis=-2), ATTRIBUTE),
    "attention: softmax left out": ("attention", bypassed("Softmax", 0), OPERATOR),
    "attention: query times itself": ("attention", reordered("Mul", 0, 0, 0), OPERATOR),
    "attention: layer norm eps": (
        "attention",
        changed_attribute("LayerNormalization", 0, epsilon=1e-2),
        ATTRIBUTE,
    ),
    "attention: layer norm scale": (
        "attention",
        changed_weight("LayerNormalization", 0, 1, by(1.001)),
        WEIGHT,
    ),
    "attention: gelu approximated": (
        "attention",
        changed_attribute("Gelu", 0, approximate="tanh"),
        ATTRIBUTE,
    ),
    "shared: first relu is abs": ("shared", exchanged("Relu", 0, "Abs"), OPERATOR),
    "shared: second relu left out": ("shared", bypassed("Relu", 1), OPERATOR),
    "shared: second call without bias": (
        "shared",
        changed_attribute("Gemm", 1, beta=0.0, transB=1),
        ATTRIBUTE,
    ),
    "functional: first softmax axis": (
        "functional",
        changed_attribute("Softmax", 0, axis=0),
        ATTRIBUTE,
    ),
    "functional: last softmax axis": (
        "functional",
        changed_attribute("Softmax", 1, axis=1),
        ATTRIBUTE,
    ),
    "functional: matmul exchanged": ("functional", reordered("MatMul", 0, 1, 0), OPERATOR),
    "functional: cat exchanged": ("functional", reordered("Concat", 0, 1, 0), OPERATOR),
    "functional: where exchanged": ("functional", reordered("Where", 0, 0, 2, 1), OPERATOR),
    "functional: sigmoid is hard": ("functional", exchanged("Sigmoid", 0, "HardSigmoid"), OPERATOR),
    "functional: tanh is softsign": ("functional", exchanged("Tanh", 0, "Softsign"), OPERATOR),
    "functional: clamp left out": ("functional", bypassed("Clip", 0), OPERATOR),
    "functional: gelu exact": (
        "functional",
        changed_attribute("Gelu", 0, approximate="none"),
        ATTRIBUTE,
    ),
    "functional: division is a product": ("functional", exchanged("Div", 0, "Mul"), OPERATOR),
    "functional: abs left out": ("functional", bypassed("Abs", 0), OPERATOR),
    "functional: difference exchanged": ("functional", reordered("Sub", 0, 1, 0), OPERATOR),
    "gru: encoder x 1.001": ("gru", changed_weight("MatMul", 0, 1, by(1.001)), WEIGHT),
    "gru: reset gate elsewhere": (
        "gru",
        changed_attribute("GRU", 0, linear_before_reset=0),
        ATTRIBUTE,
    ),
    "gru: head is sigmoid": ("gru", exchanged("Tanh", 0, "Sigmoid"), OPERATOR),
    "lstm: input weights x 1.001": ("lstm", changed_weight("LSTM", 0, 1, by(1.001)), WEIGHT),
    "lstm: recurrent weights x 1.01": ("lstm", changed_weight("LSTM", 0, 2, by(1.01)), WEIGHT),
    "conv: renamed, weight x 1.001": (
        "cnn",
        both(renamed("Conv", 0, 1), changed_weight("Conv", 0, 1, by(1.001))),
        WEIGHT,
    ),
    "conv: one weight is NaN": ("cnn", changed_weight("Conv", 1, 1, first(float("nan"))), WEIGHT),
    "conv: dilated": (
        "cnn",
        changed_attribute("Conv", 1, dilations=[1, 2], pads=[1, 2, 1, 2]),
        ATTRIBUTE,
    ),
    "linear: bias dropped": ("cnn", without_input("Gemm", 0, 2), OPERATOR),
    "linear: transposed, weight x 1.001": (
        "cnn",
        both(transposed("Gemm", 0), changed_weight("Gemm", 0, 1, by(1.001))),
        WEIGHT,
    ),
    "linear: renamed behind a Transpose, weight x 1.001": (
        "cnn",
        both(changed_weight("Gemm", 0, 1, by(1.001)), behind_transpose("Gemm", 0)),
        WEIGHT,
    ),
    "cnn: relu in NHWC": ("cnn", permuted("Relu", 0, 0, 2, 3, 1), LAYOUT),
    "cnn: relu in CHWN": ("cnn", permuted("Relu", 1, 1, 2, 3, 0), LAYOUT),
    "functional: tanh transposed": ("functional", permuted("Tanh", 0, 1, 0, back=False), LAYOUT),
    "cnn: conv in half precision": ("cnn", rounded("Conv", 0, TensorProto.FLOAT16), PRECISION),
    "wide: first layer in bfloat16": ("wide", rounded("Gemm", 0, TensorProto.BFLOAT16), PRECISION),
    "attention: up in int8": ("attention", quantized("MatMul", 3), PRECISION),
    "wide: weight stored in int8": ("wide", stored_in_int8("Gemm", 0, 1), PRECISION),
    "wide: weight stored in half precision": ("wide", stored_in_half("Gemm", 1, 1), PRECISION),
    "wide: first weight x 1.001": ("wide", changed_weight("Gemm", 0, 1, by(1.001)), WEIGHT),
    "wide: first weight transposed": ("wide", changed_weight("Gemm", 0, 1, np.transpose), WEIGHT),
    "wide: second weight, one element": (
        "wide",
        changed_weight("Gemm", 1, 1, first(0.5)),
        WEIGHT,
    ),
    "parameters: clamp to 0.45": ("parameters", changed_input("Clip", 0, 2, 0.45), ATTRIBUTE),
    "parameters: to the power of 2": ("parameters", changed_input("Pow", 0, 1, 2.0), ATTRIBUTE),
    "parameters: times 0.31": ("parameters", changed_input("Mul", 0, 1, 0.31), ATTRIBUTE),
    "parameters: padded with 0": ("parameters", changed_input("Pad", 0, 2, 0.0), ATTRIBUTE),
    "parameters: padded on one side": (
        "parameters",
        changed_input("Pad", 0, 1, [0, 2, 0, 0]),
        ATTRIBUTE,
    ),
    "parameters: slice from 0": (
        "parameters",
        both(changed_input("Slice", 0, 1, [0]), changed_input("Slice", 0, 2, [4])),
        ATTRIBUTE,
    ),
    "parameters: mean over another axis": (
        "parameters",
        changed_input("ReduceMean", 0, 1, [0]),
        ATTRIBUTE,
    ),
    "parameters: transposed otherwise": (
        "parameters",
        changed_attribute("Transpose", 0, perm=[0, 1, 2]),
        LAYOUT,
    ),
    "lstm: states exchanged": ("lstm", reordered("LSTM", 0, 0, 1, 2, 3, 4, 6, 5), OPERATOR),
    "lstm: a gate's bias": ("lstm", changed_weight("LSTM", 0, 3, one_channel), WEIGHT),
    "gru: backwards": ("gru", changed_attribute("GRU", 0, direction="reverse"), ATTRIBUTE),
    "gru: other activations": (
        "gru",
        changed_attribute("GRU", 0, activations=["HardSigmoid", "Tanh"]),
        ATTRIBUTE,
    ),
}
