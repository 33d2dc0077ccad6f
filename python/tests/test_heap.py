"""What the walk over Python objects sees: every change, and nothing that only stays."""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import dataclasses
import enum
import functools
import hashlib
import io
import mmap
import pathlib
import random
import re
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from veracity.tracing import heap, purity
from veracity.tracing.heap import Walk


def changes(subject: Any, change: Callable[[], Any], names: set[str] | None = None) -> set[str]:
    """Return the paths that are not as they were after `change`."""
    roots = [("it", "@it", subject)]
    chosen = None if names is None else frozenset(names)
    first = dict(heap.compared(Walk(roots, names=chosen)))
    change()
    later = dict(heap.compared(Walk(roots, names=chosen)))
    return {
        way[0] for way, value in later.items() if way in first and not heap.same(first[way], value)
    }


class _Mode(enum.Enum):
    WALK, STAND = range(2)


class _Slotted:
    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0


class _Meta(type):
    ticks = 0


class _Counted(metaclass=_Meta):
    pass


class _Config(dict):  # type: ignore[type-arg]
    pass


def _nested(depth: int) -> tuple[Any, Callable[[], Any]]:
    leaf = [0] * 5000
    subject: Any = leaf
    for level in range(depth):
        subject = {"child": subject} if level % 2 else types.SimpleNamespace(child=subject)
    return subject, lambda: leaf.__setitem__(700, 1)


def _far_entry() -> tuple[Any, Callable[[], Any]]:
    subject: list[Any] = [object() for _ in range(heap.MOST_ENTRIES + 10)]
    return subject, lambda: subject.__setitem__(-1, object())


def _closure() -> tuple[Any, Callable[[], Any]]:
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return count

    return step, step


def _default() -> tuple[Any, Callable[[], Any]]:
    def step(seen: list[int] = []) -> None:  # noqa: B006
        seen.append(1)

    return step, step


def _generator() -> tuple[Any, Callable[[], Any]]:
    def ticks() -> Iterator[int]:
        n = 0
        while True:
            yield n
            n += 1

    running = ticks()
    next(running)
    return running, lambda: next(running)


def _of(subject: Any, change: Callable[[Any], Any]) -> tuple[Any, Callable[[], Any]]:
    return subject, lambda: change(subject)


def _cause(error: BaseException) -> None:
    error.__cause__ = ValueError()


CHANGED: dict[str, Callable[[], tuple[Any, Callable[[], Any]]]] = {
    "a number deep inside": lambda: _nested(20),
    "an entry far behind": _far_entry,
    "a slot": lambda: _of(_Slotted(), lambda it: setattr(it, "n", 1)),
    "a variable around a function": _closure,
    "a default value": _default,
    "a generator": _generator,
    "an iterator": lambda: _of(iter([1, 2, 3]), next),
    "a metaclass": lambda: _of(_Counted(), lambda it: setattr(_Meta, "ticks", _Meta.ticks + 1)),
    "an order": lambda: _of(collections.OrderedDict(a=1, b=1), lambda it: it.move_to_end("a")),
    "a rotation": lambda: _of(collections.deque([1, 2]), lambda it: it.rotate(1)),
    "a buffer": lambda: _of(io.BytesIO(b"abc"), lambda it: it.read(1)),
    "a C structure": lambda: _of(ctypes.c_int(0), lambda it: setattr(it, "value", 1)),
    "a counter of NumPy": lambda: _of(np.zeros(1, np.int64), lambda it: it.__iadd__(1)),
    "an attribute of a tensor": lambda: _of(torch.ones(1), lambda it: setattr(it, "age", 1)),
    "the cause of an exception": lambda: _of(ValueError("x"), _cause),
    "the class of an object": lambda: _of([_Slotted()], lambda it: it.__setitem__(0, _Counted())),
    "a hook": lambda: _of(torch.nn.Linear(1, 1), lambda it: it.register_forward_hook(print)),
    "a cache": lambda: _of(functools.lru_cache(abs), lambda it: it(3)),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_change_is_seen(name: str) -> None:
    subject, change = CHANGED[name]()
    if name == "an attribute of a tensor":
        subject.age = 0
    assert changes(subject, change)


OPAQUE: dict[str, Callable[[], Any]] = {
    "memory of the system": lambda: mmap.mmap(-1, 8),
    "a hash": hashlib.sha256,
    "random numbers": lambda: np.random.default_rng(0),
    "random numbers of Python": random.Random,
    "random numbers of torch": torch.Generator,
    "what another thread sets": threading.Event,
    "what may die": lambda: weakref.ref(_Slotted),
}


@pytest.mark.parametrize("name", OPAQUE)
def test_what_nobody_can_look_into_is_never_the_same(name: str) -> None:
    assert changes(OPAQUE[name](), lambda: None)


@dataclasses.dataclass
class _Gains:
    kp: float = 1.0
    names: tuple[str, ...] = ("hip", "knee")


class _Pose(NamedTuple):
    x: float
    y: float


STAYS: dict[str, Callable[[], Any]] = {
    "a dataclass": _Gains,
    "a named tuple": lambda: _Pose(1.0, 2.0),
    "settings": lambda: argparse.Namespace(rate=50, mode=_Mode.WALK),
    "a dict of the user's own": lambda: _Config(a=[1, 2], b={"c": 3}),
    "a network": lambda: torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()),
    "functions": lambda: [abs, len, str.upper, torch.relu, np.sin, lambda x: x],
    "a partial": lambda: functools.partial(torch.clamp, min=0),
    "a pattern and a path": lambda: (re.compile("a"), pathlib.Path("b")),
    "types and devices": lambda: (
        torch.float32,
        torch.device("cpu"),
        np.dtype("f4"),
        _Mode,
        _Gains,
    ),
    "a context manager": lambda: contextlib.nullcontext(),
    "tensors": lambda: {"a": torch.ones(2), "b": [np.ones(3)]},
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays_is_the_same(name: str) -> None:
    assert changes(STAYS[name](), lambda: None) == set()


def test_attributes_that_no_code_asks_for_are_left_out() -> None:
    subject = types.SimpleNamespace(asked=0, other=0)

    def change() -> None:
        subject.asked, subject.other = 1, 1

    assert changes(subject, change, {"asked"}) == {"it.asked"}
    assert changes(subject, lambda: setattr(subject, "other", 2), {"asked"}) == set()


def test_a_walk_ends_and_says_so() -> None:
    walk = Walk([("it", "@it", [[number] for number in range(3000)])], most=100)
    assert len(list(walk)) == 100
    assert walk.was_cut


SETTLED = {
    "a function of Python's own": len,
    "a method of a text": "a".join,
    "a method of a list": [].append,
    "a method that a class of the user's has from another": _Config().get,
    "a function of functions": functools.reduce,
    "torch": torch.relu,
    "NumPy": np.sum,
}


@pytest.mark.parametrize("name", SETTLED)
def test_functions_of_their_arguments_give_the_same(name: str) -> None:
    assert not purity.may_differ(SETTLED[name])


DIFFERING = {
    "a file": open,
    "an address": id,
    "a random number": random.random,
    "a choice": random.Random().choice,
    "a thread": threading.get_ident,
    "a seed": torch.seed,
    "a random number of NumPy": np.random.default_rng(0).normal,
    "a buffer": io.BytesIO().read,
    "an event": threading.Event().is_set,
}


@pytest.mark.parametrize("name", DIFFERING)
def test_functions_that_may_answer_otherwise_are_doubted(name: str) -> None:
    assert purity.may_differ(DIFFERING[name])
