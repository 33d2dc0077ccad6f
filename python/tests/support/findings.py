"""What tests look for among findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Told of every node that was recorded in few passes, and of every state that was found. Tests of
#: one operation record one pass and know that.
OF_EVERY_SHORT_RECORDING = frozenset({"VER0927", "VER0928", "VER0929"})


def about_the_code(found: Iterable[Any]) -> list[Any]:
    """Return the findings without notes, and without those that say how few passes there were."""
    return [
        one
        for one in found
        if one.code not in OF_EVERY_SHORT_RECORDING and getattr(one, "severity", "") != "note"
    ]
