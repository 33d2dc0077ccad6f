"""`veracity.parity(against="program")`: torch's exported program is held to eager mode."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 (as everybody calls it)
from planted import NETWORKS, network, normal
from torch import Tensor, fx, nn
from veracity import VeracityError
from veracity.drift import command
from veracity.parity import ParityResult, parity

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small operators on a busy machine wait longer for their threads than they compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def guilty(result: ParityResult) -> list[tuple[str, str]]:
    return [(row.module, row.op_type) for row in result.rows if row.verdict == "disproved"]


def exported(model: nn.Module, args: tuple[Any, ...]) -> Any:
    return torch.export.export(model, args, strict=False)


# Right programs


@pytest.mark.parametrize("name", NETWORKS)
def test_a_right_program_is_proved_call_by_call(name: str) -> None:
    result = parity(network(name), NETWORKS[name][1], against="program")
    assert (result.verdict, result.origin, result.drift_origin) == ("proved", None, None), result
    assert result.rows and result.coverage.share == 1.0
    assert all(row.float64 is not None and row.float64.reference < 1e-5 for row in result.rows)


def test_rows_are_calls_and_what_is_between_them() -> None:
    rows = parity(network("cnn"), NETWORKS["cnn"][1], against="program").rows
    assert [(row.name, row.op_type, row.module) for row in rows] == [
        ("conv2d", "Conv2d", "conv1"),
        ("batch_norm", "BatchNorm2d", "bn1"),
        ("relu_", "ReLU", "act"),
        ("conv2d_1", "Conv2d", "conv2"),
        ("batch_norm_1", "BatchNorm2d", "bn2"),
        ("relu__1", "ReLU", "act"),
        ("flatten", "flatten.using_ints", ""),
        ("linear", "Linear", "output"),
    ]
    assert all("planted.py:" in row.source for row in rows)
    # In-place ReLU writes over what batch norm gave: that was copied before.
    norms = [row for row in rows if row.op_type == "BatchNorm2d"]
    assert all(row.accumulated == 0.0 for row in norms)


class _Aliased(nn.Module):
    """Everything that is written in place is read again under another name."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.act, self.last = nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(2, 2)
        self.same, self.drop = nn.Identity(), nn.Dropout()
        self.other = self.first
        self.register_buffer("steps", torch.zeros(4))

    def forward(self, x: Tensor) -> dict[str, Any]:
        self.steps.add_(1.0)
        x.mul_(2.0)
        wide = self.same(self.first(x)) + self.steps
        self.act(wide)
        half = wide[:, :2]
        half.mul_(0.5)
        again = self.other(self.drop(wide))
        return {"last": self.last(half), "pair": (wide, again, self.same(again))}


class _Stateful(nn.Module):
    """A call that reads what an earlier one wrote; arguments by name, outputs in a dict."""

    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.zeros(4))

        def forward(self, x: Tensor, *, options: dict[str, Tensor]) -> dict[str, Tensor]:
            self.state.copy_(self.state * 0.5 + x.mean(0))
            return {"sum": x + self.state, "scaled": x * options["scale"]}

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.layer = self.Cell(), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        first = self.cell(x, options={"scale": x.abs()})
        second = self.cell(self.layer(first["sum"]), options={"scale": first["scaled"]})
        return second["sum"] - second["scaled"]


class _Spectrum(nn.Module):
    """Complex numbers between two modules."""

    class Transform(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.fft.fft(x)

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.transform = nn.Linear(4, 4), self.Transform()

    def forward(self, x: Tensor) -> Tensor:
        return self.transform(self.layer(x)).abs()


@pytest.mark.parametrize(
    ("model", "args"),
    [
        (_Aliased(), normal(3, 4)),
        (_Stateful(), normal(3, 4)),
        (_Spectrum(), normal(3, 4)),
        (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), normal(1, 3, 8)),
        (nn.Sequential(nn.Conv1d(2, 3, 3), nn.GroupNorm(1, 3), nn.GELU()).half(),
         normal(1, 2, 9).half()),
        (nn.Linear(4, 4).double(), normal(2, 4).double()),
        (nn.Bilinear(4, 4, 3), (normal(2, 4), normal(2, 4, seed=2))),
    ],
    ids=["in place", "stateful", "complex", "fast path", "fp16", "float64", "two of a shape"],
)  # fmt: skip
def test_no_false_alarm(model: nn.Module, args: Any) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    arguments = args if isinstance(args, tuple) else (args,)
    copies = [each.clone() for each in arguments]
    result = parity(model.eval(), args, against="program")
    assert result.verdict == "proved" and not result.reasons, result
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())
    assert all(map(torch.equal, arguments, copies))


