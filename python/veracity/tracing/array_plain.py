"""Plain arrays, older than the session or filled by others, that traced values come into.

NumPy copies a traced array into a plain one without a word. During a session the native part
listens to plain arrays: a write of a traced value is recorded on their memory, and as long as the
node is open that the value belongs to, whatever reads that memory is recorded too. Where no node is
open plain arrays are left alone: they are the world's.

What compiled code does to the memory by itself is not heard. It is noticed when the array comes
back: its elements are then not those that were written last.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy

from veracity.tracing import arrays
from veracity.tracing.array_indexing import get_item, set_item
from veracity.tracing.array_operations import array_of_items, traced_target
from veracity.tracing.array_table import DTYPES
from veracity.tracing.array_unfollowed import refused_in
from veracity.tracing.arrays import (
    Memory,
    State,
    array_of,
    constant_of,
    known_memory,
    leave,
    map_leaves,
    only_constants,
    refusal,
    shown,
    state_of,
    traced_in,
    wrap,
)

# Packages whose own arrays are their own business.
LIBRARIES = frozenset(
    {
        *("numpy", "torch", "scipy", "pandas", "matplotlib", "PIL", "onnx", "onnxruntime"),
        *("onnxscript", "safetensors", "veracity"),
    }
)
# Packages that are patched so that what goes through them stays traced.
_SEEN_THROUGH = frozenset({"numpy", "torch", "veracity"})


def traced_name(value: Any) -> Any:
    """Return a plain array as a traced one where an open node reaches its memory."""
    if type(value) is not numpy.ndarray or not arrays.kept_memories or not arrays.active():
        return value
    known = known_memory(value)
    if known is None or known.memory.written is None or not _is_followed(known):
        return value
    return wrap(value, shown(value, known))


def _is_followed(known: State) -> bool:
    """Whether an open node reaches the memory, or an earlier pass left something in it."""
    if arrays.watch.follows(known.tensor):
        return True
    return known.memory.derived and arrays.watch.has_open()


def traced_names(values: Any) -> Any:
    """Return nested lists, tuples and dicts with every such array traced."""
    return map_leaves(values, traced_name) if arrays.kept_memories else values


def concerns_open_node(*values: Any) -> bool:
    """Whether an open node reaches one of the traced values."""
    found = traced_in(values)
    return any(arrays.watch.follows(state_of(one).tensor) for one in found) or bool(
        refused_in(found)
    )


def ufuncs() -> list[Any]:
    """Return the elementwise functions that are loaded, each once."""
    modules = [numpy, sys.modules.get("scipy.special")]
    modules += [sys.modules.get(f"{core}.umath") for core in ("numpy._core", "numpy.core")]
    found: dict[int, Any] = {}
    for module in modules:
        for value in vars(module).values() if hasattr(module, "__dict__") else ():
            if type(value) is numpy.ufunc:
                found[id(value)] = value
    return list(found.values())


def _as_constant(name: str, array: Any) -> Any:
    """Return a plain array as a traced one that holds a constant and is only read."""
    if array.dtype not in DTYPES:
        raise refusal(name, f"it reads an array of {array.dtype}")
    constant = constant_of(array)
    return wrap(array_of(constant), State(constant, (), Memory(derived=False)))


class Listener:
    """Hears what happens to plain arrays; `NotImplemented` leaves it to NumPy."""

    classes: ClassVar[list[type]] = [
        numpy.ndarray,
        numpy.flatiter,
        numpy.ufunc,
        arrays.TracedArray,
        arrays.TracedScalar,
    ]

    def read(self, array: Any, key: Any) -> Any:
        """Hear `array[key]`."""
        if not _by_user():
            return NotImplemented
        found = traced_name(array)
        if found is array:
            if not concerns_open_node(key):
                return NotImplemented
            found = _as_constant("this index", array)
        return get_item(found, key)

    def write(self, array: Any, key: Any, value: Any) -> Any:
        """Hear `array[key] = value`."""
        if not _by_user():
            return NotImplemented
        value = traced_names(value)
        if traced_name(array) is array and not concerns_open_node(key, value):
            return NotImplemented
        if array.dtype.hasobject:
            return _stored_as_object(array, key, value)
        set_item(traced_target(array), key, value)
        return None

    def write_flat(self, flat: Any, key: Any, value: Any) -> Any:
        """Hear `array.flat[key] = value`."""
        if not _by_user() or not concerns_open_node(key, traced_names(value)):
            return NotImplemented
        raise refusal("numpy.ndarray.flat", "assigning to it is not supported")

    def attribute(self, array: Any, name: str) -> Any:
        """Hear `array.name`."""
        if not _by_user():
            return NotImplemented
        found = traced_name(array)
        if found is not array:
            return getattr(found, name)
        method = vars(numpy.ndarray).get(name)
        if not callable(method):
            return NotImplemented
        return functools.partial(self._call, array, method.__get__(array), name)

    def _call(self, array: Any, method: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call a method that would read its arguments without asking them."""
        args, kwargs = traced_names(args), traced_names(kwargs)
        if not arrays.active() or not concerns_open_node(args, kwargs):
            return method(*args, **kwargs)
        if name in ("put", "partition"):
            raise refusal(f"numpy.ndarray.{name}", "it is not in the table")
        if name in ("fill", "__setitem__"):
            return set_item(traced_target(array), *((...,) if name == "fill" else ()), *args)
        return getattr(_as_constant(f"numpy.ndarray.{name}", array), name)(*args, **kwargs)

    def expose(self, array: Any) -> Any:
        """Hear that compiled code asks for the memory of an array, traced or plain."""
        if arrays.active() and _module_of_caller() not in _SEEN_THROUGH:
            found = traced_name(array)
            if found is not array or arrays.is_array(array):
                leave(found, "its memory")
        return NotImplemented

    def iterate(self, array: Any) -> Any:
        """Hear `iter(array)`."""
        found = traced_name(array) if _by_user() else array
        return NotImplemented if found is array else iter(found)

    def apply(self, ufunc: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Hear `ufunc(*args, **kwargs)`, and the operators, which are ufuncs."""
        if not _by_user():
            return NotImplemented
        changed = [_operand(one) for one in args]
        named = {name: traced_names(one) for name, one in kwargs.items()}
        before = [*args, *kwargs.values()]
        if all(
            one is other for one, other in zip([*changed, *named.values()], before, strict=True)
        ):
            return NotImplemented
        return ufunc(*changed, **named)

    def function_attribute(self, ufunc: Any, name: str) -> Any:
        """Hear `ufunc.name`: the methods do not ask plain arrays."""
        if name not in ("reduce", "accumulate", "outer", "reduceat", "at") or not _by_user():
            return NotImplemented
        method = vars(numpy.ufunc)[name].__get__(ufunc)
        return lambda *args, **kwargs: method(*traced_names(args), **traced_names(kwargs))


def _stored_as_object(array: Any, key: Any, value: Any) -> Any:
    """Let NumPy keep a traced value in an array of objects; spread over several it is numbers."""
    items = key if isinstance(key, tuple) else (key,)
    if len(items) != array.ndim or any(type(item) is not int for item in items):
        for one in traced_in(value):
            leave(one, "__array__")
    return NotImplemented


def _operand(value: Any) -> Any:
    if type(value) in (list, tuple):
        value = traced_names(value)
        return value if only_constants(value) else array_of_items(value)
    return traced_name(value)


def _by_user() -> bool:
    """Whether the user's own code does it, in a session."""
    if not arrays.active():
        return False
    if not arrays.watch.has_open():
        arrays.watch.reach_plain(False)
        return False
    return _module_of_caller(3) not in LIBRARIES


def _module_of_caller(depth: int = 2) -> str:
    module: str = sys._getframe(depth).f_globals.get("__name__") or ""
    return module.partition(".")[0]


@contextlib.contextmanager
def listening(recorder: Any, caution: Callable[[str], None]) -> Iterator[None]:
    """Listen to plain arrays; where NumPy is laid out in an unknown way, do without and say so."""
    functions = ufuncs()  # held: their memory is written again at the end
    try:
        recorder.listen_to_plain_arrays(Listener(), Listener.classes, functions)
    except NotImplementedError as error:
        caution(f"traced values that are written into plain NumPy arrays are not followed: {error}")
        yield
        return
    try:
        yield
    finally:
        recorder.leave_plain_arrays_alone()
