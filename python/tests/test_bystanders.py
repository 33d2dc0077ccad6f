"""Threads beside a session, functions without counterpart, and nodes that data skips."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

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


def found_in(step: Callable[[Tensor], None], folder: Path, passes: int = 4) -> list[Diagnostic]:
    """Record passes; return what was noticed about the code."""
    with veracity.session("s", save_path=str(folder)):
        for number in range(passes):
            step(torch.linspace(0.1, 0.4, 4) + number / 100)
    assert _current.stopped is not None
    return about_the_code(recording_of(_current.stopped).diagnostics)


def one_node(compute: Callable[[Tensor], Tensor]) -> Callable[[Tensor], None]:
    def step(x: Tensor) -> None:
        x = annotate.input_tensors("n", {"x": x})
        annotate.output_tensors("n", {"y": compute(x)}, export_with="jit")

    return step


# ---------------------------------------------------------------------------------------- threads

BUSY = """
import faulthandler, gc, sys, tempfile, threading
faulthandler.dump_traceback_later(150, exit=True)
import torch, veracity
from veracity import annotate

class Finalized:
    def __init__(self):
        self.me, self.tensor = self, torch.ones(3)
    def __del__(self):
        (self.tensor + 1).sum().item()

def work(stop, shared):
    while not stop.is_set():
        torch.tanh(torch.randn(8, 8) @ torch.randn(8, 8)).max().item()
        (shared[0] * 2).sum().item()
        shared[0].numpy().max()
        Finalized()

shared, stop = [torch.ones(4)], threading.Event()
threads = [threading.Thread(target=work, args=(stop, shared), daemon=True)]
threads[0].start()
gc.set_threshold(50, 2, 2)
with veracity.session("s", save_path=tempfile.mkdtemp()):
    threads.append(threading.Thread(target=work, args=(stop, shared), daemon=True))
    threads[1].start()
    for tick in range(6):
        x = annotate.input_tensors("n", {"x": torch.randn(4)})
        shared[0] = x
        with torch.autocast("cpu", enabled=tick % 2 == 1):
            y = x
            for _ in range(5):
                Finalized()
                y = torch.tanh(y) + x
        annotate.output_tensors("n", {"y": y}, export_with="jit")
gc.set_threshold(700, 10, 10)
stop.set()
for one in threads:
    one.join(60)
