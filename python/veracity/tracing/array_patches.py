"""Functions of NumPy and torch that keep traced arrays traced, for the time of a session.

- `numpy.asarray` drops subclasses, and `torch.from_numpy` makes an alias that nobody sees.
- Every function of NumPy asks a traced array to compute, but not one in a list: lists are made
  arrays before NumPy sees them. (Ufuncs cannot be replaced: traced arrays in a list that only a
  ufunc sees are constants.)
- New arrays (`numpy.zeros` and its kin) become traced arrays that hold constants: only so can a
  later `out[0] = x[0]` be recorded. Libraries that fill arrays for themselves get plain ones.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy
import torch

from veracity.tracing import arrays
from veracity.tracing.array_composed import vectorized
from veracity.tracing.array_operations import array_of_items, constant_array, perform, tell_of
from veracity.tracing.array_plain import LIBRARIES, traced_name, traced_names
from veracity.tracing.array_protocols import perform_function
from veracity.tracing.array_table import cast, words
from veracity.tracing.replaced import Replaced

_MAKERS = words("zeros ones empty full eye identity arange linspace")
_CONVERTERS = words("array asarray asanyarray ascontiguousarray")
# TorchScript knows `torch.tensor` by its identity; it must know the replacement too.
_scriptable: dict[int, str | None] = torch.jit._builtins._get_builtin_table()
_alive: dict[int, weakref.ref[Any]] = {}

# Functions of torch to which a tensor in place of a number gives a size that depends on data.
_SIZED = words("arange linspace logspace")

# Functions of torch that may insist on a Python number where a traced scalar may be given.
_WITH_NUMBERS = (
    (
        torch,
        words("""
        full full_like clamp clip add sub rsub mul div true_divide pow fmod
        remainder floor_divide where addcmul addcdiv addmm addmv addr baddbmm masked_fill eq ne lt
        le gt ge lerp
        """),
    ),
    (
        torch.Tensor,
        words("""
        clamp clamp_ clip clip_ fill_ masked_fill masked_fill_ new_full lerp add add_ sub sub_ pow
        addcmul addcmul_ addcdiv addcdiv_ addmm baddbmm mul_ div_
        """),
    ),
)


def install(replaced: Replaced) -> None:
    """Put the replacements in place until `replaced` is removed."""
    replace = functools.partial(_replace, replaced)
    taken: set[str] = {*_CONVERTERS, *_MAKERS}
    for name in _CONVERTERS:
        replace(numpy, name, _converter)
    for name in _MAKERS:
        replace(numpy, name, _maker)
    for module in (numpy, numpy.linalg, numpy.fft):
        for name, function in list(vars(module).items()):
            if hasattr(function, "_implementation") and not (module is numpy and name in taken):
                replace(module, name, _taking_lists)
    for name, function in list(vars(numpy.random).items()):
        if callable(function) and not isinstance(function, type) and not name.startswith("_"):
            replace(numpy.random, name, _refusing)
    replace(numpy.vectorize, "__call__", _vectorized)
    for owner, names in _WITH_NUMBERS:
        for name in names:
            replace(owner, name, _taking_numbers)
    replace(numpy, "nditer", _iterating)
    for name in _SIZED:
        replace(torch, name, _sized_by_numbers)
    replace(torch.Tensor, "__setitem__", _taking_a_scalar)
    replace(torch.Tensor, "new_tensor", _new_tensor)
    replace(torch, "from_numpy", _from_numpy)
    replace(torch, "as_tensor", functools.partial(_to_tensor, copies=False))
    replace(torch, "tensor", functools.partial(_to_tensor, copies=True))


def _forget(number: int, _: Any) -> None:
    _scriptable.pop(number, None)
    _alive.pop(number, None)


def _replace(replaced: Replaced, module: Any, name: str, make: Callable[[Any, str], Any]) -> None:
    original = getattr(module, name)
    replacement = functools.wraps(original)(make(original, name))
    _scriptable[id(replacement)] = _scriptable.get(id(original))
    _alive[id(replacement)] = weakref.ref(replacement, functools.partial(_forget, id(replacement)))
    replaced.put(module, name, replacement)


def _for_user(name: str) -> bool:
    """Whether the caller of a replacement is the user's code, in a session.

    Compiled code has no frame, but the frame it seems to be does not mention the name: so the
    arrays that `numpy.random` fills stay plain.
    """
    if not arrays.active():
        return False
    frame = sys._getframe(2)
    module = frame.f_globals.get("__name__") or ""
    return module.partition(".")[0] not in LIBRARIES and name in frame.f_code.co_names


def _maker(original: Any, name: str) -> Any:
    def fill(to: Any, shape: Any, value: Any, *_: Any, **__: Any) -> Any:
        return cast(value, to).expand(shape)

    def make(*args: Any, **kwargs: Any) -> Any:
        if not _for_user(name):
            return original(*args, **kwargs)
        if name == "full" and arrays.traced_in(args[1:], kwargs.get("fill_value")):
            value = args[1] if len(args) > 1 else kwargs.pop("fill_value")
            return perform("numpy.full", original, fill, (args[0], value, *args[2:]), kwargs)
        return constant_array(original(*args, **kwargs))

    return make


def _converter(original: Any, name: str) -> Any:
    def convert(value: Any, *args: Any, **kwargs: Any) -> Any:
        if not arrays.active():
            return original(value, *args, **kwargs)
        if isinstance(value, torch.Tensor) and value.device.type == "cpu":
            # A traced tensor gives a traced array; NumPy itself would drop the subclass.
            value = value.detach().numpy()
        value = traced_names(value)
        if arrays.traced_in(value):
            return _converted(name, original, value, args, kwargs)
        made = original(value, *args, **kwargs)
        fresh = name == "array" or not isinstance(value, numpy.ndarray)
        return constant_array(made) if fresh and _for_user(name) else made

    return convert


def _converted(name: str, original: Any, value: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    # NumPy says what shape and dtype the arguments ask for.
    model = original(arrays.plain(value), *args, **kwargs)

    def compute(to: Any, found: Any, *_: Any, **__: Any) -> Any:
        return cast(found, to).reshape(model.shape)

    def reference(*_: Any, **__: Any) -> Any:
        return model

    if arrays.is_array(value) and model.ndim == value.ndim and arrays.overlap(model, value):
        return value
    return perform(f"numpy.{name}", reference, compute, (value,), {})


# These take a list of arrays as such; only lists in the list are arrays.
_OF_SEQUENCES = frozenset(
    words("concatenate concat stack vstack row_stack hstack dstack column_stack multi_dot block")
)


def _taking_lists(original: Any, name: str) -> Any:
    def array_of(value: Any) -> Any:
        value = traced_names(value)
        if type(value) in (list, tuple) and arrays.traced_in(value):
            return array_of_items(value)
        return value

    def argument(value: Any) -> Any:
        if name in _OF_SEQUENCES and type(value) in (list, tuple):
            return type(value)([array_of(one) for one in value])
        return array_of(value)

    def call(*args: Any, **kwargs: Any) -> Any:
        if not arrays.active():
            return original(*args, **kwargs)
        named = {
            key: traced_name(value) if key == "out" else argument(value)
            for key, value in kwargs.items()
        }
        given = tuple(argument(value) for value in args)
        if _is_overlooked(given, named):
            return perform_function(original, given, named)
        made = original(*given, **named)
        # An array of plain numbers is new: `np.diag([3.0, 2.0])`.
        fresh = type(made) is numpy.ndarray and not _holds_arrays(given, named)
        return constant_array(made) if fresh and _for_user(name) else made

    return call


def _is_overlooked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Say whether NumPy may take a traced value for a number: it asks only some arguments.

    It always asks the first, and never the values of `fill_diagonal` or the `nan` of `nan_to_num`.
    """
    first_is_plain = bool(args) and type(args[0]) is numpy.ndarray
    return first_is_plain and bool(arrays.traced_in(args[1:], kwargs))


