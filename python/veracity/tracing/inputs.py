"""Marking inputs: memory that is a port of a node from now on."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy
import torch

from veracity.annotations import Entry
from veracity.errors import refuse
from veracity.tracing import arrays, findings, memory
from veracity.tracing.flatten import flatten, rebuild
from veracity.tracing.node import (
    InputMark,
    Pass,
    TracedNode,
    port_of,
    same_port,
    version_of,
)
from veracity.tracing.nodes import Port
from veracity.tracing.slice import Slice

#: First passes whose inputs are kept because they may turn out to be initial values.
EARLY_PASSES = 8
#: Larger tensors are kept only as samples.
EARLY_BYTES = 1 << 20

if TYPE_CHECKING:
    from veracity.tracing.session import Session


class Inputs:
    """The inputs of all nodes."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session

    def input_tensors(self, node_name: str, entries: list[Entry]) -> Any:
        """Mark inputs; see `veracity.annotate`."""
        with self._session.marking() as location:
            self._drop_interrupted(node_name, entries, location)
            begun = self._session.nodes.get(node_name)
            begins = begun is None or begun.open_pass is None
            node, running = self._session.open_pass(node_name, location)
            if begins:
                self._session.skips.node_begins(node)
                self._session.python_states.look_at_frame(node)
            running.begun_at = running.begun_at or location
            values = [self.mark_entry(node, running, entry, location) for entry in entries]
        if begins:
            self._session.witness.begin(node)
            self._session.paths.begin(node, light=running.light)
        return values[0] if len(values) == 1 else tuple(values)

    def _drop_interrupted(self, node_name: str, entries: list[Entry], location: str) -> None:
        """Drop a pass that begins anew on the line where it began, with inputs that it has.

        An exception ended it, and the user's code went on with the next tick. Where nothing was
        raised both values are used, which is told when the node is finished.
        """
        node = self._session.nodes.get(node_name)
        running = None if node is None else node.open_pass
        if node is None or running is None or running.begun_at != location:
            return
        names = {name for entry in entries for name, _ in flatten({entry.name: entry.value})}
        if names & set(running.marked):
            self._session.log.note(f"a pass of `{node_name}` was not finished: it is left out")
            node.dropped += list(running.marked.items())
            self._session.abandon(node)

    def refuse_dropped(self, node: TracedNode, program: Slice) -> None:
        """Refuse a program that reads inputs of a pass which seemed to be over."""
        for name, tensor in node.dropped:
            for use in program.constants:
                if memory.overlap(use.tensor, tensor):
                    message = f"`{node.name}` has two inputs of the name {name!r}"
                    raise refuse("VER0903", message, location=use.location)
        node.dropped.clear()

    def mark_entry(self, node: TracedNode, running: Pass, entry: Entry, location: str) -> Any:
        """Mark every tensor of a value and return the value to go on with."""
        named = {entry.name: entry.value}
        flatten(named, location=location)  # refuses names that meet

        def mark(name: str, leaf: Any) -> Any:
            return self._mark_leaf(node, running, name, leaf, entry, location)

        return rebuild(named, mark)[entry.name]

    def _mark_leaf(
        self,
        node: TracedNode,
        running: Pass,
        name: str,
        leaf: Any,
        entry: Entry,
        location: str,
    ) -> Any:
        if isinstance(leaf, torch.Tensor):
            return self.mark_input(node, running, name, leaf, entry, location)
        if isinstance(leaf, numpy.ndarray) or arrays.is_traced(leaf):
            if running.light:
                return self._mark_plain_array(node, running, name, leaf, entry, location)
            self._session.arrays_are_out = True
            array = arrays.forwards(leaf if arrays.is_traced(leaf) else arrays.trace_array(leaf))
            tensor = arrays.tensor_of(array)
            self._session.recorder.share(tensor)
            marked = self.mark_input(node, running, name, tensor, entry, location)
            return array if marked is tensor else arrays.array_from_tensor(marked)
        self._keep_opaque(node, name, leaf, location, told=not entry.parameter)
        return leaf

    def _mark_plain_array(
        self, node: TracedNode, running: Pass, name: str, leaf: Any, entry: Entry, location: str
    ) -> Any:
        """On a pass that is not recorded the code gets arrays as they are."""
        array = arrays.plain(leaf) if arrays.is_traced(leaf) else leaf
        tensor = arrays.tensor_of(arrays.forwards(arrays.trace_array(array)))
        self._session.recorder.share(tensor)
        marked = self.mark_input(node, running, name, tensor, entry, location)
        return array if marked is tensor else marked.numpy()

    def _keep_opaque(
        self, node: TracedNode, name: str, value: Any, location: str, *, told: bool
    ) -> None:
        """Values that are no tensors are fixed; they must not change."""
        if name not in node.opaque:
            node.opaque[name] = value
            # Among marked inputs a number is often meant to be one. Of a function's parameters
            # every value is: the caller may give another one next time.
            kinds = (int, float) if told else (int, float, bool, str)
            if type(value) in kinds:
                self._session.tell(findings.fixed_number(node.name, name, value, location))
            self._session.log.note(
                f"`{name}` of `{node.name}` is no tensor: it is fixed ({location})"
            )
            return
        with contextlib.suppress(Exception):
            if isinstance(value, int | float | str | bool) and value != node.opaque[name]:
                self._session.tell(
                    findings.missed_input(node.name, location, f"the value `{name}`")
                )

    def mark_input(
        self,
        node: TracedNode,
        running: Pass,
        name: str,
        tensor: torch.Tensor,
        entry: Entry,
        location: str,
        *,
        state: bool = False,
    ) -> torch.Tensor:
        """Mark one tensor and return what stands for it in the node."""
        if name in running.marked or name in node.static_outputs:
            message = f"`{node.name}` has two inputs of the name {name!r}"
            raise refuse("VER0903", message, location=location)
        self._refuse_nested(node, name, tensor, entry, location)
        port = port_of(name, tensor, entry.semantics, location)
        mark = self._known_input(node, port, location, state)
        marked = self._apart(running, tensor)
        running.marked[name] = marked
        origin = self._session.recorder.mark_input(running.execution, mark.number, marked)
        seen = None if origin is None else self._session.versions.get(origin)
        if seen is not None and seen == version_of(marked):
            self._session.recorder.confirm_origin(running.execution, mark.number)
        self._sample_input(node, running, mark, marked, origin)
        return marked

    def _refuse_nested(
        self, node: TracedNode, name: str, tensor: torch.Tensor, entry: Entry, location: str
    ) -> None:
        """Refuse a node inside of another: what the outer one has not given out is no input.

        Two nodes that are open at once may take the same tensor from outside. A function that is
        called from inside of a node may not: the outer node would compute it, too.
        """
        around = [
            other
            for other in self._session.nodes.values()
            if other is not node and other.open_pass is not None
        ]
        if not around or not self._session.recorder.is_traced(tensor):
            return
        given = [
            value
            for other in around
            if other.open_pass
            for value in other.open_pass.marked.values()
        ]
        if not entry.parameter and any(memory.overlap(tensor, value) for value in given):
            return
        outer = around[-1].name
        message = f"{name!r} of `{node.name}` is a value of `{outer}`, which is not finished"
        hint = f"finish `{outer}` first, or take the mark off `{node.name}`: `{outer}` computes it"
        raise refuse("VER0906", message, location=location, hints=(hint,))

    def _known_input(self, node: TracedNode, port: Port, location: str, state: bool) -> InputMark:
        known = node.inputs.get(port.name)
        if known is None:
            if node.finished:
                message = f"`{node.name}` was entered again with a new input {port.name!r}"
                raise refuse("VER0906", message, location=location)
            known = InputMark(port, len(node.inputs), location, state)
            node.inputs[port.name] = known
            return known
        if not same_port(known.port, port):
            message = (
                f"input {port.name!r} of `{node.name}` is {port.dtype}{list(port.shape)} where its "
                f"first pass had {known.port.dtype}{list(known.port.shape)}"
            )
            raise refuse("VER0906", message, location=location)
        if known.location != location and not state:
            message = f"`{node.name}` was entered again from another line for {port.name!r}"
            hint = f"first marked at {known.location}; give this node another name"
            raise refuse("VER0906", message, location=location, hints=(hint,))
        return known

    def _apart(self, running: Pass, tensor: torch.Tensor) -> torch.Tensor:
        """Give memory of its own to an input that overlaps another one of the same pass.

        Inputs are told apart by their memory: the same tensor under two names is two inputs.
        """
        if not any(memory.overlap(tensor, other) for other in running.marked.values()):
            return tensor
        copy = tensor.detach().clone()
        self._session.recorder.adopt_origin(tensor, copy)
        for one in (tensor, copy):
            running.separated.append((one, self._session.recorder.write_count(one)))
        return copy

    def _sample_input(
        self,
        node: TracedNode,
        running: Pass,
        mark: InputMark,
        tensor: torch.Tensor,
        origin: tuple[int, int, int] | None,
    ) -> None:
        if not running.sampled:
            return
        # What is written while nothing is recorded is not seen: it may be no output any more.
        seen = None if running.light else origin
        value = None if seen is None else self._session.published.get(seen)
        if value is None or value.device != tensor.device:  # it may have moved on its way
            value = tensor.detach().clone()
        running.inputs[mark.port.name] = value
        if node.completed < EARLY_PASSES and value.nbytes <= EARLY_BYTES:
            mark.early.append(value)
