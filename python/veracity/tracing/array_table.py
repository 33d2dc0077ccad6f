"""Which torch expression computes what a NumPy function computes.

Nothing here knows about recording. An entry takes tensors where NumPy takes arrays and computes
the same numbers; the caller checks that it did. Where torch and NumPy disagree about dtypes NumPy
decides: operands of ufuncs come in NumPy's loop dtype, entries of `FUNCTIONS` get the dtype of
NumPy's result as their first argument. What an entry cannot express raises `Unmapped`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy
import torch

Expression = Callable[..., Any]


def words(text: str) -> tuple[str, ...]:
    """Return the words of a list that is easier to read as text."""
    return tuple(text.split())


class Unmapped(Exception):  # noqa: N818 (not an error of the user's code; it is turned into one)
    """There is no torch expression for this call; the text says why."""


DTYPES: dict[numpy.dtype[Any], torch.dtype] = {
    numpy.dtype(name): getattr(torch, name)
    for name in words(
        "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 "
        "float16 float32 float64 complex64 complex128"
    )
}

# torch stores these but does not compute with them. Every operation of an unsigned loop is exact
# in the wider signed type, and the cast back wraps as NumPy wraps.
WORK_DTYPES: dict[torch.dtype, torch.dtype] = {torch.uint16: torch.int32, torch.uint32: torch.int64}


def torch_dtype(dtype: Any) -> torch.dtype:
    """Return torch's name for a NumPy dtype."""
    try:
        return DTYPES[numpy.dtype(dtype)]
    except KeyError:
        raise Unmapped(f"torch has no dtype {numpy.dtype(dtype)}") from None


def work_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which torch computes for this one."""
    return WORK_DTYPES.get(dtype, dtype)


# Held from before a session puts its own in their places.
_new_tensor = torch.tensor
_new_array = numpy.asarray


def cast(value: Any, dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor of a dtype, without a step when it already is one."""
    if isinstance(value, torch.Tensor):
        return value if value.dtype == dtype else value.to(dtype)
    if _holds_tensors(value):
        return torch.stack([cast(one, dtype) for one in value])
    return _new_tensor(value, dtype=dtype)


def tensor(value: Any) -> torch.Tensor:
    """Return a number, or a sequence of numbers and tensors, as NumPy would convert it."""
    if isinstance(value, torch.Tensor):
        return value
    if _holds_tensors(value):
        each = [tensor(one) for one in value]
        common = functools.reduce(torch.promote_types, [one.dtype for one in each])
        return torch.stack([cast(one, common) for one in each])
    array = _new_array(value)
    return _new_tensor(array.tolist(), dtype=torch_dtype(array.dtype))


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_holds_tensors(one) for one in value)
    return isinstance(value, torch.Tensor)


def absent(value: Any) -> bool:
    """Whether an optional argument of NumPy was left out."""
    return value is None or value is getattr(numpy, "_NoValue", None)


def only_default(**values: Any) -> None:
    """Refuse arguments that were given and are not supported."""
    for name, value in values.items():
        if not absent(value) and value is not False:
            raise Unmapped(f"the argument {name}={value!r} is not supported")


def _c_order(order: Any) -> None:
    if order not in (None, "C", "K", "A"):
        raise Unmapped(f"the argument order={order!r} is not supported")


def _axis(axis: Any, rank: int) -> int:
    number = operator.index(axis)
    return number + rank if number < 0 else number


def _axes(axis: Any, rank: int) -> list[int]:
    if absent(axis):
        return list(range(rank))
    each = axis if isinstance(axis, tuple | list) else (axis,)
    return [_axis(one, rank) for one in each]


# ---------------------------------------------------------------------------------------- ufuncs


def _cbrt(x: torch.Tensor) -> torch.Tensor:
    return torch.sign(x) * torch.pow(torch.abs(x), 1.0 / 3.0)


def _floor_divide(x: torch.Tensor, y: Any) -> torch.Tensor:
    return torch.div(x, y, rounding_mode="floor")


