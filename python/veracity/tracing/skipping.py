"""Nodes that run only when data says so.

A bundle runs every node on every tick. The code around nodes may do otherwise: `if score > 1.5:
return` between two nodes skips the second one on some ticks, also when it never did while it was
recorded. So values of nodes that reach Python are followed through the code around nodes as well,
to the calls that begin a node, and to what these are given: `h = last if last.max() < 6 else zeros`
chooses between tensors where a bundle has one edge. Python values that change from tick to tick are
followed likewise, and so is what arrives from outside: a joystick that rested while it was recorded
is another one later. A value that decides about all nodes alike (`while not done`) only says when
there is a tick.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import replace
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
import torch

from veracity.errors import Diagnostic
from veracity.tracing import arrays, findings, flow, heap, source
from veracity.tracing.flow import Around, Outcome, Taint, Task
from veracity.tracing.flow.task import KEPT
from veracity.tracing.heap import Walk
from veracity.tracing.node import TracedNode
from veracity.tracing.operations import owner_of_file
from veracity.tracing.resolving import Names, names_of
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
#: Whose a value is that decides.
_OF_NODE, _FROM_OUTSIDE = "a value of a node", "a value from outside"
_CHANGING = "a Python value that changes"
Trail = tuple[Step, ...]
#: For each function around nodes a step in it, and the calls in it that lead to a node.
Calls = dict[Scope, tuple[Step, Around]]


class _Left(NamedTuple):
    """A place between nodes at which Python gets a value.

    Attributes:
        trail: The place, and who called it.
        done: The nodes that had run in that tick, or that glue is nothing to.
        what: What Python makes of the value.
        who: Whose value it is.
    """

    trail: Trail
    done: frozenset[str]
    what: str
    who: str


class Skips:
    """Follows values through the code around nodes."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session
        self._begins: dict[str, list[Trail]] = {}
        self._left: dict[tuple[int, int], _Left] = {}
        #: Variables of functions around nodes, by function and node, and those that changed.
        self._first: dict[tuple[CodeType, str], heap.Values] = {}
        self._changed: dict[CodeType, set[str]] = {}
        #: Tensors and arrays that variables held first, and variables that hold others later.
        self._held: dict[tuple[CodeType, str], dict[str, Any]] = {}
        self._arriving: dict[CodeType, set[str]] = {}

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
            seen = list(walk)
            self._note_arrivals(node, frame.f_code, seen)
            found = dict(heap.compared(seen))
            first = self._first.setdefault((frame.f_code, node.name), found)
            changed = self._changed.setdefault(frame.f_code, set())
            changed.update(
                way[1]
                for way, value in found.items()
                if way in first and not heap.same(first[way], value)
            )
            frame = frame.f_back

    def _note_arrivals(self, node: TracedNode, code: CodeType, seen: list[heap.Root]) -> None:
        """Notice variables that are another tensor or array on each tick, of no node's making."""
        held = {
            path: (key, value)
            for path, key, value in seen
            if path == key[1:] and isinstance(value, torch.Tensor | numpy.ndarray)
        }
        first = self._held.setdefault((code, node.name), held)
        self._arriving.setdefault(code, set()).update(
            key
            for path, (key, value) in held.items()
            if path in first and first[path][1] is not value and not self._is_derived(value)
        )

    def _is_derived(self, value: Any) -> bool:
        """Say whether nodes computed a tensor or an array."""
        if isinstance(value, torch.Tensor):
            return self._session.recorder.is_derived(value)
        known = arrays.is_traced(value) and not arrays.is_constant(value)
        return known and self._session.recorder.is_derived(arrays.tensor_of(value))

    def left_between(self, tensor: Any, what: str = "value") -> None:
        """Remember a place between nodes at which Python gets a value, of a node or from outside.

        Args:
            tensor: The value.
            what: What Python makes of it: `value`, `branch`, `index` or `array`. What is computed
                with arrays is recorded: it is no glue of Python's.
        """
        recorder = self._session.recorder
        frame = user_frame()
        if frame is None or not self._session.nodes or recorder.has_open():
            return
        key = (id(frame.f_code), source.instruction_of(frame))
        is_derived = recorder.is_derived(tensor)
        if key not in self._left or (is_derived and self._left[key].who != _OF_NODE):
            is_glue = is_derived and what != "array"
            done = self._done() if is_glue else frozenset(self._session.nodes)
            first = what if what in _CHOOSING else "value"
            who = _OF_NODE if is_derived else _FROM_OUTSIDE
            self._left[key] = _Left(keep_trail(frame), done, first, who)

    def left_inside(self, trail: Trail | None) -> None:
        """Remember a place inside of a node at which Python gets a value."""
        if trail:
            key = (id(trail[0].code), trail[0].instruction)
            left = _Left(trail, frozenset(self._session.nodes), "value", _OF_NODE)
            self._left.setdefault(key, left)

    def _done(self) -> frozenset[str]:
        """Return the nodes that have run in this tick."""
        nodes = self._session.nodes
        ticks = next(iter(nodes.values())).completed
        return frozenset(name for name, node in nodes.items() if node.completed >= ticks)

    def findings(self, wired: set[str]) -> list[Diagnostic]:
        """Return what is decided about single nodes; `wired` ports get values from nodes."""
        calls, nodes = _calls(self._begins), frozenset(self._begins)
        outcomes = [
            (file, outcome, one.done, one.who)
            for one in self._left.values()
            for file, outcome in _safely(one.trail, calls, nodes, one.what)
        ]
        changed = self._of_variables(calls, self._changed)
        outcomes += [(file, outcome, nodes, _CHANGING) for file, outcome in changed]
        arriving = self._of_variables(calls, self._arriving)
        outcomes += [(file, outcome, nodes, _FROM_OUTSIDE) for file, outcome in arriving]
        found: dict[tuple[str, str], Diagnostic] = {}
        for file, outcome in changed:
            found |= self._set_outside(file, outcome)
        for file, outcome, done, who in outcomes:
            for taint, skipped in outcome.decided_calls.items():
                is_older = taint.what == KEPT and who != _CHANGING
                for node in sorted(skipped) if skipped != nodes or is_older else ():
                    told = findings.skipped(node, who, f"{file}:{taint.line}")
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
        self._held.clear()

    def _of_variables(
        self, calls: Calls, variables: dict[CodeType, set[str]]
    ) -> list[tuple[str, Outcome]]:
        """Follow variables that are others from tick to tick."""
        keys = self._keys_by_scope(variables)
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

    def _keys_by_scope(self, variables: dict[CodeType, set[str]]) -> dict[Scope, set[str]]:
        """Return variables by the functions that have them."""
        found: dict[Scope, set[str]] = {}
        steps = [step for trails in self._begins.values() for one in trails for step in one]
        for step in steps:
            place = source.place_of(step.code, step.instruction, step.line)
            if place is not None:
                found.setdefault(place.scope, set()).update(variables.get(step.code, ()))
        return found


