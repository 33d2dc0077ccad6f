"""`veracity.parity`: clean exports raise no alarm, one fault names one operator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 (as everybody calls it)
from onnx import ModelProto, NodeProto, helper, numpy_helper
from torch import Tensor, nn
from veracity import VeracityError
from veracity.drift import comparison, program
from veracity.export.backends.onnx_tables import kept_tables
from veracity.parity import ParityResult, parity


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small operators on a busy machine wait longer for their threads than they compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[Any, ...]]] = {
    "cnn": (_Cnn, (normal(1, 3, 8, 8),)),
    "attention": (_Attention, (normal(2, 5, 16),)),
    "gru": (lambda: _Policy(nn.GRU), (normal(3, 1, 4), normal(1, 1, 8, seed=2))),
    "lstm": (
        lambda: _Policy(nn.LSTM),
        (normal(3, 1, 4), (normal(1, 1, 8, seed=2), normal(1, 1, 8, seed=3))),
    ),
    "shared": (_Shared, (normal(2, 6),)),
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
    name: str, tmp_path: Path, edit: Callable[[ModelProto], Any], monkeypatch: pytest.MonkeyPatch
) -> ParityResult:
    """Compare the live network with a file that was edited."""
    exported_program, proto = exported(name)
    model = onnx.load_from_string(proto)
    edit(model)
    onnx.save(model, tmp_path / "edited.onnx")
    # Exporting the same module again and again is most of the time.
    again = program.Program(exported_program, onnx_ir.from_proto(onnx.load_from_string(proto)))
    monkeypatch.setattr(comparison, "export", lambda *_, **__: again)
    return parity(network(name), NETWORKS[name][1], onnx=tmp_path / "edited.onnx", float64=False)


def guilty(result: ParityResult) -> list[str]:
    return [row.name for row in result.rows if row.verdict == "disproved"]


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


# One fault


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


FAULTS: dict[str, tuple[str, Callable[[ModelProto], str]]] = {
    "conv: a channel +0.05": ("cnn", changed_weight("Conv", 0, 1, one_channel)),
    "conv: weight x 1.001": ("cnn", changed_weight("Conv", 1, 1, by(1.001))),
    "conv: bias x 1.01": ("cnn", changed_weight("Conv", 1, 2, by(1.01))),
    "conv: pads moved": ("cnn", changed_attribute("Conv", 0, pads=[2, 1, 0, 1])),
    "relu is abs": ("cnn", exchanged("Relu", 0, "Abs")),
    "relu is leaky": ("cnn", exchanged("Relu", 1, "LeakyRelu", alpha=0.01)),
    "relu left out": ("cnn", bypassed("Relu", 0)),
    "residual is a product": ("cnn", exchanged("Add", 0, "Mul")),
    "max pool is average": (
        "cnn",
        exchanged("MaxPool", 0, "AveragePool", kernel_shape=[2, 2], strides=[2, 2]),
    ),
    "linear: weight x 1.001": ("cnn", changed_weight("Gemm", 0, 1, by(1.001))),
    "linear: alpha": ("cnn", changed_attribute("Gemm", 0, alpha=1.01, transB=1)),
    "attention: softmax axis": ("attention", changed_attribute("Softmax", 0, axis=-2)),
    "attention: softmax left out": ("attention", bypassed("Softmax", 0)),
    "attention: query times itself": ("attention", reordered("Mul", 0, 0, 0)),
    "attention: layer norm eps": (
        "attention",
        changed_attribute("LayerNormalization", 0, epsilon=1e-2),
    ),
    "attention: layer norm scale": (
        "attention",
        changed_weight("LayerNormalization", 0, 1, by(1.001)),
    ),
    "attention: gelu approximated": ("attention", changed_attribute("Gelu", 0, approximate="tanh")),
    "shared: first relu is abs": ("shared", exchanged("Relu", 0, "Abs")),
    "shared: second relu left out": ("shared", bypassed("Relu", 1)),
    "shared: second call without bias": (
        "shared",
        changed_attribute("Gemm", 1, beta=0.0, transB=1),
    ),
    "functional: first softmax axis": ("functional", changed_attribute("Softmax", 0, axis=0)),
    "functional: last softmax axis": ("functional", changed_attribute("Softmax", 1, axis=1)),
    "functional: matmul exchanged": ("functional", reordered("MatMul", 0, 1, 0)),
    "functional: cat exchanged": ("functional", reordered("Concat", 0, 1, 0)),
    "functional: where exchanged": ("functional", reordered("Where", 0, 0, 2, 1)),
    "functional: sigmoid is hard": ("functional", exchanged("Sigmoid", 0, "HardSigmoid")),
    "functional: tanh is softsign": ("functional", exchanged("Tanh", 0, "Softsign")),
    "functional: clamp left out": ("functional", bypassed("Clip", 0)),
    "functional: gelu exact": ("functional", changed_attribute("Gelu", 0, approximate="none")),
    "functional: division is a product": ("functional", exchanged("Div", 0, "Mul")),
    "functional: abs left out": ("functional", bypassed("Abs", 0)),
    "functional: difference exchanged": ("functional", reordered("Sub", 0, 1, 0)),
    "gru: encoder x 1.001": ("gru", changed_weight("MatMul", 0, 1, by(1.001))),
    "gru: reset gate elsewhere": ("gru", changed_attribute("GRU", 0, linear_before_reset=0)),
    "gru: head is sigmoid": ("gru", exchanged("Tanh", 0, "Sigmoid")),
    "lstm: input weights x 1.001": ("lstm", changed_weight("LSTM", 0, 1, by(1.001))),
    "lstm: recurrent weights x 1.01": ("lstm", changed_weight("LSTM", 0, 2, by(1.01))),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_names_its_operator_and_nobody_else(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, edit = FAULTS[fault]
    told: list[str] = []
    result = compared_with(name, tmp_path, lambda model: told.append(edit(model)), monkeypatch)
    assert (result.verdict, len(told)) == ("disproved", 1), result
    if fault.startswith(("gru: reset", "lstm")):  # one operator with several outputs
        wrong = {row.module for row in result.rows if row.verdict == "disproved"}
        assert wrong == {"memory"}, str(result)
        return
    # A value without counterpart is judged by the one that it is part of.
    expected = result.coverage.parts.get(told[0], told[0])
    assert result.origin is not None and result.origin.name == expected, str(result)
    assert guilty(result) == [expected], str(result)


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
    assert Path(first.source.rsplit(":", 1)[0]).name == "test_parity.py"
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
    report = json.loads(result.to_json())
    assert report["origin"] == result.origin.name and report["schema_version"]
