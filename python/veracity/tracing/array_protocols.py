"""What traced arrays do when NumPy or the user calls them: ufuncs, functions, methods, attributes.

Importing this module gives the two classes of `veracity.tracing.arrays` their operations. Whatever
NumPy's classes can do beyond the tables is refused by name.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch

from veracity.tracing import array_table, arrays
from veracity.tracing.array_composed import COMPOSED
from veracity.tracing.array_indexing import add_at, get_item, set_item
from veracity.tracing.array_operations import (
    array_of_items,
    first_line,
    never,
    overlay,
    perform,
    tell_of,
    traced_target,
    without_torch,
    write,
)
from veracity.tracing.array_table import Unmapped, cast, torch_dtype, words
from veracity.tracing.arrays import (
    TracedArray,
    TracedScalar,
    array_from_tensor,
    exposed,
    is_constant,
    leave,
    map_leaves,
    only_constants,
    operand,
    plain,
    plain_array,
    reading_tensor,
    refusal,
    state_of,
    taint,
    tensor_of,
    traced_in,
)

# -------------------------------------------------------------------------------- NumPy's protocols


# Held from before a session puts its own in their places.
_COPYTO, _EMPTY_LIKE, _WHERE = numpy.copyto, numpy.empty_like, numpy.where
_ZEROS_LIKE = numpy.zeros_like
_RAVEL = array_table.FUNCTIONS[numpy.ravel]
_RESHAPE = array_table.FUNCTIONS[numpy.reshape]
_TRANSPOSE = array_table.FUNCTIONS[numpy.transpose]


def perform_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Perform a ufunc, or a method of it."""
    reference = ufunc if method == "__call__" else getattr(ufunc, method)
    if not arrays.active():
        return unrecorded(reference, inputs, kwargs)
    inputs = tuple(
        array_of_items(one) if type(one) in (list, tuple) and method != "at" else one
        for one in inputs
    )
    if any(isinstance(one, torch.Tensor) for one in inputs):
        return _with_tensors(ufunc, method, inputs, kwargs)
    name = f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    if method == "at":
        if only_constants(inputs):
            return without_torch(reference, inputs, kwargs, stays=False)
        return add_at(ufunc, name, *inputs)
    if method == "__call__":
        expression = _ufunc_expression(ufunc, inputs, kwargs)
    elif method == "reduce":
        expression = _reduction(array_table.REDUCED.get(ufunc))
    elif method == "accumulate":
        expression = _accumulation(array_table.ACCUMULATED.get(ufunc))
    elif method == "outer":
        expression = _outer_expression(ufunc, inputs, kwargs)
    else:
        expression = None
    return perform(name, reference, expression, inputs, kwargs)


