"""Figures with the bars they are held to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        what: What was measured, and against what.
        figure: The figure, usually a ratio.
        bar: What it has to be, for people.
        met: Whether it is.
        detail: The absolute numbers behind it.
    """

    what: str
    figure: float
    bar: str
    met: bool
    detail: str


def at_most(what: str, figure: float, limit: float, detail: str) -> Row:
    """Return a figure that must not exceed a limit."""
    return Row(what, figure, f"<= {limit:g}", figure <= limit, detail)


def at_least(what: str, figure: float, limit: float, detail: str) -> Row:
    """Return a figure that must reach a limit."""
    return Row(what, figure, f">= {limit:g}", figure >= limit, detail)


def render(rows: list[Row]) -> str:
    """Return the figures as a table."""
    width = max(len(row.what) for row in rows)
    return "\n".join(_line(row, width) for row in rows)


def _line(row: Row, width: int) -> str:
    mark = "ok  " if row.met else "MISS"
    return f"{mark} {row.what:<{width}} {row.figure:8.3f}  {row.bar:<9} {row.detail}"
