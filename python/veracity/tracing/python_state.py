"""Python values that change from pass to pass: counters, phases, clocks, iterators, modes.

They are no memory of tensors, so that the tape does not see them, and an export holds what they
decided while it was recorded. At the beginning of each pass the plain values that the code of the
node can reach are written down: attributes of its objects, variables around it, entries of lists
and dicts. One that changed is followed through the source to what it decides. Counters that are
only printed decide nothing.
"""

from __future__ import annotations

import argparse
import array
import ast
import collections
import contextvars
import ctypes
import datetime
import decimal
import enum
import fractions
import functools
import itertools
import queue
import random
import sys
import threading
import types
from collections.abc import Callable, Hashable, Iterator
from types import (
    BuiltinFunctionType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any

import numpy
import torch

from veracity.errors import Diagnostic
from veracity.tracing import carry, findings, flow, older_threads, reached, source
from veracity.tracing.flow import Decided, Taint, Task
from veracity.tracing.node import TracedNode
from veracity.tracing.operations import owner_of_file
from veracity.tracing.reached import Reached
from veracity.tracing.reads import Region, region_of
from veracity.tracing.resolving import Names, names_of
from veracity.tracing.trail import keep_trail

if TYPE_CHECKING:
    from veracity.tracing.session import Session

#: How deep objects are looked into, and how many entries of each.
MOST_DEPTH, MOST_ENTRIES = 5, 64
#: Values that are written down for one node, at most.
MOST_VALUES = 4096
_PLAIN = (
    *(int, float, complex, str, bytes, type(None), enum.Enum, numpy.generic),
    *(decimal.Decimal, fractions.Fraction, datetime.datetime, datetime.timedelta, datetime.date),
)
#: Arrays up to this many integers may count something.
MOST_COUNTERS = 8
#: Not every mapping: others run code of their own when they are asked, and a TensorDict torch's.
_DICTS = (dict, collections.UserDict)
_CLOCKS = {"time", "perf_counter", "monotonic", "process_time", "time_ns", "perf_counter_ns"}
_CLOCKS |= {"monotonic_ns", "now", "utcnow", "today"}
_USER = 0

#: Path from the code to a value: the name that the source has for it, and the value.
Values = dict[str, tuple[str, Any]]


class PythonStates:
    """The plain values of all nodes."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session
        self._first: dict[str, Values] = {}
        self._code: dict[str, list[Reached]] = {}
        self._judged: set[tuple[str, str]] = set()
        #: Nodes that decide by what other threads assign.
        self._heard: set[str] = set()
        #: What flags became, and containers grew to, with the first pass.
        self._settled: dict[tuple[str, str], Any] = {}
        #: Findings that matter if a program reads some memory.
        self._if_read: list[tuple[Region, Diagnostic]] = []

    def look_at_frame(self, node: TracedNode) -> None:
        """Look at the function that is running, which marks the inputs of a node."""
        frame = _user_frame()
        if frame is None or not self._wanted(node):
            return
        if node.name not in self._code:
            step = keep_trail(frame)[0]
            self._code[node.name] = reached.from_frame(frame.f_code, names_of(step))
        roots: list[tuple[str, str, Any]] = [
            (name, f"={name}", value) for name, value in list(frame.f_locals.items())
        ]
        self._look(node, roots)

    def look_at_function(
        self, node: TracedNode, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        """Look at a function that is a node."""
        if not self._wanted(node):
            return
        first = args[0] if args and not isinstance(args[0], torch.Tensor) else None
        if node.name not in self._code:
            known = {} if first is None else {"first": first}
            self._code[node.name] = reached.from_function(function, **known)
        roots = [] if first is None else [("self", "=self", first)]
        self._look(node, [*roots, ("", "=", function)])

    def _wanted(self, node: TracedNode) -> bool:
        few = node.completed <= self._session.options.max_cached_io
        return few or carry.is_waiting(node)

    def _look(self, node: TracedNode, roots: list[tuple[str, str, Any]]) -> None:
        code = self._code[node.name]
        self._tell_threads(node, code)
        roots = [*roots, *_globals(code)]
        self._session.array_states.look(node, roots)
        self._session.queues.look(node, roots)
        found = dict(_values(roots))
        first = self._first.get(node.name)
        if first is None:
            self._first[node.name] = found
            self._tell_clocks(node, code)
            return
        for path, (key, value) in found.items():
            known = first.setdefault(path, (key, value))
            before = self._settled.get((node.name, path), known[1])
            if not _same(before, value) and not self._settles(node, path, known[1], value):
                self._changed(node, code, path, key)

    def _settles(self, node: TracedNode, path: str, first: Any, value: Any) -> bool:
        """Say whether a value changed once, after the first pass, as something that is set up does.

        Two recorded passes had both values of it, and their programs are compared call by call.
        """
        is_set = type(first) is bool or (isinstance(first, _Size) and first == 0)
        if is_set and node.completed == 1:
            self._settled[node.name, path] = value
        return is_set and node.completed == 1

    def _changed(self, node: TracedNode, code: list[Reached], path: str, key: str) -> None:
        if (node.name, key) in self._judged:
            return
        self._judged.add((node.name, key))
        unread: list[Any] = []
        waiting: list[tuple[Region, Diagnostic]] = []
        while (found := _decides(code, key, tuple(unread))) is not None:
            place = f"{_file(code, found)}:{found.line}"
            told = findings.changing_value(node.name, path, place, found.taint.what)
            region = region_of(found.memory)
            if region is None:
                self._session.tell(told)
                return
            unread.append(found.memory)  # what else does it decide?
            waiting.append((region, told))
        self._if_read += waiting
        self._session.reads.wanted = self._session.reads.wanted or bool(waiting)

    def tell_read(self) -> None:
        """Tell about values that only pick what is written where, if a program reads it there."""
        for region, told in self._if_read:
            if self._session.reads.may_read(region):
                self._session.tell(told)

    def _tell_threads(self, node: TracedNode, code: list[Reached]) -> None:
        """Tell about values that another thread assigns and the node decides by."""
        if threading.active_count() == 1 or node.completed > 1:
            return
        for told in older_threads.told_by_others():
            if (node.name, told.key) in self._judged or not older_threads.reads(code, told):
                continue
            self._judged.add((node.name, told.key))
            found = _decides(code, told.key)
            if found is not None:
                self._heard.add(node.name)
                place = f"{_file(code, found)}:{found.line}"
                name = told.key.lstrip(".@")
                self._session.tell(findings.told_by_thread(node.name, name, place))

    def hears_nothing(self, node: TracedNode) -> bool:
        """Say whether no other thread can tell a node anything that it decides by."""
        return (
            node.name in self._code and node.name not in self._heard and older_threads.are_known()
        )

    def _tell_clocks(self, node: TracedNode, code: list[Reached]) -> None:
        for what, gives in (("a clock", _is_clock), ("a random number", _is_draw)):
            for scope, names in code:
                calls = [one for one in source.own_nodes(scope) if gives(one, names)]
                sources: dict[ast.AST, Taint] = {
                    call: Taint("value", getattr(call, "lineno", 0)) for call in calls
                }
                task = Task(scope, names, sources=sources, opens=False)
                found = _walk_all(code, [task]) if calls else None
                if found is not None:
                    place = f"{_file(code, found)}:{found.line}"
                    told = findings.changing_value(node.name, what, place, found.taint.what)
                    self._session.tell(told)


def _user_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and owner_of_file(frame.f_code.co_filename) != _USER:
        frame = frame.f_back
    return frame


def _globals(code: list[Reached]) -> Iterator[tuple[str, str, Any]]:
    """Give the variables of modules that the code names."""
    seen: set[tuple[int, str]] = set()
    for scope, names in code:
        for node in source.own_nodes(scope):
            if isinstance(node, ast.Name) and (id(names._module), node.id) not in seen:
                seen.add((id(names._module), node.id))
                if node.id in names._module:
                    yield node.id, f"@{node.id}", names._module[node.id]


def _values(roots: list[tuple[str, str, Any]]) -> Iterator[tuple[str, tuple[str, Any]]]:
    waiting = collections.deque((path, key, value, 0) for path, key, value in roots)
    seen: set[int] = set()
    count = 0
    while waiting and count < MOST_VALUES:
        path, key, value, depth = waiting.popleft()
        if isinstance(value, _PLAIN):
            count += 1
            yield path, (key, value)
            continue
        if id(value) in seen or depth > MOST_DEPTH:
            continue
        seen.add(id(value))
        # Arrays among the variables of a running function are what it was just given.
        given = isinstance(value, numpy.ndarray) and key.startswith("=")
        mark = None if given else _position(value)
        if mark is not None:
            yield path, (key, mark)
        waiting.extend(
            (path + inner, own or key, item, depth + 1) for inner, own, item in _held(value)
        )


class _Size(int):
    """How many entries a container has."""


def _position(value: Any) -> Any:
    """Return where an iterator or a container is; nothing for what has no place."""
    if isinstance(value, (list, set, collections.deque, *_DICTS)):
        return _Size(len(value))
    if isinstance(value, queue.Queue | queue.SimpleQueue):
        return _Size(value.qsize())
    if isinstance(value, bytearray | array.array):
        return bytes(value)
    if isinstance(value, ctypes._SimpleCData):
        return value.value
    if isinstance(value, numpy.ndarray) and value.dtype.kind in "iub":
        return value.tobytes() if value.size <= MOST_COUNTERS else None
    if isinstance(value, GeneratorType):
        return -1 if value.gi_frame is None else (value.gi_frame.f_lasti, _locals(value.gi_frame))
    if type(value).__module__ == "itertools" or isinstance(value, enumerate | zip | map | filter):
        return object()  # an iterator moves whenever it is used, and does not say where it is
    if isinstance(value, Iterator) and not hasattr(value, "read"):
        hint = getattr(value, "__length_hint__", None)
        return None if hint is None else hint()
    return None


def _locals(frame: FrameType) -> tuple[Any, ...]:
    return tuple(value for value in frame.f_locals.values() if isinstance(value, _PLAIN))


def _held(value: Any) -> Iterator[tuple[str, str | None, Any]]:
    """Give what a value holds, how one gets there, and the name that the source has for it."""
    kind = type(value)
    if isinstance(value, _DICTS):
        for name, item in itertools.islice(list(value.items()), MOST_ENTRIES):
            yield f"[{name!r}]", None, item
    elif isinstance(value, list | tuple | set | frozenset | collections.deque):
        for index, item in enumerate(itertools.islice(value, MOST_ENTRIES)):
            yield f"[{index}]", None, item
    elif isinstance(value, functools.partial):
        yield ".func", None, value.func
        given: list[tuple[Any, Any]] = [*enumerate(value.args), *value.keywords.items()]
        for name, item in given:
            yield f"({name})", None, item
    elif isinstance(value, contextvars.ContextVar):
        yield ".get()", None, value.get(None)
    elif isinstance(value, MethodType):
        yield "", None, value.__self__
    elif isinstance(value, FunctionType):
        yield from _of_function(value)
    elif isinstance(value, type):
        for name, item in vars(value).items() if _is_users(value) else ():
            if isinstance(item, _PLAIN) and not name.startswith("__"):
                yield f".{name}", f".{name}", item
    elif isinstance(value, ModuleType):
        yield from _of_module(value)
    elif isinstance(value, torch.nn.Module) and not _is_users(kind):  # type: ignore[arg-type]
        for name, part in value._modules.items():
            yield f".{name}", None, part
        for hook in reached.hooks_of(value):
            yield "", None, hook
    elif not isinstance(value, torch.Tensor | numpy.ndarray) and _is_users(kind):  # type: ignore[arg-type]
        for name, item in _attributes(value).items():
            yield f".{name}", f".{name}", item


def _of_module(module: ModuleType) -> Iterator[tuple[str, str | None, Any]]:
    """Give the plain variables of a module that the user wrote: settings are kept there."""
    file = getattr(module, "__file__", None)
    if file is None or owner_of_file(file) != _USER:
        return
    for name, item in list(vars(module).items()):
        if isinstance(item, _PLAIN) and not name.startswith("__"):
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
        if not isinstance(value, _PLAIN):  # which no call changes
            yield f"({name})", f"={name}", value


def _defaults(function: FunctionType) -> list[tuple[str, Any]]:
    given = function.__defaults__ or ()
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    named = zip(positional[len(positional) - len(given) :], given, strict=False)
    return [*named, *(function.__kwdefaults__ or {}).items()]


def _attributes(value: Any) -> dict[str, Any]:
    held: dict[str, Any] = {}
    for base in reversed(type(value).__mro__):
        if _is_users(base):
            held.update({k: v for k, v in vars(base).items() if not k.startswith("__")})
            for name in getattr(base, "__slots__", ()):
                held[name] = getattr(value, name, None)
    held.update(getattr(value, "__dict__", {}))
    modules = held.pop("_modules", None)
    for name in ("_parameters", "_buffers", "training"):
        held.pop(name, None)
    return {**held, **(modules if isinstance(modules, dict) else {})}


@functools.lru_cache(maxsize=1024)
def _is_users(kind: Hashable) -> bool:
    """Say whether a class is written by the user."""
    assert isinstance(kind, type)
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    if kind in (types.SimpleNamespace, argparse.Namespace):
        return True
    if kind.__module__ == "builtins":
        return False
    return kind.__module__ == "__main__" or file is None or owner_of_file(file) == _USER


def _same(first: Any, later: Any) -> bool:
    if first is later:
        return True
    try:
        return type(first) is type(later) and bool(first == later or first != first)
    except Exception:  # any: comparing is the user's code, too
        return False


def _is_draw(node: ast.AST, names: Names) -> bool:
    """Say whether a call draws from a generator of Python's or NumPy's; torch's are recorded."""
    if not isinstance(node, ast.Call):
        return False
    called = names.callable_of(node.func)
    owner = getattr(called, "__self__", None)
    if isinstance(node.func, ast.Attribute) and owner is None:
        owner = names.resolve(node.func.value)
    drawn = isinstance(owner, random.Random | numpy.random.Generator | numpy.random.RandomState)
    return drawn and getattr(node.func, "attr", "") not in ("seed", "getstate", "setstate")


def _is_clock(node: ast.AST, names: Names) -> bool:
    if not isinstance(node, ast.Call):
        return False
    last = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if last not in _CLOCKS:
        return False
    called = names.callable_of(node.func)
    if called is None:  # methods of `datetime`, mostly
        return last in ("now", "utcnow", "today")
    return isinstance(called, BuiltinFunctionType) and called.__module__ in ("time", None)


def _decides(code: list[Reached], key: str, unread: tuple[Any, ...] = ()) -> Decided | None:
    """Return what a value decides that the source has a name for."""
    if key.startswith("="):
        scope, names = code[0] if code else (None, None)
        if scope is None or names is None:
            return None
        loads = [
            node
            for node in source.own_nodes(scope)
            if isinstance(node, ast.Name) and node.id == key[1:] and isinstance(node.ctx, ast.Load)
        ]
        sources: dict[ast.AST, Taint] = {one: Taint("value", one.lineno) for one in loads}
        return _walk_all(code, [Task(scope, names, sources=sources, opens=False)], unread)
    return _walk_all(code, list(_reading(code, {key: Taint("value", 0)})), unread)


def _reading(code: list[Reached], keys: dict[str, Taint]) -> Iterator[Task]:
    for number, (scope, names) in enumerate(code):
        used = {key: Taint("value", line) for key, line in _reads(scope) if key in keys}
        if used:
            tainted = used | {key[1:]: one for key, one in used.items() if key[0] == "@"}
            yield Task(scope, names, tainted=tainted, opens=False, is_node=_is_node(code, number))


def _is_node(code: list[Reached], number: int) -> bool:
    """Say whether what a function returns are outputs: the first one, unless it marks them."""
    return number == 0 and not flow.has_marks(code[0][0])


def _reads(scope: ast.AST) -> Iterator[tuple[str, int]]:
    for node in source.own_nodes(scope):  # type: ignore[arg-type]
        if isinstance(node, ast.Attribute):
            yield f".{node.attr}", node.lineno
        elif isinstance(node, ast.Name):
            yield f"@{node.id}", node.lineno


def _walk_all(
    code: list[Reached], waiting: list[Task], unread: tuple[Any, ...] = ()
) -> Decided | None:
    """Walk functions, and those that read or get what they keep and return."""
    known: set[str] = set()
    returned: set[ast.AST] = set()
    try:
        while waiting:
            task = waiting.pop()
            task.unread = unread
            outcome = flow.walk(task)
            fresh = {key: one for key, one in outcome.kept.items() if key not in known}
            known.update(fresh)
            waiting += _reading(code, fresh)
            if outcome.returned is not None and task.scope not in returned:
                returned.add(task.scope)
                callers = list(_callers(code, task.scope, outcome.returned))
                if not callers and task.scope is not code[0][0]:
                    return Decided(outcome.returned, outcome.returned.line)
                waiting += callers
    except Decided as found:
        return found
    except RecursionError:
        return None
    return None


def _callers(code: list[Reached], scope: ast.AST, taint: Taint) -> Iterator[Task]:
    name = getattr(scope, "name", "")
    for number, (caller, names) in enumerate(code):
        calls: dict[ast.AST, Taint] = {}
        for node in source.own_nodes(caller):
            target = node.func if isinstance(node, ast.Call) else node
            last = getattr(target, "attr", getattr(target, "id", None))
            if last == name or _runs(node, names, scope):
                calls[node] = taint
        if calls and caller is not scope:
            is_node = _is_node(code, number)
            yield Task(caller, names, sources=calls, opens=False, is_node=is_node)


def _runs(node: ast.AST, names: Names, scope: ast.AST) -> bool:
    """Say whether a call of an object runs a function."""
    if not isinstance(node, ast.Call):
        return False
    return any(found[0] is scope for found in reached._called(names.callable_of(node.func), names))


def _file(code: list[Reached], found: Decided) -> str:
    """Return the file of the function in which something was decided."""
    for scope, _names in code:
        first, last = getattr(scope, "lineno", 0), getattr(scope, "end_lineno", 0) or 0
        if first <= found.line <= last:
            return source.file_of(scope)
    return source.file_of(code[0][0]) if code else ""
