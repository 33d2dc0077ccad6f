"""What Python objects hold: the one walk over everything that the code of a node can reach.

It goes from variables into objects, containers, closures, iterators that are under way and
functions, without calling anything that the user wrote. Objects of torch and of NumPy, and modules
of libraries, are where it ends.
"""

from __future__ import annotations

import array
import collections
import contextvars
import ctypes
import datetime
import decimal
import dis
import enum
import fractions
import functools
import gc
import inspect
import io
import itertools
import operator
import pathlib
import queue
import re
import struct
import sys
import types
from collections.abc import Collection, Iterable, Iterator
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy
import torch

from veracity.tracing import reached, source
from veracity.tracing.classes import is_users
from veracity.tracing.operations import owner_of_file

#: Entries of one container that are looked at one by one, and objects of one walk.
MOST_ENTRIES, MOST_OBJECTS = 4096, 50_000
#: Values that are compared as they are.
PLAIN = (
    *(int, float, complex, str, bytes, type(None), enum.Enum, numpy.generic),
    *(decimal.Decimal, fractions.Fraction, datetime.datetime, datetime.timedelta, datetime.date),
)
#: Arrays, buffers and files up to this many bytes are compared.
MOST_BUFFER_BYTES = 1 << 16
#: Not every mapping: others run code of their own when they are asked, and a TensorDict torch's.
_DICTS = (dict, collections.UserDict)
_SEQUENCES = (list, tuple, set, frozenset, collections.deque)
_RUNNING = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
#: Objects that stay as they are, or that the recorder looks at for itself.
_SETTLED = (
    *(type(Ellipsis), type(NotImplemented), range, slice, re.Pattern, struct.Struct, property),
    *(types.CodeType, FrameType, types.BuiltinFunctionType, types.MethodDescriptorType),
    *(types.WrapperDescriptorType, types.MethodWrapperType, types.GetSetDescriptorType),
    *(types.MemberDescriptorType, types.ClassMethodDescriptorType, types.GenericAlias),
    *(types.UnionType, types.TracebackType, staticmethod, classmethod, numpy.ufunc, numpy.dtype),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, torch.finfo),
    *(torch.iinfo, torch.jit.ScriptFunction, datetime.tzinfo, pathlib.PurePath),
    *(operator.itemgetter, operator.attrgetter, operator.methodcaller, inspect.Signature),
    *(inspect.Parameter, functools.singledispatchmethod, functools.cached_property),
)
#: Packages of which objects are typing and plumbing, and hold nothing.
_INERT = frozenset({"typing", "abc", "ast", "importlib", "_frozen_importlib", "veracity"})
_USER = 0

#: By path from the code to a value, and the name that the source has for it: what is compared.
Values = dict[tuple[str, str], Any]
#: The name of a value, the name that the source has for it, and the value. In the source `.name` is
#: an attribute, `@name` a variable of a module or of a function around, `=name` one of the function
#: that marks inputs, and `~name` one of any other function.
Root = tuple[str, str, Any]


class Size(int):
    """How many entries a container has."""


class Opaque:
    """What cannot be looked into: it is never the same as before."""


class Filled(NamedTuple):
    """What is in an array. Another array in its place has a story of its own."""

    number: int
    content: bytes


class Mark(NamedTuple):
    """What is compared of an object, beside what it holds."""

    kind: type
    position: Any

    @property
    def grows(self) -> bool:
        """Whether it is a container, whose size is compared."""
        position = self.position
        return isinstance(position[0] if isinstance(position, tuple) else position, Size)


