"""What a finished recording is: plain data between the session that made it and its export.

Nothing here computes. Names are the user's; renaming for a backend happens while exporting.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from veracity.errors import Diagnostic
    from veracity.tracing.again import Again
    from veracity.tracing.slice import Slice


@dataclass
class Port:
    """An input or output of a node.

    Attributes:
        name: The user's name, nested names joined by `_`.
        dtype: Name of the element type, `"float32"` and so on.
        shape: Sizes of the axes.
        kind: What the values mean, if anybody said it.
        element_names: One entry per axis: a list of names, `None`, or the temporal sentinel.
        temporal_period_ms: Time between two elements of the temporal axis.
        extra: Further keys for the port's entry in the YAML.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    kind: str | None = None
    element_names: list[Any] | None = None
    temporal_period_ms: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class Sample:
    """What went in and out of a node on one pass, by port name.

    Attributes:
        inputs: By port.
        outputs: By port.
        tick: The run of the whole pipeline that the pass was part of.
    """

    inputs: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]
    tick: int = 0


@dataclass
class Node:
    """One node of the pipeline.

    Attributes:
        name: Unique among the nodes.
        inputs: In the order in which they were marked, without those that do not matter.
        outputs: The declared outputs, then the updated states, then the static outputs.
        states: Updated states: output `name` feeds input `name` of the next tick.
        static_outputs: Outputs that do not depend on inputs, with their value.
        slice: What the node computes; its outputs are `outputs` without the static ones.
        export_with: Name of the backend; `None` exports no model.
        backend_params: Options of the backend.
        samples: One for each cached pass; the first is the first pass.
        location: `file:line` where the node was begun.
        traced: Whether the node is exported at all (`non_traced` switches it off).
        again: Runs the node's code on other inputs, where that is possible.
        passes: How many passes were looked at in full; all after the first agree with it.
        seen: How many passes there were, kept as samples or not; 0 when nobody counted.
    """

    name: str
    inputs: list[Port]
    outputs: list[Port]
    states: dict[str, str]
    static_outputs: dict[str, torch.Tensor]
    slice: Slice
    export_with: str | None
    backend_params: dict[str, Any]
    samples: list[Sample]
    location: str
    traced: bool = True
    again: Again | None = None
    passes: int = 1
    seen: int = 0


@dataclass
class Edge:
    """A value that goes from one node to another, or to a later tick.

    Attributes:
        source: Node and output.
        target: Node and input.
        delay: How many ticks old the value is when the consumer reads it.
        initial: What the consumer reads on ticks 1 to `delay`.
    """

    source: tuple[str, str]
    target: tuple[str, str]
    delay: int = 0
    initial: list[torch.Tensor] = field(default_factory=list)


@dataclass
class Recording:
    """Everything that a session saw.

    Attributes:
        name: Name of the graph.
        folder: Where the bundle goes.
        nodes: In the order in which they were completed first.
        edges: Between the nodes; those of updated states are among them.
        diagnostics: What the recorder found.
        verbose: Whether details go to the console.
        dry_run: Whether models are left out.
    """

    name: str
    folder: Path
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    verbose: bool = False
    dry_run: bool = False
