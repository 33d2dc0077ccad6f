"""One operation on traced arrays: computed by NumPy for the caller and by torch for the recorder.

The two results must agree. What the caller gets has NumPy's values in the memory of torch's result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import torch

from veracity.errors import VeracityError, refuse
from veracity.tracing import array_table, arrays
from veracity.tracing.array_table import Unmapped, cast, torch_dtype
from veracity.tracing.array_unfollowed import compute_unfollowed, refused_in, unfollowed
from veracity.tracing.arrays import (
    Memory,
    State,
    TracedScalar,
    array_of,
    exposed,
    is_array,
    kept_memories,
    known_memory,
    map_leaves,
    memory_of,
    new_array,
    new_constant,
    note_written,
    only_constants,
    operand,
    overlap,
    part_of,
    plain,
    plain_array,
    reading_tensor,
    refusal,
    same_place,
    same_strides,
    shown,
    state_of,
    taint,
    tell,
    trace_array,
    traced_in,
    wrap,
)


def never(*_: Any, **__: Any) -> Any:
    """Be the expression of what has none."""
    raise Unmapped("it is not in the table")


def perform(
    name: str,
    reference: Callable[..., Any],
    expression: Callable[..., Any] | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    ragged: bool = False,
) -> Any:
    """Compute with NumPy and with torch, and return NumPy's values in torch's memory.

    Args:
        name: For messages.
        reference: Computes with NumPy.
        expression: Computes with torch; gets the dtype of NumPy's result first.
        args: As the user gave them.
        kwargs: As the user gave them, with `out` and `where` of a ufunc.
        ragged: Whether the shape of the result depends on elements.
    """
    if only_constants(args, kwargs) and not _shows_parts(args):
        return without_torch(reference, args, kwargs, stays=expression is not None)
    out = kwargs.pop("out", None)
    if kwargs.get("where") is True:
        del kwargs["where"]
    if any(one is not None for one in (out if isinstance(out, tuple) else (out,))):
        return _perform_into(name, reference, expression, args, kwargs, out)
    operands = traced_in(args, kwargs)
    derived = not only_constants(args, kwargs)
    held = refused_in(operands)
    if expression is None or held is not None:
        error = refusal(name, "it is not in the table") if held is None else held[0]
        return compute_unfollowed(error, reference, args, kwargs)
    expected = reference(*plain(args), **plain(kwargs))
    try:
        got = _with_torch(expression, expected, args, kwargs)
        ragged = ragged or any(state_of(one).ragged for one in operands)
        return settle(name, expected, got, operands, derived, ragged)
    except Exception as error:
        if derived:
            return unfollowed(expected, _told(name, error), operands)
        return _constants_in(expected, operands)


def _told(name: str, error: Exception) -> VeracityError:
    return error if isinstance(error, VeracityError) else refusal(name, first_line(error))


def _with_torch(
    expression: Callable[..., Any], expected: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    tensors, named = map_leaves(args, operand), map_leaves(kwargs, operand)
    return expression(_result_dtype(expected), *tensors, **named)


def first_line(error: Exception) -> str:
    """Return what an exception says, in one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _result_dtype(expected: Any) -> torch.dtype | None:
    if isinstance(expected, tuple | list):
        return _result_dtype(expected[0]) if expected else None
    return torch_dtype(expected.dtype) if hasattr(expected, "dtype") else None


def _shows_parts(args: tuple[Any, ...]) -> bool:
    """Whether a result may show memory with another dtype: only torch's result tells its place."""
    return any(is_array(one) and one.dtype.kind == "c" for one in args)


def _constants_in(expected: Any, operands: list[Any]) -> Any:
    """Return what was computed from constants as constants; a view of one stays its view."""

    def constant(value: Any) -> Any:
        for one in operands if type(value) is numpy.ndarray else ():
            if is_array(one) and overlap(value, plain_array(one)):
                return part_of(value, one) if value.dtype == one.dtype else value
        return constant_array(value)

    return map_leaves(expected, constant)


def without_torch(
    reference: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, stays: bool
) -> Any:
    """Compute with constants only; what was written into them is recorded as one write.

    Args:
        reference: Computes with NumPy.
        args: As the user gave them.
        kwargs: As the user gave them.
        stays: Whether the result is known to keep no memory but through arrays.
    """
    change = plain if stays else (lambda value: map_leaves(value, exposed))
    operands = traced_in(args, kwargs)
    result = reference(*change(args), **change(kwargs))
    if not stays or kwargs.get("out") is not None:
        for one in operands:
            tell_of(one)
    out = kwargs.get("out")
    if out is not None and result is not None:
        return out[0] if isinstance(out, tuple) and len(out) == 1 else out
    return _constants_in(result, operands)


