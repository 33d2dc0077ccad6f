"""A finished session as plain data for export."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from veracity.errors import Diagnostic, error_from_diagnostics
from veracity.tracing import findings, passes
from veracity.tracing.node import TracedNode
from veracity.tracing.nodes import Edge, Node, Recording, Sample

if TYPE_CHECKING:
    from veracity.tracing.session import Session


def recording_of(session: Session) -> Recording:
    """Return what a session recorded; refuse unfinished nodes."""
    _refuse_unfinished(session)
    graph = session.recorder.graph()
    names = list(session.nodes)
    order = [names[number] for number in graph["order"]]
    found = list(session.diagnostics)
    edges = _edges(session, graph, found)
    nodes = [_node(session, session.nodes[name]) for name in order]
    found += _escape_findings(session)
    for recorded, node in zip(nodes, map(session.nodes.__getitem__, order), strict=True):
        found += passes.changed_constants(node, recorded.slice)
        found += passes.leftovers(session, node)
    return Recording(
        name=session.options.name,
        folder=session.options.folder,
        nodes=nodes,
        edges=edges,
        diagnostics=_unique(found),
        verbose=session.options.verbose,
        dry_run=session.options.dry_run,
    )


def _refuse_unfinished(session: Session) -> None:
    unfinished = [node for node in session.nodes.values() if not node.finished]
    if unfinished:
        raise error_from_diagnostics(
            [
                Diagnostic(
                    "VER0905",
                    "error",
                    f"the node `{node.name}` was begun and never finished",
                    node.location,
                    (f"call `output_tensors({node.name!r}, ...)`",),
                )
                for node in unfinished
            ]
        )


def _unique(found: list[Diagnostic]) -> list[Diagnostic]:
    return list(dict.fromkeys(found))


def _node(session: Session, node: TracedNode) -> Node:
    kept = [name for name in node.inputs if name in node.used]
    outputs = [mark.port for mark in node.result_marks().values()]
    statics = {name: value for name, (_, value) in node.static_outputs.items()}
    traced = node.name not in session.options.non_traced
    return Node(
        name=node.name,
        inputs=[node.inputs[name].port for name in kept],
        outputs=outputs + [port for port, _ in node.static_outputs.values()],
        states={name: name for name in node.states if name in node.used},
        static_outputs=statics,
        slice=passes.slice_of(session, node),
        export_with=node.export_with,
        backend_params=node.backend_params,
        samples=[_sample(sample, kept) for sample in node.samples],
        location=node.location,
        traced=traced,
    )


def _sample(sample: Sample, kept: list[str]) -> Sample:
    return Sample({name: sample.inputs[name] for name in kept}, sample.outputs)


def _edges(session: Session, graph: dict[str, object], found: list[Diagnostic]) -> list[Edge]:
    nodes = list(session.nodes.values())
    edges: list[Edge] = []
    declared = set()
    for node in nodes:
        for name in node.states:
            if name in node.used:
                end = (node.name, name)
                declared.add(end)
                edges.append(Edge(end, end, 1, _initial(node, name, 1)))
    for (source, source_port), (target, target_port), delay in graph["edges"]:  # type: ignore[attr-defined]
        consumer = nodes[target]
        name = consumer.input_names()[target_port]
        if (consumer.name, name) in declared or name not in consumer.used:
            continue
        origin = (nodes[source].name, _output_name(nodes[source], source_port))
        initial = _initial(consumer, name, delay)
        if len(initial) < delay:
            message = f"`{consumer.name}/{name}` is {delay} passes old, and fewer were kept"
            hints = (f"run at least {delay} passes with `max_cached_io` of at least {delay}",)
            location = consumer.inputs[name].location
            found.append(Diagnostic("VER0926", "error", message, location, hints))
            continue
        edges.append(Edge(origin, (consumer.name, name), delay, initial))
    found += _edge_problems(nodes, graph)
    return edges


def _output_name(node: TracedNode, number: int) -> str:
    return next(name for name, mark in node.result_marks().items() if mark.number == number)


def _initial(node: TracedNode, name: str, delay: int) -> list[torch.Tensor]:
    """Return the first values of an input, before its edge carried any."""
    early = node.inputs[name].early
    sampled = [s.inputs[name] for s in node.samples if name in s.inputs]
    values = early if len(early) >= len(sampled) else sampled
    return values[:delay]


def _edge_problems(nodes: list[TracedNode], graph: dict[str, object]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for (target, port), (what, sources, numbers) in graph["problems"]:  # type: ignore[attr-defined]
        node = nodes[target]
        name = node.input_names()[port]
        if name not in node.used:
            continue
        origin = " and ".join(
            f"`{nodes[source].name}/{_output_name(nodes[source], number)}`"
            for source, number in sources
        )
        message = {
            "delay": f"{origin} reaches `{node.name}/{name}` after {numbers[0]} ticks on one pass "
            f"and {numbers[1]} on another",
            "source": f"`{node.name}/{name}` comes from {origin} in turn",
            "lost": f"`{node.name}/{name}` comes from {origin}, but not on pass {numbers[0] + 1}",
        }[what]
        hints = ("an input has one source: use two inputs, or two nodes",)
        location = node.inputs[name].location
        found.append(Diagnostic("VER0917", "error", message, location, hints))
    return found


def _escape_findings(session: Session) -> list[Diagnostic]:
    return [
        findings.frozen(name, what, location, changed=False)
        for name, escapes in session.escapes.items()
        for what, location, _ in escapes
    ]