class Walk:
    """One walk.

    Attributes:
        was_cut: Whether there was more than a walk looks at.
    """

    def __init__(
        self, roots: list[Root], *, names: frozenset[str] | None = None, most: int = MOST_OBJECTS
    ) -> None:
        """Walk from `roots`, the nearest objects first.

        Attributes that have none of `names` are left out: no code asks for them.
        """
        self._names, self._most = names, most
        self._waiting = collections.deque(roots)
        self._seen: set[tuple[int, str]] = set()
        self.was_cut = False

    def __iter__(self) -> Iterator[Root]:
        """Give every value with the way to it; objects once for each name that they go by."""
        waiting, seen = self._waiting, self._seen
        count = 0
        while waiting:
            path, key, value = waiting.popleft()
            count += 1
            if count > self._most:
                self.was_cut = True
                return
            if is_plain(value):
                yield path, key, value
            elif (id(value), key) not in seen:
                seen.add((id(value), key))
                yield path, key, value
                waiting.extend(
                    (path + inner, own or key, item)
                    for inner, own, item in held(value)
                    if own is None or self._names is None or own.lstrip("@.=~") in self._names
                )


def compared(
    seen: Iterable[Root], *, followed: Collection[str] = ()
) -> Iterator[tuple[tuple[str, str], Any]]:
    """Give what is compared between two walks: plain values, and marks of everything else.

    What stands at the paths `followed` is a state that is known: it may change.
    """
    for path, key, value in seen:
        if isinstance(value, PLAIN):
            yield (path, key), value
            continue
        # Arrays among the variables of a running function are what it was just given.
        given = isinstance(value, numpy.ndarray | torch.Tensor) and key.startswith("=")
        known = given or path in followed
        yield (path, key), Mark(type(value), None if known else position(value))


def is_plain(value: Any) -> bool:
    """Say whether a value is told by itself; a number of the user's own class may hold others."""
    if not isinstance(value, PLAIN):
        return False
    return isinstance(value, enum.Enum) or not is_users(type(value))


def same(first: Any, later: Any) -> bool:
    """Say whether something is as it was."""
    if isinstance(later, Mark) and isinstance(later.position, Opaque):
        return False
    if first is later:
        return True
    if isinstance(later, Mark) and isinstance(first, Mark):
        marks = (first.position, later.position)
        if isinstance(marks[0], Filled) != isinstance(marks[1], Filled):
            return issubclass(first.kind, numpy.ndarray) and issubclass(later.kind, numpy.ndarray)
        if isinstance(marks[0], Filled) and marks[0].number != marks[1].number:
            return True
    try:
        return type(first) is type(later) and bool(first == later or first != first)
    except Exception:  # any: comparing is the user's code, too
        return False


def position(value: Any) -> Any:
    """Return what tells a container, iterator or function as it is now from what it was.

    Nothing for what is told by what it holds, and `Opaque` for what nobody can look into.
    """
    if isinstance(value, _DICTS):
        return Size(len(value)), hash(tuple(map(_name, itertools.islice(value, MOST_ENTRIES))))
    if isinstance(value, _SEQUENCES):
        return Size(len(value))
    if isinstance(value, queue.Queue | queue.SimpleQueue):
        return Size(value.qsize())
    if isinstance(value, bytearray | array.array):
        return bytes(value)
    if isinstance(value, numpy.ndarray):
        is_known = type(value) is numpy.ndarray and not value.dtype.hasobject
        is_small = is_known and value.nbytes <= MOST_BUFFER_BYTES
        return Filled(id(value), value.tobytes()) if is_small else None
    if isinstance(value, FunctionType):
        return value.__code__
    if isinstance(value, torch.nn.Module):
        return Size(len(reached.hooks_of(value)))
    if isinstance(value, torch.Tensor):
        is_filled = not torch.nn.parameter.is_lazy(value)
        return (value.dtype, tuple(value.shape)) if is_filled else None
    if isinstance(value, _RUNNING):
        frame = _frame_of(value)
        if frame is None:
            return -1
        # What a loop goes over stands in no variable.
        return Opaque() if _goes_over(frame.f_code) else frame.f_lasti
    if isinstance(value, functools._lru_cache_wrapper):
        return Size(value.cache_info().currsize)
    if isinstance(value, io.BytesIO | io.StringIO) and not value.closed:
        return value.tell(), value.getvalue()
    if isinstance(value, memoryview | ctypes._SimpleCData | ctypes.Array | ctypes.Structure):
        view = memoryview(value)
        return view.tobytes() if view.nbytes <= MOST_BUFFER_BYTES else Opaque()
    return _of_the_rest(value)


