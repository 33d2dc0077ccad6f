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

from veracity.tracing import agreement, findings, names, passes
from veracity.tracing.node import DTYPE_NAMES, InputMark, OutputMark, Pass, TracedNode, port_of

if TYPE_CHECKING:
    from veracity._native import CarriedState
    from veracity.tracing.session import Session


@dataclass
class Carried:
    """A state that was found.

    Attributes:
        name: Of its input and its output.
        found: What the tape knows of it.
        initial: Its value when the first pass began.
        now: Its value for the next pass, as the program has it; `None` when that is not known.
    """

    name: str
    found: CarriedState
    initial: torch.Tensor
    now: torch.Tensor | None = None


def first_pass(node: TracedNode, running: Pass) -> None:
    """Hold the first pass: the others are compared with it."""
    node.first_held = node.last_held = running.execution


def later_pass(session: Session, node: TracedNode, running: Pass) -> None:
    """Find the states of a pass that was recorded in full, and their values."""
    if node.first_held is not None and node.last_held is not None:
        found, doubts = session.recorder.carried(node.first_held, node.last_held, running.execution)
        node.unfilled = [location for why, location in doubts if why == "not filled"]
        for why, location in doubts:
            if why != "not filled":  # later passes may show it
                session.tell(findings.lost_state(node.name, why, location))
        _take(session, node, running, found)
    _read(session, node, running)
    _hold(session, node, running.execution)


def light_pass(session: Session, node: TracedNode) -> None:
    """A pass that was not recorded comes between: the next one cannot be compared with the last."""
    if node.last_held is not None and node.last_held != node.first_held:
        session.recorder.let_go(node.last_held)
    node.last_held = None


def let_go(session: Session, node: TracedNode) -> None:
    """Forget the passes of a node that were held."""
    for held in {node.first_held, node.last_held}:
        if held is not None:
            session.recorder.let_go(held)
    node.first_held = node.last_held = None


def _hold(session: Session, node: TracedNode, execution: int) -> None:
    if node.first_held is None:  # nothing more is looked for
        session.recorder.let_go(execution)
        return
    if node.last_held not in (None, node.first_held):
        session.recorder.let_go(node.last_held)
    node.last_held = execution


def _take(session: Session, node: TracedNode, running: Pass, found: list[CarriedState]) -> None:
    """Make states of what was found, unless all of it is known."""
    known = {state.found.spot: state for state in node.carried}
    by_spot = {one.spot: one for one in found if _fits(one, session)}
    if not by_spot.keys() - known.keys() or known.keys() - by_spot.keys():
        return
    states = [known.get(spot) or _new(session, node, one) for spot, one in by_spot.items()]
    for state in states:
        state.found = by_spot[state.found.spot]
    wanted = [
        (state.found, node.inputs[state.name].number, node.states[state.name].number)
        for state in states
    ]
    number = session.recorder.program_with(running.execution, wanted)
    if node.slice_number is not None and node.slice_number != node.first_slice:
        session.recorder.drop_slice(node.slice_number)
    node.carried, node.slice_number, node.replay = states, number, None
    program = passes.slice_of(session, node)
    node.constant_versions = passes.versions_of(program)
    node.watched = passes.watched(program)
    node.used |= {use.port for use in program.inputs}
    _fill_samples(session, node)


def _fits(one: CarriedState, session: Session) -> bool:
    """Say whether a bundle can hold the value."""
    return session.recorder.first_value(one).dtype in DTYPE_NAMES


def _new(session: Session, node: TracedNode, found: CarriedState) -> Carried:
    initial = session.recorder.first_value(found).detach().clone()
    name = _name(session, node, found)
    port = port_of(name, initial, None, found.location)
    mark = InputMark(port, len(node.inputs), found.location, state=True, early=[initial])
    node.inputs[name] = mark
    node.states[name] = OutputMark(port, session.states.output_number(node))
    session.tell(findings.found_state(node.name, name, found.location))
    return Carried(name, found, initial)


def _name(session: Session, node: TracedNode, found: CarriedState) -> str:
    """Return what the code calls the memory, as the name of a port that is not taken."""

    def is_it(value: Any) -> bool:
        return (
            issubclass(type(value), torch.Tensor)
            and value.layout == torch.strided
            and session.recorder.view(value) == found.next_view
        )

    called = names.find(is_it) or ""
    last = called.rpartition(".")[2] if "." in called else called
    base = re.sub(r"\W+", "_", last).strip("_") or "state"
    taken = node.inputs.keys() | node.result_marks().keys() | node.static_outputs.keys()
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def _fill_samples(session: Session, node: TracedNode) -> None:
    """Give the samples of earlier passes the states that nobody knew of yet."""
    now = {state.name: state.initial for state in node.carried}
    for sample in node.samples:
        sample.inputs.update({name: sample.inputs.get(name, now[name]) for name in now})
        results = passes.replay(session, node, sample.inputs)
        if results is None:
            break
        now = {name: results[name] for name in now}
        sample.outputs.update(now)
    for state in node.carried:
        state.now = now[state.name]


def _read(session: Session, node: TracedNode, running: Pass) -> None:
    """Keep the states that a pass began with; tell when something else changed them."""
    for state in node.carried:
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


def advance(session: Session, node: TracedNode, running: Pass) -> dict[str, torch.Tensor] | None:
    """Run the program on a pass; keep what its states become. `None` when it does not run."""
    results = passes.replay(session, node, running.inputs)
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