def test_calls_without_a_part_of_their_own_are_listed() -> None:
    result = parity(_Aliased().eval(), normal(3, 4), against="program")
    assert set(result.coverage.not_mapped) == {"same", "same#2"}
    assert [row.module for row in result.rows].count("first") == 2  # also known as `other`


def test_programs_of_a_file_are_proved(tmp_path: Path) -> None:
    model, args = network("attention"), NETWORKS["attention"][1]
    torch.export.save(exported(model, args), tmp_path / "net.pt2")
    result = parity(model, args, against=tmp_path / "net.pt2")
    assert result.verdict == "proved", result
    assert [row.module for row in result.rows if row.module] == ["att", "norm", "up", "down"]


@pytest.mark.parametrize(
    ("model", "args", "calls"),
    [
        (network("cnn"), NETWORKS["cnn"][1], ["ReLU"] * 2),
        (_Stateful(), (normal(3, 4),), ["Cell"] * 4),
    ],
    ids=["cnn", "stateful"],
)
def test_functional_programs_are_proved(
    model: nn.Module, args: tuple[Any, ...], calls: list[str]
) -> None:
    result = parity(model, args, against=exported(model, args).run_decompositions())
    assert result.verdict == "proved", result
    assert [row.op_type for row in result.rows if row.op_type == calls[0]] == calls


def test_programs_for_sizes_that_vary_are_proved() -> None:
    model, sizes = network("wide"), ({0: torch.export.Dim.DYNAMIC},)
    program = torch.export.export(model, (normal(3, 64),), dynamic_shapes=sizes, strict=False)
    result = parity(model, normal(5, 64), against=program)
    assert result.verdict == "proved" and result.rows[0].shape == (5, 64), result


# Wrong programs

Fault = Callable[[Any], None]


def node_of(program: Any, name: str) -> fx.Node:
    return next(node for node in program.graph.nodes if node.name == name)


def weight(name: str, change: Callable[[Tensor], Tensor]) -> Fault:
    def plant(program: Any) -> None:
        program.state_dict[name] = nn.Parameter(change(program.state_dict[name].detach().clone()))

    return plant


def target(name: str, other: Any) -> Fault:
    def plant(program: Any) -> None:
        node_of(program, name).target = other

    return plant


def argument(name: str, position: int, value: Any) -> Fault:
    def plant(program: Any) -> None:
        node = node_of(program, name)
        node.args = (*node.args[:position], value, *node.args[position + 1 :])

    return plant


def channel(value: Tensor) -> Tensor:
    value[1] += 0.05
    return value