def tell_of(value: Any) -> None:
    """Record what NumPy wrote into a constant."""
    memory = memory_of(value) if is_array(value) else None
    if memory is not None:
        tell(memory)


def settle(
    name: str, expected: Any, got: Any, operands: list[Any], derived: bool, ragged: bool
) -> Any:
    """Return NumPy's result as traced values; lists and tuples of results one by one."""
    if isinstance(expected, tuple | list):
        if len(expected) != len(got):
            raise Unmapped(f"NumPy has {len(expected)} results, torch {len(got)}")
        each = [
            settle(name, one, other, operands, derived, ragged)
            for one, other in zip(expected, got, strict=True)
        ]
        return type(expected)(*each) if hasattr(expected, "_fields") else type(expected)(each)
    if not isinstance(expected, numpy.ndarray | numpy.generic):
        raise Unmapped(f"its result is a {type(expected).__name__}")
    got = cast(got, torch_dtype(expected.dtype))
    array = array_of(got)
    if array.shape != expected.shape:
        raise Unmapped(f"torch gives the shape {array.shape}, NumPy {expected.shape}")
    if isinstance(expected, numpy.ndarray):
        for one in operands:
            if type(one) is not TracedScalar and overlap(expected, plain_array(one)):
                return _settle_view(expected, got, state_of(one))
    if not _close(expected, array, operands):
        raise _other_values(name)
    if not _stands_alone(got, array, operands):
        got = torch.clone(got.detach()).contiguous()
        array = array_of(got)
    return own(_laid_out(got, array, expected), expected, derived, ragged)


def _settle_view(expected: Any, got: torch.Tensor, source: State) -> Any:
    if same_place(expected, got):
        return wrap(expected, State(got, (), source.memory, source.ragged))
    return wrap(expected, shown(expected, source))


def _stands_alone(got: torch.Tensor, array: Any, operands: list[Any]) -> bool:
    """Whether a result has memory of its own, as NumPy's has, with one place for each element."""
    with arrays.pause():
        lazy = got.is_conj() or got.is_neg() or got.requires_grad
    repeats = any(
        count > 1 and stride == 0 for count, stride in zip(array.shape, array.strides, strict=True)
    )
    return not (lazy or repeats or any(overlap(array, state_of(one).array) for one in operands))


def _laid_out(got: torch.Tensor, array: Any, expected: Any) -> torch.Tensor:
    """Return a result whose axes lie in memory in NumPy's order: views of it depend on that."""
    if isinstance(expected, numpy.generic) or same_strides(expected, array):
        return got
    order = sorted(range(expected.ndim), key=lambda axis: -abs(expected.strides[axis]))
    back = [order.index(axis) for axis in range(expected.ndim)]
    return got.permute(order).contiguous().permute(back)


def own(got: torch.Tensor, expected: Any, derived: bool, ragged: bool = False) -> Any:
    """Return NumPy's result in the memory of torch's, which nobody else has."""
    if isinstance(expected, numpy.generic) and not derived:
        return expected
    state = State(got, (), Memory(derived), ragged and expected.ndim > 0)
    with arrays.pause():
        state.array[...] = expected
    if isinstance(expected, numpy.generic):
        return TracedScalar(expected, state)
    if not derived:
        state.memory.told = (got, state.array.copy())
    return wrap(state.array, state)


def _other_values(name: str) -> VeracityError:
    return refuse(
        "VER0922",
        f"{name} gives other values in torch than in NumPy for these operands",
        location=arrays.user_location(),
        hints=("values on a tie or an edge may differ: use torch here, or another function",),
    )


# Held from before a session puts its own in their places.
_allclose = numpy.allclose


