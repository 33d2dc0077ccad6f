"""The program of a node as a module that can be run, and what it reads that is no input."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from veracity.errors import VeracityError
from veracity.tracing import agreement, names
from veracity.tracing.node import TracedNode, Watched
from veracity.tracing.slice import Slice

if TYPE_CHECKING:
    from veracity.tracing.session import Session


def replay(
    session: Session, node: TracedNode, inputs: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor] | None:
    """Run the program on inputs; `None` when it cannot be built, or does not run."""
    module = _replay_module(session, node)
    if module is None:
        return None
    given = [inputs[name] for name in node.replay_inputs]
    try:
        with torch.no_grad():
            results = module(*given)
    except Exception as error:  # any: the program may not even fit the later inputs
        session.log.detail(f"`{node.name}`: the first program stops on a later pass: {error}")
        return None
    if isinstance(results, torch.Tensor):
        results = (results,)
    return dict(zip(node.result_marks(), results, strict=True))


def _replay_module(session: Session, node: TracedNode) -> torch.fx.GraphModule | None:
    """Return the first program as a module; what cannot be built is told when it is exported."""
    from veracity.export import graph

    if node.replay is None:
        try:
            program = slice_of(session, node)
            node.replay = graph.build(program, list(node.result_marks()))
            node.replay_inputs = [use.port for use in program.inputs]
        except VeracityError as error:
            session.log.detail(f"`{node.name}` cannot be replayed: {error}")
            return None
    return node.replay


def slice_of(session: Session, node: TracedNode) -> Any:
    """Return the program of a finished node's first pass."""
    assert node.slice_number is not None
    ports = [mark.number for mark in node.result_marks().values()]
    return session.recorder.slice(node.slice_number, node.input_names(), ports)


def recorded(session: Session, node: TracedNode, number: int) -> Slice:
    """Return the program of any pass, as it was recorded."""
    ports = [mark.number for mark in node.result_marks().values()]
    found: Slice = session.recorder.slice(number, node.input_names(), ports)
    return found


def versions_of(program: Slice) -> list[tuple[int, int | None]]:
    """Return storage and write counter of every constant; tensors of inference mode have none."""
    return [
        (
            use.tensor.untyped_storage()._cdata,
            None if use.tensor.is_inference() else use.tensor._version,
        )
        for use in program.constants
    ]


def watched(session: Session, program: Slice) -> list[Watched]:
    """Return the constants that the node itself leaves alone, and how often each was written.

    The counts are a look at a number, so they are compared on every pass, also on those that are
    only followed by their marks. Torch counts what is written through the tensor, the tape what is
    written through another name (`.data`) while it records. A write by another library, and
    another tensor in its place, are seen when a pass is compared in full.
    """
    uses = [use for use in program.constants if not use.written]
    counts = _write_counts(session, [use.tensor for use in uses])
    return [
        Watched(use.tensor, use.location, count) for use, count in zip(uses, counts, strict=True)
    ]


def _write_counts(session: Session, tensors: list[torch.Tensor]) -> list[tuple[int, int]]:
    with session.modes.paused():
        return [
            (0 if one.is_inference() else one._version, session.recorder.write_count(one))
            for one in tensors
        ]


def constants_written(session: Session, node: TracedNode) -> bool:
    """Say whether a constant was written since the last time that somebody asked.

    Whatever was written: code that refills a tensor between passes may give it another value next
    time, and it is kept to be told.
    """
    counts = _write_counts(session, [one.tensor for one in node.watched])
    changed = [one for one, now in zip(node.watched, counts, strict=True) if one.counts != now]
    if not changed:
        return False
    for one in changed:
        node.rewritten.setdefault(
            one.location, f"{names.described(one.tensor)} is filled anew before every pass"
        )
    node.watched = [
        dataclasses.replace(one, counts=now) for one, now in zip(node.watched, counts, strict=True)
    ]
    # It works on the memory itself, until the slice has a copy of what was there before.
    node.replay = None
    return True


def differ_by_rounding(
    node: TracedNode,
    inputs: dict[str, torch.Tensor],
    results: dict[str, torch.Tensor],
    recorded: dict[str, torch.Tensor],
) -> bool:
    """Say whether what the program gives and what a pass gave differ by what rounding can do."""
    if node.replay is None:
        return False
    given = [inputs[name] for name in node.replay_inputs]
    wanted = [recorded.get(name, value) for name, value in results.items()]
    return agreement.rounding_explains(node.replay, given, list(results.values()), wanted)
