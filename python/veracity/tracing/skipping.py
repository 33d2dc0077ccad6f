"""Nodes that run only when data says so.

A bundle runs every node on every tick. The code around nodes may do otherwise: `if score > 1.5:
return` between two nodes skips the second one on some ticks, also when it never did while it was
recorded. So values of nodes that reach Python are followed through the code around nodes as well,
to the calls that begin a node, and to what these are given: `h = last if last.max() < 6 else zeros`
chooses between tensors where a bundle has one edge. Python values that change from tick to tick are
followed likewise. A value that decides about all nodes alike (`while not done`) only says when
there is a tick.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from veracity.errors import Diagnostic
from veracity.tracing import findings, flow, heap, source
from veracity.tracing.flow import Around, Outcome, Taint, Task
from veracity.tracing.heap import Walk
from veracity.tracing.node import TracedNode
from veracity.tracing.operations import owner_of_file
from veracity.tracing.resolving import names_of
from veracity.tracing.source import Scope
from veracity.tracing.trail import Step, keep_trail, user_frame

if TYPE_CHECKING:
    from veracity.tracing.session import Session

_USER = 0
#: Passes of a node whose beginning is looked at: the code around it is the same later.
MOST_PASSES = 3
#: Functions around a node whose variables are looked at, and objects of each.
MOST_FRAMES, MOST_OBJECTS = 4, 2000
#: Ticks over which a value is followed through what functions keep.
MOST_TICKS = 3
#: What a value does that chooses between others.
_CHOOSING = frozenset({"branch", "index", "exception", "filter"})
Trail = tuple[Step, ...]
#: For each function around nodes a step in it, and the calls in it that lead to a node.
Calls = dict[Scope, tuple[Step, Around]]


class Skips:
    """Follows values through the code around nodes."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session
        self._begins: dict[str, list[Trail]] = {}
        #: Where values left, the nodes that had run in that tick, and what Python made of them.
        self._left: dict[tuple[int, int], tuple[Trail, frozenset[str], str]] = {}
        #: Variables of functions around nodes, by function and node, and those that changed.
        self._first: dict[tuple[CodeType, str], heap.Values] = {}
        self._changed: dict[CodeType, set[str]] = {}

    def node_begins(self, node: TracedNode) -> None:
        """Remember who begins a node."""
        known = self._begins.setdefault(node.name, [])
        frame = user_frame()
        if node.completed < MOST_PASSES and frame is not None:
            trail = keep_trail(frame)
            if all(_place(one) != _place(trail) for one in known):
                known.append(trail)
            self._look_around(node, frame)

    def begins_another(self, node: TracedNode, way: tuple[tuple[int, int], ...]) -> bool:
        """Say whether another node than this begins where these functions are."""
        others = (trails for name, trails in self._begins.items() if name != node.name)
        return any(_place(one)[: len(way)] == way for trails in others for one in trails)

    def _look_around(self, node: TracedNode, innermost: FrameType) -> None:
        """Notice variables around a node that change from tick to tick."""
        frame: FrameType | None = innermost
        for _ in range(MOST_FRAMES):
            if frame is None or owner_of_file(frame.f_code.co_filename) != _USER:
                return
            roots = [(name, f"={name}", value) for name, value in list(frame.f_locals.items())]
            walk = Walk(roots, names=_names_in(frame.f_code), most=MOST_OBJECTS)
            found = dict(heap.compared(walk))
            first = self._first.setdefault((frame.f_code, node.name), found)
            changed = self._changed.setdefault(frame.f_code, set())
            changed.update(
                way[1]
                for way, value in found.items()
                if way in first and not heap.same(first[way], value)
            )
            frame = frame.f_back

    def left_between(self, tensor: Any, what: str = "value") -> None:
        """Remember a place between nodes at which Python gets a value, if a node computed it.

        Args:
            tensor: The value.
            what: What Python makes of it: `value`, `branch`, `index` or `array`. What is computed
                with arrays is recorded: it is no glue of Python's.
        """
        recorder = self._session.recorder
        frame = user_frame()
        if frame is None or not self._session.nodes or recorder.has_open():
            return
        key = (id(frame.f_code), frame.f_lasti)
        if key not in self._left and recorder.is_derived(tensor):
            done = frozenset(self._session.nodes) if what == "array" else self._done()
            first = what if what in _CHOOSING else "value"
            self._left[key] = (keep_trail(frame), done, first)

    def left_inside(self, trail: Trail | None) -> None:
        """Remember a place inside of a node at which Python gets a value."""
        if trail:
            key = (id(trail[0].code), trail[0].instruction)
            self._left.setdefault(key, (trail, frozenset(self._session.nodes), "value"))

    def _done(self) -> frozenset[str]:
        """Return the nodes that have run in this tick."""
        nodes = self._session.nodes
        ticks = next(iter(nodes.values())).completed
        return frozenset(name for name, node in nodes.items() if node.completed >= ticks)

    def findings(self, wired: set[str]) -> list[Diagnostic]:
        """Return what is decided about single nodes; `wired` ports get values from nodes."""
        calls, nodes = _calls(self._begins), frozenset(self._begins)
        outcomes = [
            (file, outcome, done)
            for trail, done, what in self._left.values()
            for file, outcome in _safely(trail, calls, nodes, what)
        ]
        by_data = len(outcomes)
        changed = self._of_changed(calls)
        outcomes += [(file, outcome, nodes) for file, outcome in changed]
        found: dict[tuple[str, str], Diagnostic] = {}
        for file, outcome in changed:
            found |= self._set_outside(file, outcome)
        for number, (file, outcome, done) in enumerate(outcomes):
            what = "a value of a node" if number < by_data else "a Python value that changes"
            for taint, skipped in outcome.decided_calls.items():
                for node in sorted(skipped) if skipped != nodes else ():
                    told = findings.skipped(node, what, f"{file}:{taint.line}")
                    found.setdefault(("skipped", node), told)
            for taint, given in outcome.decided_inputs.items():
                place = f"{file}:{taint.line}"
                fed = {port.partition("/")[0] for port in wired}
                if taint.what in _CHOOSING:
                    for node in sorted(one.partition("/")[0] for one in given & (wired | fed)):
                        found.setdefault(("chosen", node), findings.chosen_input(node, place))
                for node in sorted({one.partition("/")[0] for one in given} - done - fed):
                    found.setdefault(("glue", node), findings.glue_of_python(node, place))
        return list(found.values())

    def _set_outside(self, file: str, outcome: Outcome) -> dict[tuple[str, str], Diagnostic]:
        """Return what is told of attributes that a value around nodes chooses, and nodes read."""
        found = {}
        for key, taint in outcome.kept.items():
            if key.startswith(".") and taint.what in _CHOOSING:
                for node in self._session.nodes.values():
                    if self._session.python_states.decides(node, key):
                        place = f"{file}:{taint.line}"
                        told = findings.changing_value(node.name, key[1:], place, taint.what)
                        found["set", f"{node.name}{key}"] = told
        return found

    def forget(self) -> None:
        """Let go of everything that was looked at: the session is over."""
        self._first.clear()

    def _of_changed(self, calls: Calls) -> list[tuple[str, Outcome]]:
        """Follow variables that change from tick to tick."""
        keys = self._keys_by_scope()
        outcomes = []
        for scope, (step, within) in calls.items():
            tainted = {key.lstrip("=@"): Taint("value", step.line) for key in keys.get(scope, ())}
            # A loop gives its variable another value by itself.
            sources: dict[ast.AST, Taint] = {
                node: tainted[node.id]
                for node in source.own_nodes(scope)
                if isinstance(node, ast.Name)
                and isinstance(node.ctx, ast.Load)
                and node.id in tainted
            }
            for _ in range(MOST_TICKS if tainted else 0):
                task = Task(
                    scope, names_of(step), tainted=dict(tainted), sources=sources, around=within
                )
                try:
                    outcome = flow.walk(task)
                except RecursionError:
                    break
                outcomes.append((step.code.co_filename, outcome))
                if outcome.kept.keys() <= tainted.keys():
                    break
                tainted |= outcome.kept  # the next tick begins with it
                tainted |= {key.lstrip("@"): one for key, one in outcome.kept.items()}
        return outcomes

    def _keys_by_scope(self) -> dict[Scope, set[str]]:
        """Return the variables that change, by the functions that have them."""
        found: dict[Scope, set[str]] = {}
        steps = [step for trails in self._begins.values() for one in trails for step in one]
        for step in steps:
            place = source.place_of(step.code, step.instruction, step.line)
            if place is not None:
                found.setdefault(place.scope, set()).update(self._changed.get(step.code, ()))
        return found


@functools.lru_cache(maxsize=1024)
def _names_in(code: CodeType) -> frozenset[str]:
    """Return every name that a function mentions, and those inside of it."""
    own = (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)
    inside = [_names_in(one) for one in code.co_consts if isinstance(one, CodeType)]
    return frozenset(own).union(*inside)


def _place(trail: Trail) -> tuple[tuple[int, int], ...]:
    return tuple((id(step.code), step.instruction) for step in trail)


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


def _safely(
    trail: Trail, calls: Calls, nodes: frozenset[str], what: str
) -> list[tuple[str, Outcome]]:
    try:
        return list(_outcomes(trail, calls, nodes, what))
    except RecursionError:
        return []


def _outcomes(
    trail: Trail, calls: Calls, nodes: frozenset[str], what: str
) -> Iterator[tuple[str, Outcome]]:
    """Walk the functions from a value outwards, then those that read what was kept."""
    kept: dict[str, Taint] = {}
    returned: Taint | None = Taint(what, trail[0].line)
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