FAULTS: list[tuple[str, Fault, list[tuple[str, str]]]] = [
    ("cnn", weight("conv2.weight", channel), [("conv2", "Conv2d")]),
    ("cnn", weight("bn1.bias", lambda value: value + 0.01), [("bn1", "BatchNorm2d")]),
    ("cnn", argument("batch_norm_1", 7, 0.1), [("bn2", "BatchNorm2d")]),
    ("cnn", target("relu_", aten.abs_.default), [("act", "ReLU")]),
    ("cnn", target("relu__1", aten.tanh.default), [("act", "ReLU")]),
    ("cnn", target("add", aten.sub.Tensor), [("", "flatten.using_ints")]),
    ("attention", weight("att.in_proj_weight", lambda value: value * 1.01),
     [("att", "MultiheadAttention")]),
    ("attention", argument("layer_norm", 4, 0.3), [("norm", "LayerNorm")]),
    ("attention", target("gelu", aten.silu.default), [("", "silu.default")]),
    ("attention", target("add_1", aten.sub.Tensor), [("", "sub.Tensor")]),
    ("gru", weight("memory.weight_hh_l0", lambda value: value.flip(0)), [("memory", "GRU")] * 2),
    ("lstm", weight("memory.bias_ih_l0", lambda value: value + 0.1), [("memory", "LSTM")] * 3),
    ("lstm", target("tanh", aten.sigmoid.default), [("", "sigmoid.default")]),
    ("shared", target("relu", aten.abs.default), [("act", "ReLU")]),
    ("shared", weight("layer.bias", lambda value: value + 1), [("layer", "Linear")] * 2),
    ("functional", argument("clamp", 1, 0.1), [("", "softmax.int")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "plant", "expected"), FAULTS, ids=[f"{n} {i}" for i, (n, *_) in enumerate(FAULTS)]
)
def test_a_planted_fault_is_named_where_it_is_and_nowhere_else(
    name: str, plant: Fault, expected: list[tuple[str, str]]
) -> None:
    model, args = network(name), NETWORKS[name][1]
    program = exported(model, args)
    plant(program)
    result = parity(model, args, against=program, float64=False)
    assert result.verdict == "disproved" and guilty(result) == expected, result
    assert result.origin is not None and result.origin.module == expected[0][0]
    assert result.rows[-1].accumulated > 0.0  # it arrives at the end


def test_an_exchange_of_outputs_is_found() -> None:
    model, args = network("lstm"), NETWORKS["lstm"][1]
    program = exported(model, args)
    output = node_of(program, "output")
    tanh, hidden, cell = output.args[0]
    output.args = ((tanh, cell, hidden),)
    specs = program.graph_signature.output_specs
    specs[1].arg, specs[2].arg = specs[2].arg, specs[1].arg
    result = parity(model, args, against=program, float64=False)
    assert result.verdict == "disproved" and result.origin is not None
    assert "(output 1)" in result.origin.name, result


def test_an_exchange_inside_of_a_module_is_found_where_it_is_used() -> None:
    class Pair(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            return (y * 2, x * 3) if torch.compiler.is_exporting() else (x * 3, y * 2)

    class Uses(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pair, self.layer = Pair(), nn.Linear(4, 4)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            left, right = self.pair(x, y)
            return self.layer(left) - right

    result = parity(Uses().eval(), (normal(3, 4), normal(3, 4, seed=2)), against="program")
    assert result.verdict == "disproved" and result.origin is not None
    assert "(given to layer)" in result.origin.name and result.origin.module == "pair"


def test_a_program_that_breaks_is_disproved() -> None:
    model, args = network("cnn"), NETWORKS["cnn"][1]
    program = exported(model, args)
    argument("flatten", 1, 2)(program)
    result = parity(model, args, against=program, float64=False)
    assert result.verdict == "disproved"
    assert "cannot be run at 'linear'" in " ".join(result.reasons)
    assert [row.op_type for row in result.rows][-1] == "ReLU"  # as far as it got


# Modules that are something else when they are exported


class _Moody(nn.Module):
    def __init__(self, exports: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.exports = exports

    def forward(self, x: Tensor) -> Tensor:
        return self.exports(x) if torch.compiler.is_exporting() else torch.sigmoid(x)


@pytest.mark.parametrize(
    ("exports", "expected"),
    [
        (F.hardsigmoid, "disproved"),
        (lambda x: x, "disproved"),
        (lambda x: torch.sigmoid(x)[:1], "disproved"),
        (lambda x: 1 / (1 + torch.exp(-x)), "proved"),
    ],
    ids=["another function", "nothing at all", "another shape", "the same otherwise"],
)
def test_code_that_asks_whether_it_is_exported(
    exports: Callable[[Tensor], Tensor], expected: str
) -> None:
    model = nn.Sequential(nn.Linear(4, 4), _Moody(exports), nn.Linear(4, 3)).eval()
    result = parity(model, normal(2, 4), against="program")
    assert result.verdict == expected, result
    if expected == "disproved":
        assert result.origin is not None and result.origin.module == "1"
        assert guilty(result) == [("1", "_Moody")]


def test_another_input_of_a_module_is_found() -> None:
    class Scales(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x if torch.compiler.is_exporting() else x / 255)

    result = parity(Scales().eval(), normal(2, 4), against="program")
    assert result.verdict == "disproved" and guilty(result) == [("", "placeholder")]
    assert result.origin is not None and result.origin.name == "x (given to layer)"


# What is not known


def test_nothing_compared_is_no_proof() -> None:
    class Silent(nn.Module):
        def forward(self, x: Tensor) -> None:
            return None

    result = parity(Silent(), normal(2), against="program")
    assert (result.verdict, result.rows) == ("not_comparable", ()) and result.reasons


def test_nan_is_no_proof() -> None:
    class Root(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.sqrt(x)

    result = parity(Root(), torch.tensor([4.0, -1.0]), against="program")
    assert (result.verdict, result.origin) == ("not_comparable", None)


def test_a_call_that_the_program_does_not_have_is_not_proved() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.Tanh()

        def forward(self, x: Tensor) -> Tensor:
            if not torch.compiler.is_exporting():
                self.act(x + 1)
            return self.act(x) * 1.5

    result = parity(Twice(), normal(3), against="program")
    assert result.verdict == "not_comparable", result
    assert [row.problem for row in result.rows if row.problem] == [
        "the program has no part that is known to be this call"
    ] * 2


@pytest.mark.parametrize(
    ("options", "code", "part"),
    [
        ({"against": "programm"}, "VER1238", "no such program"),
        ({"against": 3}, "VER1238", "is no program"),
        ({"against": __file__}, "VER1238", "cannot read"),
        ({"against": "program", "onnx": "a.onnx"}, "VER1238", "run by torch"),
        ({"against": "program", "repro": "folder"}, "VER1238", "run by torch"),
        ({"against": exported(nn.Linear(4, 4), (normal(3, 4),))}, "VER1238", "other arguments"),
        ({"against": exported(nn.Linear(4, 4).double(), (normal(2, 4).double(),))},
         "VER1238", "another 'input'"),
        ({"against": exported(nn.Bilinear(4, 4, 4), (normal(2, 4), normal(2, 4)))},
         "VER1238", "other arguments"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(options: dict[str, Any], code: str, part: str) -> None:
    with pytest.raises(VeracityError) as caught:
        parity(nn.Linear(4, 4), normal(2, 4), **options)
    assert caught.value.diagnostics[0].code == code
    assert part in caught.value.diagnostics[0].message


def test_random_numbers_are_refused() -> None:
    with pytest.raises(VeracityError, match="draws random numbers"):
        parity(nn.Dropout(), normal(3), against="program")


# Reports and the command line


def test_reports_are_written_as_those_of_onnx(tmp_path: Path) -> None:
    result = parity(network("lstm"), NETWORKS["lstm"][1], against="program", name="net")
    result.write_reports(tmp_path / "net")
    layers = json.loads((tmp_path / "net.json").read_text())["layers"]
    names = [layer["layer"] for layer in layers]
    assert names == ["encoder", "getitem_1", "memory", "head", "tanh"]
    assert "eager" in result.to_markdown() and result.to_html(tmp_path / "net.html").stat().st_size


def test_the_command_line_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("moody.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class Moody(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x.abs() if torch.compiler.is_exporting() else x\n"
        "def right():\n    return nn.Linear(4, 4), torch.randn(2, 4)\n"
        "def wrong():\n    return nn.Sequential(nn.Linear(4, 4), Moody()), torch.randn(2, 4)\n"
    )
    for builder, code in (("right", 0), ("wrong", 1)):
        arguments = [f"moody.py:{builder}", "--against", "program", "--format", "json"]
        assert command.main(arguments) == code
        report = json.loads(capsys.readouterr().out)
        assert report["candidate"] == "its exported program"
    assert command.main(["moody.py:right", "--against", "absent.pt2"]) == 2
    assert "VER1238" in capsys.readouterr().err
