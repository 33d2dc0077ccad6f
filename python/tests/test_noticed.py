"""What tracing noticed reaches the proof, the page and the reader, once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import veracity
from veracity import annotate
from veracity.errors import Diagnostic, VeracityError
from veracity.export.compile import CompileResult

Tensor = torch.Tensor


def recorded(
    folder: Path, step: Callable[[Tensor], Tensor], passes: int, before: Any = None, **options: Any
) -> None:
    """Record a node `n` from `x` to `y`; `before(number)` is called ahead of each pass."""
    with torch.no_grad(), veracity.session("g", save_path=folder, **options):
        for number in range(passes):
            if before is not None:
                before(number)
            x = annotate.input_tensors("n", {"x": torch.randn(3).abs() + 0.5})
            annotate.output_tensors("n", {"y": step(x)}, export_with="jit")


def compiled(**options: Any) -> CompileResult:
    result = veracity.compile_graph(visualize=False, **options)
    assert isinstance(result, CompileResult)
    return result


def errors() -> list[Diagnostic]:
    found = compiled(strict=False).diagnostics
    return [one for one in found if one.severity == "error" and one.code.startswith("VER09")]


def test_a_warning_of_tracing_is_in_proof_text_page_and_result(tmp_path: Path) -> None:
    def gate(x: Tensor) -> Tensor:
        return x * 2 if x.sum() > 0 else x  # told

    recorded(tmp_path, gate, 3)
    result = compiled()
    bundle = tmp_path / "g"
    here = Path(__file__)
    line = next(n for n, text in enumerate(here.read_text().splitlines(), 1) if "# told" in text)
    place = f"{here.parent.name}/{here.name}:{line}"
    written = json.loads((bundle / "proof.json").read_text())
    found = written["findings"]
    assert [one["code"] for one in found] == ["VER0911"]
    assert found[0]["place"] == {"file": place.rpartition(":")[0], "line": line, "node": "n"}
    assert written["verdict"] == "conditional"
    assert written["assumptions"] == found
    assert result.proof is not None
    for proof in (result.proof, veracity.check(bundle)):
        assert [(one.code, one.location, one.node) for one in proof.findings] == [
            ("VER0911", place, "n")
        ]
        assert f"assumption[VER0911] at {place}: a value of `n` left for Python" in str(proof)
        assert str(proof).splitlines()[-1].endswith("0 disproved, 0 not comparable, 1 assumption")
    page = (bundle / "report.html").read_text()
    assert "<h2>Assumptions</h2>" in page and "under 1 assumption" in page
    assert page.count("VER0911") >= 2, "in its section and at its node"


def test_a_build_may_refuse_what_tracing_warned_of(tmp_path: Path) -> None:
    def exit_code(*arguments: Any) -> int:
        command = [Path(__file__).parents[2] / "target/debug/veracity", *arguments]
        torch_here = os.environ | {"VIRTUAL_ENV": sys.prefix}
        return subprocess.run(command, capture_output=True, check=False, env=torch_here).returncode

    def gate(x: Tensor) -> Tensor:
        return x * 2 if x.sum() > 0 else x

    for name, step in (("clean", lambda x: x * 2), ("warned", gate)):
        recorded(tmp_path / name, step, 3)
        compiled()
    clean, warned = tmp_path / "clean/g", tmp_path / "warned/g"
    assert exit_code("check", clean, "--deny-warnings") == 0
    assert exit_code("check", warned) == 3
    assert exit_code("check", warned, "--accept-conditional") == 0
    assert exit_code("check", warned, "--deny-warnings") == 3
    for before, expected in ((warned, 0), (clean, 1)):
        assert exit_code("check", warned, "--baseline", before) == expected
        assert exit_code("diff", before, warned) == expected


def test_a_clean_recording_says_nothing_of_warnings(tmp_path: Path) -> None:
    recorded(tmp_path, lambda x: x * 2, 3)
    result = compiled()
    assert result.proof is not None and not result.proof.findings
    assert "findings" not in json.loads((tmp_path / "g/proof.json").read_text())
    assert "warning" not in str(result.proof)


@pytest.mark.parametrize(("passes", "kept"), [(6, 5), (5, None), (12, 5)])
def test_passes_that_were_not_kept_are_counted(
    passes: int, kept: int | None, tmp_path: Path
) -> None:
    recorded(tmp_path, lambda x: x * 2, passes)
    result = compiled()
    assert result.proof is not None
    for proof in (result.proof, veracity.check(tmp_path / "g")):
        assert proof.data["nodes"][0]["passes"] == passes
        told = f"n: {kept} of {passes} recorded passes" in str(proof)
        assert told == (kept is not None), str(proof)
    page = (tmp_path / "g/report.html").read_text()
    assert ("recorded passes were kept" in page) == (kept is not None)


# --- constants that change -----------------------------------------------------------------------


class Gain(torch.nn.Module):
    """A module with a parameter and a plain attribute that only its owner writes."""

    def __init__(self) -> None:
        """Start with ones and zeros."""
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.plain = torch.zeros(3)

    def forward(self, x: Tensor) -> Tensor:
        """Scale and shift."""
        return x * self.weight + self.plain


def test_a_parameter_written_between_passes_that_are_not_compared_is_noticed(
    tmp_path: Path,
) -> None:
    """Five passes are kept, and the seventh would be followed by its marks alone."""
    for written_before in range(1, 12):
        gain = Gain()

        def change(number: int, gain: Gain = gain, at: int = written_before) -> None:
            if number == at:
                gain.weight.mul_(3)

        folder = tmp_path / str(written_before)
        recorded(folder, gain, 12, change)
        found = errors()
        assert {one.code for one in found} <= {"VER0912", "VER0921"} and found, written_before
        assert veracity.check(folder / "g").verdict == "disproved"


def test_a_parameter_that_is_written_with_the_same_values_is_told(tmp_path: Path) -> None:
    """Who fills it again may fill it with something else next time."""
    gain = Gain()
    recorded(tmp_path, gain, 7, lambda number: gain.weight.mul_(1.0))
    result = compiled()
    (found,) = result.diagnostics
    assert (found.code, found.severity) == ("VER0912", "warning")
    assert "is filled anew before every pass" in found.message
    assert result == {"n": True} and result.verdict == "conditional"


def test_a_forgotten_tensor_is_named_with_dtype_and_shape(tmp_path: Path) -> None:
    gain = Gain()
    recorded(tmp_path, gain, 2, lambda number: gain.weight.add_(number))
    (found,) = errors()
    assert found.message == (
        "the tensor `step.weight` (float32[3]) changes from pass to pass and is no input of `n`"
    )


@pytest.mark.parametrize(
    ("hold", "name"),
    [
        (lambda value: {"gain": value}, "held['gain']"),
        (lambda value: [None, value], "held[1]"),
    ],
)
def test_a_forgotten_tensor_is_found_in_what_variables_hold(
    hold: Callable[[Tensor], Any], name: str, tmp_path: Path
) -> None:
    with torch.no_grad(), veracity.session("g", save_path=tmp_path):
        for number in range(2):
            held = hold(torch.full((2, 1), float(number)))
            value = next(one for one in (held.values() if type(held) is dict else held[1:]))
            x = annotate.input_tensors("n", {"x": torch.randn(2, 3)})
            y = x + value
            del value
            annotate.output_tensors("n", {"y": y}, export_with="jit")
    (found,) = errors()
    assert f"the tensor `{name}` (float32[2, 1]) changes" in found.message


def test_a_forgotten_tensor_without_a_name_has_dtype_and_shape(tmp_path: Path) -> None:
    numbers = iter(range(5))
    recorded(tmp_path, lambda x: x * torch.full((1,), float(next(numbers))), 2)
    (found,) = errors()
    assert "a tensor (float32[1]) changes from pass to pass" in found.message


def test_a_forgotten_tensor_is_told_once_however_many_passes_differ(tmp_path: Path) -> None:
    gain = Gain()
    recorded(tmp_path, gain, 5, lambda number: gain.weight.add_(number))
    assert len(errors()) == 1


def test_the_name_of_a_tensor_says_nothing_about_a_node_of_that_name(tmp_path: Path) -> None:
    """A variable may be called as another node is: that node is not disproved."""
    with torch.no_grad(), veracity.session("g", save_path=tmp_path):
        for number in range(2):
            other = torch.full((3,), float(number))
            x = annotate.input_tensors("n", {"x": torch.randn(3)})
            annotate.output_tensors("n", {"y": x + other}, export_with="jit")
            z = annotate.input_tensors("other", {"z": torch.randn(3)})
            annotate.output_tensors("other", {"w": z * 2}, export_with="jit")
    result = compiled(strict=False)
    assert any("`other` (float32[3])" in one.message for one in result.diagnostics)
    assert result == {"n": False, "other": True}


# --- the console ---------------------------------------------------------------------------------

_SCRIPT = """
import torch
import veracity
from veracity import annotate

