"""What `start` was told, checked."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veracity._places import user_line
from veracity.errors import refuse


@dataclass(frozen=True)
class Options:
    """What `start` was told."""

    name: str
    folder: Path
    verbose: bool
    dry_run: bool
    non_traced: frozenset[str]
    max_cached_io: int
    global_patching: bool
    patching: tuple[Any, ...]
    glue: str

    @classmethod
    def checked(
        cls,
        *,
        name: Any,
        save_path: Any,
        verbose: bool,
        dry_run: bool,
        non_traced: str | Iterable[str] | None,
        max_cached_io: int,
        global_patching: bool,
        patching: Iterable[Any] | None,
        glue: str,
    ) -> Options:
        """Return the options, or refuse them."""
        if not isinstance(name, str):
            message = f"the name of a graph is text, not {type(name).__name__}"
            raise refuse("VER0902", message, location=user_line())
        path = os.path.normpath(os.path.expanduser(name)) if name else ""
        if path in ("", ".", "/") or Path(path).name == "..":
            message = f"{name!r} cannot be the name of a graph"
            raise refuse("VER0903", message, location=user_line())
        if glue not in ("warn", "error"):
            hints = ('"warn" or "error"',)
            raise refuse("VER0903", f"`glue` is {glue!r}", location=user_line(), hints=hints)
        folder = Path(save_path).expanduser() / path
        excluded = [non_traced] if isinstance(non_traced, str) else list(non_traced or ())
        return cls(
            name=folder.name,
            folder=folder,
            verbose=verbose,
            dry_run=dry_run,
            non_traced=frozenset(excluded),
            max_cached_io=max(1, int(max_cached_io)),
            global_patching=global_patching,
            # Without the patches of a session those of the user are none, as in LEAPP.
            patching=tuple(patching or ()) if global_patching else (),
            glue=glue,
        )
