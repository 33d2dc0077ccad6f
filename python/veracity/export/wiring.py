"""From observed edges with delays to the flows of a bundle.

A bundle knows two kinds of edges: within a tick, from an earlier node to a later one, and into the
next tick, from a node to itself or an earlier one. Every other delay is made of generated nodes
that pass their input through:

- one tick from an earlier node: a node after the consumer, fed within the tick, that feeds back;
- each further tick: a pair, one before the consumer and one after it.

Nothing is exported here; a generated node is a `Node` like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from veracity.errors import Diagnostic, error_from_diagnostics, refuse
from veracity.tracing.nodes import Edge, Node, Port, Recording, Sample
from veracity.tracing.slice import InputUse, Ref, Slice

if TYPE_CHECKING:
    import torch

#: Ports of generated nodes.
_HELD, _RELEASED = "value", "delayed"

End = tuple[str, str]


@dataclass
class Wiring:
    """How the nodes of a bundle are connected, by the names of the recording.

    Attributes:
        nodes: In the order in which they run, generated ones included.
        data_flow: Edges within a tick.
        feedback_flow: Edges into the next tick.
        initial: What inputs of `feedback_flow` start from.
        kept_outputs: Outputs that feed only generated nodes or the next tick: still the
            pipeline's own, unless they are states.
        generated: Names of the generated nodes.
    """

    nodes: list[Node]
    data_flow: list[tuple[End, End]] = field(default_factory=list)
    feedback_flow: list[tuple[End, End]] = field(default_factory=list)
    initial: dict[End, torch.Tensor] = field(default_factory=dict)
    kept_outputs: list[End] = field(default_factory=list)
    generated: set[str] = field(default_factory=set)

    def outputs(self) -> list[End]:
        """Return what the pipeline gives: what nothing reads, and what is kept all the same."""
        read = {source for source, _ in self.data_flow + self.feedback_flow}
        ends = [(node.name, port.name) for node in self.nodes for port in node.outputs]
        return [end for end in ends if end not in read or end in self.kept_outputs]

    def without_inputs(self, dropped: set[End]) -> Wiring:
        """Return the wiring without the edges into these inputs."""
        if not dropped:
            return self
        return replace(
            self,
            data_flow=[edge for edge in self.data_flow if edge[1] not in dropped],
            feedback_flow=[edge for edge in self.feedback_flow if edge[1] not in dropped],
            initial={end: value for end, value in self.initial.items() if end not in dropped},
        )


def wire(recording: Recording) -> Wiring:
    """Connect the nodes of a recording. Refused, with all reasons, when edges cannot be."""
    edges = _all_edges(recording)
    _check(recording, edges)
    return _Wirer(recording).wire(edges)


def _all_edges(recording: Recording) -> list[Edge]:
    """Return the edges that lead into inputs that matter, those of states included."""
    inputs = {(node.name, port.name) for node in recording.nodes for port in node.inputs}
    edges = {(edge.source, edge.target): edge for edge in recording.edges if edge.target in inputs}
    for node in recording.nodes:
        for output, name in node.states.items():
            ends = ((node.name, output), (node.name, name))
            if ends[1] in inputs and ends not in edges:
                first = [node.samples[0].inputs[name]] if node.samples else []
                edges[ends] = Edge(*ends, 1, first)
    return list(edges.values())


def _check(recording: Recording, edges: list[Edge]) -> None:
    nodes = {node.name: node for node in recording.nodes}
    position = {name: index for index, name in enumerate(nodes)}
    found: list[Diagnostic] = []
    fed: dict[End, Edge] = {}
    for edge in edges:
        text = f"{'/'.join(edge.source)} -> {'/'.join(edge.target)}"
        target = nodes[edge.target[0]]

        def report(code: str, message: str, *hints: str, location: str = target.location) -> None:
            found.append(Diagnostic(code, "error", message, location, hints))

        source = nodes.get(edge.source[0])
        output = None if source is None else _port(source.outputs, edge.source[1])
        if output is None:
            report("VER0311", f"{text}: there is no such output")
            continue
        given = _port(target.inputs, edge.target[1])
        if given and (output.shape, output.dtype) != (given.shape, given.dtype):
            report(
                "VER0312",
                f"{text}: {output.dtype}{list(output.shape)} cannot feed "
                f"{given.dtype}{list(given.shape)}",
            )
        if edge.target in fed:
            other = "/".join(fed[edge.target].source)
            report("VER0313", f"{text}: {other} feeds this input as well")
        fed[edge.target] = edge
        if edge.delay < (position[edge.source[0]] >= position[edge.target[0]]):
            report("VER0926", f"{text}: a later node cannot feed this one within a tick")
        if len(edge.initial) < edge.delay and not recording.dry_run:
            report(
                "VER0926",
                f"{text}: a delay of {edge.delay} ticks needs as many first values, and "
                f"{len(edge.initial)} were recorded",
                "record more passes, and raise `max_cached_io` of start()",
            )
    if found:
        raise error_from_diagnostics(found)


def _port(ports: Iterable[Port], name: str) -> Port | None:
    return next((port for port in ports if port.name == name), None)


class _Wirer:
    def __init__(self, recording: Recording) -> None:
        self._dry_run = recording.dry_run
        self._nodes = {node.name: node for node in recording.nodes}
        self._position = {name: index for index, name in enumerate(self._nodes)}
        self._taken = set(self._nodes)
        self._before: dict[str, list[Node]] = {}
        self._after: dict[str, list[Node]] = {}
        self._wiring = Wiring([])

    def wire(self, edges: list[Edge]) -> Wiring:
        for edge in edges:
            self._connect(edge)
        wiring = self._wiring
        for name, node in self._nodes.items():
            wiring.nodes += [*self._before.get(name, ()), node, *self._after.get(name, ())]
        wiring.kept_outputs = self._kept_outputs()
        return wiring

    def _kept_outputs(self) -> list[End]:
        """Return what the pipeline gives although something reads it, in the order of the nodes.

        An action that comes back as the last action is still what the pipeline is for; what a node
        only remembers is not.
        """
        wiring = self._wiring
        within: dict[End, set[str]] = {source: set() for source, _ in wiring.feedback_flow}
        for source, target in wiring.data_flow:
            within.setdefault(source, set()).add(target[0])
        back = {source for source, _ in wiring.feedback_flow}
        return [
            (node.name, port.name)
            for node in self._nodes.values()
            for port in node.outputs
            if (end := (node.name, port.name)) in within
            and within[end] <= wiring.generated
            and not (end in back and port.name in node.states)
        ]

    def _connect(self, edge: Edge) -> None:
        if edge.delay == 0:
            self._wiring.data_flow.append((edge.source, edge.target))
            return
        source, ticks = edge.source, edge.delay
        program = Slice(inputs=[InputUse(_HELD, False)], outputs=[Ref("input", 0)])
        # Values that are read first come first in `initial`; the chain is built from its source.
        firsts = list(reversed(edge.initial[:ticks]))
        if self._position[edge.source[0]] < self._position[edge.target[0]]:
            held = self._generate(edge, "after", program)
            self._wiring.data_flow.append((source, (held.name, _HELD)))
            source = (held.name, _RELEASED)
        for first in range(ticks - 1):
            before, after = (
                self._generate(edge, "before", program),
                self._generate(edge, "after", program),
            )
            self._feed_back(source, (before.name, _HELD), firsts[first : first + 1])
            self._wiring.data_flow.append(((before.name, _RELEASED), (after.name, _HELD)))
            source = (after.name, _RELEASED)
        self._feed_back(source, edge.target, firsts[ticks - 1 :])

    def _feed_back(self, source: End, target: End, first: list[torch.Tensor]) -> None:
        self._wiring.feedback_flow.append((source, target))
        if first and not self._dry_run:
            self._wiring.initial[target] = first[0]

    def _generate(self, edge: Edge, side: str, program: Slice) -> Node:
        consumer, producer = self._nodes[edge.target[0]], self._nodes[edge.source[0]]
        name = self._free_name(edge.target)
        node = _pass_through(name, edge.target[1], consumer, producer, program)
        (self._before if side == "before" else self._after).setdefault(consumer.name, []).append(
            node
        )
        self._wiring.generated.add(node.name)
        return node

    def _free_name(self, target: End) -> str:
        number = 1
        while (name := f"{target[0]}_{target[1]}_delay_{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return name


def _pass_through(
    name: str, port_name: str, consumer: Node, producer: Node, program: Slice
) -> Node:
    """Return a node whose output is its input, exported as its consumer is."""
    like = _port(consumer.inputs, port_name)
    if like is None:
        raise refuse("VER0311", f"node {consumer.name!r} has no input {port_name!r}")
    has_model = consumer.traced and (
        consumer.export_with or "model_path" in consumer.backend_params
    )
    samples = [sample.inputs[port_name] for sample in consumer.samples]
    return Node(
        name=name,
        inputs=[Port(_HELD, like.dtype, like.shape)],
        outputs=[Port(_RELEASED, like.dtype, like.shape)],
        states={},
        static_outputs={},
        slice=program,
        export_with=(consumer.export_with or producer.export_with or "jit") if has_model else None,
        backend_params={},
        samples=[Sample({_HELD: value}, {_RELEASED: value}) for value in samples],
        location=consumer.location,
        traced=consumer.traced,
    )
