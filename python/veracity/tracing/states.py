"""Values that a node hands to its own next pass: declared states and buffers of modules."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from veracity.annotations import Entry, registered
from veracity.errors import refuse
from veracity.tracing import beginnings, findings
from veracity.tracing.again import with_module
from veracity.tracing.node import (
    OutputMark,
    Pass,
    TracedNode,
    TrackedBuffer,
    port_of,
    same_port,
    version_of,
)

if TYPE_CHECKING:
    from veracity.tracing.session import Session


class States:
    """The states of all nodes."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session

    def state_tensors(self, node_name: str, entries: list[Entry]) -> Any:
        """Declare states; see `veracity.annotate`."""
        with self._session.marking() as location:
            node, running = self._session.running(node_name, location)
            values = [self._mark_state(node, running, entry, location) for entry in entries]
        return values[0] if len(values) == 1 else tuple(values)

    def _mark_state(
        self, node: TracedNode, running: Pass, entry: Entry, location: str
    ) -> torch.Tensor:
        if entry.name in running.marked:
            self._session.log.caution(f"state `{entry.name}` of `{node.name}` is declared twice")
            return running.marked[entry.name]
        if not isinstance(entry.value, torch.Tensor):
            kind = type(entry.value).__name__
            message = f"the state {entry.name!r} of `{node.name}` is a {kind}, not a tensor"
            raise refuse("VER0902", message, location=location)
        if entry.name not in node.inputs:
            value = entry.value
            other = beginnings.other_than([value], lambda held: held is value, location)
            if other is not None:
                self._session.tell(findings.begins_warm(node.name, entry.name, *other))
        return self._session.inputs.mark_input(
            node, running, entry.name, entry.value, entry, location, state=True
        )

    def update_state(self, node_name: str, entries: list[Entry]) -> Any:
        """Say what states become; see `veracity.annotate`."""
        entries = [self._session.outputs.forwards(entry) for entry in entries]
        with self._session.marking() as location:
            node, running = self._session.running(node_name, location)
            for entry in entries:
                self._update(node, running, entry, location)
        values = [entry.value for entry in entries]
        return values[0] if len(values) == 1 else tuple(values)

    def _update(self, node: TracedNode, running: Pass, entry: Entry, location: str) -> None:
        declared = node.inputs.get(entry.name)
        if declared is None or not declared.state:
            known = ", ".join(f"`{name}`" for name, mark in node.inputs.items() if mark.state)
            message = f"`{node.name}` has no state {entry.name!r}"
            hints = (f"declared: {known}",) if known else ("declare it with `state_tensors`",)
            raise refuse("VER0909", message, location=location, hints=hints)
        tensor = self._session.outputs.traced_tensor(node, running, entry, location)
        found = port_of(entry.name, tensor, None, location)
        if not same_port(declared.port, found):
            message = (
                f"state {entry.name!r} of `{node.name}` was declared as "
                f"{declared.port.dtype}{list(declared.port.shape)} and becomes "
                f"{found.dtype}{list(found.shape)}"
            )
            raise refuse("VER0909", message, location=location)
        self._mark_state_output(node, running, entry.name, tensor)

    def _mark_state_output(
        self, node: TracedNode, running: Pass, name: str, tensor: torch.Tensor
    ) -> None:
        mark = node.states.get(name)
        if mark is None:
            mark = OutputMark(node.inputs[name].port, self.output_number(node))
            node.states[name] = mark
        running.updated.add(name)
        self.publish(running, mark, name, tensor)

    @staticmethod
    def output_number(node: TracedNode) -> int:
        """Return a number that no output of the node has."""
        taken = [mark.number for mark in node.result_marks().values()]
        return max(taken, default=-1) + 1

    def publish(self, running: Pass, mark: OutputMark, name: str, tensor: torch.Tensor) -> None:
        """Mark the value of a tensor as an output, and keep it."""
        self._session.recorder.mark_output(running.execution, mark.number, tensor)
        running.versions[mark.number] = version_of(tensor)
        if running.sampled:
            running.outputs[name] = tensor.detach().clone()

    def module(
        self, node_name: str, model: torch.nn.Module, buffer_names: list[str] | None
    ) -> None:
        """Follow buffers; see `veracity.annotate`."""
        with self._session.marking() as location:
            node, running = self._session.running(node_name, location)
            if not isinstance(model, torch.nn.Module):
                kind = type(model).__name__
                raise refuse("VER0902", f"{kind} is no torch module", location=location)
            wanted = None if buffer_names is None else set(buffer_names)
            for path, tensor in list(model.named_buffers()):
                if wanted is None or path in wanted:
                    self._follow(node, running, model, path, tensor, location)
            if not node.finished:
                node.again = with_module(node.again, self._session, model, running)

    def _follow(
        self,
        node: TracedNode,
        running: Pass,
        model: torch.nn.Module,
        path: str,
        tensor: torch.Tensor,
        location: str,
    ) -> None:
        name = path.replace(".", "_")
        made_by_first_pass = node.finished and name not in node.inputs
        if name in node.demoted or made_by_first_pass:
            return
        holder, _, attribute = path.rpartition(".")
        # Not `get_submodule`, which a scripted module does not have.
        owner = functools.reduce(getattr, holder.split("."), model) if holder else model
        entry = Entry(name, tensor, None)
        marked = self._session.inputs.mark_input(
            node, running, name, tensor, entry, location, state=True
        )
        if marked is not tensor:
            message = f"the buffer {path!r} of `{node.name}` shares memory with another input"
            hints = ("follow one of them only: `buffer_names=[...]`",)
            raise refuse("VER0923", message, location=location, hints=hints)
        count = self._session.recorder.write_count(marked)
        running.buffers.append(TrackedBuffer(owner, attribute, name, marked, count))

    def settle_buffers(self, node: TracedNode, running: Pass) -> None:
        """Buffers that the pass changed are states; the others are constants."""
        for buffer in running.buffers:
            current = getattr(buffer.owner, buffer.attribute)
            reassigned = current is not buffer.tensor
            written = self._session.recorder.write_count(buffer.tensor) != buffer.write_count
            # Writes in place are not counted while nothing is recorded.
            changed = reassigned or written or (running.light and buffer.name in node.states)
            if isinstance(current, torch.Tensor) and changed:
                self._mark_state_output(node, running, buffer.name, current)
            elif not running.light:
                self._demote(node, running, buffer.name)

    def _demote(self, node: TracedNode, running: Pass, name: str) -> None:
        if node.finished and name in node.states:
            # A state that one pass leaves alone keeps its value.
            self.publish(running, node.states[name], name, running.marked[name])
            return
        tensor = running.marked[name]
        self._session.recorder.drop_input(running.execution, node.inputs[name].number, tensor)
        running.inputs.pop(name, None)
        node.demoted.add(name)

    def register_buffer(self, node_name: str, tensors: Any) -> Any:
        """Name tensors that are written in place; see `veracity.annotate`."""
        with self._session.marking() as location:
            _node, _running = self._session.running(node_name, location)
            values = registered(tensors)
            for value in values if isinstance(values, tuple) else (values,):
                if not isinstance(value, torch.Tensor):
                    kind = type(value).__name__
                    raise refuse("VER0902", f"a buffer is a tensor, not {kind}", location=location)
                if self._session.recorder.is_traced(value):
                    message = "a buffer is a plain tensor, not a value of the node"
                    raise refuse("VER0908", message, location=location)
        return values
