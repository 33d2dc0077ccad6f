"""Where expressions for functions of NumPy are entered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from veracity.tracing.array_table.basics import Expression

FUNCTIONS: dict[Any, Expression] = {}


def find(path: str) -> Any:
    """Return what NumPy has under a dotted name, or `None`."""
    found: Any = numpy
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def maps(*paths: str) -> Callable[[Expression], Expression]:
    """Enter an expression for functions of NumPy; names this NumPy lacks are left out."""

    def enter(expression: Expression) -> Expression:
        FUNCTIONS.update({found: expression for found in map(find, paths) if found is not None})
        return expression

    return enter
