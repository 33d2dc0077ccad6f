"""State that nobody declared: memory that one pass of a node leaves to its next.

The tape knows who made and wrote what, so a value that a pass has from the one before is found
whatever it holds: a hidden state, a filter, a latch, a queue of past observations, a clock. It
becomes a state of the node, as if it had been declared: an input, and an output that feeds it. Its
initial value is what the first pass found there.

What is carried over and cannot be made a state is an error: the export would begin from the first
value on every step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from veracity.errors import error_from_diagnostics
from veracity.tracing import agreement, arrays, beginnings, findings, names, replaying
from veracity.tracing.node import DTYPE_NAMES, InputMark, OutputMark, Pass, TracedNode, port_of
from veracity.tracing.nodes import Sample

if TYPE_CHECKING:
    from veracity._native import CarriedState
    from veracity.tracing.session import Session

#: Passes that are held on the tape: no delay that is longer is found.
MOST_HELD = 66


@dataclass
class Carried:
    """A state that was found.

    Attributes:
        name: Of its input and its output.
        found: What the tape knows of it.
        initial: Its value when the first pass began.
        waits: Passes until it is read: a value that is read three passes after it was made is
            three states, each of which becomes the next.
        guessed: Whether the pass that read the initial value was not recorded.
        now: Its value for the next pass, as the program has it; `None` when that is not known.
    """

    name: str
    found: CarriedState
    initial: torch.Tensor
    waits: int = 0
    guessed: bool = False
    now: torch.Tensor | None = None


def first_pass(node: TracedNode, running: Pass) -> None:
    """Hold the first pass: the others are compared with it."""
    node.held = {node.completed: running.execution}


def later_pass(session: Session, node: TracedNode, running: Pass) -> bool:
    """Find the states of a pass that was recorded in full; say whether their values are known."""
    if node.held:
        executions = [*node.held.values(), running.execution]
        found = session.recorder.carried(executions)
        node.made_anew = found["made_anew"]
        node.state_escapes = list(zip(found["escapes"], found["trails"], strict=True))
        doubts = found["doubts"]
        node.unfilled = [location for why, location in doubts if why == "not filled"]
        for why, location in doubts:
            if why != "not filled":  # later passes may show it
                session.tell(findings.lost_state(node.name, why, location))
        _take(session, node, running, found["states"])
        node.unfilled += session.queues.unfilled(node, running.execution)
    known = _read(session, node, running)
    _hold(session, node, running.execution)
    return known


def is_waiting(node: TracedNode) -> bool:
    """Say whether more passes are needed to see what becomes of memory that moves on."""
    return bool(node.held and (node.unfilled or node.pending) and len(node.held) < MOST_HELD)


def let_go(session: Session, node: TracedNode) -> None:
    """Forget the passes of a node that were held."""
    for held in node.held.values():
        session.recorder.let_go(held)
    node.held = {}


def _hold(session: Session, node: TracedNode, execution: int) -> None:
    if not node.held:  # nothing more is looked for
        session.recorder.let_go(execution)
        return
    node.held[node.completed] = execution
    if len(node.held) > MOST_HELD:
        second = sorted(node.held)[1]
        session.recorder.let_go(node.held.pop(second))


def _take(session: Session, node: TracedNode, running: Pass, found: list[CarriedState]) -> None:
    """Make states of what was found, unless all of it is known."""
    known: dict[str, list[Carried]] = {}
    for state in node.carried:
        known.setdefault(state.found.spot, []).append(state)
    by_spot = {one.spot: one for one in found}
    fresh = by_spot.keys() - known.keys()
    if not fresh:
        return
    if known.keys() - by_spot.keys():  # what a pass made that was not recorded is not known
        node.unfilled += [by_spot[spot].location for spot in fresh]
        return
    chains = [known.get(spot) or _new(session, node, one) for spot, one in by_spot.items()]
    chains = [chain for chain in chains if chain]
    for chain in chains:
        for state in chain:
            state.found = by_spot[state.found.spot]
    if chains:
        _promote(session, node, running, chains)


def _promote(
    session: Session, node: TracedNode, running: Pass, chains: list[list[Carried]]
) -> None:
    """Make the program of a pass that of the node, with states as inputs and outputs."""
    wanted = [(chain[0].found, [_ports(node, state) for state in chain]) for chain in chains]
    number = session.recorder.program_with(running.execution, wanted)
    if node.slice_number is not None and node.slice_number != node.first_slice:
        session.recorder.drop_slice(node.slice_number)
    states = [state for chain in chains for state in chain]
    node.carried, node.slice_number, node.replay = states, number, None
    program = replaying.slice_of(session, node)
    node.constant_versions = replaying.versions_of(program)
    node.watched = replaying.watched(session, program)
    node.used |= {use.port for use in program.inputs}
    node.untraced.clear()
    if _fill_samples(session, node):
        node.pending.clear()


def _ports(node: TracedNode, state: Carried) -> tuple[int, int]:
    return node.inputs[state.name].number, node.states[state.name].number


def _new(session: Session, node: TracedNode, found: CarriedState) -> list[Carried]:
    """Return the states that a value goes through; none where their first values are not known."""
    values = _first_values(session, node, found)
    if values is None:
        session.tell(findings.lost_state(node.name, "once", found.location))
        return []
    if any(value.dtype not in DTYPE_NAMES for value, _ in values):  # no bundle can hold it
        return []
    called = _called(session, found)
    first, is_older = [value for value, _ in values], found.begins_before
    other = beginnings.other_than(first, _shows(session, found), found.location, older=is_older)
    if other is not None:
        session.tell(findings.begins_warm(node.name, called, *other))
    states = []
    for waits, (initial, guessed) in enumerate(values):
        name = _free(node, called if waits == 0 else f"{called}_in_{waits}")
        port = port_of(name, initial, None, found.location)
        mark = InputMark(port, len(node.inputs), found.location, state=True, early=[initial])
        node.inputs[name] = mark
        node.states[name] = OutputMark(port, session.states.output_number(node))
        states.append(Carried(name, found, initial, waits, guessed))
    session.tell(findings.found_state(node.name, states[0].name, found.location, found.delay))
    return states


def _first_values(
    session: Session, node: TracedNode, found: CarriedState
) -> list[tuple[torch.Tensor, bool]] | None:
    """Return what the first passes read in the place of a state, and whether that is a guess."""
    values: list[tuple[torch.Tensor, bool]] = []
    for number in range(found.delay):
        value = session.recorder.first_value(found, number)
        guessed = value is None and number not in node.held
        if guessed and values:
            value = values[-1][0]
        elif number == 0:
            in_array = session.array_states.find(node, found.latest_view)
            value = in_array if value is None else value
        if value is None:
            return None
        values.append((value.detach().clone(), guessed))
    return values


def _shows(session: Session, found: CarriedState) -> names.Wanted:
    """Return what says whether a value is on the memory that holds a state for the next pass."""

    def is_it(value: Any) -> bool:
        if arrays.is_traced(value):
            value = arrays.state_of(value).tensor
        return (
            issubclass(type(value), torch.Tensor)
            and value.layout == torch.strided
            and session.recorder.view(value) == found.next_view
        )

    return is_it


def _called(session: Session, found: CarriedState) -> str:
    """Return what the code calls the memory of a state."""
    called = names.find(_shows(session, found)) or ""
    last = called.rpartition(".")[2] if "." in called else called
    return re.sub(r"\W+", "_", last).strip("_") or "state"


def _free(node: TracedNode, base: str) -> str:
    """Return the name of a port that is not taken."""
    taken = node.inputs.keys() | node.result_marks().keys() | node.static_outputs.keys()
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def _fill_samples(session: Session, node: TracedNode) -> bool:
    """Give the samples of earlier passes the states that nobody knew of yet.

    True when the program gives what these passes gave.
    """
    now = {state.name: state.initial for state in node.carried}
    agree = len(node.samples) == node.completed
    for number, sample in enumerate(node.samples):
        sample.inputs.update({name: sample.inputs.get(name, now[name]) for name in now})
        results = replaying.replay(session, node, sample.inputs)
        if results is None:
            agree = False
            break
        agree = agree and _gives(node, sample, results)
        _doubt_guesses(session, node, number, sample.inputs, results)
        now = {name: results[name] for name in now}
        _require_shapes(node, now)
        sample.outputs.update(now)
    for state in node.carried:
        state.now = now[state.name] if len(node.samples) == node.completed else None
    return agree


def _require_shapes(node: TracedNode, now: dict[str, torch.Tensor]) -> None:
    """Refuse states that are of another type or shape after a pass: an export holds one."""
    for state in node.carried:
        begun, left = state.initial, now[state.name]
        if (begun.dtype, begun.shape) != (left.dtype, left.shape):
            found = findings.lost_state(node.name, "reshaped", state.found.location)
            raise error_from_diagnostics([found])


def _gives(node: TracedNode, sample: Sample, results: dict[str, torch.Tensor]) -> bool:
    """Say whether the program gives what a pass gave."""
    recorded = {name: sample.outputs[name] for name in results if name in node.outputs}
    if all(agreement.same_value(results[name], want) for name, want in recorded.items()):
        return True
    return replaying.differ_by_rounding(node, sample.inputs, results, recorded)


def _doubt_guesses(
    session: Session,
    node: TracedNode,
    number: int,
    inputs: dict[str, torch.Tensor],
    results: dict[str, torch.Tensor],
) -> None:
    """Tell about first values that nobody saw, where the pass that read them does not show them.

    Those that show are compared: the pass gave its outputs without being recorded.
    """
    for state in node.carried:
        if not state.guessed or state.waits != number:
            continue
        read = next(one for one in node.carried if one.found is state.found and one.waits == 0)
        other = {**inputs, read.name: _another(inputs[read.name])}
        changed = replaying.replay(session, node, other)
        names_ = node.outputs.keys() & results.keys()
        if changed is None or all(torch.equal(changed[one], results[one]) for one in names_):
            session.tell(findings.begins_unseen(node.name, state.name, state.found.location))


def _another(value: torch.Tensor) -> torch.Tensor:
    return ~value if value.dtype == torch.bool else value + 1


def _read(session: Session, node: TracedNode, running: Pass) -> bool:
    """Keep the states that a pass began with; tell when something else changed them.

    False when values are under way that nobody followed: such a pass is compared with nothing.
    """
    known_values = all(state.now is not None or not state.waits for state in node.carried)
    for state in node.carried:
        value = None
        if state.waits == 0:
            value = session.recorder.value_at(running.execution, state.found)
        if value is None:
            value = state.now if state.now is not None else state.initial
        value = value.detach().clone()
        running.inputs[state.name] = value
        expected = state.now
        known = expected is None or agreement.same_value(expected, value)
        if not known and not agreement.same_value(state.initial, value):
            what = f"the state `{state.name}`"
            session.tell(findings.changed_outside(node.name, state.found.location, what))
        elif known and node.held:
            executions = [*node.held.values(), running.execution]
            place = session.recorder.written_between(executions, state.found)
            if place is not None:
                session.tell(findings.touched_outside(node.name, state.name, place))
    return known_values


def advance(session: Session, node: TracedNode, running: Pass) -> dict[str, torch.Tensor] | None:
    """Run the program on a pass; keep what its states become. `None` when it does not run."""
    results = replaying.replay(session, node, running.inputs)
    for state in node.carried:
        state.now = None if results is None else results[state.name]
        if results is not None:
            running.outputs[state.name] = results[state.name]
    return results


def begin_light(node: TracedNode, running: Pass) -> bool:
    """Give a pass that is not recorded the states the program has for it; false if unknown."""
    if any(state.now is None for state in node.carried):
        return False
    running.inputs.update(
        {state.name: state.now for state in node.carried if state.now is not None}
    )
    return True
