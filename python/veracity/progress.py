"""One line on the terminal that says how far a long job is; nothing elsewhere.

`VERACITY_PROGRESS=0` turns it off. The line goes to stderr and is gone when the job is done.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

_ERASE = "\r\x1b[2K"
#: How much the time of one step counts against the mean of those before it.
_WEIGHT = 0.4


class Progress:
    """Counts the steps of a job: what is being done, how long it has taken, how long it will."""

    def __init__(
        self,
        total: int,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Count `total` steps, on stderr where that is a terminal or on a given stream."""
        self._total, self._done = total, 0
        self._stream = stream if stream is not None else _terminal(total)
        self._clock = clock
        self._began = self._last = clock()
        self._secs_each: float | None = None

    def step(self, what: str) -> None:
        """Say what is being done now; what was done before has ended."""
        now = self._clock()
        if self._done > 0:
            secs, mean = now - self._last, self._secs_each
            self._secs_each = secs if mean is None else mean + _WEIGHT * (secs - mean)
        self._done, self._last = self._done + 1, now
        self._write(_ERASE + self._line(what, now))

    def clear(self) -> None:
        """Take the line away."""
        if self._done > 0:
            self._write(_ERASE)

    def left(self) -> float | None:
        """Return the seconds that the rest will take, this step included; `None` when unknown."""
        if self._secs_each is None:
            return None
        return self._secs_each * (self._total - self._done + 1)

    def _line(self, what: str, now: float) -> str:
        left = self.left()
        rest = "" if left is None else f", about {short(left)} left"
        line = f"veracity: [{self._done}/{self._total}] {what}, {short(now - self._began)}{rest}"
        # A line that is longer than the terminal could not be erased.
        return line[: shutil.get_terminal_size().columns - 1]

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()


def short(secs: float) -> str:
    """Return a time for people: `7 s`, `2:05`, `1:02:05`."""
    whole = max(int(secs), 0)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours > 0:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}" if minutes > 0 else f"{rest} s"


def is_wanted() -> bool:
    """Return whether somebody looks at stderr and has not turned progress off."""
    if os.environ.get("VERACITY_PROGRESS") == "0" or os.environ.get("TERM") == "dumb":
        return False
    return sys.stderr is not None and sys.stderr.isatty()


def _terminal(total: int) -> TextIO | None:
    return sys.stderr if total > 1 and is_wanted() else None
