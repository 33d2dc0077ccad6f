"""The refusal of one operation that no exporter can take."""

from __future__ import annotations

from veracity.errors import VeracityError, refuse


def unsupported(what: str, location: str, *hints: str) -> VeracityError:
    """Return the refusal of one operation; the caller raises it."""
    return refuse("VER0920", what, location=location, hints=hints)