def _close(expected: Any, got: Any, operands: list[Any]) -> bool:
    """Whether torch computed the same; how close it must be depends on the dtype."""
    if bool((expected == got).all()):
        return True
    if expected.dtype.kind not in "fc":
        return False
    precision = float(numpy.finfo(expected.dtype).eps)
    read = [plain_array(one) for one in operands]
    # Sums may cancel, so the size of what was summed counts too.
    scale = max((_magnitude(one) * max(1, one.size // expected.size) for one in read), default=0)
    atol = 8 * precision * max(scale, _magnitude(expected))
    with numpy.errstate(all="ignore"):
        return bool(_allclose(got, expected, precision**0.6, atol, equal_nan=True))


def _magnitude(array: Any) -> float:
    with numpy.errstate(all="ignore"):
        sizes = numpy.absolute(new_array(array, numpy.complex128))
        finite = sizes[numpy.isfinite(sizes)]
    return float(finite.max()) if finite.size else 0.0


def constant_array(value: Any) -> Any:
    """Return a new array as a traced one that holds a constant, so that writes to it are seen."""
    if type(value) is not numpy.ndarray or value.dtype not in array_table.DTYPES:
        return value
    constant = new_constant(value)
    return own(_laid_out(constant, array_of(constant), value), value, derived=False)


# ------------------------------------------------------------------------------------------ writes


def write(target: Any, value: torch.Tensor) -> None:
    """Write a tensor over all of a traced array, in the eyes of the recorder."""
    state = state_of(target)
    if state.reversed_axes:
        value = torch.flip(value.expand(state.array.shape), state.reversed_axes)
    state.tensor.copy_(value)


def overlay(name: str, target: Any, expected: Any, operands: list[Any]) -> None:
    """Put NumPy's values where torch has just written its own."""
    array = plain_array(target)
    agreed = _close(expected, array, operands)
    with arrays.pause():
        array[...] = expected
    note_written(state_of(target).memory)
    if not agreed:
        raise refusal(name, "torch and NumPy wrote different values")


def traced_target(target: Any) -> Any:
    """Return a target of a write as a traced array; the memory of an untraced one is taken over."""
    if is_array(target):
        return target
    arrays.watch.reach_plain(True)
    known = known_memory(target)
    if known is None:
        known = _taken_over(_root(target))
    return wrap(target, shown(target, known))


def _root(array: Any) -> Any:
    """Return the array that has the memory: others may show other parts of it."""
    while type(array.base) is numpy.ndarray and array.base.dtype == array.dtype:
        array = array.base
    return array


def _taken_over(array: Any) -> State:
    state = state_of(trace_array(array))
    state.memory.derived = False  # until something is written
    state.memory.written = (0, state.array.copy())
    arrays.watch.share(state.tensor)
    note_written(state.memory)
    kept_memories.append(state.memory)
    return state


def _perform_into(
    name: str,
    reference: Callable[..., Any],
    expression: Callable[..., Any] | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: Any,
) -> Any:
    """Perform an operation that writes its result into arrays of the caller."""
    targets = out if isinstance(out, tuple) else (out,)
    _check_writable(name, targets)
    operands = traced_in(args, kwargs)
    derived = not only_constants(args, kwargs, targets)
    if expression is None and derived:
        raise refusal(name, "it is not in the table")
    into = tuple(plain(one).copy() for one in targets)
    expected = reference(
        *plain(args), **plain(kwargs), out=into if isinstance(out, tuple) else into[0]
    )
    each = expected if isinstance(expected, tuple) else (expected,)
    # Only of an elementwise operation the mask says what is written.
    mask = kwargs.pop("where", True) if isinstance(reference, numpy.ufunc) else True
    try:
        got = _with_torch(expression or never, expected, args, kwargs)
        results = got if isinstance(got, tuple) else (got,)
    except Exception as error:
        if derived:
            raise _told(name, error) from error
        mask, results = True, tuple(new_constant(one) for one in each)
    written = []
    for target, value, wanted in zip(targets, results, each, strict=True):
        traced = traced_target(target)
        if derived:
            taint(name, state_of(traced).memory)
        value = value if mask is True else torch.where(operand(mask), value, reading_tensor(traced))
        write(traced, cast(value, torch_dtype(wanted.dtype)))
        overlay(name, traced, wanted, operands)
        written.append(traced)
    return tuple(written) if isinstance(expected, tuple) else written[0]


def _check_writable(name: str, targets: tuple[Any, ...]) -> None:
    if any(not isinstance(one, numpy.ndarray) for one in targets):
        raise refusal(name, "all results must be written, or none")
    if any(state_of(one).memory.frozen is not None for one in traced_in(targets)):
        raise refusal(name, "it writes into a part that a traced number picked")
    if any(not one.flags.writeable for one in targets):
        raise ValueError("output array is read-only")


# --------------------------------------------------------------------------------- lists of scalars


def array_of_items(items: Any, dtype: Any = None) -> Any:
    """Return nested lists as an array: traced when something in them is."""
    operands = traced_in(items)
    if not operands:
        return new_array(items, dtype)

    def compute(to: Any, values: Any) -> Any:
        return cast(values, to)

    return perform("numpy.array", lambda values: new_array(values, dtype), compute, (items,), {})
