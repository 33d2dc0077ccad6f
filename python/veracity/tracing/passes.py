"""Later passes of a node against its first: what the first recorded must explain them all.

The program is replayed on the inputs and states of the later pass. When that does not give the
later outputs, the two programs are compared to find the line. When it does, and the programs differ
all the same, that is told as a doubt: it made no difference to these values.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from veracity.errors import Diagnostic, VeracityError
from veracity.tracing import agreement, carry, constancy, findings, names, replaying
from veracity.tracing.node import Pass, TracedNode
from veracity.tracing.same_way import same_but_for_names
from veracity.tracing.slice import Ref, Slice

if TYPE_CHECKING:
    from veracity.tracing.session import Session


def compare(session: Session, node: TracedNode, running: Pass, closed: dict[str, Any]) -> None:
    """Compare a pass that was just closed with the first; tell what differs."""
    node.last_unseen = None
    later = closed["slice"]
    try:
        known = carry.later_pass(session, node, running)
        _judge_made_anew(session, node, later)
        if node.completed == 1:
            _judge_assigned(session, node)
        if not known or _agrees(session, node, running):
            found = _changes(session, node, later)
        else:
            node.watched = []  # it is told
            found = _explained(session, node, later, closed["escapes"])
        _tell(session, node, found)
    finally:
        session.recorder.drop_slice(later)
    node.compared += 1


def check_unobserved(session: Session, node: TracedNode, running: Pass) -> None:
    """Compare a pass that ran without being recorded with what the program gives for it."""
    node.last_unseen = None
    if not running.sampled or not carry.begin_light(node, running):
        return
    if node.completed >= session.options.max_cached_io and node.unobserved:
        node.last_unseen = running  # compared if none comes after it
        for state in node.carried:
            state.now = None
        return
    _compare_unobserved(session, node, running)


def check_last(session: Session, node: TracedNode) -> None:
    """Compare the last pass, if nobody has: what changed late shows in it."""
    running, node.last_unseen = node.last_unseen, None
    if running is not None:
        _compare_unobserved(session, node, running)


def _compare_unobserved(session: Session, node: TracedNode, running: Pass) -> None:
    if _agrees(session, node, running):
        node.unobserved += node.replay is not None
    elif node.name not in findings.nodes_in_error(session.diagnostics):
        found = findings.recording_changes(node.name, node.location, node.completed + 1)
        if node.held:  # the next passes may show a value that was under way for some time
            node.pending.append(found)
        else:
            session.tell(found)


def _agrees(session: Session, node: TracedNode, running: Pass) -> bool:
    """Say whether the program gives what a pass gave; what its states become is kept."""
    recorded = dict(running.outputs)
    results = carry.advance(session, node, running)
    if results is None or node.replay is None:
        return node.replay is None
    pairs = [(value, recorded[name]) for name, value in results.items() if name in recorded]
    if all(agreement.same_value(got, want) for got, want in pairs):
        return True
    explained = replaying.differ_by_rounding(node, running.inputs, results, recorded)
    if explained:
        session.log.detail(f"`{node.name}`: a later pass differs by what rounding can do")
    return explained


def _tell(session: Session, node: TracedNode, found: list[Diagnostic]) -> None:
    """Tell what is not known yet: each pass that differs says it, and may know another name.

    Where memory moves on from pass to pass it is said in the end, unless that turns out to be the
    beginning of a state.
    """
    if node.unfilled or node.pending:
        node.pending += found
        return
    known = {_about(one) for one in session.diagnostics}
    for diagnostic in found:
        if _about(diagnostic) not in known:
            session.tell(diagnostic)


def tell_pending(session: Session, node: TracedNode) -> None:
    """Tell what waited for a state that was not found."""
    pending, node.pending = node.pending, []
    for diagnostic in pending:
        session.tell(diagnostic)


def _judge_made_anew(session: Session, node: TracedNode, later: int) -> None:
    """Keep what is made again before every pass, unless its source shows that it is a constant."""
    found, node.made_anew = node.made_anew, []
    made = {view: location for location, view in found if location not in node.rewritten}
    for use in replaying.recorded(session, node, later).constants if made else ():
        location = made.get(session.recorder.view(use.tensor))
        if location is not None and not constancy.is_constant(use.tensor):
            node.rewritten[location] = (
                f"{names.described(use.tensor)} is made anew before every pass"
            )


def _judge_assigned(session: Session, node: TracedNode) -> None:
    """Keep constants whose names the code around the node assigns, if it may assign others."""
    for use in replaying.slice_of(session, node).constants:
        states = session.python_states
        holders = constancy.held_by(use.tensor) if use.location not in node.rewritten else []
        places = (states.change_of(node, *one) for one in holders)
        place = next(filter(None, places), None)
        if place is not None:
            what = names.described(use.tensor)
            written = f"{what} may be written between passes, at {Path(place).name},"
            node.rewritten[use.location] = written


def rewritten(node: TracedNode, known: list[Diagnostic]) -> list[Diagnostic]:
    """Tell about tensors that others fill between passes, where nothing is told there yet."""
    told = {one.location for one in known if one.node == node.name and one.code == "VER0912"}
    return [
        findings.rewritten(node.name, location, what)
        for location, what in node.rewritten.items()
        if location not in told
    ]


def _changes(session: Session, node: TracedNode, later: int) -> list[Diagnostic]:
    """Return differences that changed nothing this time: they need not stay without effect."""
    assert node.first_slice is not None
    changes: list[Diagnostic] = []
    if not node.carried:
        # The program works on the memory itself: what was written there in the meantime agrees.
        lasting = {one.tensor.untyped_storage()._cdata for one in node.watched}
        changes += _changed_constants(session, node, later, only=lasting)
    for what, location, _, _ in session.recorder.differences(node.first_slice, later):
        if what == "constant":
            continue
        if what == "literals":
            found = findings.changing_number(node.name, location)
        elif same_but_for_names(
            replaying.recorded(session, node, node.first_slice),
            replaying.recorded(session, node, later),
        ):
            return changes
        else:
            found = findings.other_way(node.name, location or node.location, node.completed + 1)
        return [*changes, found]
    return changes


def changed_constants(node: TracedNode, program: Slice) -> list[Diagnostic]:
    """Tell about constants that were written after the session, where nobody saw it."""
    places = {
        use.location
        for use, before, now in zip(
            program.constants, node.constant_versions, replaying.versions_of(program), strict=True
        )
        if before[0] == now[0] and before[1] != now[1]
    }
    return [findings.changed_constant(node.name, location) for location in sorted(places)]


def _explained(
    session: Session, node: TracedNode, later: int, escapes: list[tuple[str, str, int]]
) -> list[Diagnostic]:
    """Return why the program does not give what a pass gave."""
    found = _changed_constants(session, node, later)
    first = {(what, location): print_ for what, location, print_ in session.escapes[node.name]}
    changed = [
        (what, location)
        for what, location, fingerprint in escapes
        if first.get((what, location), fingerprint) != fingerprint
    ]
    found += [findings.frozen(node.name, what, place, changed=True) for what, place in changed]
    if not found:
        found = _changed_program(session, node, later)
    return found


def _about(found: Diagnostic) -> tuple[str, str, str, str | None]:
    return found.code, found.severity, found.location, found.node


def _changed_constants(
    session: Session, node: TracedNode, later: int, only: set[int] | None = None
) -> list[Diagnostic]:
    """Return findings for constants that hold other values; `only` those on some storages."""
    assert node.first_slice is not None
    first_slice = replaying.recorded(session, node, node.first_slice)
    later_slice = replaying.recorded(session, node, later)
    found: list[Diagnostic] = []
    for what, location, first, other in session.recorder.differences(node.first_slice, later):
        if what != "constant":
            continue
        left, right = first_slice.constants[first].tensor, later_slice.constants[other].tensor
        if only is not None and right.untyped_storage()._cdata not in only:
            continue
        if not agreement.same_value(left, right):
            found.append(findings.missed_input(node.name, location, names.described(right)))
    return found


def _changed_program(session: Session, node: TracedNode, later: int) -> list[Diagnostic]:
    assert node.first_slice is not None
    number = node.completed + 1
    for what, location, _, _ in session.recorder.differences(node.first_slice, later):
        if what == "literals":
            return [findings.missed_input(node.name, location, "a Python value")]
        if what != "constant":
            return [findings.pass_differs(node.name, location, number)]
    return [findings.pass_differs(node.name, node.location, number)]


def leftovers(session: Session, node: TracedNode) -> list[Diagnostic]:
    """Tell about memory that a node leaves changed and reads again, when only one pass was seen.

    Found by trying: the program is run again from what its first run left behind. The same outputs
    mean that nothing of it matters.
    """
    if node.completed != 1 or not node.samples:
        return []
    program = replaying.slice_of(session, node)
    lasting = [number for number, use in enumerate(program.constants) if use.lasting]
    names = list(node.result_marks())
    inputs = [node.samples[0].inputs[use.port] for use in program.inputs]
    if not lasting:
        return []
    try:
        left = _run(_with_outputs(program, lasting), names, inputs, extra=len(lasting))
        again = dict(zip(lasting, left[len(names) :], strict=True))
        constants = [
            dataclasses.replace(use, tensor=again.get(number, use.tensor))
            for number, use in enumerate(program.constants)
        ]
        after = _run(dataclasses.replace(program, constants=constants), names, inputs)
    except (VeracityError, RuntimeError) as error:
        session.log.detail(f"`{node.name}` cannot be run again: {error}")
        return []
    same = zip(after, left, strict=False)
    if all(agreement.same_value(got, want) for got, want in same):
        return []
    return [
        findings.left_behind(node.name, location)
        for location in sorted({program.constants[number].location for number in lasting})
    ]


def _with_outputs(program: Slice, constants: list[int]) -> Slice:
    extra = [Ref("constant", number) for number in constants]
    return dataclasses.replace(program, outputs=[*program.outputs, *extra])


def _run(
    program: Slice, names: list[str], inputs: list[torch.Tensor], *, extra: int = 0
) -> tuple[torch.Tensor, ...]:
    from veracity.export import graph

    module = graph.build(program, [*names, *(f"left_{number}" for number in range(extra))])
    with torch.no_grad():
        results = module(*inputs)
    return (results,) if isinstance(results, torch.Tensor) else tuple(results)