print("ended", [one.is_alive() for one in threads])
"""


def test_busy_threads_and_finalizers_do_not_stop_a_session() -> None:
    """The recorder's lock is asked for by threads of both ages, and by what a collector runs."""
    done = subprocess.run(
        [sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=180, check=False
    )
    assert "ended [False, False]" in done.stdout, done.stderr[-3000:]


class _Watchdog:
    """A thread that answers by a flag, and counts for itself."""

    def __init__(self) -> None:
        self.latest: Tensor | None = None
        self.stop, self.looks = False, 0
        self.asked, self.answered = threading.Event(), threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while self.asked.wait(20):
            self.asked.clear()
            assert self.latest is not None
            self.stop = bool(self.latest.max() > 10)
            self.looks += 1
            self.answered.set()

    def look(self, x: Tensor) -> None:
        self.latest = x
        self.answered.clear()
        self.asked.set()
        self.answered.wait(20)


def test_a_flag_that_an_older_thread_assigns_is_told(tmp_path: Path) -> None:
    watchdog = _Watchdog()

    def compute(x: Tensor) -> Tensor:
        watchdog.look(x)
        return x * 0 if watchdog.stop else x * 2

    found = found_in(one_node(compute), tmp_path)
    assert [one.code for one in found] == ["VER0912"]
    assert "`stop` is assigned by another thread" in found[0].message


def test_what_an_older_thread_keeps_for_itself_is_not_told(tmp_path: Path) -> None:
    watchdog = _Watchdog()

    def compute(x: Tensor) -> Tensor:
        watchdog.look(x)
        return x * 2

    assert found_in(one_node(compute), tmp_path) == []


# ------------------------------------------------------------------- functions without counterpart


def test_a_histogram_that_is_only_logged_is_not_refused(tmp_path: Path) -> None:
    rows: list[list[int]] = []

    def compute(x: Tensor) -> Tensor:
        counts, edges = np.histogram(x.numpy(), bins=3)
        rows.append(counts.tolist())
        print(counts.sum(), edges[counts.argmax()], file=sys.stderr)
        return x * 2

    assert found_in(one_node(compute), tmp_path) == []
    assert [sum(row) for row in rows] == [4] * 4


REFUSED: dict[str, Callable[[Tensor], Tensor]] = {
    "in the output": lambda x: x + torch.from_numpy(np.histogram(x.numpy(), 4)[0]),
    "through arithmetic": lambda x: x * torch.as_tensor(np.histogram(x.numpy(), 4)[1][:4] * 2),
    "as a scalar of torch": lambda x: torch.clamp(x, max=np.histogram(x.numpy(), 4)[1].max()),
}


@pytest.mark.parametrize("compute", REFUSED.values(), ids=REFUSED)
def test_it_is_refused_where_it_reaches_torch(
    compute: Callable[[Tensor], Tensor], tmp_path: Path
) -> None:
    with pytest.raises(veracity.TraceError, match=r"VER0922.*numpy\.histogram"):
        found_in(one_node(compute), tmp_path)


DECIDED: dict[str, Callable[[Tensor], Tensor]] = {
    "an element decides": lambda x: x * 2 if np.histogram(x.numpy(), 2)[0][0] > 1 else x,
    "a size decides": lambda x: x * len(np.intersect1d(x.numpy(), np.float32([0.1]))),
    "a list decides": lambda x: x * np.histogram(x.numpy(), 2)[0].tolist()[0],
}


@pytest.mark.parametrize("compute", DECIDED.values(), ids=DECIDED)
def test_it_is_told_where_python_decides_by_it(
    compute: Callable[[Tensor], Tensor], tmp_path: Path
) -> None:
    assert "VER0911" in {one.code for one in found_in(one_node(compute), tmp_path)}


# --------------------------------------------------------------------------------- memory as a log


class _Log:
    """Rows that are filled by an index from Python."""

    def __init__(self) -> None:
        self.rows, self.at = torch.zeros(20, 4), 0

    def __call__(self, x: Tensor) -> Tensor:
        y = x.sin()
        self.rows[self.at] = y
        self.rows[self.at, 0] = y.sum().item()
        self.at += 1
        return y


class _Table:
    """The same, and the rows are read."""

    def __init__(self) -> None:
        self.table, self.place = torch.zeros(20, 4), 0

    def __call__(self, x: Tensor) -> Tensor:
        y = x.sin()
        self.table[self.place] = y
        self.place += 1
        return y + self.table.sum(0)


def test_a_log_that_no_program_reads_is_not_told(tmp_path: Path) -> None:
    assert found_in(one_node(_Log()), tmp_path) == []


def test_a_log_that_a_program_reads_is_told(tmp_path: Path) -> None:
    assert found_in(one_node(_Table()), tmp_path) != []


# ------------------------------------------------------------------------------ nodes that are run


def act(score: Tensor) -> None:
    score = annotate.input_tensors("act", {"score": score})
    annotate.output_tensors("act", {"u": score * 2}, export_with="jit")


def see(x: Tensor) -> Tensor:
    x = annotate.input_tensors("see", {"x": x})
    score = x.sum()
    annotate.output_tensors("see", {"score": score}, export_with="jit")
    return score


def skipped_by_a_branch(x: Tensor) -> None:
    score = see(x)
    if score < 100:
        act(score)


def skipped_by_an_exception(x: Tensor) -> None:
    try:
        score = see(x)
        if score.item() > 100:
            raise OverflowError  # noqa: TRY301
        act(score)
    except OverflowError:
        pass


def run_by_an_expression(x: Tensor) -> None:
    score = see(x)
    act(score) if float(score) < 100 else None


def run_again_and_again(x: Tensor) -> None:
    score = see(x)
    while True:
        act(score)
        if score < 100:
            break


@pytest.mark.parametrize(
    "step",
    [skipped_by_a_branch, skipped_by_an_exception, run_by_an_expression, run_again_and_again],
)
def test_a_node_that_data_skips_is_told(step: Callable[[Tensor], None], tmp_path: Path) -> None:
    found = found_in(step, tmp_path)
    assert [(one.code, one.node) for one in found] == [("VER0917", "act")]


def every_node_or_none(x: Tensor) -> None:
    done = False
    while not done:
        score = see(x)
        act(score)
        done = bool(score < 100)


def a_check_that_raises(x: Tensor) -> None:
    score = see(x)
    if not torch.isfinite(score):
        raise ValueError(score)
    act(score)


def a_report(x: Tensor) -> None:
    score = see(x)
    if score > 0:
        print(score.item(), file=sys.stderr)
    act(score)


@pytest.mark.parametrize("step", [every_node_or_none, a_check_that_raises, a_report])
def test_nodes_that_all_run_are_not_told(step: Callable[[Tensor], None], tmp_path: Path) -> None:
    assert found_in(step, tmp_path) == []
