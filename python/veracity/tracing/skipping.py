"""Nodes that run only when data says so.

A bundle runs every node on every tick. The code around nodes may do otherwise: `if score > 1.5:
return` between two nodes skips the second one on some ticks, also when it never did while it was
recorded. So values of nodes that reach Python are followed through the code around nodes as well,
to the calls that begin a node. A value that decides about all nodes alike (`while not done`) only
says when there is a tick.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from veracity.errors import Diagnostic
from veracity.tracing import findings, flow, source
from veracity.tracing.flow import Around, Outcome, Taint, Task
from veracity.tracing.node import TracedNode
from veracity.tracing.operations import owner_of_file
from veracity.tracing.resolving import names_of
from veracity.tracing.source import Scope
from veracity.tracing.trail import Step, keep_trail

if TYPE_CHECKING:
    from veracity.tracing.session import Session

_USER = 0
#: Passes of a node whose beginning is looked at: the code around it is the same later.
MOST_PASSES = 3
Trail = tuple[Step, ...]


class Skips:
    """Follows values through the code around nodes."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session
        self._begins: dict[str, list[Trail]] = {}
        self._left: dict[tuple[int, int], Trail] = {}

    def node_begins(self, node: TracedNode) -> None:
        """Remember who begins a node."""
        known = self._begins.setdefault(node.name, [])
        frame = user_frame()
        if node.completed < MOST_PASSES and frame is not None:
            trail = keep_trail(frame)
            if all(_place(one) != _place(trail) for one in known):
                known.append(trail)

    def left_between(self, tensor: Any) -> None:
        """Remember a place between nodes at which Python gets a value, if a node computed it."""
        recorder = self._session.recorder
        frame = user_frame()
        if frame is None or not self._session.nodes or recorder.has_open():
            return
        key = (id(frame.f_code), frame.f_lasti)
        if key not in self._left and recorder.is_derived(tensor):
            self._left[key] = keep_trail(frame)

    def left_inside(self, trail: Trail | None) -> None:
        """Remember a place inside of a node at which Python gets a value."""
        if trail:
            self._left.setdefault((id(trail[0].code), trail[0].instruction), trail)

    def findings(self) -> list[Diagnostic]:
        """Return what is decided about single nodes."""
        if len(self._begins) < 2:
            return []
        calls = _calls(self._begins)
        found: dict[str, Diagnostic] = {}
        for trail in self._left.values():
            for node, location in _skipped(trail, calls, frozenset(self._begins)):
                found.setdefault(node, findings.skipped(node, location))
        return list(found.values())


def user_frame() -> FrameType | None:
    """Return the innermost frame of the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and owner_of_file(frame.f_code.co_filename) != _USER:
        frame = frame.f_back
    return frame


def _place(trail: Trail) -> tuple[tuple[int, int], ...]:
    return tuple((id(step.code), step.instruction) for step in trail)


#: For each function around nodes a step in it, and the calls in it that lead to a node.
Calls = dict[Scope, tuple[Step, Around]]


def _calls(begins: dict[str, list[Trail]]) -> Calls:
    nodes = frozenset(begins)
    found: Calls = {}
    for node, trails in begins.items():
        for trail in trails:
            for number, step in enumerate(trail):
                place = source.place_of(step.code, step.instruction, step.line)
                if place is None:
                    continue
                _, around = found.setdefault(place.scope, (step, Around({}, nodes)))
                for expression in place.nodes:
                    known = around.calls.setdefault(expression, set())
                    if number == 0 and known - {node}:
                        around.later.setdefault(expression, set()).add(node)
                    known.add(node)
    return found


def _skipped(trail: Trail, calls: Calls, nodes: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Give the nodes that a value decides about, and where."""
    try:
        for file, outcome in _outcomes(trail, calls, nodes):
            for taint, skipped in outcome.decided_calls.items():
                for node in sorted(skipped) if skipped != nodes else ():
                    yield node, f"{file}:{taint.line}"
    except RecursionError:
        return


def _outcomes(trail: Trail, calls: Calls, nodes: frozenset[str]) -> Iterator[tuple[str, Outcome]]:
    """Walk the functions from a value outwards, then those that read what was kept."""
    kept: dict[str, Taint] = {}
    returned: Taint | None = Taint("value", trail[0].line)
    raised: Taint | None = None
    for step in trail:
        place = source.place_of(step.code, step.instruction, step.line)
        if place is None or (returned is None and raised is None):
            break
        task = Task(
            place.scope,
            names_of(step),
            sources={} if returned is None else dict.fromkeys(place.nodes, returned),
            raising={} if raised is None else dict.fromkeys(place.nodes, raised),
            around=calls[place.scope][1] if place.scope in calls else Around({}, nodes),
        )
        outcome = flow.walk(task)
        yield place.file, outcome
        kept |= outcome.kept
        returned, raised = outcome.returned, outcome.raised
    for scope, (step, within) in calls.items() if kept else ():
        task = Task(scope, names_of(step), tainted=dict(kept), around=within)
        yield step.code.co_filename, flow.walk(task)
