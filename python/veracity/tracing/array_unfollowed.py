"""Results of NumPy functions that have no counterpart in torch.

NumPy computes them, and they go on as traced values that hold the refusal with them. Whatever is
computed from them holds it too. As long as they are only looked at (a histogram that is logged)
nothing happens; the refusal is raised, with the line of the function, where one of them reaches
torch, an output, or memory that is recorded. Numbers that Python takes out of them are reported
like those of any other traced value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from veracity.errors import VeracityError
from veracity.tracing import arrays
from veracity.tracing.array_table import DTYPES
from veracity.tracing.arrays import (
    Memory,
    Refused,
    TracedScalar,
    is_array,
    is_traced,
    leave,
    map_leaves,
    new_array,
    plain_array,
    refused_memory,
    traced_in,
    unseen_state,
    wrap,
)


def refused_in(*values: Any) -> Refused | None:
    """Return why a value among nested ones cannot be followed, if one cannot."""
    return next((found for one in traced_in(*values) if (found := refused_memory(one))), None)


def compute_unfollowed(
    error: VeracityError,
    reference: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Compute with NumPy alone, on copies; raise if it writes into them."""
    if not arrays.defers():
        raise error
    copies: list[tuple[Any, Any]] = []

    def copied(leaf: Any) -> Any:
        if not is_array(leaf) and not isinstance(leaf, numpy.ndarray):
            return plain_array(leaf) if is_traced(leaf) else leaf
        plain = plain_array(leaf) if is_traced(leaf) else leaf
        copies.append((plain, new_array(plain)))
        return copies[-1][1]

    given, named = map_leaves(args, copied), map_leaves(kwargs, copied)
    result = reference(*given, **named)
    if any(one.tobytes() != copy.tobytes() or one.shape != copy.shape for one, copy in copies):
        raise error
    return unfollowed(result, error, traced_in(args, kwargs))


def unfollowed(result: Any, error: VeracityError, operands: list[Any]) -> Any:
    """Return what NumPy computed as values that hold a refusal; raise it if nobody waits."""
    if not arrays.defers():
        raise error
    reason = refused_in(operands) or _reason(error, operands)
    if reason is None:
        raise error

    def hold(leaf: Any) -> Any:
        kind = getattr(leaf, "dtype", None)
        if not isinstance(leaf, numpy.ndarray | numpy.generic) or kind not in DTYPES:
            for one in operands:  # texts, numbers, objects: Python has the value
                leave(one, "tolist")
            return leaf
        memory = Memory(derived=True)
        memory.refused = reason
        array = new_array(leaf)
        state = unseen_state(array, memory)
        return TracedScalar(leaf, state) if isinstance(leaf, numpy.generic) else wrap(array, state)

    return map_leaves(result, hold)


def _reason(error: VeracityError, operands: list[Any]) -> Refused | None:
    """Pair a refusal with an operand that an open node reaches: reports are about that one."""
    for one in operands:
        tensor = arrays.state_of(one).tensor
        if arrays.watch.follows(tensor):
            return error, tensor
    return None
