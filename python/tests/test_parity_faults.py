"""`parity` proves no fault that hides from its arguments, and the clean exports beside them."""

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
from onnx import ModelProto, NodeProto, helper, numpy_helper
from planted import normal
from torch import Tensor, nn
from veracity.drift import comparison, program
from veracity.parity import ParityResult, parity


class _Masked(nn.Module):
    """Attention with an additive mask of -1e9."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8, bias=False) for _ in range(3))
        self.register_buffer("mask", torch.triu(torch.full((6, 6), -1e9), 1))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.q(x) @ self.k(x).transpose(1, 2) * 8**-0.5
        return torch.softmax(scores + self.mask, -1) @ self.v(x)


class _Words(nn.Module):
    """Arguments read five rows of a thousand."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(1000, 6), nn.Linear(6, 3)

    def forward(self, ids: Tensor, keep: Tensor) -> Tensor:
        return self.head(self.table(ids) * keep.unsqueeze(-1))


class _Clips(nn.Module):
    """Corners that small arguments do not reach."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu6(self.first(x)) + F.hardtanh(x, -40.0, 40.0)
        return torch.floor(y * 0.25) + F.hardsigmoid(y)


class _Small(nn.Module):
    """Outputs of about 1e-7."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 4, bias=False)
        with torch.no_grad():
            self.second.weight.mul_(1e-7)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.tanh(self.first(x)))


class _Mixed(nn.Module):
    """One channel of 1e8 beside ordinary ones, and rows of tiny variance."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.LayerNorm(6)
        self.register_buffer("scale", torch.tensor([1e8, 1.0, 1.0, 1.0]).view(1, 4, 1, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.conv(x) * self.scale
        return y, self.norm(x * 1e-3)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[Any, ...]]] = {
    "masked": (_Masked, (normal(2, 6, 8),)),
    "words": (_Words, (torch.tensor([[1, 2, 3, 0, 4]]), torch.ones(1, 5, dtype=torch.bool))),
    "clips": (_Clips, (normal(2, 6) * 0.1,)),
    "small": (_Small, (normal(3, 6),)),
    "mixed": (_Mixed, (normal(1, 3, 6, 6),)),
}


@cache
def network(name: str) -> nn.Module:
    torch.manual_seed(5)
    return NETWORKS[name][0]().eval()


@cache
def exported(name: str) -> tuple[Any, bytes]:
    made = program.export(network(name), NETWORKS[name][1], {}, open_attention=True)
    return made.exported, onnx_ir.serde.serialize_model(made.onnx).SerializeToString()


def compared(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    edit: Callable[[ModelProto], Any] = lambda _: None,
    **options: Any,
) -> ParityResult:
    exported_program, proto = exported(name)
    model = onnx.load_from_string(proto)
    edit(model)
    onnx.save(model, tmp_path / "edited.onnx")
    again = program.Program(exported_program, onnx_ir.from_proto(onnx.load_from_string(proto)))
    monkeypatch.setattr(comparison, "export", lambda *_, **__: again)
    return parity(
        network(name), NETWORKS[name][1], onnx=tmp_path / "edited.onnx", causes=False, **options
    )


Edit = Callable[[ModelProto], Any]


def found(model: ModelProto, op_type: str, which: int = 0) -> NodeProto:
    return [node for node in model.graph.node if node.op_type == op_type][which]


def weight(part: str, change: Callable[[np.ndarray], Any]) -> Edit:
    """Change the weight whose name has this part, or the constant that an operator reads."""

    def edit(model: ModelProto) -> None:
        held = next(each for each in model.graph.initializer if part in each.name)
        was = numpy_helper.to_array(held).copy()
        held.CopyFrom(numpy_helper.from_array(np.asarray(change(was), was.dtype), held.name))

    return edit


def number(op_type: str, position: int, value: float, which: int = 0) -> Edit:
    """Give an operator another number to work with."""

    def edit(model: ModelProto) -> None:
        made = numpy_helper.from_array(np.asarray(value, np.float32), f"other{value}")
        model.graph.initializer.append(made)
        found(model, op_type, which).input[position] = made.name

    return edit


def another(op_type: str, other: str, which: int = 0, **attributes: Any) -> Edit:
    def edit(model: ModelProto) -> None:
        node = found(model, op_type, which)
        node.op_type = other
        del node.attribute[:]
        node.attribute.extend(helper.make_attribute(*item) for item in attributes.items())

    return edit


def row(index: Any, change: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    def apply(values: np.ndarray) -> np.ndarray:
        values[index] = change(values[index])
        return values

    return apply


FAULTS: list[tuple[str, str, Edit]] = [
    ("masked", "queries negated", weight("val_0", lambda w: -w)),
    ("masked", "scale off by 1 %", number("Mul", 1, 8**-0.5 * 1.01)),
    ("masked", "scale gone", number("Mul", 1, 1.0)),
    ("masked", "one place open", weight("mask", row((0, 4), lambda _: 0.0))),
    ("masked", "one place masked", weight("mask", row((4, 1), lambda _: -1e9))),
    ("masked", "softmax over rows", another("Softmax", "Softmax", axis=1)),
    ("words", "a row far in the table", weight("table", row(731, lambda v: v + 1))),
    ("words", "the last row", weight("table", row(999, lambda v: -v))),
    ("words", "one element", weight("table", row((400, 2), lambda v: v * 1.01))),
    ("words", "off by one", weight("table", lambda t: np.roll(t, 1, 0))),
    ("words", "the head negated", weight("head", lambda w: -w)),
    ("clips", "another upper end", number("Clip", 2, 7.0)),
    ("clips", "another lower end", number("Clip", 1, -0.5)),
    ("clips", "a far upper end", number("Clip", 2, 50.0, which=1)),
    ("clips", "a far lower end", number("Clip", 1, -50.0, which=1)),
    ("clips", "near instead of down", another("Floor", "Round")),
    ("clips", "up instead of down", another("Floor", "Ceil")),
    ("clips", "another slope", another("HardSigmoid", "HardSigmoid", alpha=0.2, beta=0.5)),
    ("small", "weights negated", weight("second", lambda w: -w)),
    ("small", "weights zero", weight("second", lambda w: w * 0)),
    ("small", "one weight", weight("second", row((1, 2), lambda v: v * 1.1))),
    ("mixed", "a small channel", weight("conv.weight", row(2, lambda v: v * 1.01))),
    ("mixed", "a small channel negated", weight("scale", row((0, 3), lambda v: -v))),
    ("mixed", "a bias of a small channel", weight("conv.bias", row(1, lambda v: v + 1e-3))),
    ("mixed", "another eps", another("LayerNormalization", "LayerNormalization", epsilon=1.1e-5)),
]


@pytest.mark.parametrize(
    ("name", "edit"), [(n, e) for n, _, e in FAULTS], ids=[f"{n}: {f}" for n, f, _ in FAULTS]
)
def test_no_planted_fault_is_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, edit: Edit
) -> None:
    assert compared(name, tmp_path, monkeypatch, edit).verdict == "disproved"


@pytest.mark.parametrize("name", list(NETWORKS))
@pytest.mark.parametrize("float64", [True, False])
def test_clean_exports_are_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, float64: bool
) -> None:
    result = compared(name, tmp_path, monkeypatch, float64=float64)
    assert result.verdict == "proved", str(result)
