"""What a session remembers of a node: its ports, its passes and its samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from veracity.errors import Diagnostic, refuse
from veracity.semantics import TensorSemantics
from veracity.tracing.nodes import Port, Sample

#: Nodes whose values take less keep those of their last pass, whatever it was.
SMALL_BYTES = 1 << 20
_DTYPES = "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool"
#: Element types that bundles can hold.
DTYPE_NAMES = {getattr(torch, name): name for name in _DTYPES.split()}


@dataclass
class InputMark:
    """An input as it was first marked.

    Attributes:
        port: What the bundle says about it.
        number: Its number on the tape.
        location: `file:line` of the mark.
        state: Whether it was declared as state.
        early: Its values on the first passes; they may turn out to be initial values.
    """

    port: Port
    number: int
    location: str
    state: bool = False
    early: list[torch.Tensor] = field(default_factory=list)


@dataclass
class OutputMark:
    """An output as it was first marked."""

    port: Port
    number: int


@dataclass
class TrackedBuffer:
    """A buffer of a module that is followed during one pass.

    Attributes:
        owner: The module that holds it.
        attribute: Its name there.
        name: Name of the state it becomes.
        tensor: What it was when the pass began.
        write_count: How often its memory had been written by then.
    """

    owner: torch.nn.Module
    attribute: str
    name: str
    tensor: torch.Tensor
    write_count: int


@dataclass
class Pass:
    """One run through a node, from its first input to its outputs.

    Attributes:
        execution: Its number on the tape.
        light: Whether only marks are kept.
        sampled: Whether its values are kept.
        tick: The run of the whole pipeline that it is part of.
        inputs: Values of the inputs, by port.
        outputs: Values of the outputs, by port.
        marked: The tensors marked so far, by port.
        opaque: Values that are no tensors, by name.
        updated: States that were updated.
        buffers: Buffers of modules that are followed.
        separated: Tensors that were one, and got memory of their own; with their write counts.
        versions: torch's counts of writes into the outputs, by their numbers.
        chance: Where the generators of random numbers were when the first pass began.
        begun_at: `file:line` of its first inputs, where `input_tensors` began it.
        older: Outputs that no input of this pass reaches, and that are memory of earlier ones.
    """

    execution: int
    light: bool
    sampled: bool
    tick: int = 0
    inputs: dict[str, torch.Tensor] = field(default_factory=dict)
    outputs: dict[str, torch.Tensor] = field(default_factory=dict)
    marked: dict[str, torch.Tensor] = field(default_factory=dict)
    opaque: dict[str, Any] = field(default_factory=dict)
    updated: set[str] = field(default_factory=set)
    buffers: list[TrackedBuffer] = field(default_factory=list)
    separated: list[tuple[torch.Tensor, int]] = field(default_factory=list)
    chance: tuple[Any, ...] | None = None
    versions: dict[int, int | None] = field(default_factory=dict)
    begun_at: str = ""
    older: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Watched:
    """A constant that its node only reads.

    Attributes:
        tensor: On the memory that the node reads.
        location: `file:line` of the line that reads it first.
        counts: How often it was written, as torch counts and as the tape does.
    """

    tensor: torch.Tensor
    location: str
    counts: tuple[int, int]


@dataclass
class TracedNode:
    """A node while it is being recorded.

    Attributes:
        number: Its number on the tape.
        name: Unique in the session.
        location: `file:line` where it was first begun.
        inputs: By name, in the order of their marks.
        outputs: Declared outputs, by name, in order.
        states: Updated states, by name, in order.
        static_outputs: Constant outputs, with what is said about them.
        demoted: Followed buffers that the node did not change.
        opaque: Values given as inputs that are no tensors.
        slice_number: Slice of the first pass.
        constant_versions: Storage and write counter of each of its constants.
        watched: Its constants that it does not write itself.
        rewritten: What was done between its passes to tensors that are no inputs, in words, by the
            line that reads them.
        made_anew: Memory that others made since the pass before, as `Recorder.view` numbers it,
            and the line that reads it.
        state_escapes: Values of state that left for Python on this pass, as `(what, location,
            fingerprint)` and trail.
        used: Names of the inputs that matter.
        samples: Values of the first passes.
        completed: How many passes were completed.
        compared: How many later passes were compared with the first.
        open_pass: The pass that is running.
        export_with: Backend.
        backend_params: Options of the backend.
        last_seen: When it last began a pass, in passes of all nodes.
        replay: The first program, to be run on the inputs of later passes.
        replay_inputs: Names of its inputs.
        again: How to run its code again: an `Again`, or what watches for one on the first pass.
        draws: Whether Python or NumPy drew random numbers during its first pass.
        first_slice: Slice of the first pass as it was recorded, without states that were found.
        held: Passes on the tape that were recorded in full, by their numbers, from the first on.
        carried: States that were found; see `carry.py`.
        last_unseen: The last pass, if it was not recorded and not compared either.
        unfilled: Lines that read a history of which some places still hold their first value.
        rested: Passes that were not recorded.
        unobserved: Passes that ran without being recorded and gave what the program gives.
        pending: Findings about those lines, told if nothing more becomes of them.
        untraced: Outputs that no input reached on the first pass, with what is told if none does.
        dropped: Inputs of passes before the first that were not finished, by name.
    """

    number: int
    name: str
    location: str
    inputs: dict[str, InputMark] = field(default_factory=dict)
    outputs: dict[str, OutputMark] = field(default_factory=dict)
    states: dict[str, OutputMark] = field(default_factory=dict)
    static_outputs: dict[str, tuple[Port, torch.Tensor]] = field(default_factory=dict)
    demoted: set[str] = field(default_factory=set)
    opaque: dict[str, Any] = field(default_factory=dict)
    slice_number: int | None = None
    constant_versions: list[tuple[int, int | None]] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)
    rewritten: dict[str, str] = field(default_factory=dict)
    made_anew: list[tuple[str, int]] = field(default_factory=list)
    state_escapes: list[tuple[tuple[str, str, int], Any]] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    samples: list[Sample] = field(default_factory=list)
    completed: int = 0
    compared: int = 0
    open_pass: Pass | None = None
    export_with: str | None = None
    backend_params: dict[str, Any] = field(default_factory=dict)
    last_seen: int = 0
    replay: torch.fx.GraphModule | None = None
    replay_inputs: list[str] = field(default_factory=list)
    again: Any = None
    draws: bool = False
    first_slice: int | None = None
    held: dict[int, int] = field(default_factory=dict)
    carried: list[Any] = field(default_factory=list)
    unobserved: int = 0
    rested: int = 0
    unfilled: list[str] = field(default_factory=list)
    last_unseen: Pass | None = None
    pending: list[Diagnostic] = field(default_factory=list)
    untraced: dict[str, Diagnostic] = field(default_factory=dict)
    dropped: list[tuple[str, torch.Tensor]] = field(default_factory=list)

    @property
    def is_small(self) -> bool:
        """Whether the values of a pass can be kept at no cost worth speaking of."""
        return self.finished and sum(one.nbytes for one in self._first_values()) <= SMALL_BYTES

    def _first_values(self) -> list[torch.Tensor]:
        first = self.samples[0] if self.samples else None
        return [] if first is None else [*first.inputs.values(), *first.outputs.values()]

    @property
    def finished(self) -> bool:
        """Whether its first pass was completed."""
        return self.slice_number is not None

    def input_names(self) -> list[str]:
        """Return the names of all inputs by their number."""
        return list(self.inputs)

    def result_marks(self) -> dict[str, OutputMark]:
        """Return what the slice gives: declared outputs, then updated states."""
        return {**self.outputs, **self.states}


def port_of(
    name: str, tensor: torch.Tensor, semantics: TensorSemantics | None, location: str
) -> Port:
    """Return what a bundle says about a tensor."""
    dtype = DTYPE_NAMES.get(tensor.dtype)
    if dtype is None:
        message = f"{name!r} has the dtype {tensor.dtype}, which no bundle can hold"
        raise refuse("VER0902", message, location=location, hints=("convert it before",))
    port = Port(name, dtype, tuple(tensor.shape))
    if semantics is not None:
        port.kind = semantics.kind_text()
        names = semantics.element_names
        port.element_names = names if names is None or isinstance(names, list) else [[names]]
        port.temporal_period_ms = semantics.temporal_period_ms
        port.extra = dict(semantics.extra or {})
    return port


def version_of(tensor: torch.Tensor) -> int | None:
    """Return torch's count of writes into a tensor; tensors of inference mode have none."""
    return None if tensor.is_inference() else tensor._version


def same_port(known: Port, found: Port) -> bool:
    """Say whether two passes marked the same kind of tensor."""
    return known.dtype == found.dtype and known.shape == found.shape
