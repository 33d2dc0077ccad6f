"""Queues of which nothing has arrived yet.

A line of ten zeros that are one tensor looks like a constant: every pass reads the same memory, and
what the passes put behind it is read on the tenth. It is seen by looking: a list, tuple or deque
that the code can reach holds a constant of the node, and beside it a tensor like it that an earlier
pass had and this one has not read.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from veracity.tracing import arrays, replaying
from veracity.tracing.heap import Root
from veracity.tracing.node import TracedNode

if TYPE_CHECKING:
    from veracity.tracing.session import Session

#: Queues that are looked at, and entries of each.
MOST_QUEUES, MOST_ENTRIES = 64, 256
_QUEUES = (list, tuple, collections.deque)


class Queues:
    """The queues that the code of all nodes can reach."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session
        #: Their entries as the latest pass began, by node.
        self._entries: dict[str, list[list[torch.Tensor]]] = {}

    def look(self, node: TracedNode, seen: list[Root]) -> None:
        """Look at the queues among what code can reach as a pass begins."""
        found = [_tensors(queue) for queue in _sequences(seen)]
        self._entries[node.name] = [entries for entries in found if len(entries) > 1]

    def unfilled(self, node: TracedNode, execution: int) -> list[str]:
        """Return the lines that read a constant out of a queue in which values wait."""
        queues = self._entries.pop(node.name, [])
        if not queues:
            return []
        program = replaying.slice_of(self._session, node)
        places = {_memory(use.tensor): use.location for use in program.constants}
        return sorted(
            {
                places[_memory(constant)]
                for entries in queues
                for constant in entries
                if _memory(constant) in places and self._has_waiting(execution, constant, entries)
            }
        )

    def _has_waiting(
        self, execution: int, constant: torch.Tensor, entries: list[torch.Tensor]
    ) -> bool:
        like = [
            one for one in entries if (one.shape, one.dtype) == (constant.shape, constant.dtype)
        ]
        return any(self._session.recorder.is_waiting(execution, one) for one in like)


def _memory(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _tensors(queue: Any) -> list[torch.Tensor]:
    """Return the tensors of a queue; arrays by the tensors that the recorder knows them by."""
    found = [_tensor(item) for item in list(queue)[:MOST_ENTRIES]]
    return [one for one in found if one is not None and one.layout == torch.strided]


def _tensor(item: Any) -> torch.Tensor | None:
    if isinstance(item, torch.Tensor):
        return item
    if arrays.is_traced(item):
        return arrays.state_of(item).tensor
    return arrays.known_constant(item)


def _sequences(seen: list[Root]) -> Iterator[Any]:
    found = (value for _, _, value in seen if isinstance(value, _QUEUES))
    return itertools.islice(found, MOST_QUEUES)
