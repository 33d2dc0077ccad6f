"""The export backends by name, and the check of the options they are given."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import fx

from veracity.errors import VeracityError, refuse
from veracity.export.backends import contract, jit, onnx, pt2
from veracity.export.backends.contract import Backend, Exported, Ports

__all__ = ["Backend", "Exported", "Ports", "check_options", "export", "find", "names", "prepare"]

_SCRIPT = jit.Script()
_DYNAMO = onnx.Dynamo()
_PROGRAM = pt2.Program()
_BACKENDS: dict[str, Backend] = {
    "jit": _SCRIPT,
    "jit-script": _SCRIPT,
    "jit-trace": jit.Trace(),
    "onnx": _DYNAMO,
    "onnx-dynamo": _DYNAMO,
    "onnx-torchscript": onnx.TorchScript(),
    "pt2": _PROGRAM,
    "exported-program": _PROGRAM,
}


_PREPARED: set[Backend] = set()


def names() -> list[str]:
    """Return every name that `find` knows."""
    return list(_BACKENDS)


def find(name: str, *, location: str = "") -> Backend:
    """Return a backend by its name."""
    try:
        return _BACKENDS[name]
    except (KeyError, TypeError):
        raise _unknown("VER1003", "export backend", name, _BACKENDS, location) from None


def prepare(name: str) -> None:
    """Import what a backend needs and build its tables: seconds, once a process.

    An export does this by itself; a caller that knows early may choose a better moment.
    """
    backend = find(name)
    if backend not in _PREPARED:
        _PREPARED.add(backend)
        contract.export_smallest(backend)


def check_options(backend: Backend, options: dict[str, Any], *, location: str = "") -> None:
    """Refuse options that a backend does not know."""
    for key in options:
        if key not in backend.options:
            raise _unknown("VER1002", "export option", key, backend.options, location)


def export(
    name: str,
    module: fx.GraphModule,
    ports: Ports,
    path: Path,
    options: dict[str, Any] | None = None,
    *,
    location: str = "",
) -> Exported:
    """Write the model of a node with the backend of this name, as asked for at `location`."""
    backend = find(name, location=location)
    check_options(backend, options or {}, location=location)
    return backend.export(module, ports, dict(options or {}), path)


def _unknown(code: str, what: str, name: Any, known: Iterable[str], location: str) -> VeracityError:
    near = _nearest(str(name), sorted(known))
    return refuse(
        code,
        f"unknown {what} {name!r}",
        location=location,
        hints=(
            *(f"did you mean {found!r}?" for found in near),
            f"known: {', '.join(sorted(known)) or 'none'}",
        ),
    )


def _nearest(name: str, known: list[str]) -> list[str]:
    """Return the known name that was probably meant, if there is one: completed or misspelt."""
    completed = [found for found in known if name and found.startswith(name)]
    return completed[:1] or difflib.get_close_matches(name, known, n=1, cutoff=0.7)