def unrecorded(reference: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute as if there were no traced arrays."""
    out = kwargs.get("out")
    result = reference(*plain(args), **plain(kwargs))
    if out is None or result is None:
        return result
    return out[0] if isinstance(out, tuple) and len(out) == 1 else out


def _with_tensors(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute where torch asked NumPy: the result is a tensor, as it is without a session."""
    arrays = [one for one in inputs if isinstance(one, numpy.ndarray)]
    if method != "__call__" or kwargs:
        raise refusal(f"numpy.{ufunc.__name__}", "it mixes tensors and arrays")
    if not arrays and ufunc in array_table.UFUNCS:
        return array_table.UFUNCS[ufunc](*map_leaves(inputs, operand))
    inputs = tuple(
        array_from_tensor(one) if isinstance(one, torch.Tensor) else one for one in inputs
    )
    return tensor_of(perform_ufunc(ufunc, method, inputs, kwargs))


# What NumPy itself passes along: the order of memory, and the axes of `@=`.
_UFUNC_DEFAULTS: tuple[Any, ...] = ("K", [(-2, -1)] * 3)


def _ufunc_expression(
    ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[..., Any] | None:
    expression = array_table.UFUNCS.get(ufunc)
    if expression is None:
        return None

    def compute(
        to: Any, *operands: Any, dtype: Any = None, casting: Any = None, **rest: Any
    ) -> Any:
        array_table.only_default(
            **{name: value for name, value in rest.items() if value not in _UFUNC_DEFAULTS}
        )
        loop = _loop_dtypes(ufunc, inputs, dtype)
        second = len(operands) == 2 and ufunc in array_table.TAKES_NUMBER
        converted = [
            one
            if second and place == 1 and type(one) in (int, float)
            else cast(one, array_table.work_dtype(torch_dtype(loop[place])))
            for place, one in enumerate(operands)
        ]
        return expression(*converted)

    return compute


_NUMBERS = (int, float, complex)
_IS_NUMPY_1 = numpy.lib.NumpyVersion(numpy.__version__) < "2.0.0"


def _loop_dtypes(ufunc: Any, inputs: tuple[Any, ...], dtype: Any) -> tuple[Any, ...]:
    """Return the dtypes in which NumPy computes; Python numbers take part as they are."""
    kinds = [
        type(one) if type(one) in _NUMBERS else numpy.result_type(plain(one)) for one in inputs
    ]
    if _IS_NUMPY_1:
        kinds = _kinds_of_numpy_1(kinds, [numpy.ndim(plain(one)) for one in inputs])
    wanted = None if dtype is None else (*[None] * ufunc.nin, *[numpy.dtype(dtype)] * ufunc.nout)
    asked = (*kinds, *[None] * ufunc.nout)
    loop: tuple[Any, ...] = ufunc.resolve_dtypes(asked, **({"signature": wanted} if wanted else {}))
    return loop


def _kinds_of_numpy_1(kinds: list[Any], axes: list[int]) -> list[Any]:
    """Return what takes part before NumPy 2: numbers yield to arrays, and not to one another."""
    if any(axes):
        return [
            kind if one else _as_number(numpy.dtype(kind))
            for kind, one in zip(kinds, axes, strict=True)
        ]
    return [numpy.dtype(kind) for kind in kinds]


def _as_number(kind: numpy.dtype[Any]) -> Any:
    return {"f": float, "i": int, "u": int, "c": complex}.get(kind.kind, kind)


def _reduction(function: Any) -> Callable[..., Any] | None:
    expression = array_table.FUNCTIONS.get(function)
    if expression is None:
        return None

    def compute(to: Any, a: Any, axis: Any = 0, dtype: Any = None, **rest: Any) -> Any:
        return expression(to, a, axis, **rest)

    return compute


def _accumulation(expression: Any) -> Callable[..., Any] | None:
    if expression is None:
        return None

    def compute(to: Any, a: Any, axis: Any = 0, dtype: Any = None) -> Any:
        return expression(to, a, axis)

    return compute


def _outer_expression(
    ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[..., Any] | None:
    inner = _ufunc_expression(ufunc, inputs, kwargs)
    if inner is None:
        return None

    def compute(to: Any, a: Any, b: Any, **rest: Any) -> Any:
        a, b = array_table.tensor(a), array_table.tensor(b)
        return inner(to, a.reshape([*a.shape, *[1] * b.dim()]), b, **rest)

    return compute


def perform_function(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Perform a function of NumPy."""
    if not arrays.active():
        return unrecorded(func, args, kwargs)
    module = func.__module__ or "numpy"
    name = f"{module}.{func.__name__}"
    if func in array_table.ABOUT_SHAPE or func in array_table.LEAVING:
        for one in traced_in(args, kwargs):
            if func in array_table.LEAVING or state_of(one).ragged:
                leave(one, name)
        return func(*plain(args), **plain(kwargs))
    if func is _COPYTO:
        return _copyto(*args, **kwargs)
    if func in COMPOSED and not only_constants(args, kwargs):
        return COMPOSED[func](*args, **kwargs)
    reference = _ZEROS_LIKE if func is _EMPTY_LIKE else func
    ragged = func in array_table.RAGGED or (func is _WHERE and len(args) == 1)
    expression = array_table.FUNCTIONS.get(func)
    return perform(name, reference, expression, args, kwargs, ragged=ragged)


def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if only_constants(dst, src, where):
        without_torch(_COPYTO, (dst, src, casting, where), {}, stays=False)
        return
    into = plain(dst).copy()
    numpy.copyto(into, plain(src), casting, plain(where))
    _assign("numpy.copyto", traced_target(dst), where, src, into)


def _assign(name: str, target: Any, where: Any, value: Any, expected: Any) -> None:
    """Write a value where a mask says so."""
    operands = traced_in(target, where, value)
    taint(name, state_of(target).memory)
    try:
        new = cast(map_leaves(value, operand), state_of(target).tensor.dtype)
        if where is not True:
            mask = cast(map_leaves(where, operand), torch.bool)
            new = torch.where(mask, new, reading_tensor(target))
        write(target, new)
    except (RuntimeError, TypeError, ValueError, Unmapped) as error:
        raise refusal(name, first_line(error)) from error
    overlay(name, target, expected, operands)


# ----------------------------------------------------------------------------------------- methods


def _method(name: str, expression: Callable[..., Any] | None, *, ragged: bool = False) -> Any:
    """Return a method that is performed like a function."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        reference = lambda array, *rest, **named: getattr(array, name)(*rest, **named)  # noqa: E731
        if not arrays.active():
            return unrecorded(reference, (self, *args), kwargs)
        return perform(
            f"numpy.ndarray.{name}", reference, expression, (self, *args), kwargs, ragged=ragged
        )

    method.__name__ = name
    return method


def _leaving_method(name: str) -> Any:
    """Return a method whose result is a Python object: it is reported."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        leave(self, name)
        return getattr(plain_array(self), name)(*plain(args), **plain(kwargs))

    method.__name__ = name
    return method


def _reshape(to: Any, a: Any, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
    sizes = shape[0] if len(shape) == 1 else shape
    return _RESHAPE(to, a, sizes, order)


def _transpose(to: Any, a: Any, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
    return _TRANSPOSE(to, a, order)


def _astype(to: Any, a: Any, *_: Any, **__: Any) -> Any:
    return cast(a, to)


def _flatten(to: Any, a: Any, order: Any = "C") -> Any:
    return _RAVEL(to, a, order)


def _view(self: Any, *args: Any, **kwargs: Any) -> Any:
    given = args[0] if args else kwargs.get("dtype", kwargs.get("type"))
    if given is numpy.ndarray:
        leave(self, "view")
        return plain_array(self)
    if not arrays.active():
        return plain_array(self).view(*args, **kwargs)
    if given is None or given is TracedArray or given == self.dtype:
        return self[...]
    if is_constant(self):
        return exposed(self).view(*args, **kwargs)
    raise refusal("numpy.ndarray.view", "it shows the memory with another type")


def _fill(self: Any, value: Any) -> None:
    self[...] = value


def _sort(self: Any, axis: Any = -1, kind: Any = None, order: Any = None, **rest: Any) -> None:
    if not arrays.active():
        return plain_array(self).sort(axis, kind, order, **rest)  # type: ignore[no-any-return]
    if is_constant(self):
        plain_array(self).sort(axis, kind, order, **rest)
        return tell_of(self)
    self[...] = numpy.sort(self, axis, kind, order, **rest)
    return None


def _deepcopy(self: Any, memo: Any = None) -> Any:
    return self.copy()


def _format(self: Any, spec: str) -> str:
    leave(self, "__format__")
    return format(plain_array(self), spec)


def _text(write: Callable[[Any], str]) -> Any:
    """Return a method that writes the elements: code may read them from the text."""

    def method(self: Any) -> str:
        leave(self, "__str__")
        return write(plain_array(self))

    return method


def _contains(self: Any, item: Any) -> bool:
    leave(self, "__contains__")
    return plain(item) in plain_array(self)


def _iterate(self: Any) -> Iterator[Any]:
    if plain_array(self).ndim == 0:
        raise TypeError("iteration over a 0-d array")
    if state_of(self).ragged:
        leave(self, "__iter__")
    return (self[place] for place in range(len(plain_array(self))))


def _length(self: Any) -> int:
    if state_of(self).ragged:
        leave(self, "__len__")
    return len(plain_array(self))


def _index(self: Any) -> int:
    index = operator.index(plain_array(self))
    leave(self, "__index__")
    return index


def _shape_property(name: str) -> property:
    def read(self: Any) -> Any:
        if self._state is not None and self._state.ragged:
            leave(self, name)
        return getattr(plain_array(self), name)

    def write(self: Any, value: Any) -> None:
        getattr(numpy.ndarray, name).__set__(self, value)

    return property(read, write)


def _raw_property(name: str) -> property:
    def read(self: Any) -> Any:
        leave(self, name)
        recorded = arrays.active() and is_constant(self)
        return getattr(exposed(self) if recorded else plain_array(self), name)

    return property(read)


def _flat_property() -> property:
    def read(self: Any) -> Any:
        if not arrays.active():
            return plain_array(self).flat
        if is_constant(self):
            return exposed(self).flat
        raise refusal("numpy.ndarray.flat", "it is an iterator")

    def write(self: Any, value: Any) -> None:
        if arrays.active() and not only_constants(self, value):
            raise refusal("numpy.ndarray.flat", "assigning to it is not supported")
        plain_array(self).flat = plain(value)
        if arrays.active():
            tell_of(self)

    return property(read, write)


def _value_property(name: str) -> property:
    def read(self: Any) -> Any:
        return getattr(self._value, name)

    return property(read)


def _viewing_property(name: str, expression: Callable[..., Any]) -> property:
    def read(self: Any) -> Any:
        if not arrays.active():
            return getattr(plain_array(self), name)
        return perform(
            f"numpy.ndarray.{name}", lambda array: getattr(array, name), expression, (self,), {}
        )

    def write(self: Any, value: Any) -> None:
        if arrays.active() and not only_constants(self, value):
            raise refusal(f"numpy.ndarray.{name}", "assigning to it is not supported")
        setattr(plain_array(self), name, plain(value))
        if arrays.active():
            tell_of(self)

    return property(read, write)


def _array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    return perform_ufunc(ufunc, method, inputs, kwargs)


def _array_function(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    return perform_function(func, tuple(args), dict(kwargs))


_FUNCTION_METHODS = words("""
    sum prod mean std var min max argmin argmax cumsum cumprod any all squeeze swapaxes clip dot
    round argsort nonzero take repeat ravel diagonal trace searchsorted copy ptp
""")
_LEAVING_METHODS = words("""
    item tolist tobytes tofile dump dumps __bool__ __int__ __float__ __complex__
    __dlpack__ __reduce__ __reduce_ex__ __array_namespace__
""")
_OWN_METHODS = {
    "__array_ufunc__": _array_ufunc,
    "__array_function__": _array_function,
    "reshape": _method("reshape", _reshape),
    "transpose": _method("transpose", _transpose),
    "astype": _method("astype", _astype),
    "flatten": _method("flatten", _flatten),
    "conj": _method("conj", lambda to, a: torch.conj_physical(a)),
    "conjugate": _method("conjugate", lambda to, a: torch.conj_physical(a)),
    "view": _view,
    "__copy__": _deepcopy,
    "__deepcopy__": _deepcopy,
    "__format__": _format,
    "__index__": _index,
    "__repr__": _text(repr),
    "__str__": _text(str),
    "T": _viewing_property("T", _TRANSPOSE),
    "real": _viewing_property("real", array_table.FUNCTIONS[numpy.real]),
    "imag": _viewing_property("imag", array_table.FUNCTIONS[numpy.imag]),
    "data": _raw_property("data"),
    "__getitem__": get_item,
} | {
    name: _method(name, array_table.FUNCTIONS[getattr(numpy, name)], ragged=name == "nonzero")
    for name in _FUNCTION_METHODS
}
_ARRAY_METHODS = {
    "fill": _fill,
    "sort": _sort,
    "mT": _viewing_property("mT", lambda to, a: a.transpose(-2, -1)),
    "shape": _shape_property("shape"),
    "size": _shape_property("size"),
    "ctypes": _raw_property("ctypes"),
    "flat": _flat_property(),
    "__array_interface__": _raw_property("__array_interface__"),
    "__array_struct__": _raw_property("__array_struct__"),
    "__setitem__": set_item,
    "__contains__": _contains,
    "__iter__": _iterate,
    "__len__": _length,
}
# What needs no recording: it tells of the array, not of its elements.
_QUIET = words("""
    base device dtype flags itemsize nbytes ndim strides setflags to_device
""")


def _complete(kind: type, methods: dict[str, Any], model: type) -> None:
    """Give a class its methods; what NumPy has beyond them is refused by name."""
    methods = methods | {name: _leaving_method(name) for name in _LEAVING_METHODS}
    for name, method in methods.items():
        if hasattr(model, name) or name in ("__array_ufunc__", "__array_function__", "__index__"):
            setattr(kind, name, method)
    for name in dir(model):
        if not name.startswith("_") and name not in methods and name not in _QUIET:
            value = getattr(model, name)
            refusing = _method(name, None) if callable(value) else _viewing_property(name, never)
            setattr(kind, name, refusing)


_complete(TracedArray, _OWN_METHODS | _ARRAY_METHODS, numpy.ndarray)
_complete(TracedScalar, _OWN_METHODS, numpy.float64)

for _name in ("__ceil__", "__floor__", "__round__", "__trunc__", "__hash__"):
    setattr(TracedScalar, _name, _leaving_method(_name))
for _name in ("dtype", "shape", "ndim", "size", "itemsize", "nbytes", "strides", "flags"):
    setattr(TracedScalar, _name, _value_property(_name))
TracedScalar.__iter__ = None  # type: ignore[attr-defined]  # or Python would try indices
# A scalar does not change: without `+=` of its own Python makes a new one with `+`.
for _name, _operator in vars(numpy.lib.mixins.NDArrayOperatorsMixin).items():
    if _name == "__invert__" or (callable(_operator) and not _name.startswith("__i")):
        setattr(TracedScalar, _name, _operator)
