"""One pass is watched: whatever ran counts, and the process is left as it was."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import veracity
from support.findings import about_the_code
from torch import Tensor
from veracity import _current, annotate
from veracity.errors import Diagnostic
from veracity.tracing.recording import recording_of


@pytest.fixture(autouse=True)
def no_session_is_left() -> Iterator[None]:
    yield
    if _current.active is not None:
        veracity.stop()
    _current.stopped = None


def found_in(
    compute: Callable[[Tensor], Tensor], folder: Path, passes: int = 4
) -> list[Diagnostic]:
    """Record passes of one node; return what was noticed about the code."""
    with torch.no_grad(), veracity.session("s", save_path=str(folder)):
        for number in range(4):
            x = annotate.input_tensors("n", {"x": torch.linspace(0.1, 0.4, 4) + number / 100})
            annotate.output_tensors("n", {"y": compute(x)}, export_with="jit")
    assert _current.stopped is not None
    return about_the_code(recording_of(_current.stopped).diagnostics)


class _Table:
    """Functions that no name in the source leads to."""

    def __init__(self) -> None:
        self.functions: dict[str, Callable[[Tensor], Tensor]] = {}
        self.n = 0

    def add(self, function: Callable[[Tensor], Tensor]) -> None:
        self.functions[function.__name__] = function

    def run(self, x: Tensor) -> Tensor:
        for function in self.functions.values():
            x = function(x)
        return x


def test_a_counter_in_a_callback_is_told(tmp_path: Path) -> None:
    table, state = _Table(), [0]

    def limited(x: Tensor) -> Tensor:
        state[0] += 1
        return x if state[0] < 100 else x * 0

    table.add(limited)
    assert [one.code for one in found_in(table.run, tmp_path)] == ["VER0912"]


def test_a_callback_that_only_counts_is_silent(tmp_path: Path) -> None:
    table = _Table()

    def counted(x: Tensor) -> Tensor:
        table.n += 1
        return x * 2

    table.add(counted)
    assert found_in(table.run, tmp_path) == []


def test_an_answer_from_outside_is_told_where_it_decides(tmp_path: Path) -> None:
    def by_environment(x: Tensor) -> Tensor:
        return x * 2 if os.environ.get("VERACITY_TEST_MODE") else x

    found = found_in(by_environment, tmp_path)
    assert [one.code for one in found] == ["VER0912"]
    assert "os.environ.get" in found[0].message


def test_an_answer_that_is_only_kept_is_silent(tmp_path: Path) -> None:
    kept: list[Any] = []

    def logged(x: Tensor) -> Tensor:
        kept.append((os.getpid(), threading.get_ident()))
        return x * 2

    assert found_in(logged, tmp_path) == []


def test_memory_that_an_array_writes_is_told(tmp_path: Path) -> None:
    gain = torch.ones(4)
    raw = gain.numpy()

    def scaled(x: Tensor) -> Tensor:
        y = x * gain
        raw[:] = np.minimum(raw, 1.0)
        return y

    assert "VER0930" in [one.code for one in found_in(scaled, tmp_path)]


def test_a_profiler_of_the_user_is_put_back(tmp_path: Path) -> None:
    heard: set[str] = set()

    def profile(frame: Any, event: str, argument: Any) -> None:
        heard.add(event)

    with veracity.session("s", save_path=str(tmp_path)):
        for _ in range(2):
            sys.setprofile(profile)
            x = annotate.input_tensors("n", {"x": torch.ones(2)})
            annotate.output_tensors("n", {"y": x + 1}, export_with="jit")
            put_back = sys.getprofile()
            sys.setprofile(None)
    assert put_back is profile


def test_a_pass_that_fails_is_no_longer_watched(tmp_path: Path) -> None:
    with veracity.session("s", save_path=str(tmp_path)):
        for number in range(3):
            x = annotate.input_tensors("n", {"x": torch.ones(2)})
            if number == 1:
                continue  # nobody ends it
            annotate.output_tensors("n", {"y": x + 1}, export_with="jit")
    assert sys.getprofile() is None
