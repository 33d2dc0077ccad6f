"""Whether the program of any pass reads memory that Python wrote into.

A log that is filled at an index from Python (`self.rows[self.at] = y`) is memory of a tensor, and
memory may be read through any alias. So the source alone does not tell whether it matters what was
written: the programs that were recorded do. Memory that none of them starts from decides nothing.

A constant that its program writes is known as a copy: of those only the size tells. In doubt the
memory is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from veracity.tracing.slice import Slice


@dataclass(frozen=True)
class Region:
    """Where memory lies, and how large all of it is."""

    start: int
    end: int


def region_of(held: Any) -> Region | None:
    """Return the memory of a tensor or an array."""
    if isinstance(held, torch.Tensor):
        storage = held.untyped_storage()
        return Region(storage.data_ptr(), storage.data_ptr() + storage.nbytes())
    if isinstance(held, numpy.ndarray):
        root = held
        while isinstance(root.base, numpy.ndarray):
            root = root.base
        start = int(root.__array_interface__["data"][0])
        return Region(start, start + root.nbytes)
    return None


@dataclass
class Reads:
    """The memory that programs start from.

    Attributes:
        wanted: Whether anybody will ask; nothing is noted before.
    """

    wanted: bool = False
    _regions: set[Region] = field(default_factory=set)
    _copied: set[int] = field(default_factory=set)

    def note(self, program: Slice) -> None:
        """Note what a program starts from."""
        for use in program.constants:
            region = region_of(use.tensor)
            if region is None:
                continue
            self._regions.add(region)
            if use.written:
                self._copied.add(region.end - region.start)

    def may_read(self, memory: Region) -> bool:
        """Say whether a program may start from some memory."""
        if memory.end - memory.start in self._copied:
            return True
        return any(one.start < memory.end and memory.start < one.end for one in self._regions)