def _holds_arrays(*values: Any) -> bool:
    return any(isinstance(one, numpy.ndarray) or arrays.is_traced(one) for one in _flat(*values))


def _vectorized(original: Any, name: str) -> Any:
    """Return the call of a vectorised function that follows each element."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        args = traced_names(args)
        plain_call = kwargs or self.signature is not None or self.excluded
        if not arrays.active() or plain_call or arrays.only_constants(args):
            return original(self, *args, **kwargs)
        return vectorized(self, tuple(_as_operand(one) for one in args))

    return call


def _as_operand(value: Any) -> Any:
    return array_of_items(value) if type(value) in (list, tuple) else value


def _refusing(original: Any, name: str) -> Any:
    """Return a function that C code would do on the memory of its arguments, unseen."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = arrays.traced_in(args, kwargs)
        if not arrays.active() or not given:
            return original(*args, **kwargs)
        if not arrays.only_constants(given):
            raise arrays.refusal(f"numpy.random.{name}", "it draws random numbers")
        result = original(*arrays.plain(args), **arrays.plain(kwargs))
        for one in given:
            tell_of(one)
        return result

    return call


def _iterating(original: Any, name: str) -> Any:
    """Return an iterator of C code over the elements, which reads them unseen."""

    def iterate(*args: Any, **kwargs: Any) -> Any:
        given = arrays.traced_in(traced_names(args), kwargs)
        for one in given if arrays.active() else ():
            arrays.leave(one, "its memory")
        return original(*arrays.plain(args), **arrays.plain(kwargs))

    return iterate


