"""A finished session as plain data for export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from veracity.errors import Diagnostic, error_from_diagnostics
from veracity.tracing import findings, passes, replaying
from veracity.tracing.again import Again
from veracity.tracing.decisions import Decision
from veracity.tracing.node import TracedNode
from veracity.tracing.nodes import Edge, Node, Recording, Sample

if TYPE_CHECKING:
    from veracity.tracing.session import Session

#: Passes that show an output which no input reaches to be a constant.
FEWEST_TO_SETTLE = 3


def recording_of(session: Session) -> Recording:
    """Return what a session recorded; refuse unfinished nodes."""
    _refuse_unfinished(session)
    _refuse_untraced(session)
    for node in session.nodes.values():
        passes.check_last(session, node)
        passes.tell_pending(session, node)
        if session.reads.wanted and node.first_slice is not None:
            session.reads.note(replaying.recorded(session, node, node.first_slice))
    session.python_states.look_at_last()
    session.python_states.tell_read()
    for node in session.nodes.values():
        for told in session.python_states.shared_memory(node):
            session.tell(told)
    graph = session.recorder.graph()
    names = list(session.nodes)
    order = [names[number] for number in graph["order"]]
    found = list(session.diagnostics)
    loops = _own_loops(list(session.nodes.values()), graph, found)
    edges = _edges(session, graph, loops, found)
    found += session.skips.findings({"/".join(edge.target) for edge in edges})
    nodes = [_node(session, session.nodes[name], loops) for name in order]
    found += _escape_findings(session)
    for recorded, node in zip(nodes, map(session.nodes.__getitem__, order), strict=True):
        found += passes.changed_constants(node, recorded.slice)
        found += passes.rewritten(node, found)
        found += passes.leftovers(session, node)
        if node.draws and not node.compared:
            found.append(findings.plain_draws(node.name, node.location))
        found += _missing_passes(session, node)
    for watcher in (session.python_states, session.witness, session.paths, session.skips):
        watcher.forget()
    return Recording(
        name=session.options.name,
        folder=session.options.folder,
        nodes=nodes,
        edges=edges,
        diagnostics=findings.explained(_unique(found)),
        verbose=session.options.verbose,
        dry_run=session.options.dry_run,
    )


def _missing_passes(session: Session, node: TracedNode) -> list[Diagnostic]:
    """Return what is not known of a node that was not run often enough."""
    if node.name in session.options.non_traced:
        return []
    lost = [findings.lost_state(node.name, "not filled", place) for place in node.unfilled]
    if node.completed == 1:
        return [findings.one_pass(node.name, node.location)]
    wrong = node.name in findings.nodes_in_error(session.diagnostics)
    if not node.unobserved and not wrong and not isinstance(node.again, Again):
        return [*lost, findings.never_left_alone(node.name, node.location)]
    return lost


def _refuse_untraced(session: Session) -> None:
    """Refuse outputs that no input reaches, unless they are seen to be constants.

    A policy may give its deviations, which are weights. What was made of older memory and was the
    same on every pass is a constant like any other.
    """
    untraced = [
        found
        for node in session.nodes.values()
        for name, found in node.untraced.items()
        if not _is_settled(node, name)
    ]
    if untraced:
        raise error_from_diagnostics(untraced)


def _is_settled(node: TracedNode, output: str) -> bool:
    values = [sample.outputs[output] for sample in node.samples if output in sample.outputs]
    if len(values) < FEWEST_TO_SETTLE or len(values) < len(node.samples):
        return False
    return all(torch.equal(values[0], one) for one in values)


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


def _node(session: Session, node: TracedNode, loops: set[tuple[str, str]]) -> Node:
    kept = [name for name in node.inputs if name in node.used]
    outputs = [mark.port for mark in node.result_marks().values()]
    statics = {name: value for name, (_, value) in node.static_outputs.items()}
    traced = node.name not in session.options.non_traced
    return Node(
        name=node.name,
        inputs=[node.inputs[name].port for name in kept],
        outputs=outputs + [port for port, _ in node.static_outputs.values()],
        states={name: name for name in node.states if (node.name, name) in loops},
        static_outputs=statics,
        slice=replaying.slice_of(session, node),
        export_with=node.export_with,
        backend_params=node.backend_params,
        samples=[_sample(sample, kept) for sample in node.samples],
        location=node.location,
        traced=traced,
        again=node.again if isinstance(node.again, Again) else None,
        passes=1 + node.compared,
        seen=node.completed,
    )


def _sample(sample: Sample, kept: list[str]) -> Sample:
    inputs = {name: sample.inputs[name] for name in kept}
    return Sample(inputs, sample.outputs, sample.tick)


def _edges(
    session: Session,
    graph: dict[str, Any],
    loops: set[tuple[str, str]],
    found: list[Diagnostic],
) -> list[Edge]:
    nodes = list(session.nodes.values())
    edges: list[Edge] = []
    for node in nodes:
        for name in node.states:
            if (node.name, name) in loops:
                end = (node.name, name)
                edges.append(Edge(end, end, 1, _initial(node, name, 1)))
    for (source, source_port), (target, target_port), delay in graph["edges"]:
        consumer = nodes[target]
        name = consumer.input_names()[target_port]
        if (consumer.name, name) in loops or name not in consumer.used:
            continue
        origin = (nodes[source].name, _output_name(nodes[source], source_port))
        initial = _initial(consumer, name, delay)
        if len(initial) < delay:
            message = f"`{consumer.name}/{name}` is {delay} passes old, and fewer were kept"
            hints = (f"run at least {delay} passes with `max_cached_io` of at least {delay}",)
            location = consumer.inputs[name].location
            found.append(Diagnostic("VER0926", "error", message, location, hints, consumer.name))
            continue
        edges.append(Edge(origin, (consumer.name, name), delay, initial))
    found += _edge_problems(nodes, graph)
    found += _different_rates(nodes, graph)
    return edges


def _own_loops(
    nodes: list[TracedNode], graph: dict[str, Any], found: list[Diagnostic]
) -> set[tuple[str, str]]:
    """Return the states that lead back to their own node.

    A buffer that two nodes change is handed from one to the other; that is seen, not declared, and
    takes two passes to be seen.
    """
    states = {(node.name, name) for node in nodes for name in node.states if name in node.used}
    taken: dict[tuple[str, str], tuple[str, str]] = {}
    for (source, source_port), (target, target_port), _ in graph["edges"]:
        end = (nodes[target].name, nodes[target].input_names()[target_port])
        taken[end] = (nodes[source].name, _output_name(nodes[source], source_port))
    shared = {end for end in states if taken.get(end, end) != end}
    for end, source in taken.items():
        if end in shared and source in states and source not in taken:
            message = f"`{source[0]}` and `{end[0]}` change one state, `{source[1]}`"
            node = next(node for node in nodes if node.name == source[0])
            hints = ("run at least two passes, so that the way back is seen",)
            found.append(
                Diagnostic("VER0909", "error", message, node.inputs[source[1]].location, hints)
            )
    return states - shared


def _different_rates(nodes: list[TracedNode], graph: dict[str, Any]) -> list[Diagnostic]:
    """Tell about outputs that a consumer reads again before there is a new one."""
    found = []
    for (source, _), (target, port) in graph["reused"]:
        node, producer = nodes[target], nodes[source]
        name = node.input_names()[port]
        if name in node.used:
            message = (
                f"`{node.name}/{name}` reads one value of `{producer.name}` on several passes: a "
                "bundle runs every node once a tick"
            )
            location = node.inputs[name].location
            hints = ("export nodes that run at different rates as bundles of their own",)
            found.append(Diagnostic("VER0917", "warning", message, location, hints, node.name))
    return found


def _output_name(node: TracedNode, number: int) -> str:
    return next(name for name, mark in node.result_marks().items() if mark.number == number)


def _initial(node: TracedNode, name: str, delay: int) -> list[torch.Tensor]:
    """Return the first values of an input, before its edge carried any."""
    early = node.inputs[name].early
    sampled = [s.inputs[name] for s in node.samples if name in s.inputs]
    values = early if len(early) >= len(sampled) else sampled
    return values[:delay]


def _edge_problems(nodes: list[TracedNode], graph: dict[str, Any]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for (target, port), (what, sources, numbers) in graph["problems"]:
        node = nodes[target]
        name = node.input_names()[port]
        # A state that was reset for a new episode is the same state.
        if name not in node.used or (what == "lost" and name in node.states):
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
    """Return warnings about values that left for Python, unless one was seen to change."""
    return [
        findings.frozen(
            name,
            what,
            location,
            changed=False,
            decision=session.closing.decided.get((name, what, location)),
        )
        for name, escapes in session.escapes.items()
        for what, location, _ in escapes
        if _matters(session, session.closing.decided.get((name, what, location)))
        and findings.frozen(name, what, location, changed=True) not in session.diagnostics
    ]


def _matters(session: Session, decision: Decision | None) -> bool:
    """Say whether what a value decides is read by a program."""
    if decision is None or not decision.only_in:
        return True
    return any(session.reads.may_read(region) for region in decision.only_in)
