"""Where in the user's code something happens."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

_OWN = str(Path(__file__).parent) + os.sep


def user_line() -> str:
    """Return `file:line` of the innermost frame outside of this package, or `""`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        # Generated code, such as the constructor of a dataclass, has no file.
        if not name.startswith(("<", _OWN)) and not _is_plumbing(frame):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _is_plumbing(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") in ("contextlib", "functools")