def _taking_numbers(original: Any, name: str) -> Any:
    """Return a function of torch to which a traced scalar is a number, where no tensor will do."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except TypeError:  # from its look at the arguments: nothing has run yet
            changed, named = arrays.numbers_for_scalars(args, kwargs)
            leaves = zip(_flat(args, kwargs), _flat(changed, named), strict=True)
            if all(one is other for one, other in leaves):
                raise
            return original(*changed, **named)

    setattr(call, arrays.TAKES_NUMBERS, original)
    return call


def _sized_by_numbers(original: Any, name: str) -> Any:
    """Return a function of torch to which a traced scalar is a number, which is reported."""

    def call(*args: Any, **kwargs: Any) -> Any:
        changed, named = arrays.numbers_for_scalars(args, kwargs)
        return original(*changed, **named)

    return call


def _flat(*values: Any) -> list[Any]:
    found: list[Any] = []
    arrays.map_leaves(values, found.append)
    return found


def _taking_a_scalar(original: Any, name: str) -> Any:
    """Return an assignment to a part of a tensor to which a traced scalar is a tensor."""

    def assign(self: Any, key: Any, value: Any) -> None:
        original(self, key, arrays.operand(value) if arrays.is_traced(value) else value)

    return assign


def _from_numpy(original: Any, name: str) -> Any:
    def from_numpy(value: Any) -> Any:
        value = traced_name(value)
        if not arrays.is_traced(value):
            return original(value)
        if arrays.lose_if_outdated(value):
            return original(arrays.plain_array(value))  # known to the recorder as it is now
        return arrays.tensor_of(value)

    return from_numpy


def _to_tensor(original: Any, name: str, *, copies: bool) -> Any:
    def to_tensor(data: Any, *args: Any, **kwargs: Any) -> Any:
        data = traced_names(data)
        if not arrays.active() or not arrays.traced_in(data):
            return original(data, *args, **kwargs)
        model = original(arrays.plain(data), *args, **kwargs)
        if arrays.is_traced(data):
            found = arrays.tensor_of(data)
            found = torch.clone(found) if copies else found
        else:
            found = cast(arrays.map_leaves(data, arrays.operand), model.dtype)
        found = cast(found, model.dtype)
        found = found if found.device == model.device else found.to(model.device)
        return found.requires_grad_() if model.requires_grad else found

    return to_tensor


def _new_tensor(original: Any, name: str) -> Any:
    def new_tensor(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        data = traced_names(data)
        tensors = [leaf for leaf in _flat(data) if isinstance(leaf, torch.Tensor)]
        if not arrays.active() or not (tensors or arrays.traced_in(data)):
            return original(self, data, *args, **kwargs)
        with arrays.pause():
            like = original(self, arrays.plain(data), *args, **kwargs)
            options = {name: getattr(like, name) for name in ("dtype", "device", "requires_grad")}
        return torch.tensor(data, **options)

    return new_tensor