@functools.lru_cache(maxsize=1024)
def _names_in(code: CodeType) -> frozenset[str]:
    """Return every name that a function mentions, and those inside of it."""
    own = (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)
    inside = [_names_in(one) for one in code.co_consts if isinstance(one, CodeType)]
    return frozenset(own).union(*inside)


def _place(trail: Trail) -> tuple[tuple[int, int], ...]:
    return tuple((id(step.code), step.instruction) for step in trail)


def _gives_back(node: ast.AST, names: Names) -> bool:
    """Say whether a call asks a function of the user's which of its arguments it gives back."""
    if not isinstance(node, ast.Call) or all(one.arg != "key" for one in node.keywords):
        return False
    return names.source_of(names.callable_of(node.func)) is None


def _calls(begins: dict[str, list[Trail]]) -> Calls:
    nodes = frozenset(begins)
    found: Calls = {}
    callees: dict[ast.AST, set[CodeType | None]] = {}
    for node, trails in begins.items():
        for trail in trails:
            for number, step in enumerate(trail):
                place = source.place_of(step.code, step.instruction, step.line)
                if place is None:
                    continue
                _, around = found.setdefault(place.scope, (step, Around({}, nodes)))
                callee = trail[number - 1].code if number else None
                for expression in place.nodes:
                    known = around.calls.setdefault(expression, set())
                    called = callees.setdefault(expression, set())
                    # One call that leads to several nodes is made once for all of them.
                    is_another = callee is None or (called and callee not in called)
                    if is_another and known - {node}:
                        around.later.setdefault(expression, set()).add(node)
                    known.add(node)
                    called.add(callee)
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
    for number, step in enumerate(trail):
        place = source.place_of(step.code, step.instruction, step.line)
        if place is None or (returned is None and raised is None):
            break
        names = names_of(step)
        if number and returned is not None and any(_gives_back(one, names) for one in place.nodes):
            returned = replace(returned, what="index")
        task = Task(
            place.scope,
            names,
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
