"""Rules that hold for every export backend, and those of ONNX and TorchScript alone."""

from __future__ import annotations

import hashlib
import importlib
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from recording import record
from veracity.errors import ExportError, ExportOptionError
from veracity.export import backends, graph
from veracity.export.backends import placement

BACKENDS = ["jit", "jit-trace", "onnx", "onnx-torchscript", "pt2"]

torch.manual_seed(3)
NET = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ELU(), torch.nn.Linear(8, 4)).eval()
GRU = torch.nn.GRU(4, 4).eval()


def policy(x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    hidden = NET(x)
    hidden[:, 1:3] *= scale
    return hidden, hidden.abs().sum(-1)


def export(
    backend: str,
    folder: Path,
    function: Callable[..., Any] = policy,
    inputs: dict[str, torch.Tensor] | None = None,
    outputs: list[str] | None = None,
    **options: Any,
) -> tuple[backends.Exported, Path]:
    """Record a function and export it as node `pilot`."""
    if inputs is None:
        inputs = {"x": torch.randn(2, 4), "scale": torch.rand(())}
    program, results = record(function, inputs)
    outputs = outputs or [f"y{number}" for number in range(len(results))]
    path = folder / f"model{backends.find(backend).extension}"
    ports = backends.Ports("pilot", list(inputs), outputs, list(inputs.values()))
    made = backends.export(backend, graph.build(program, outputs), ports, path, options)
    return made, path


def run(made: backends.Exported, path: Path, *inputs: torch.Tensor) -> list[torch.Tensor]:
    """Load the file and run it."""
    if made.backend == "onnx":
        session = onnxruntime.InferenceSession(str(path))
        assert [given.name for given in session.get_inputs()] == made.input_names
        assert [given.name for given in session.get_outputs()] == made.output_names
        fed = dict(zip(made.input_names, (given.numpy() for given in inputs), strict=True))
        return [torch.as_tensor(found) for found in session.run(None, fed)]
    model: Any = torch.jit.load(path) if made.backend == "jit" else torch.export.load(path).module()
    result = model(*inputs)
    return list(result) if isinstance(result, tuple) else [result]


def assert_computes(
    made: backends.Exported, path: Path, function: Callable[..., Any], *inputs: torch.Tensor
) -> None:
    with torch.no_grad():
        want = function(*(given.clone() for given in inputs))
    want = list(want) if isinstance(want, tuple) else [want]
    torch.testing.assert_close(run(made, path, *inputs), want)


# Every backend


@pytest.mark.parametrize("backend", BACKENDS)
def test_names_of_any_kind_are_kept(backend: str, tmp_path: Path) -> None:
    inputs = {"a.b": torch.randn(2, 4), "class": torch.rand(())}
    made, path = export(backend, tmp_path, inputs=inputs, outputs=["y y", "0"])
    assert (made.input_names, made.output_names) == (["a.b", "class"], ["y y", "0"])
    assert_computes(made, path, policy, torch.randn(2, 4), torch.rand(()))


@pytest.mark.parametrize("backend", BACKENDS)
def test_examples_stay_as_they_are(backend: str, tmp_path: Path) -> None:
    def clear(x: torch.Tensor) -> torch.Tensor:
        x[0] = 0
        return x * 2

    x = torch.ones(3)
    made, path = export(backend, tmp_path, clear, {"x": x})
    assert x.tolist() == [1, 1, 1]
    assert_computes(made, path, clear, torch.randn(3))


@pytest.mark.parametrize("backend", BACKENDS)
def test_weights_of_inference_mode_are_exported(backend: str, tmp_path: Path) -> None:
    with torch.inference_mode():
        weight = torch.randn(4, 4)

    def turn(x: torch.Tensor) -> torch.Tensor:
        return x @ weight.T + weight[0]

    made, path = export(backend, tmp_path, turn, {"x": torch.randn(2, 4)})
    assert_computes(made, path, turn, torch.randn(2, 4))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_input_may_be_handed_through(backend: str, tmp_path: Path) -> None:
    def through(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, y + 1

    made, path = export(backend, tmp_path, through, {"x": torch.ones(2), "y": torch.ones(2)})
    assert_computes(made, path, through, torch.randn(2), torch.randn(2))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float16, torch.int32, torch.uint8, torch.bool]
)
def test_element_types_are_kept(backend: str, dtype: torch.dtype, tmp_path: Path) -> None:
    def pick(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(2, 2)[1].flip(0)

    x = torch.tensor([0, 1, 1, 0]).to(dtype)
    made, path = export(backend, tmp_path, pick, {"x": x})
    assert_computes(made, path, pick, torch.tensor([1, 1, 0, 1]).to(dtype))


@pytest.mark.parametrize("backend", BACKENDS)
def test_scalars_and_empty_tensors_are_tensors(backend: str, tmp_path: Path) -> None:
    def join(x: torch.Tensor, empty: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, torch.cat([empty, x.reshape(1)])

    made, path = export(backend, tmp_path, join, {"x": torch.ones(()), "empty": torch.ones(0)})
    assert_computes(made, path, join, torch.rand(()), torch.ones(0))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_refusal_names_node_and_line(
    backend: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def strange(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.veracity_tests.strange(x + 1)  # the line

    calls: list[torch.Tensor] = []

    def works_once(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        if len(calls) > 1:
            message = "once is enough"
            raise RuntimeError(message)
        return x.clone()

    with torch.library._scoped_library("veracity_tests", "DEF") as library:
        library.define("strange(Tensor x) -> Tensor")
        library.impl("strange", works_once, "CompositeExplicitAutograd")
        with pytest.raises(ExportError) as refused:
            export(backend, tmp_path, strange, {"x": torch.ones(2)})
    found = refused.value.diagnostics[0]
    line = strange.__code__.co_firstlineno + 1
    assert found.code == "VER1001"
    assert "'pilot'" in found.message
    assert "strange" in found.message
    assert found.location == f"{__file__}:{line}"
    assert found.hints
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_console_stays_silent(
    backend: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
) -> None:
    export(
        backend,
        tmp_path,
        lambda x: torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
        {"x": torch.ones(1, 1, 4, 4)},
    )
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


def test_both_names_of_a_backend_mean_the_same() -> None:
    pairs = [("jit", "jit-script"), ("onnx", "onnx-dynamo"), ("pt2", "exported-program")]
    assert all(backends.find(short) is backends.find(long) for short, long in pairs)
    assert len({id(backends.find(name)) for name in BACKENDS}) == len(BACKENDS)


def test_an_unknown_backend_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ExportOptionError) as refused:
        backends.find("onnx-torchscrpt", location="policy.py:3")
    found = refused.value.diagnostics[0]
    assert (found.code, found.location) == ("VER1003", "policy.py:3")
    assert found.hints[0] == "did you mean 'onnx-torchscript'?"
    assert all(name in found.hints[1] for name in backends.names())


@pytest.mark.parametrize(
    ("backend", "option", "nearest"),
    [
        ("jit", "optimise", "optimize"),
        ("jit-trace", "check_trase", "check_trace"),
        ("onnx", "opset", "opset_version"),
        ("onnx", "prescript", None),
        ("onnx-torchscript", "prescrpt", "prescript"),
        ("pt2", "stict", "strict"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_name(
    backend: str, option: str, nearest: str | None, tmp_path: Path
) -> None:
    with pytest.raises(ExportOptionError) as refused:
        export(backend, tmp_path, **{option: True})
    found = refused.value.diagnostics[0]
    assert (found.code, repr(option) in found.message) == ("VER1002", True)
    suggested = [hint for hint in found.hints if hint.startswith("did you mean")]
    assert suggested == ([] if nearest is None else [f"did you mean '{nearest}'?"])
    assert list(tmp_path.iterdir()) == []


# Determinism


def digests(folder: Path) -> dict[str, str]:
    """Export with every backend, on inputs that are new each time."""
    found = {}
    for backend in BACKENDS:
        _, path = export(backend, folder)
        found[backend] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def test_the_same_module_gives_the_same_bytes_here_and_in_another_process(tmp_path: Path) -> None:
    first = digests(tmp_path)
    assert digests(tmp_path) == first
    folder = f"pathlib.Path({str(tmp_path)!r})"
    code = f"import pathlib, {__name__}; print({__name__}.digests({folder}))"
    other = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        env={"PYTHONHASHSEED": "5", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert eval(other.stdout) == first


@pytest.mark.parametrize("backend", BACKENDS)
def test_other_weights_give_other_bytes(backend: str, tmp_path: Path) -> None:
    made = []
    for weight in (2.0, 3.0):
        factor = torch.full((4,), weight)
        _, path = export(backend, tmp_path, lambda x, f=factor: x * f, {"x": torch.ones(4)})
        made.append(path.read_bytes())
    assert made[0] != made[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_files_do_not_hold_the_examples(backend: str, tmp_path: Path) -> None:
    secret = torch.tensor([12345.678, 9876.5432])
    _, path = export(backend, tmp_path, lambda x: x + 1, {"x": secret})
    assert secret.numpy().tobytes() not in path.read_bytes()


# TorchScript


@pytest.mark.parametrize("training", [False, True])
def test_the_tracer_gets_the_very_module_that_torch_would_make(
    training: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same bytes, and torch's own way is taken where its private functions are other ones."""

    class Mixed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3, 3))
            self.register_buffer("shift", torch.arange(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(x @ self.weight) + self.shift

    module = torch.fx.symbolic_trace(Mixed()).train(training)
    ports = backends.Ports("pilot", ["x"], ["y"], [torch.randn(2, 3)])
    path = tmp_path / "model.pt"
    made: list[str] = []
    tracer: Any = importlib.import_module("torch.jit._trace")
    original = tracer.TopLevelTracedModule

    def by_torch(*args: Any, **kwargs: Any) -> Any:
        made.append("by torch")
        return original(*args, **kwargs)

    def unknown() -> None:
        raise AttributeError

    monkeypatch.setattr(tracer, "TopLevelTracedModule", by_torch)
    backends.export("jit", module, ports, path, {})
    assert made == []
    ours = path.read_bytes()
    monkeypatch.setattr("veracity.export.backends.jit._attribute_types", unknown)
    backends.export("jit", module, ports, path, {})
    assert made == ["by torch"]
    assert path.read_bytes() == ours


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_value_that_would_be_frozen_is_refused(backend: str, tmp_path: Path) -> None:
    """`Tensor.split` reads its size as a number."""

    def first_part(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.split((y.sum() > 0).long() + 1)[0].sum()

    with pytest.raises(ExportError, match=r"VER100[15].*'pilot'"):
        export(backend, tmp_path, first_part, {"x": torch.ones(2), "y": torch.ones(2)})


def test_script_compiles_when_options_ask_for_it(tmp_path: Path) -> None:
    def simple(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + 1

    made, path = export("jit", tmp_path, simple, {"x": torch.ones(2)}, optimize=None)
    assert not made.notes
    assert_computes(made, path, simple, torch.randn(2))


def test_what_script_refuses_is_recorded_with_a_note(tmp_path: Path) -> None:
    made, path = export("jit", tmp_path, optimize=None)
    assert [note.startswith("script refused") for note in made.notes] == [True]
    assert_computes(made, path, policy, torch.randn(2, 4), torch.rand(()))


def test_trace_takes_its_options(tmp_path: Path) -> None:
    made, path = export("jit-trace", tmp_path, check_trace=True, strict=False)
    assert_computes(made, path, policy, torch.randn(2, 4), torch.rand(()))


def test_an_archive_has_no_line_tables_and_no_numbers_of_the_process(tmp_path: Path) -> None:
    for _ in range(2):
        _, path = export("jit", tmp_path)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        texts = [archive.read(name) for name in names if name.endswith((".py", ".pkl"))]
    assert not [name for name in names if "debug" in name or "traced_inputs" in name]
    assert not [text for text in texts if b"mangle" in text]


# Exported programs


def test_strict_programs_compute_the_same(tmp_path: Path) -> None:
    made, path = export("pt2", tmp_path, strict=True)
    assert_computes(made, path, policy, torch.randn(2, 4), torch.rand(()))
    assert made.parameters == {"torch_version": torch.__version__}


def test_programs_and_onnx_nodes_carry_the_line_of_the_user(tmp_path: Path) -> None:
    line = policy.__code__.co_firstlineno + 3
    trace = f'File "{__file__}", line {line}, in '
    made, _ = export("pt2", tmp_path)
    assert any(trace in node.meta.get("stack_trace", "") for node in made.model.graph.nodes)
    _, path = export("onnx", tmp_path)
    facts = [prop.value for node in onnx.load(path).graph.node for prop in node.metadata_props]
    assert any(trace in fact for fact in facts)


# ONNX


#: What one exporter or the other has no word for, as it is.
TAKEN_APART: dict[str, Callable[[Any], Any]] = {
    "a stable order": lambda x: torch.argsort(x, dim=-1, stable=True),
    "a stable order from the largest": lambda x: torch.sort(x, dim=0, stable=True, descending=True)[
        1
    ],
    "sorted rows": lambda x: torch.msort(x),
    "turned through all rows": lambda x: torch.roll(x, 3),
    "an inverse": lambda x: torch.linalg.inv(x @ x.mT + torch.eye(2)),
    "running products, written": lambda x: x.clone().mul_(2).cumprod(-1),
}


@pytest.mark.parametrize("name", TAKEN_APART)
@pytest.mark.parametrize("backend", ["onnx", "onnx-torchscript"])
def test_both_exporters_know_what_is_taken_apart(backend: str, name: str, tmp_path: Path) -> None:
    given = torch.tensor([[1.0, -1.0, 1.0, 0.5], [2.0, 1.0, 2.0, 0.5]])
    made, path = export(backend, tmp_path, TAKEN_APART[name], {"x": given}, ["y"])
    assert_computes(made, path, TAKEN_APART[name], given)


@pytest.mark.parametrize("backend", ["onnx", "onnx-torchscript"])
def test_a_name_on_both_sides_gets_an_ending(backend: str, tmp_path: Path) -> None:
    inputs = {"h": torch.randn(2, 4), "scale": torch.rand(())}
    made, path = export(backend, tmp_path, inputs=inputs, outputs=["h", "y"])
    assert (made.input_names, made.output_names) == (["h_in", "scale"], ["h_out", "y"])
    assert_computes(made, path, policy, torch.randn(2, 4), torch.rand(()))


def test_an_ending_that_is_taken_is_refused(tmp_path: Path) -> None:
    inputs = {"h": torch.randn(2, 4), "h_in": torch.rand(())}
    with pytest.raises(ExportError) as refused:
        export("onnx", tmp_path, inputs=inputs, outputs=["h", "y"])
    found = refused.value.diagnostics[0]
    assert found.code == "VER1004"
    assert "'h_in'" in found.message


@pytest.mark.parametrize("backend", ["onnx", "onnx-torchscript"])
def test_ports_may_be_called_like_values_inside_the_model(backend: str, tmp_path: Path) -> None:
    plain, _ = export(backend, tmp_path)
    inner = [value.name for node in plain.model.graph for value in node.outputs]
    stored = list(plain.model.graph.initializers)
    inputs = {inner[0]: torch.randn(2, 4), stored[0]: torch.rand(())}
    made, path = export(backend, tmp_path, inputs=inputs, outputs=[inner[1], stored[1]])
    assert (made.input_names, made.output_names) == (list(inputs), [inner[1], stored[1]])
    assert_computes(made, path, policy, torch.randn(2, 4), torch.rand(()))


@pytest.mark.parametrize("backend", ["onnx", "onnx-torchscript"])
def test_inputs_of_the_model_and_removed_ones_are_all_inputs(backend: str, tmp_path: Path) -> None:
    def shape_only(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x) + y

    inputs = {"x": torch.ones(2), "y": torch.ones(2)}
    made, path = export(backend, tmp_path, shape_only, inputs)
    assert sorted(made.input_names + made.removed_inputs) == ["x", "y"]
    present = [given.name for given in onnxruntime.InferenceSession(str(path)).get_inputs()]
    assert present == made.input_names


@pytest.mark.parametrize("network", ["GRU", "LSTM"])
@pytest.mark.parametrize("backend", ["onnx", "onnx-torchscript"])
def test_recurrent_layers_are_exported(backend: str, network: str, tmp_path: Path) -> None:
    layer = getattr(torch.nn, network)(4, 4).eval()

    def step(x: torch.Tensor) -> torch.Tensor:
        return layer(x)[0]

    made, path = export(backend, tmp_path, step, {"x": torch.randn(1, 1, 4)})
    assert_computes(made, path, step, torch.randn(1, 1, 4))


def test_the_other_exporter_is_used_with_a_note_when_it_is_shown_right(tmp_path: Path) -> None:
    inputs = {"x": torch.randn(3, 4), "y": torch.randn(2, 4)}
    made, path = export("onnx", tmp_path, torch.cdist, inputs)
    assert made.notes[0].startswith("the TorchScript exporter was used, because: ")
    assert_computes(made, path, torch.cdist, torch.randn(3, 4), torch.randn(2, 4))


def test_what_cannot_be_compared_is_not_given_to_the_other_exporter(tmp_path: Path) -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return torch.cdist(x, x + torch.rand_like(x))

    with pytest.raises(ExportError, match=r"VER1001.*'cdist'"):
        export("onnx", tmp_path, noisy, {"x": torch.randn(3, 4)})


@pytest.mark.parametrize("backend", BACKENDS)
def test_random_numbers_do_not_stop_an_export(backend: str, tmp_path: Path) -> None:
    made, path = export(backend, tmp_path, lambda x: x + torch.rand_like(x), {"x": torch.zeros(9)})
    assert 0 < run(made, path, torch.zeros(9))[0].max() < 1


@pytest.mark.parametrize("backend", ["onnx", "onnx-torchscript"])
def test_the_operator_set_can_be_chosen(backend: str, tmp_path: Path) -> None:
    made, path = export(backend, tmp_path, opset_version=18)
    assert made.parameters == {"opset_version": 18}
    assert onnx.load(path).opset_import[0].version == 18
    assert export(backend, tmp_path)[0].parameters == {"opset_version": 20}


@pytest.mark.parametrize("backend", ["onnx", "onnx-torchscript"])
def test_weights_can_go_to_a_file_of_their_own(backend: str, tmp_path: Path) -> None:
    weight = torch.randn(64, 64)
    inputs = {"x": torch.randn(64)}
    made, path = export(backend, tmp_path, lambda x: weight @ x, inputs, external_data=True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    assert path.stat().st_size < weight.numel() * 4
    assert_computes(made, path, lambda x: weight @ x, torch.randn(64))


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        ("onnx", {"optimize": False}),
        ("onnx", {"verify": True}),
        ("onnx", {"skip_validation": True}),
        ("onnx-torchscript", {"optimize": False}),
        ("onnx-torchscript", {"verify": True}),
        ("onnx-torchscript", {"prescript": True}),
    ],
)
def test_options_do_not_change_what_is_computed(
    backend: str, options: dict[str, bool], tmp_path: Path
) -> None:
    made, path = export(backend, tmp_path, **options)
    assert_computes(made, path, policy, torch.randn(2, 4), torch.rand(()))


def test_a_report_becomes_a_note(tmp_path: Path) -> None:
    made, path = export("onnx", tmp_path, report=True)
    assert [note.startswith("# PyTorch ONNX Conversion Report") for note in made.notes] == [True]
    assert list(tmp_path.iterdir()) == [path]


def test_a_model_of_the_older_exporter_that_computes_something_else_is_refused(
    tmp_path: Path,
) -> None:
    """The older exporter divides by rounding toward zero."""
    inputs = {"x": torch.tensor([-3.0, 3.0])}
    with pytest.raises(ExportError) as refused:
        export("onnx-torchscript", tmp_path, lambda x: x // 2, inputs)
    assert refused.value.diagnostics[0].code == "VER1005"
    assert list(tmp_path.iterdir()) == []
    made, path = export("onnx", tmp_path, lambda x: x // 2, inputs)
    assert_computes(made, path, lambda x: x // 2, torch.tensor([-5.0, 5.0]))


def test_onnx_is_exported_from_the_cpu_whatever_the_device() -> None:
    """ONNX knows no devices: a graph on the CPU is taken as it is, devices in it become the CPU."""
    graph_module = torch.fx.symbolic_trace(torch.nn.Identity())
    ports = backends.Ports("n", ["x"], ["y"], [torch.zeros(2)])
    assert placement.on_cpu(graph_module, ports) == (graph_module, ports)

    given = (torch.device("cuda:1"), "cuda", "cuda:0", "mean", 3)
    expected = (torch.device("cpu"), "cpu", "cpu", "mean", 3)
    assert tuple(map(placement.without_device, given)) == expected