def _of_the_rest(value: Any) -> Any:
    kind = type(value)
    if kind.__module__ == "builtins" and isinstance(value, Iterator):
        hint = getattr(value, "__length_hint__", None)
        if hint is not None:
            return hint()
    if isinstance(value, MethodType | ModuleType | type) or is_settled(value):
        return None
    if isinstance(value, functools.partial | contextvars.ContextVar | BaseException):
        return None
    is_looked_into = is_users(kind) or isinstance(value, _DICTS) or _is_open(value)
    return None if is_looked_into and not isinstance(value, Iterator) else Opaque()


def is_settled(value: Any) -> bool:
    """Say whether an object stays as it is."""
    kind = type(value)
    if isinstance(value, _SETTLED) or kind.__module__.partition(".")[0] in _INERT:
        return True
    is_function = isinstance(value, FunctionType | MethodType | functools._lru_cache_wrapper)
    return hasattr(kind, "__get__") and not is_function and not is_users(kind)


def _is_open(value: Any) -> bool:
    """Say whether an object of a library keeps all that it has in attributes."""
    return type(getattr(value, "__dict__", None)) is dict and type(value).__basicsize__ <= 48


def _name(key: Any) -> Any:
    return key if isinstance(key, PLAIN) else id(key)


def held(value: Any) -> Iterator[tuple[str, str | None, Any]]:
    """Give what a value holds, how one gets there, and the name that the source has for it."""
    if isinstance(value, _DICTS):
        yield from _of_dict(value)
    elif isinstance(value, _SEQUENCES):
        for index, item in enumerate(itertools.islice(value, MOST_ENTRIES)):
            yield f"[{index}]", None, item
        if len(value) > MOST_ENTRIES:
            yield "[...]", None, _fingerprint(value)
    elif isinstance(value, torch.Tensor | numpy.ndarray):
        for name, item in list(getattr(value, "__dict__", {}).items()):
            yield f".{name}", f".{name}", item
    elif isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
        yield ".__self__", None, value.__self__  # `chain.__next__`
    elif is_settled(value):
        return
    elif isinstance(value, MethodType):
        yield ".__self__", None, value.__self__
        yield ".__func__", None, value.__func__
    elif isinstance(value, FunctionType):
        yield from _of_function(value)
    elif isinstance(value, type):
        yield from _of_class(value)
    elif isinstance(value, ModuleType):
        yield from _of_module(value)
    else:
        yield from _of_object(value)


def _of_dict(value: Any) -> Iterator[tuple[str, str | None, Any]]:
    for name, item in itertools.islice(list(value.items()), MOST_ENTRIES):
        yield f"[{name!r}]" if isinstance(name, PLAIN) else "[...]", None, item
        if not isinstance(name, PLAIN):
            yield "[...]", None, name
    if len(value) > MOST_ENTRIES:
        yield "[...]", None, _fingerprint(list(value.values()))


def _fingerprint(entries: Any) -> int:
    """Return a number that changes when an entry behind those that are looked at is replaced."""
    entries = list(entries)  # it may grow while it is looked at
    return hash(tuple(id(item) for item in itertools.islice(entries, MOST_ENTRIES, None)))


def _of_object(value: Any) -> Iterator[tuple[str, str | None, Any]]:
    kind = type(value)
    if isinstance(value, functools.partial):
        yield ".func", None, value.func
        given: list[tuple[Any, Any]] = [*enumerate(value.args), *value.keywords.items()]
        for name, item in given:
            yield f"({name})", None, item
    elif isinstance(value, functools._lru_cache_wrapper):
        yield ".__wrapped__", None, value.__wrapped__
    elif isinstance(value, contextvars.ContextVar):
        yield ".get()", None, value.get(None)
    elif isinstance(value, BaseException):
        for name in ("args", "__cause__", "__context__", "__dict__"):
            yield f".{name}", None, getattr(value, name)
    elif isinstance(value, _RUNNING):
        frame = _frame_of(value)
        if frame is None:
            return
        for name, item in list(frame.f_locals.items()):
            yield f".{name}", source_name(frame.f_code, name), item
    elif isinstance(value, torch.nn.Module) and not is_users(kind):
        for group in (value._modules, value._parameters, value._buffers):
            for name, part in list(group.items()):
                yield f".{name}", None, part
        for number, hook in enumerate(reached.hooks_of(value)):
            yield f".hooks[{number}]", None, hook
    elif is_users(kind):
        for name, item in _attributes(value).items():
            yield f".{name}", f".{name}", item
    else:  # the source has a name for the object, and none for what is in it
        for name, item in list(getattr(value, "__dict__", {}).items()):
            yield f".{name}", None, item
        for number, item in enumerate(gc.get_referents(value)):
            if not isinstance(item, type | ModuleType | dict):
                yield f"<{number}>", None, item


