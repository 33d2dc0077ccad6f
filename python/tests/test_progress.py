"""The line that says how far an export is."""

from __future__ import annotations

import io
import sys

import pytest
from veracity.progress import Progress, is_wanted, short


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time that was set."""
        return self.now


def test_the_line_has_the_time_so_far_and_the_time_left() -> None:
    """The first step has no estimate; steady steps take as long as those before."""
    stream, clock = io.StringIO(), Clock()
    progress = Progress(4, stream=stream, clock=clock)
    progress.step("exporting a")
    clock.now = 10.0
    progress.step("exporting b")
    clock.now = 20.0
    progress.step("exporting c")
    progress.clear()
    assert stream.getvalue().split("\r\x1b[2K") == [
        "",
        "veracity: [1/4] exporting a, 0 s",
        "veracity: [2/4] exporting b, 10 s, about 30 s left",
        "veracity: [3/4] exporting c, 20 s, about 20 s left",
        "",
    ]


def test_a_change_of_speed_is_followed_slowly() -> None:
    """One slow step among quick ones does not stand for all of the rest."""
    clock = Clock()
    progress = Progress(100, stream=io.StringIO(), clock=clock)
    for second in range(11):
        clock.now = float(second)
        progress.step("exporting")
    clock.now += 20.0
    progress.step("exporting")
    left = progress.left()
    assert left is not None
    assert 1.0 * 89 < left < 20.0 * 89 / 2


def test_a_long_line_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is longer than the terminal could not be erased."""
    monkeypatch.setenv("COLUMNS", "30")
    stream = io.StringIO()
    Progress(2, stream=stream, clock=Clock()).step("x" * 100)
    assert len(stream.getvalue().split("\x1b[2K")[1]) == 29


@pytest.mark.parametrize(
    ("stream", "variables", "wanted"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"VERACITY_PROGRESS": "0"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
        (None, {}, False),
    ],
)
def test_only_a_terminal_that_wants_it_is_written_to(
    monkeypatch: pytest.MonkeyPatch,
    stream: io.StringIO | None,
    variables: dict[str, str],
    wanted: bool,
) -> None:
    """Elsewhere nothing is written, whatever is counted."""
    for name in ("VERACITY_PROGRESS", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", stream)
    assert is_wanted() is wanted
    for total, shown in ((3, wanted), (1, False)):
        progress = Progress(total)
        progress.step("exporting")
        progress.clear()
        if stream is not None:
            assert bool(stream.getvalue()) is shown
            stream.seek(0)
            stream.truncate()


@pytest.mark.parametrize(
    ("secs", "text"),
    [(0.0, "0 s"), (59.9, "59 s"), (60.0, "1:00"), (3725.0, "1:02:05"), (-1.0, "0 s")],
)
def test_times_are_short(secs: float, text: str) -> None:
    """Seconds alone, minutes and hours with colons."""
    assert short(secs) == text
