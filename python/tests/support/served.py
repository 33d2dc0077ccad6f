"""`veracity view`, for as long as somebody looks."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

BINARY = Path(__file__).parents[3] / "target/debug/veracity"


@contextlib.contextmanager
def view(*results: Path | str, folder: Path | None = None) -> Iterator[str]:
    """Serve results; gives the address. Ctrl-C ends it with 0."""
    command = [BINARY, "view", "--no-open", *results]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
