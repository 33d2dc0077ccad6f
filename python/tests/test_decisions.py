"""Values that reach Python: told where they decide what the export computes, silent elsewhere."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import decision_snippets as snippets
import pytest
import torch
import veracity
from support.findings import about_the_code
from veracity import _current, annotate
from veracity.errors import Diagnostic, VeracityError
from veracity.tracing import source
from veracity.tracing.recording import recording_of


@pytest.fixture(autouse=True)
def no_session_is_left() -> Iterator[None]:
    yield
    if _current.active is not None:
        veracity.stop()
    _current.stopped = None


def found_in(compute: snippets.Compute, folder: Path, passes: int) -> list[Diagnostic]:
    """Record passes that all go the same way; return what was noticed."""
    try:
        with veracity.session("s", save_path=str(folder)):
            for number in range(passes):
                x = annotate.input_tensors("n", {"x": torch.linspace(0.6, 1.4, 4) + number / 100})
                annotate.output_tensors("n", {"y": compute(x)}, export_with="jit")
        assert _current.stopped is not None
        return about_the_code(recording_of(_current.stopped).diagnostics)
    except VeracityError as error:
        return error.diagnostics


#: Snippets whose value leaves in something that they call, and a part of that line.
ELSEWHERE = {
    "early_return_of_a_helper": (snippets._clean, "isnan"),
    "through_two_helpers": (snippets._measure, "item"),
    "raise_with_a_fallback": (snippets._check_limit, "abs"),
    "inverse_of_a_helper_with_a_fallback": (snippets._inverse, "inv("),
    "flag_of_another_object": (snippets._Policy, "1000"),
    "attribute_that_is_read_back": (snippets._Policy, "self.peak = max"),
    "deque_that_is_read_back": (snippets._Policy, "filter.append"),
}


def told_lines(name: str) -> set[int]:
    """Return the lines at which a snippet must be told."""
    compute, _ = snippets.TOLD[name]
    where, part = ELSEWHERE.get(name, (compute, "# told"))
    lines, first = inspect.getsourcelines(where)
    return {first + at for at, line in enumerate(lines) if part in line}


def test_there_are_enough_snippets() -> None:
    assert len(snippets.TOLD) >= 50
    assert len(snippets.SILENT) >= 30


@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("name", snippets.TOLD)
def test_a_decision_is_told_at_its_line(name: str, passes: int, tmp_path: Path) -> None:
    compute, codes = snippets.TOLD[name]
    found = found_in(compute, tmp_path, passes)
    places = [
        int(one.location.rpartition(":")[2])
        for one in found
        if one.code in codes and Path(snippets.__file__).name in one.location
    ]
    assert set(places) & told_lines(name), (told_lines(name), found)
    beside = set(places) - told_lines(name)
    assert not beside, f"a false alarm at {beside}: {found}"


@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("name", snippets.SILENT)
def test_an_observation_is_silent(name: str, passes: int, tmp_path: Path) -> None:
    assert found_in(snippets.SILENT[name], tmp_path, passes) == []


@pytest.mark.parametrize("name", snippets.TOLD)
def test_a_decision_is_told_where_python_tells_only_lines(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_span", lambda code, instruction: None)
    compute, codes = snippets.TOLD[name]
    found = found_in(compute, tmp_path, 1)
    places = {int(one.location.rpartition(":")[2]) for one in found if one.code in codes}
    assert places & told_lines(name), found


@pytest.mark.parametrize("backend", ["jit", "onnx"])
@pytest.mark.parametrize("norm", [False, True])
def test_padding_of_an_encoder_comes_out_as_without_a_session(
    norm: bool, backend: str, tmp_path: Path
) -> None:
    """While it is recorded torch takes another path, whose values differ at padded places."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    last = torch.nn.LayerNorm(8) if norm else None
    encoder = torch.nn.TransformerEncoder(layer, 2, last).eval()
    lengths = torch.tensor([[5], [3]])
    with torch.no_grad():
        padded = torch.arange(5) >= lengths
        x = torch.randn(2, 5, 8)
        expected = encoder(x, src_key_padding_mask=padded)
        with veracity.session("e", save_path=str(tmp_path)):
            for _ in range(2):
                sequence, mask = annotate.input_tensors("n", {"x": x, "padded": padded})
                y = encoder(sequence, src_key_padding_mask=mask)
                torch.testing.assert_close(y, expected, atol=1e-5, rtol=1e-4)
                annotate.output_tensors("n", {"y": y}, export_with=backend)
    # Masks are drawn, too: in some of them nothing is left of a sequence.
    result = veracity.compile_graph(visualize=False)
    assert result == {"n": True}
    assert not about_the_code(result.diagnostics)
