"""What reducing and accumulating is, and functions whose results are not arrays of values."""

from __future__ import annotations

from typing import Any

import numpy
import torch

from veracity.tracing.array_table.basics import Expression, words
from veracity.tracing.array_table.reductions import running, running_maximum, running_minimum
from veracity.tracing.array_table.registry import find

# What reducing or accumulating with a ufunc is as a function.
REDUCED: dict[Any, Any] = {
    numpy.add: numpy.sum,
    numpy.multiply: numpy.prod,
    numpy.maximum: numpy.max,
    numpy.minimum: numpy.min,
    numpy.logical_and: numpy.all,
    numpy.logical_or: numpy.any,
}


ACCUMULATED: dict[Any, Expression] = {
    numpy.add: running(torch.cumsum),
    numpy.multiply: running(torch.cumprod),
    numpy.maximum: running_maximum,
    numpy.minimum: running_minimum,
}


def _named(*paths: str) -> frozenset[Any]:
    return frozenset(found for found in map(find, paths) if found is not None)


# Results that depend on no element: they are NumPy's, and nothing is recorded.
ABOUT_SHAPE = _named(
    *words(
        "shape ndim size result_type can_cast min_scalar_type common_type iscomplexobj isrealobj"
    ),
    *words("may_share_memory shares_memory broadcast_shapes"),
)


# Results that are Python values or files: they are NumPy's, and the values that left are reported.
LEAVING = _named(
    *words("""
    allclose array_equal array_equiv save savez savez_compressed savetxt array2string array_str
    array_repr
    """)
)


# Results whose shape depends on the elements.
RAGGED = _named(*words("nonzero flatnonzero argwhere unique"))
