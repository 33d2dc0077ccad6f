"""States that live in NumPy arrays.

While a node is recorded its arrays are stand-ins, and the tape knows who made them. Two moments are
missing. Before the first pass a state is a plain array, and what is computed from plain arrays
alone is not recorded: its value is kept here, under the way that leads from the code to it. And a
pass that is left alone puts plain arrays in the place of stand-ins: those are taken over when the
next one is recorded.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy
import torch

from veracity.tracing import arrays
from veracity.tracing.array_operations import traced_target
from veracity.tracing.array_table import DTYPES
from veracity.tracing.heap import Root
from veracity.tracing.node import TracedNode

if TYPE_CHECKING:
    from veracity.tracing.session import Session

#: Larger arrays are tables or pictures.
MOST_BYTES = 1 << 20
#: Arrays that are kept for one node, at most.
MOST_ARRAYS = 256


class ArrayStates:
    """The arrays that the code of all nodes can reach."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session
        #: Copies from before the first pass, by node and path.
        self._first: dict[str, dict[str, Any]] = {}
        #: What is there as a pass begins.
        self._now: dict[str, dict[str, Any]] = {}
        #: Where states were found.
        self._paths: dict[str, set[str]] = collections.defaultdict(set)

    def look(self, node: TracedNode, seen: list[Root]) -> None:
        """Look at the arrays among what code can reach as a pass begins."""
        if arrays.kept_memories:
            arrays.watch.reach_plain(True)
        found = dict(_reached(seen))
        if node.name not in self._first:
            self._first[node.name] = {
                path: array.copy() for path, array in found.items() if _is_untraced(array)
            }
        self._now[node.name] = found
        if self._session.recording:
            for path in self._paths[node.name] & found.keys():
                if _is_plain(found[path]):
                    arrays.state_of(traced_target(found[path])).memory.derived = True

    def find(self, node: TracedNode, view: int) -> torch.Tensor | None:
        """Find the array that is a state; return what was in its place before the first pass."""
        for path, array in self._now.get(node.name, {}).items():
            if self._view(array) == view:
                self._paths[node.name].add(path)
                before = self._first[node.name].get(path)
                return None if before is None else torch.as_tensor(before.copy())
        return None

    def paths(self, node: TracedNode) -> set[str]:
        """Return where arrays are that the tape follows."""
        followed = {
            path
            for path, array in self._now.get(node.name, {}).items()
            if not _is_plain(array) or arrays.known_memory(array) is not None
        }
        return followed | self._paths[node.name]

    def _view(self, array: Any) -> int | None:
        """Return the memory that an array shows, as the recorder numbers it."""
        if arrays.is_traced(array):
            return self._session.recorder.view(arrays.state_of(array).tensor)
        known = arrays.known_memory(array) if _is_plain(array) else None
        if known is None:
            return None
        return self._session.recorder.view(arrays.shown(array, known).tensor)


def _is_plain(array: Any) -> bool:
    return type(array) is numpy.ndarray


def _is_untraced(array: Any) -> bool:
    return _is_plain(array) or isinstance(array, numpy.generic)


def _reached(seen: list[Root]) -> Iterator[tuple[str, Any]]:
    """Give the arrays that the code can reach, with the ways to them."""
    count = 0
    for path, _, value in seen:
        if count >= MOST_ARRAYS:
            return
        is_array = _is_untraced(value) or arrays.is_traced(value)
        if is_array and value.dtype in DTYPES and value.nbytes <= MOST_BYTES:
            count += 1
            yield path, value
