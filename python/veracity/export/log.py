"""The log of an export: everything in `log.txt`, what matters on the console.

The console is stderr, and only where the application has not set up logging of its own; it gets
warnings, errors and the summary, or everything when verbose. Lines of the file carry time and
level. The file is no part of the bundle: its content differs from run to run, so it is not hashed.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import TracebackType
from typing import TextIO

from veracity.errors import Diagnostic

FILE_NAME = "log.txt"

_LOGGER = logging.getLogger("veracity.export")
# Once and for all: a changed level makes logging forget what it knows about every logger.
_LOGGER.setLevel(logging.DEBUG)
_LEVELS = {"note": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class ExportLog:
    """Writes `log.txt` of one folder, and the console.

    A context manager: on leaving, the file is closed and logging is as it was before. Open it with
    `append=False` when a session starts and with `append=True` to go on.
    """

    def __init__(self, folder: Path, *, verbose: bool = False, append: bool = False) -> None:
        """Open the log; the folder is made if need be."""
        self.path = folder / FILE_NAME
        folder.mkdir(parents=True, exist_ok=True)
        self._file = _FileHandler(self.path, append=append)
        self._console = _console_handler(verbose)
        for handler in self._handlers():
            _LOGGER.addHandler(handler)

    def detail(self, message: str) -> None:
        """Note a detail."""
        _LOGGER.debug("%s", message)

    def note(self, message: str) -> None:
        """Note what happened."""
        _LOGGER.info("%s", message)

    def caution(self, message: str) -> None:
        """Tell what is probably unintended."""
        _LOGGER.warning("%s", message)

    def problem(self, message: str) -> None:
        """Tell what is wrong."""
        _LOGGER.error("%s", message)

    def finding(self, found: Diagnostic, *, told: bool = False) -> None:
        """Note a finding at its severity; the console leaves out what it is told in another way."""
        level = _LEVELS.get(found.severity, logging.WARNING)
        _LOGGER.log(level, "%s", found, extra={"told": told})

    def summary(self, message: str, *, level: int = logging.INFO) -> None:
        """Tell the outcome: shown on the console whatever its level."""
        _LOGGER.log(level, "%s", message, extra={"summary": True})

    def set_verbose(self, verbose: bool) -> None:
        """Show everything on the console, or only what matters."""
        if self._console is not None:
            self._console.verbose = verbose

    def release(self) -> None:
        """Take the file out of its folder, so that the folder can be replaced."""
        self._file.take_out()

    def restore(self) -> None:
        """Put the file back, with all that it held."""
        self._file.put_back()

    def close(self) -> None:
        """Close the file and leave logging as it was."""
        for handler in self._handlers():
            _LOGGER.removeHandler(handler)
            handler.close()

    def __enter__(self) -> ExportLog:
        """Go on logging."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Note what went wrong and close."""
        if error is not None:
            _LOGGER.debug("ended by %s: %s", type(error).__name__, error, exc_info=error)
        self.close()

    def _handlers(self) -> list[logging.Handler]:
        return [self._file] if self._console is None else [self._file, self._console]


class _FileHandler(logging.Handler):
    def __init__(self, path: Path, *, append: bool) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
        self._path = path
        self._held: list[str] | None = None
        self._stream = self._open("a" if append else "w")

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record) + "\n"
        if self._held is not None:
            self._held.append(line)
        else:
            self._stream.write(line)
            self._stream.flush()

    def take_out(self) -> None:
        self._stream.close()
        self._held = [self._path.read_text(encoding="utf-8")] if self._path.exists() else []
        self._path.unlink(missing_ok=True)

    def put_back(self) -> None:
        held, self._held = self._held or [], None
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = self._open("w")
        self._stream.writelines(held)
        self._stream.flush()

    def close(self) -> None:
        if not self._stream.closed:
            self._stream.close()
        super().close()

    def _open(self, mode: str) -> TextIO:
        return self._path.open(mode, encoding="utf-8")  # type: ignore[return-value]


class _ConsoleHandler(logging.StreamHandler):  # type: ignore[type-arg]  # no generic before 3.11
    """Shows warnings, errors and summaries; everything when verbose."""

    verbose = False

    def filter(self, record: logging.LogRecord) -> bool:
        matters = record.levelno >= logging.WARNING or getattr(record, "summary", False)
        wanted = (self.verbose or matters) and not getattr(record, "told", False)
        return wanted and bool(super().filter(record))


def _console_handler(verbose: bool) -> _ConsoleHandler | None:
    # An application with handlers gets the records through them, once.
    if _LOGGER.parent is not None and _LOGGER.parent.hasHandlers():
        return None
    handler = _ConsoleHandler(sys.stderr)
    handler.setLevel(_wanted_level())
    handler.setFormatter(logging.Formatter("veracity: %(levelname)s: %(message)s"))
    handler.verbose = verbose
    return handler


def _wanted_level() -> int:
    """Return the level that the application chose for our logger, or for LEAPP's if it is above."""
    logger = _LOGGER.parent
    while logger is not None and logger.parent is not None:
        if logger.level != logging.NOTSET:
            return logger.level
        logger = logger.parent
    return logging.NOTSET