def _of_class(value: type) -> Iterator[tuple[str, str | None, Any]]:
    for name, item in vars(value).items() if is_users(value) else ():
        if not name.startswith("__"):
            yield f".{name}", f".{name}", item
    kind = type(value)
    if kind is not type and is_users(kind):
        for name, item in vars(kind).items():
            if not name.startswith("__"):
                yield f".{name}", f".{name}", item


def is_library(module: ModuleType) -> bool:
    """Say whether a module is none of the user's: nothing in it is looked at."""
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ in sys.builtin_module_names
    return owner_of_file(file) != _USER


def _of_module(module: ModuleType) -> Iterator[tuple[str, str | None, Any]]:
    """Give the plain variables of a module that the user wrote: settings are kept there."""
    if is_library(module):
        return
    for name, item in list(vars(module).items()):
        if isinstance(item, PLAIN) and not name.startswith("__"):
            yield f".{name}", f".{name}", item


def _of_function(function: FunctionType) -> Iterator[tuple[str, str | None, Any]]:
    if owner_of_file(function.__code__.co_filename) != _USER:
        return
    names = function.__code__.co_freevars
    for name, value in zip(names, reached.closed_over(function), strict=False):
        yield f".{name}", f"@{name}", value
    for name, item in vars(function).items():
        yield f".{name}", f".{name}", item
    for name, value in _defaults(function):
        yield f"({name})", source_name(function.__code__, name), value
    for name in ("__doc__", "__defaults__", "__kwdefaults__"):
        yield f".{name}", f".{name}", getattr(function, name)


def source_name(code: types.CodeType, variable: str) -> str:
    """Return the name of a function's variable."""
    return f"{'~' if variable in source.own_variables(code) else '@'}{variable}"


def _defaults(function: FunctionType) -> list[tuple[str, Any]]:
    given = function.__defaults__ or ()
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    named = zip(positional[len(positional) - len(given) :], given, strict=False)
    return [*named, *(function.__kwdefaults__ or {}).items()]


def _attributes(value: Any) -> dict[str, Any]:
    held: dict[str, Any] = {}
    for base in (type(type(value)), *reversed(type(value).__mro__)):
        if is_users(base):
            own = vars(base).items()
            held.update({k: v for k, v in own if not k.startswith("__") and not is_settled(v)})
        slots = vars(base).get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else list(slots):
            slot = vars(base).get(name)
            if isinstance(slot, types.MemberDescriptorType):
                try:
                    held[name] = slot.__get__(value)
                except AttributeError:  # not filled
                    held.pop(name, None)
    held.update(getattr(value, "__dict__", {}))
    held.pop("training", None)
    for group in ("_modules", "_parameters", "_buffers"):
        parts = held.pop(group, None)
        held.update(parts if isinstance(parts, dict) else {})
    return held


@functools.lru_cache(maxsize=256)
def _goes_over(code: types.CodeType) -> bool:
    """Say whether a function has loops over iterators, or waits for another generator."""
    return any(one.opname in ("FOR_ITER", "SEND") for one in dis.get_instructions(code))


def _frame_of(value: Any) -> FrameType | None:
    for name in ("gi_frame", "cr_frame", "ag_frame"):
        if hasattr(value, name):
            frame: FrameType | None = getattr(value, name)
            return frame
    return None
