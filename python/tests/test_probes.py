"""Odd code, ONE pass, fresh inputs: right, or told with the line; never silently wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import differential.probes_escapes
import differential.probes_odd  # noqa: F401 - both fill the register
import pytest
import torch
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
    assert len(PROBES) >= 102


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
    others = [found for found in made.diagnostics if not names_line(found.location, file, lines)]
    assert not [found for found in others if found.severity == "warning"], "a false alarm beside it"


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
            return torch.from_numpy(self.run.run(None, {name: x.numpy()})[0])
        with torch.no_grad():
            found: torch.Tensor = self.run(x)
        return found


def _load(folder: Path, backend: str) -> _Model:
    return _Model(folder, backend)