gain = torch.ones(3)
with torch.no_grad(), veracity.session("g", save_path={folder!r}):
    for number in range({passes}):
        if {change}:
            gain.add_({change})
        x = annotate.input_tensors("n", {{"x": torch.ones(3) + number}})
        y = x * 2 if x.sum() > 0 else x
        annotate.output_tensors("n", {{"y": y * gain}}, export_with="jit")
veracity.compile_graph(visualize=False)
"""


def console(folder: Path, passes: int, change: int) -> str:
    code = _SCRIPT.format(folder=str(folder), passes=passes, change=change)
    script = folder / "script.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == (change == 0), done.stderr
    return done.stderr


def test_a_warning_is_on_the_console_once(tmp_path: Path) -> None:
    shown = console(tmp_path, 3, 0)
    assert shown.count("VER0911") == 1, shown
    assert "1 warning" in shown
    log = (tmp_path / "g/log.txt").read_text()
    assert "hint: keep it a tensor" in log


def test_what_turned_out_to_be_wrong_is_told_and_counted_once(tmp_path: Path) -> None:
    recorded(tmp_path, lambda x: x * x.max().item(), 4)
    found = compiled(strict=False).diagnostics
    assert [one.severity for one in found if one.code == "VER0911"] == ["error"]
    last = (tmp_path / "g/log.txt").read_text().splitlines()[-1]
    assert "; 0 of 1 model passed validation; 1 error; details in " in last


def test_an_error_on_a_line_hides_no_warning_about_something_else(tmp_path: Path) -> None:
    recorded(tmp_path, lambda x: x * x.max().item() if x.sum() > 0 else x, 4)
    found = compiled(strict=False).diagnostics
    told = {(one.severity, "item" in one.message) for one in found if one.code == "VER0911"}
    assert told == {("error", True), ("warning", False)}


def test_a_refusal_shows_the_line_of_the_user_and_no_way_through_veracity(tmp_path: Path) -> None:
    shown = console(tmp_path, 3, 1)
    trace = shown[shown.index("Traceback") :]
    assert trace.count('  File "') == 2, trace
    assert "veracity.compile_graph(visualize=False)" in trace
    assert "the tensor `gain` (float32[3]) changes" in trace
    assert "VER0911" not in trace, "a warning; the text of the proof has it"
    for numbers in ("sample 1:", "values outside"):
        assert numbers not in trace, "the text of the proof has them"
    log = (tmp_path / "g/log.txt").read_text()
    assert "_refuse_wrong" in log, "the log has the way"


def test_a_refusal_keeps_every_finding_for_programs(tmp_path: Path) -> None:
    gain = Gain()
    recorded(tmp_path, gain, 3, lambda number: gain.weight.add_(number))
    with pytest.raises(VeracityError) as refused:
        compiled()
    codes = [one.code for one in refused.value.diagnostics]
    assert codes[0] == "VER1005" and "VER0912" in codes and codes.count("VER1005") > 1
