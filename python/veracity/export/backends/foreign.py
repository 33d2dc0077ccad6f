"""Models that somebody brings along: a node is described, its model exists already.

The file is always copied into the bundle. `copy_original_model=False`, LEAPP's default, would have
the bundle point to a file outside of itself, which no reader that checks its paths opens; it is
copied all the same, and that is noted.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veracity.errors import refuse

#: Kinds of files that a bundle can hold.
_BACKENDS = {".pt": "jit", ".pt2": "pt2", ".onnx": "onnx"}
_OPTIONS = ("model_path", "copy_original_model", "device")


@dataclass(frozen=True)
class Foreign:
    """A model that was brought along.

    Attributes:
        path: Where it is now.
        backend: `"jit"`, `"onnx"` or `"pt2"`.
        notes: What happens to it that was perhaps not asked for.
    """

    path: Path
    backend: str
    notes: list[str] = field(default_factory=list)


def adopt(node: str, options: dict[str, Any], location: str) -> Foreign | None:
    """Return the model that a node without exporter brings along, if it does."""
    _check_options(node, options, location)
    given = options.get("model_path")
    if given is None:
        return None
    if not isinstance(given, str | os.PathLike):
        message = f"`model_path` of node {node!r} is a {type(given).__name__}, not a path"
        raise refuse("VER1007", message, location=location)
    path = Path(given).expanduser()
    backend = _BACKENDS.get(path.suffix)
    if backend is None:
        known = ", ".join(_BACKENDS)
        raise refuse(
            "VER1007",
            f"node {node!r} brings {path.name!r}, which is no model that a bundle can hold",
            location=location,
            hints=(f"models end in {known}",),
        )
    if not path.is_file():
        message = f"the model of node {node!r} is not there: {path}"
        raise refuse("VER1007", message, location=location)
    notes = []
    if not options.get("copy_original_model", False):
        notes.append(f"{node}: {path} is copied into the bundle, whose files must lie inside of it")
    if "device" in options:
        notes.append(f"{node}: `device` has no effect on a model that is brought along")
    return Foreign(path.resolve(), backend, notes)


def _check_options(node: str, options: dict[str, Any], location: str) -> None:
    for key in options:
        if key in _OPTIONS:
            continue
        near = difflib.get_close_matches(str(key), _OPTIONS, 1)
        hints = (f"did you mean `{near[0]}`?",) if near else ()
        raise refuse(
            "VER1002",
            f"node {node!r} has no exporter, and `{key}` is no option of a model brought along",
            location=location,
            hints=(*hints, f"options are {', '.join(_OPTIONS)}; or give `export_with`"),
        )
