"""The register of programs: `@clean(...)` and `@hostile(...)`."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from attacks.draws import Draw, normal, wider

#: What `backends=None` becomes: most cases with the quickest, some with the others, by name.
_ROTATION = ("jit", "onnx", "jit", "pt2", "jit")
ALL = ("jit", "onnx", "pt2")

THEMES = {
    "A": "state",
    "B": "recording",
    "C": "decisions",
    "D": "scale",
    "E": "runner",
    "F": "corners and evidence",
    "G": "outputs and wiring",
    "H": "alarms",
}


@dataclass(frozen=True)
class Program:
    """One program.

    Attributes:
        name: Its name, also the bundle's.
        theme: A letter of `THEMES`.
        clean: Whether it has to be proved, and without a warning.
        make: Makes a fresh instance. Called with the backend where the style is `"own"`.
        style: How it is annotated: `"inline"`, `"method"`, `"module"`, or `"own"` where the code
            does it for itself: it takes all inputs as a dict by pipeline key, and returns one.
        passes: Ticks that are recorded.
        backends: Backends that it is exported with, each a case of its own.
        rec: What arrives while it is recorded.
        fresh: What arrives in the fresh episode.
        ticks: Length of the fresh episode.
        node: Name of the node that the harness makes.
        session: Options of the session.
        context: `"no_grad"`, `"inference"` or `"grad"`, around every tick.
        runner: `"python"`, or `"cli"` for the `veracity` program.
        in_tests: Whether it is a part of `make test`.
        module: The module that it stands in.
        warm: Ticks that it runs before it is recorded.
    """

    name: str
    theme: str
    clean: bool
    make: Callable[..., Any]
    style: str
    passes: int
    backends: tuple[str, ...]
    rec: Mapping[str, Draw]
    fresh: Mapping[str, Draw]
    ticks: int = 12
    node: str = "policy"
    session: Mapping[str, Any] | None = None
    context: str = "no_grad"
    runner: str = "python"
    in_tests: bool = False
    module: str = ""
    warm: int = 0


PROGRAMS: dict[str, Program] = {}


def clean(theme: str = "H", **options: Any) -> Callable[[Any], Any]:
    """Register code that has to be proved."""
    return _register(theme, clean=True, **options)


def hostile(theme: str, **options: Any) -> Callable[[Any], Any]:
    """Register code that may be told about, or proved if the bundle is right."""
    return _register(theme, clean=False, **options)


def _register(theme: str, **options: Any) -> Callable[[Any], Any]:
    if theme not in THEMES:
        raise ValueError(f"no theme {theme!r}")

    def register(code: Any) -> Any:
        made = program(code, theme, **options)
        if made.name in PROGRAMS:
            raise ValueError(f"two programs are called {made.name}")
        PROGRAMS[made.name] = made
        return code

    return register


def program(
    code: Any,
    theme: str,
    *,
    clean: bool,
    name: str | None = None,
    passes: int = 4,
    style: str = "inline",
    backends: tuple[str, ...] | str | None = None,
    rec: Mapping[str, Draw] | None = None,
    fresh: Mapping[str, Draw] | None = None,
    **options: Any,
) -> Program:
    """Make a program of a class, a function that makes a step, or a step.

    Args:
        code: That code.
        theme: What it belongs to.
        clean: Whether it has to be proved.
        name: Its name, if that is not the code's.
        passes: Ticks that are recorded.
        style: How it is annotated, as in `Program`.
        backends: One backend or more; without them one that the name decides.
        rec: What arrives while it is recorded; a row of four normal numbers unless told.
        fresh: What arrives in the fresh episode; the same, wider, unless told.
        options: More attributes of `Program`.
    """
    if clean and passes < 3:
        raise ValueError("a clean program is recorded with three or more passes")
    drawn = dict(rec) if rec is not None else {"x": normal(1, 4)}
    later = {key: wider(draw) for key, draw in drawn.items()} | dict(fresh or {})
    key = name or code.__name__
    chosen = (backends,) if isinstance(backends, str) else backends or rotated(key)
    made = _maker(code, style)
    options["module"] = code.__module__
    return Program(key, theme, clean, made, style, passes, tuple(chosen), drawn, later, **options)


def rotated(name: str) -> tuple[str, ...]:
    """Return the backend of a program that names none: a stable choice by its name."""
    return (_ROTATION[zlib.crc32(name.encode()) % len(_ROTATION)],)


def _maker(code: Any, style: str) -> Callable[..., Any]:
    """Return what makes an instance: a class, a function without parameters, or the step itself."""
    if style == "own" or inspect.isclass(code):
        return code
    return code if not inspect.signature(code).parameters else lambda: code
