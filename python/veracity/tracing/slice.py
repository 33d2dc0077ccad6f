"""What a node computes: the part of the tape that leads from its inputs to its outputs.

A slice is a straight program over tensors. Writes are kept as they were made, in their order;
turning it into something that can be exported is the business of `veracity.export`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch


class Ref(NamedTuple):
    """A tensor of a slice, where it is used.

    Attributes:
        kind: `"input"`, `"constant"` or `"step"`.
        index: Position in `Slice.inputs`, `Slice.constants` or `Slice.steps`.
        output: Which tensor of the step's result.
    """

    kind: str
    index: int  # type: ignore[assignment]  # hides `tuple.index`, which nobody needs here
    output: int = 0


class Geometry(NamedTuple):
    """Where a tensor lies in its storage, in elements."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """One recorded call.

    Attributes:
        func: What was called: a function of torch, a method descriptor, an `OpOverload`, or a
            getter (a method-wrapper whose `__self__.__name__` is the attribute).
        args: Positional arguments; every tensor is a `Ref`, containers are as they were.
        kwargs: Keyword arguments, likewise.
        outputs: For each tensor of the result its path in the result, `()` when the result is it.
        location: `file:line` of the user's code.
    """

    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[tuple[int | str, ...], ...]
    location: str


@dataclass(frozen=True)
class View:
    """A tensor that shares memory with another through an alias nobody saw being made.

    Attributes:
        base: A tensor on the same storage.
        base_geometry: Where `base` lay when it was recorded.
        geometry: Where the wanted tensor lies on the same storage.
        dtype: Element type of the wanted tensor.
        location: `file:line` of the user's code that reads it.
    """

    base: Ref
    base_geometry: Geometry
    geometry: Geometry
    dtype: torch.dtype
    location: str


@dataclass(frozen=True)
class Copy:
    """The value of a tensor at this position, before later steps write into its memory."""

    source: Ref
    location: str


Step = Call | View | Copy


@dataclass(frozen=True)
class InputUse:
    """An input that matters.

    Attributes:
        port: Name of the port.
        written: Whether a step writes into its memory: the program must start from a copy.
    """

    port: str
    written: bool


@dataclass(frozen=True)
class ConstantUse:
    """A tensor that is no input: a weight, a table.

    Attributes:
        tensor: Its value when it was recorded. Not written by anybody.
        written: Whether a step writes into its memory: the program must start from a copy.
        lasting: Whether it was there before the node began and is written: what is left in it may
            matter to the next pass.
        location: `file:line` of the user's code that uses it first.
    """

    tensor: torch.Tensor
    written: bool
    lasting: bool = False
    location: str = ""


@dataclass(frozen=True)
class Slice:
    """The program of one node, in order.

    Attributes:
        inputs: In the order in which they were marked.
        constants: Without order.
        steps: In the order of execution.
        outputs: One for each output mark, in the order of the marks.
    """

    inputs: list[InputUse] = field(default_factory=list)
    constants: list[ConstantUse] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    outputs: list[Ref] = field(default_factory=list)
