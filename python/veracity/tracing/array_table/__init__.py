"""Which torch expression computes what a NumPy function computes.

Nothing here knows about recording. An entry takes tensors where NumPy takes arrays and computes
the same numbers; the caller checks that it did. Where torch and NumPy disagree about dtypes NumPy
decides: operands of ufuncs come in NumPy's loop dtype, entries of `FUNCTIONS` get the dtype of
NumPy's result as their first argument. What an entry cannot express raises `Unmapped`.
"""

from __future__ import annotations

from veracity.tracing.array_table import (  # noqa: F401 (importing them enters their functions)
    algebra,
    analysis,
    choosing,
    making,
    reductions,
    shapes,
    signals,
)
from veracity.tracing.array_table.basics import (
    DTYPES,
    Unmapped,
    cast,
    only_default,
    tensor,
    torch_dtype,
    words,
    work_dtype,
)
from veracity.tracing.array_table.kinds import (
    ABOUT_SHAPE,
    ACCUMULATED,
    LEAVING,
    RAGGED,
    REDUCED,
)
from veracity.tracing.array_table.registry import FUNCTIONS
from veracity.tracing.array_table.ufuncs import TAKES_NUMBER, UFUNCS

__all__ = [
    "ABOUT_SHAPE",
    "ACCUMULATED",
    "DTYPES",
    "FUNCTIONS",
    "LEAVING",
    "RAGGED",
    "REDUCED",
    "TAKES_NUMBER",
    "UFUNCS",
    "Unmapped",
    "cast",
    "only_default",
    "tensor",
    "torch_dtype",
    "words",
    "work_dtype",
]
