"""Odd code, ONE pass, fresh inputs: right, or told with the line; never silently wrong."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import differential.probes_escapes
import differential.probes_odd
import differential.probes_plain  # noqa: F401 - all three fill the register
import numpy as np
import pytest
import torch
import torch.utils._python_dispatch
import veracity
from differential.probes import PROBES, Probe
from differential.sides import FRESH, eager, export, leave_session, names_line, told

CASES = [(probe, backend) for probe in PROBES.values() for backend in probe.backends]
RIGHT = [case for case in CASES if not case[0].codes]
TOLD = [case for case in CASES if case[0].codes]


def _title(value: object) -> str:
    return value.name if isinstance(value, Probe) else str(value)


@pytest.fixture(autouse=True)
def no_session_is_left() -> Iterator[None]:
    yield
    leave_session(veracity)


def test_there_are_enough_probes() -> None:
    assert sum(bool(probe.codes) for probe in PROBES.values()) >= 31
    assert len(PROBES) >= 134


@pytest.mark.parametrize(("probe", "backend"), RIGHT, ids=_title)
def test_the_export_is_right_on_fresh_inputs_without_a_word(
    probe: Probe, backend: str, tmp_path: Path
) -> None:
    script = probe.script(backend)
    made = export(script, veracity, tmp_path)
    if made.error is not None:
        raise made.error
    assert made.result == {"n": True}
    assert not made.diagnostics
    model = _load(tmp_path / script.name, backend)
    for tick, expected in enumerate(eager(script)):
        found = model(script.draw(FRESH + tick)["n/x"])
        torch.testing.assert_close(found, expected["n/y"], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("probe", "backend"), TOLD, ids=_title)
def test_what_cannot_be_right_is_told_at_its_line(
    probe: Probe, backend: str, tmp_path: Path
) -> None:
    made = export(probe.script(backend), veracity, tmp_path)
    if made.error is not None and not isinstance(made.error, veracity.VeracityError):
        raise made.error
    file, lines = probe.marked()
    assert lines, "a probe that is told has a marked line"
    assert told(made.diagnostics, probe.codes, file, lines), (lines, made.diagnostics)
    others = [
        found
        for found in made.diagnostics
        if not names_line(found.location, file, lines) and found.code not in probe.codes
    ]
    assert not [found for found in others if found.severity == "warning"], "a false alarm beside it"


def test_a_compiled_module_is_compiled_after_the_session_as_before(tmp_path: Path) -> None:
    """A recorder that stands in the compiler's way may make it give up on a function for good."""
    graphs = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        graphs.append(graph)
        return graph.forward

    module = torch.compile(torch.nn.Linear(4, 3), backend=backend)
    with veracity.session("compiled", save_path=str(tmp_path)), torch.no_grad():
        x = veracity.annotate.input_tensors("n", {"x": torch.randn(2, 4)})
        veracity.annotate.output_tensors("n", {"y": module(x)}, export_with="jit")
    assert veracity.compile_graph(visualize=False) == {"n": True}
    during = len(graphs)
    module(torch.randn(2, 4))
    assert len(graphs) == during + 1


def test_a_context_that_ends_inside_the_session_does_not_end_the_recording(tmp_path: Path) -> None:
    """Modes are a stack: a `with` that began before the session pops what lies on top."""
    with torch.device("cpu"):
        veracity.start("contexts", save_path=str(tmp_path))
    x = veracity.annotate.input_tensors("n", {"x": torch.randn(4)})
    veracity.annotate.output_tensors("n", {"y": x * 2}, export_with="jit")
    veracity.stop()
    assert veracity.compile_graph(visualize=False) == {"n": True}
    assert not torch.overrides._get_current_function_mode_stack()
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()


def test_intermediate_values_are_not_kept_alive(tmp_path: Path) -> None:
    alive = []
    with veracity.session("memory", save_path=str(tmp_path)):
        x = veracity.annotate.input_tensors("n", {"x": torch.randn(4)})
        for _ in range(50):
            x = x * 1.01
            alive.append(weakref.ref(x))
        veracity.annotate.output_tensors("n", {"y": x}, export_with="jit")
        gc.collect()
        assert sum(reference() is not None for reference in alive) <= 2


def test_a_session_whose_body_raises_leaves_nothing_behind(tmp_path: Path) -> None:
    before = (torch.tensor, torch.from_numpy, np.array, threading.Thread.run)
    plain = np.zeros(3)
    method = type(plain.put)
    with (
        pytest.raises(ZeroDivisionError),
        veracity.session("raises", save_path=str(tmp_path)),
    ):
        veracity.annotate.input_tensors("n", {"x": torch.ones(3)})
        assert type(plain.put) is not method, "plain arrays are listened to"
        raise ZeroDivisionError
    assert (torch.tensor, torch.from_numpy, np.array, threading.Thread.run) == before
    assert type(plain.put) is method
    assert not torch.overrides._get_current_function_mode_stack()
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
    with pytest.raises(veracity.VeracityError):
        veracity.stop()


class _Model:
    """An exported node, run by its own framework."""

    def __init__(self, folder: Path, backend: str) -> None:
        self.backend = backend
        if backend == "jit":
            self.run = torch.jit.load(str(folder / "n.pt"))
        elif backend == "pt2":
            self.run = torch.export.load(str(folder / "n.pt2")).module()
        else:
            import onnxruntime

            self.run = onnxruntime.InferenceSession(folder / "n.onnx")

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if self.backend == "onnx":
            name = self.run.get_inputs()[0].name
            found = self.run.run(None, {name: x.cpu().numpy()})[0]
            return torch.from_numpy(found).to(x.device)
        with torch.no_grad():
            found: torch.Tensor = self.run(x)
        return found


def _load(folder: Path, backend: str) -> _Model:
    return _Model(folder, backend)