def _divmod(x: torch.Tensor, y: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _floor_divide(x, y), torch.remainder(x, y)


def _modf(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.frac(x), torch.trunc(x)


_SAME_NAME = words("""
    add subtract multiply float_power negative positive remainder fmod absolute sign sqrt
    square reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2
    hypot sinh cosh tanh arcsinh arccosh arctanh floor ceil trunc greater greater_equal less
    less_equal not_equal maximum minimum fmax fmin matmul logical_and logical_or logical_xor
    logical_not bitwise_and bitwise_or bitwise_xor isnan isinf isfinite signbit copysign deg2rad
    rad2deg heaviside logaddexp logaddexp2 gcd lcm nextafter
""")

UFUNCS: dict[Any, Expression] = {
    getattr(numpy, name): getattr(torch, name) for name in _SAME_NAME
} | {
    numpy.equal: torch.eq,  # `torch.equal` is something else
    numpy.divide: torch.true_divide,
    numpy.power: torch.pow,
    numpy.floor_divide: _floor_divide,
    numpy.divmod: _divmod,
    numpy.modf: _modf,
    numpy.fabs: torch.abs,
    numpy.cbrt: _cbrt,
    numpy.rint: torch.round,
    numpy.invert: torch.bitwise_not,
    numpy.left_shift: torch.bitwise_left_shift,
    numpy.right_shift: torch.bitwise_right_shift,
    numpy.radians: torch.deg2rad,
    numpy.degrees: torch.rad2deg,
    numpy.conjugate: torch.conj_physical,
}

# torch takes a number as the second operand of these, which makes a plainer program than a
# constant tensor of rank 0 would.
TAKES_NUMBER: frozenset[Any] = frozenset(
    {
        numpy.add,
        numpy.subtract,
        numpy.multiply,
        numpy.divide,
        numpy.floor_divide,
        numpy.remainder,
        numpy.fmod,
        numpy.power,
        numpy.greater,
        numpy.greater_equal,
        numpy.less,
        numpy.less_equal,
        numpy.equal,
        numpy.not_equal,
    }
)

# ------------------------------------------------------------------------------------- functions

FUNCTIONS: dict[Any, Expression] = {}


def _find(path: str) -> Any:
    found: Any = numpy
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def maps(*paths: str) -> Callable[[Expression], Expression]:
    """Enter an expression for functions of NumPy; names this NumPy lacks are left out."""

    def enter(expression: Expression) -> Expression:
        FUNCTIONS.update({found: expression for found in map(_find, paths) if found is not None})
        return expression

    return enter


def _initial(initial: Any, where: Any) -> None:
    only_default(initial=initial)
    if not absent(where) and where is not True:
        raise Unmapped("the argument where= of a reduction is not supported")


def _reduced(
    apply: Callable[[torch.Tensor, list[int]], torch.Tensor], a: Any, axis: Any, keepdims: Any
) -> torch.Tensor:
    a = tensor(a)
    axes = _axes(axis, a.dim())
    result = apply(a, axes) if axes else a.clone()
    for one in sorted(axes) if not absent(keepdims) and keepdims else ():
        result = result.unsqueeze(one)
    return result


def _one_by_one(
    apply: Callable[[torch.Tensor, int], torch.Tensor],
) -> Callable[[torch.Tensor, list[int]], torch.Tensor]:
    def over(a: torch.Tensor, axes: list[int]) -> torch.Tensor:
        for one in sorted(axes, reverse=True):
            a = apply(a, one)
        return a

    return over


@maps("sum")
def _sum(
    to: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: Any = None,
    initial: Any = None,
    where: Any = None,
) -> Any:
    _initial(initial, where)
    to = work_dtype(to)
    return _reduced(lambda x, axes: torch.sum(cast(x, to), axes), a, axis, keepdims)


@maps("prod")
def _prod(
    to: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: Any = None,
    initial: Any = None,
    where: Any = None,
) -> Any:
    _initial(initial, where)
    to = work_dtype(to)
    product = _one_by_one(lambda x, one: torch.prod(x, one))
    return _reduced(lambda x, axes: product(cast(x, to), axes), a, axis, keepdims)


@maps("mean")
def _mean(
    to: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None, where: Any = None
) -> Any:
    _initial(None, where)
    return _reduced(lambda x, axes: torch.mean(cast(x, to), axes), a, axis, keepdims)


def _spread(expression: Expression) -> Expression:
    def spread(
        to: Any,
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        ddof: Any = 0,
        keepdims: Any = None,
        where: Any = None,
        mean: Any = None,
        correction: Any = None,
    ) -> Any:
        _initial(None, where)
        only_default(mean=mean)
        removed = ddof if absent(correction) else correction
        return _reduced(
            lambda x, axes: expression(cast(x, to), axes, correction=removed), a, axis, keepdims
        )

    return spread


maps("std")(_spread(torch.std))
maps("var")(_spread(torch.var))


def _extreme(expression: Expression) -> Expression:
    def extreme(
        to: Any,
        a: Any,
        axis: Any = None,
        keepdims: Any = None,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        _initial(initial, where)
        work = work_dtype(to)
        return _reduced(lambda x, axes: expression(cast(x, work), axes), a, axis, keepdims)

    return extreme


maps("min", "amin")(_extreme(torch.amin))
maps("max", "amax")(_extreme(torch.amax))


@maps("ptp")
def _ptp(to: Any, a: Any, axis: Any = None, keepdims: Any = None) -> Any:
    return _reduced(lambda x, axes: torch.amax(x, axes) - torch.amin(x, axes), a, axis, keepdims)


def _position(expression: Expression) -> Expression:
    def position(to: Any, a: Any, axis: Any = None, keepdims: Any = None) -> Any:
        a = cast(a, torch.uint8) if a.dtype == torch.bool else a
        kept = not absent(keepdims) and bool(keepdims)
        if absent(axis):
            found = expression(a.reshape(-1))
            return found.reshape([1] * a.dim()) if kept else found
        return expression(a, _axis(axis, a.dim()), keepdim=kept)

    return position


maps("argmin")(_position(torch.argmin))
maps("argmax")(_position(torch.argmax))


def _truth(expression: Callable[[torch.Tensor, int], torch.Tensor]) -> Expression:
    def truth(to: Any, a: Any, axis: Any = None, keepdims: Any = None, where: Any = None) -> Any:
        _initial(None, where)
        over = _one_by_one(expression)
        as_bool = lambda x: x if x.dtype == torch.bool else x.ne(0)  # noqa: E731
        result = _reduced(lambda x, axes: over(as_bool(x), axes), a, axis, keepdims)
        return as_bool(result)

    return truth


maps("any")(_truth(lambda x, one: torch.any(x, one)))
maps("all")(_truth(lambda x, one: torch.all(x, one)))


def _first(pair: Any) -> Any:
    return pair[0]


def _running(expression: Expression) -> Expression:
    def running(to: Any, a: Any, axis: Any = None, dtype: Any = None) -> Any:
        a = cast(a, work_dtype(to))
        return expression(a.reshape(-1), 0) if absent(axis) else expression(a, _axis(axis, a.dim()))

    return running


maps("cumsum")(_running(torch.cumsum))
maps("cumprod")(_running(torch.cumprod))
running_maximum = _running(lambda x, one: _first(torch.cummax(x, one)))
running_minimum = _running(lambda x, one: _first(torch.cummin(x, one)))


@maps("count_nonzero")
def _count_nonzero(to: Any, a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return _reduced(lambda x, axes: torch.sum(x.ne(0), axes), a, axis, keepdims)


@maps("nansum")
def _nansum(to: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Any:
    return _reduced(lambda x, axes: torch.nansum(cast(x, to), axes), a, axis, keepdims)


@maps("nanmean")
def _nanmean(to: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Any:
    return _reduced(lambda x, axes: torch.nanmean(cast(x, to), axes), a, axis, keepdims)


def _nan_extreme(expression: Expression, filler: float) -> Expression:
    def extreme(to: Any, a: Any, axis: Any = None, keepdims: Any = None) -> Any:
        def over(x: torch.Tensor, axes: list[int]) -> torch.Tensor:
            missing = torch.isnan(x)
            found = expression(torch.where(missing, cast(filler, x.dtype), x), axes)
            every = _one_by_one(lambda y, one: torch.all(y, one))(missing, axes)
            return torch.where(every, cast(math.nan, x.dtype), found)

        return _reduced(over, a, axis, keepdims)

    return extreme


maps("nanmin")(_nan_extreme(torch.amin, math.inf))
maps("nanmax")(_nan_extreme(torch.amax, -math.inf))


@maps("average")
def _average(
    to: Any, a: Any, axis: Any = None, weights: Any = None, returned: Any = False, **rest: Any
) -> Any:
    only_default(returned=returned, **rest)
    a = cast(a, to)
    if absent(weights):
        return _mean(to, a, axis)
    weights = cast(weights, to)
    if weights.shape != a.shape:
        if weights.dim() != 1 or not isinstance(axis, int):
            raise Unmapped("weights of several axes are not supported")
        tail = a.dim() - 1 - _axis(axis, a.dim())
        weights = weights.reshape(-1, *[1] * tail).expand(a.shape)
    axes = _axes(axis, a.dim())
    return torch.sum(a * weights, axes) / torch.sum(weights, axes)


@maps("median")
def _median(
    to: Any, a: Any, axis: Any = None, overwrite_input: Any = False, keepdims: Any = False
) -> Any:
    only_default(overwrite_input=overwrite_input, keepdims=keepdims)
    a = cast(a, to)
    a, along = (a.reshape(-1), 0) if absent(axis) else (a, _axis(axis, a.dim()))
    ordered = torch.sort(a, along).values
    count = a.shape[along]
    return torch.mean(ordered.narrow(along, (count - 1) // 2, 2 - count % 2), along)


def _quantile_of(parts: float) -> Expression:
    def quantile(
        to: Any, a: Any, q: Any, axis: Any = None, overwrite_input: Any = False, **rest: Any
    ) -> Any:
        method = rest.pop("method", "linear")
        only_default(overwrite_input=overwrite_input, **rest)
        if isinstance(axis, tuple | list):
            raise Unmapped("quantiles over several axes are not supported")
        wanted = cast(q, to) / parts
        along = None if absent(axis) else _axis(axis, a.dim())
        return torch.quantile(cast(a, to), wanted, along, interpolation=method)

    return quantile


maps("quantile")(_quantile_of(1))
maps("percentile")(_quantile_of(100))


def _each(values: Any, to: torch.dtype | None) -> list[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        values = list(torch.unbind(values))
    return [tensor(value) if to is None else cast(tensor(value), to) for value in values]


@maps("concatenate", "concat")
def _concatenate(
    to: Any, arrays: Any, /, axis: Any = 0, *, dtype: Any = None, casting: Any = None
) -> Any:
    each = _each(arrays, to)
    return torch.cat([one.reshape(-1) for one in each]) if axis is None else torch.cat(each, axis)


@maps("stack")
def _stack(to: Any, arrays: Any, axis: Any = 0, *, dtype: Any = None, casting: Any = None) -> Any:
    return torch.stack(_each(arrays, to), axis)


def _stacked(expression: Expression) -> Expression:
    def stacked(to: Any, tup: Any, *, dtype: Any = None, casting: Any = None) -> Any:
        return expression(_each(tup, to))

    return stacked


maps("vstack", "row_stack")(_stacked(torch.vstack))
maps("hstack")(_stacked(torch.hstack))
maps("dstack")(_stacked(torch.dstack))
maps("column_stack")(_stacked(torch.column_stack))


@maps("append")
def _append(to: Any, arr: Any, values: Any, axis: Any = None) -> Any:
    return _concatenate(to, (arr, values), axis=axis)


@maps("split", "array_split")
def _split(to: Any, ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    if isinstance(indices_or_sections, int | numpy.integer):
        return list(torch.tensor_split(ary, int(indices_or_sections), axis))
    cuts = [operator.index(cut) for cut in indices_or_sections]
    return list(torch.tensor_split(ary, cuts, axis))


@maps("hsplit")
def _hsplit(to: Any, ary: Any, indices_or_sections: Any) -> Any:
    return _split(to, ary, indices_or_sections, 0 if ary.dim() == 1 else 1)


@maps("vsplit")
def _vsplit(to: Any, ary: Any, indices_or_sections: Any) -> Any:
    return _split(to, ary, indices_or_sections, 0)


@maps("squeeze")
def _squeeze(to: Any, a: Any, axis: Any = None) -> Any:
    return torch.squeeze(a) if axis is None else torch.squeeze(a, tuple(_axes(axis, a.dim())))


@maps("expand_dims")
def _expand_dims(to: Any, a: Any, axis: Any) -> Any:
    count = len(axis) if isinstance(axis, tuple | list) else 1
    for one in sorted(_axes(axis, a.dim() + count)):
        a = a.unsqueeze(one)
    return a


@maps("reshape")
def _reshape(
    to: Any,
    a: Any,
    /,
    shape: Any = None,
    order: Any = "C",
    *,
    newshape: Any = None,
    copy: Any = None,
) -> Any:
    _c_order(order)
    shape = newshape if shape is None else shape
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    return torch.reshape(a, [operator.index(size) for size in sizes])


@maps("ravel")
def _ravel(to: Any, a: Any, order: Any = "C") -> Any:
    _c_order(order)
    return torch.reshape(a, (-1,))


@maps("transpose", "permute_dims")
def _transpose(to: Any, a: Any, axes: Any = None) -> Any:
    order = list(reversed(range(a.dim()))) if axes is None else _axes(tuple(axes), a.dim())
    return a.permute(order)


@maps("matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(to: Any, x: Any, /) -> Any:
    return x.transpose(-2, -1)


@maps("swapaxes")
def _swapaxes(to: Any, a: Any, axis1: Any, axis2: Any) -> Any:
    return a.transpose(axis1, axis2)


@maps("moveaxis")
def _moveaxis(to: Any, a: Any, source: Any, destination: Any) -> Any:
    return torch.movedim(a, tuple(_axes(source, a.dim())), tuple(_axes(destination, a.dim())))


@maps("flip")
def _flip(to: Any, m: Any, axis: Any = None) -> Any:
    return torch.flip(m, _axes(axis, m.dim()))


@maps("flipud")
def _flipud(to: Any, m: Any) -> Any:
    return torch.flip(m, [0])


@maps("fliplr")
def _fliplr(to: Any, m: Any) -> Any:
    return torch.flip(m, [1])


@maps("rot90")
def _rot90(to: Any, m: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    return torch.rot90(m, k, list(axes))


@maps("roll")
def _roll(to: Any, a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return torch.roll(a, shift)
    axes = _axes(axis, a.dim())
    shifts = list(shift) if isinstance(shift, tuple | list) else [shift] * len(axes)
    return torch.roll(a, shifts, axes)


@maps("sort")
def _sort(
    to: Any, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    only_default(order=order)
    a, along = (a.reshape(-1), 0) if axis is None else (a, axis)
    return torch.sort(a, along).values


@maps("argsort")
def _argsort(
    to: Any, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    only_default(order=order)
    a, along = (a.reshape(-1), 0) if axis is None else (a, axis)
    return torch.argsort(a, dim=along, stable=True)


@maps("where")
def _where(to: Any, condition: Any, /, *choices: Any) -> Any:
    condition = cast(tensor(condition), torch.bool)
    if not choices:
        return torch.nonzero(condition, as_tuple=True)
    return torch.where(condition, cast(choices[0], to), cast(choices[1], to))


@maps("select")
def _select(to: Any, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = cast(default, to)
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = torch.where(cast(condition, torch.bool), cast(choice, to), result)
    return result


@maps("nonzero")
def _nonzero(to: Any, a: Any) -> Any:
    return torch.nonzero(a, as_tuple=True)


@maps("flatnonzero")
def _flatnonzero(to: Any, a: Any) -> Any:
    return torch.nonzero(a.reshape(-1)).reshape(-1)


@maps("argwhere")
def _argwhere(to: Any, a: Any) -> Any:
    return torch.nonzero(a)


@maps("unique")
def _unique(to: Any, ar: Any, **rest: Any) -> Any:
    rest.pop("equal_nan", None)
    only_default(**rest)
    return torch.unique(ar, sorted=True)


@maps("clip")
def _clip_function(
    to: Any, a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Any:
    work = work_dtype(to)
    low = min if absent(a_min) else a_min
    high = max if absent(a_max) else a_max
    a = cast(a, work)
    if not any(isinstance(bound, torch.Tensor) for bound in (low, high)):
        return torch.clamp(a, None if absent(low) else low, None if absent(high) else high)
    a = a if absent(low) else torch.maximum(a, cast(low, work))
    return a if absent(high) else torch.minimum(a, cast(high, work))


@maps("round", "around")
def _round(to: Any, a: Any, decimals: Any = 0) -> Any:
    return torch.round(cast(a, to), decimals=decimals)


@maps("fix")
def _fix(to: Any, x: Any) -> Any:
    return torch.trunc(x)


@maps("sinc")
def _sinc(to: Any, x: Any) -> Any:
    return torch.sinc(cast(x, to))


@maps("nan_to_num")
def _nan_to_num(
    to: Any, x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    if not copy:
        raise Unmapped("the argument copy=False is not supported")
    return torch.nan_to_num(x, nan, posinf, neginf)


@maps("isclose")
def _isclose(
    to: Any, a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False
) -> Any:
    common = torch.promote_types(tensor(a).dtype, tensor(b).dtype)
    common = common if common.is_floating_point else torch.float64
    return torch.isclose(cast(a, common), cast(b, common), rtol, atol, equal_nan)


@maps("dot")
def _dot(to: Any, a: Any, b: Any) -> Any:
    a, b = cast(a, to), cast(b, to)
    if a.dim() == 0 or b.dim() == 0:
        return torch.mul(a, b)
    if b.dim() > 2:
        return torch.tensordot(a, b, dims=([a.dim() - 1], [b.dim() - 2]))
    return torch.matmul(a, b)


@maps("vdot")
def _vdot(to: Any, a: Any, b: Any, /) -> Any:
    return torch.vdot(cast(a, to).reshape(-1), cast(b, to).reshape(-1))


@maps("inner")
def _inner(to: Any, a: Any, b: Any, /) -> Any:
    return torch.inner(cast(a, to), cast(b, to))


@maps("outer", "linalg.outer")
def _outer(to: Any, a: Any, b: Any) -> Any:
    return torch.outer(cast(a, to).reshape(-1), cast(b, to).reshape(-1))


@maps("kron")
def _kron(to: Any, a: Any, b: Any) -> Any:
    return torch.kron(cast(a, to), cast(b, to))


@maps("tensordot", "linalg.tensordot")
def _tensordot(to: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = cast(a, to), cast(b, to)
    if isinstance(axes, int | numpy.integer):
        return torch.tensordot(a, b, dims=int(axes))
    return torch.tensordot(a, b, dims=(_axes(axes[0], a.dim()), _axes(axes[1], b.dim())))


@maps("einsum")
def _einsum(to: Any, *operands: Any, optimize: Any = False, dtype: Any = None) -> Any:
    if not isinstance(operands[0], str):
        raise Unmapped("einsum with lists of axes is not supported")
    return torch.einsum(operands[0], *[cast(one, to) for one in operands[1:]])


@maps("cross", "linalg.cross")
def _cross(
    to: Any, a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a = torch.movedim(cast(a, to), axisa, -1)
    b = torch.movedim(cast(b, to), axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise Unmapped("cross products of vectors of two elements are not supported")
    return torch.movedim(torch.linalg.cross(a, b, dim=-1), -1, axisc)


@maps("trace", "linalg.trace")
def _trace(
    to: Any, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None
) -> Any:
    return torch.sum(cast(torch.diagonal(a, offset, axis1, axis2), work_dtype(to)), -1)


@maps("diagonal", "linalg.diagonal")
def _diagonal(to: Any, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    return torch.diagonal(a, offset, axis1, axis2)


@maps("diag")
def _diag(to: Any, v: Any, k: Any = 0) -> Any:
    return torch.diag(v, k)


@maps("tril")
def _tril(to: Any, m: Any, k: Any = 0) -> Any:
    return torch.tril(m, k)


@maps("triu")
def _triu(to: Any, m: Any, k: Any = 0) -> Any:
    return torch.triu(m, k)


def _filled(value: float) -> Expression:
    def filled(
        to: Any, a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None,
        *, device: Any = None,
    ) -> Any:  # fmt: skip
        sizes = tuple(a.shape) if absent(shape) else shape
        return torch.full(sizes if isinstance(sizes, tuple | list) else (sizes,), value, dtype=to)

    return filled


maps("zeros_like", "empty_like")(_filled(0))
maps("ones_like")(_filled(1))


@maps("full_like")
def _full_like(
    to: Any, a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: Any = True,
    shape: Any = None, *, device: Any = None,
) -> Any:  # fmt: skip
    sizes = tuple(a.shape) if absent(shape) else shape
    return cast(fill_value, to).expand(sizes).clone()


@maps("copy")
def _copy(to: Any, a: Any, order: Any = "K", subok: Any = False) -> Any:
    return torch.clone(a)


@maps("real")
def _real(to: Any, val: Any) -> Any:
    return torch.real(val) if val.is_complex() else val


@maps("imag")
def _imag(to: Any, val: Any) -> Any:
    return torch.imag(val) if val.is_complex() else torch.zeros_like(val)


@maps("angle")
def _angle(to: Any, z: Any, deg: Any = False) -> Any:
    only_default(deg=deg)
    return torch.angle(z)


@maps("broadcast_to")
def _broadcast_to(to: Any, array: Any, shape: Any, subok: Any = False) -> Any:
    return torch.broadcast_to(array, shape if isinstance(shape, tuple | list) else (shape,))


@maps("broadcast_arrays")
def _broadcast_arrays(to: Any, *args: Any, subok: Any = False) -> Any:
    each = [tensor(one) for one in args]
    shape = numpy.broadcast_shapes(*[tuple(one.shape) for one in each])
    return [torch.broadcast_to(one, shape) for one in each]


def _at_least(expression: Expression) -> Expression:
    def at_least(to: Any, *arys: Any) -> Any:
        each = [expression(tensor(one)) for one in arys]
        return each[0] if len(each) == 1 else each

    return at_least


maps("atleast_1d")(_at_least(torch.atleast_1d))
maps("atleast_2d")(_at_least(torch.atleast_2d))
maps("atleast_3d")(_at_least(torch.atleast_3d))


@maps("tile")
def _tile(to: Any, A: Any, reps: Any) -> Any:  # noqa: N803 (NumPy's name)
    return torch.tile(A, tuple(reps) if isinstance(reps, tuple | list) else (reps,))


@maps("repeat")
def _repeat(to: Any, a: Any, repeats: Any, axis: Any = None) -> Any:
    counts = repeats if isinstance(repeats, int | torch.Tensor) else tensor(repeats)
    return torch.repeat_interleave(a, counts, axis)


def _positions(indices: Any, count: int) -> torch.Tensor:
    """Return indices as positions from the front."""
    indices = cast(tensor(indices), torch.int64)
    return torch.where(indices < 0, indices + count, indices)


@maps("take")
def _take(to: Any, a: Any, indices: Any, axis: Any = None, mode: Any = "raise") -> Any:
    if mode != "raise":
        raise Unmapped(f"the argument mode={mode!r} is not supported")
    a, along = (a.reshape(-1), 0) if axis is None else (a, _axis(axis, a.dim()))
    where = _positions(indices, a.shape[along])
    found = torch.index_select(a, along, where.reshape(-1))
    return found.reshape([*a.shape[:along], *where.shape, *a.shape[along + 1 :]])


@maps("take_along_axis")
def _take_along_axis(to: Any, arr: Any, indices: Any, axis: Any = -1) -> Any:
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    return torch.take_along_dim(arr, _positions(indices, arr.shape[axis]), axis)


@maps("diff")
def _diff(
    to: Any, a: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None
) -> Any:
    only_default(prepend=prepend, append=append)
    return torch.diff(a, n, axis)


@maps("trapezoid", "trapz")
def _trapezoid(to: Any, y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    y = cast(y, to)
    return torch.trapezoid(y, dx=dx, dim=axis) if x is None else torch.trapezoid(y, x, dim=axis)


@maps("meshgrid")
def _meshgrid(
    to: Any, *xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy"
) -> Any:
    only_default(sparse=sparse)
    each = [tensor(one).reshape(-1) for one in xi]
    swapped = indexing == "xy" and len(each) > 1
    places = [1, 0, *range(2, len(each))] if swapped else list(range(len(each)))
    shape = [each[place].shape[0] for place in places]
    return [
        each[which]
        .reshape([-1 if places[axis] == which else 1 for axis in range(len(each))])
        .expand(shape)
        for which in range(len(each))
    ]


@maps("searchsorted")
def _searchsorted(to: Any, a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    only_default(sorter=sorter)
    a, v = tensor(a), tensor(v)
    common = torch.promote_types(a.dtype, v.dtype)
    return torch.searchsorted(cast(a, common), cast(v, common), side=side)


@maps("pad")
def _pad(
    to: Any,
    array: Any,
    pad_width: Any,
    mode: Any = "constant",
    constant_values: Any = 0,
    **rest: Any,
) -> Any:
    only_default(**rest)
    if mode != "constant" or not isinstance(constant_values, int | float):
        raise Unmapped("only padding with one constant is supported")
    widths = numpy.broadcast_to(numpy.asarray(pad_width), (array.dim(), 2))
    flat = [int(width) for pair in widths[::-1] for width in pair]
    return torch.nn.functional.pad(array, flat, value=constant_values)


@maps("interp")
def _interp(
    to: Any, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    only_default(period=period)
    x, xp, fp = (cast(one, torch.float64) for one in (x, xp, fp))
    last = xp.shape[0] - 1
    upper = torch.searchsorted(xp, x.reshape(-1), side="right").clamp(1, max(last, 1))
    lower = upper - 1
    slope = (fp[upper] - fp[lower]) / (xp[upper] - xp[lower])
    inside = (fp[lower] + slope * (x.reshape(-1) - xp[lower])).reshape(x.shape)
    below = fp[0] if left is None else cast(left, torch.float64)
    above = fp[last] if right is None else cast(right, torch.float64)
    return torch.where(x < xp[0], below, torch.where(x > xp[last], above, inside))


@maps("linalg.norm")
def _norm(to: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    x = cast(x, torch.complex128 if x.is_complex() and to == torch.float64 else to)
    dims = None if axis is None else tuple(_axes(axis, x.dim()))
    rank = x.dim() if dims is None else len(dims)
    if ord is None or rank == 1:
        return torch.linalg.vector_norm(x, 2 if ord is None else ord, dims, keepdim=keepdims)
    return torch.linalg.matrix_norm(x, ord, dims or (-2, -1), keepdim=keepdims)


@maps("linalg.vector_norm")
def _vector_norm(
    to: Any, x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2
) -> Any:
    dims = None if axis is None else tuple(_axes(axis, x.dim()))
    return torch.linalg.vector_norm(cast(x, to), ord, dims, keepdim=keepdims)


@maps("linalg.inv")
def _inverse(to: Any, a: Any) -> Any:
    return torch.linalg.inv(cast(a, to))


@maps("linalg.pinv")
def _pseudo_inverse(to: Any, a: Any, **rest: Any) -> Any:
    only_default(**rest)
    return torch.linalg.pinv(cast(a, to))


@maps("linalg.det")
def _determinant(to: Any, a: Any) -> Any:
    return torch.linalg.det(cast(a, to))


@maps("linalg.solve")
def _solve(to: Any, a: Any, b: Any) -> Any:
    return torch.linalg.solve(cast(a, to), cast(b, to))


@maps("linalg.cholesky")
def _cholesky(to: Any, a: Any, /, *, upper: Any = False) -> Any:
    return torch.linalg.cholesky(cast(a, to), upper=upper)


@maps("linalg.matrix_power")
def _matrix_power(to: Any, a: Any, n: Any) -> Any:
    return torch.linalg.matrix_power(cast(a, to), n)


@maps("linalg.multi_dot")
def _multi_dot(to: Any, arrays: Any) -> Any:
    return torch.linalg.multi_dot(_each(arrays, to))


def _transform(expression: Expression) -> Expression:
    def transform(to: Any, a: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
        # NumPy transforms in the precision of its result, torch in that of its operand.
        double = to in (torch.float64, torch.complex128)
        exact = {False: torch.float32, True: torch.float64}[double]
        wide = {False: torch.complex64, True: torch.complex128}[double]
        return expression(cast(a, wide if a.is_complex() else exact), n=n, dim=axis, norm=norm)

    return transform


for _name in words("fft ifft rfft irfft hfft ihfft"):
    maps(f"fft.{_name}")(_transform(getattr(torch.fft, _name)))


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
    numpy.add: _running(torch.cumsum),
    numpy.multiply: _running(torch.cumprod),
    numpy.maximum: running_maximum,
    numpy.minimum: running_minimum,
}


def _named(*paths: str) -> frozenset[Any]:
    return frozenset(found for found in map(_find, paths) if found is not None)


# Results that depend on no element: they are NumPy's, and nothing is recorded.
ABOUT_SHAPE = _named(
    *words(
        "shape ndim size result_type can_cast min_scalar_type common_type iscomplexobj isrealobj"
    ),
    *words("may_share_memory shares_memory array_repr array_str array2string broadcast_shapes"),
)
# Results that are Python values or files: they are NumPy's, and the values that left are reported.
LEAVING = _named(*words("allclose array_equal array_equiv save savez savez_compressed savetxt"))
# Results whose shape depends on the elements.
RAGGED = _named(*words("nonzero flatnonzero argwhere unique"))
