"""Marking outputs, which ends a pass through a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy
import torch

from veracity.annotations import Entry
from veracity.errors import Diagnostic, error_from_diagnostics, refuse
from veracity.tracing import arrays, findings
from veracity.tracing.again import ModuleCalls
from veracity.tracing.flatten import flatten, rebuild
from veracity.tracing.node import OutputMark, Pass, TracedNode, port_of, same_port

if TYPE_CHECKING:
    from veracity.tracing.session import Session


class Outputs:
    """The outputs of all nodes."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session
        self._unrecorded: dict[tuple[str, str], Any] = {}

    def output_tensors(
        self,
        node_name: str,
        entries: list[Entry],
        statics: list[Entry],
        export_with: str | None,
        backend_params: dict[str, Any],
    ) -> Any:
        """Mark outputs and finish the pass; see `veracity.annotate`."""
        values = [entry.value for entry in entries]
        entries = [self.forwards(entry) for entry in entries]
        with self._session.marking() as location:
            node, running = self._session.running(node_name, location)
            self._check_backend(node, export_with, location)
            if not entries:
                hint = "constants alone make no node"
                message = f"`{node_name}` has no outputs"
                raise refuse("VER0908", message, location=location, hints=(hint,))
            for entry in entries:
                self._mark_outputs(node, running, entry, location)
            if isinstance(node.again, ModuleCalls):
                node.again = node.again.settle(entries)
            self._session.states.settle_buffers(node, running)
            self._keep_statics(node, running, statics, location)
            self._session.closing.close(node, running, export_with, backend_params, location)
        return values[0] if len(values) == 1 else tuple(values)

    @staticmethod
    def forwards(entry: Entry) -> Entry:
        """Turn arrays that run backwards around, while it is still recorded."""

        def turned(_name: str, leaf: Any) -> Any:
            return arrays.forwards(leaf) if arrays.is_traced(leaf) else leaf

        return entry._replace(value=rebuild({entry.name: entry.value}, turned)[entry.name])

    def _check_backend(self, node: TracedNode, export_with: str | None, location: str) -> None:
        from veracity.export import backends

        if export_with is not None:
            backends.find(export_with, location=location)

    def tell_unknown_options(self, call: str, node_name: str, unknown: dict[str, Any]) -> None:
        """Tell about arguments that mean nothing; LEAPP takes them without a word."""
        for name in unknown:
            message = f"`{call}` of `{node_name}` has no argument {name!r}: it is ignored"
            self._session.tell(
                Diagnostic("VER1002", "warning", message, self._session.recorder.here(), ())
            )

    def _mark_outputs(self, node: TracedNode, running: Pass, entry: Entry, location: str) -> None:
        for name, leaf in flatten({entry.name: entry.value}, location=location):
            single = Entry(name, leaf, entry.semantics)
            tensor = self.traced_tensor(node, running, single, location)
            mark = self._known_output(node, single, tensor, location)
            self._session.states.publish(running, mark, name, tensor)

    def _known_output(
        self, node: TracedNode, entry: Entry, tensor: torch.Tensor, location: str
    ) -> OutputMark:
        port = port_of(entry.name, tensor, entry.semantics, location)
        known = node.outputs.get(entry.name)
        if known is None:
            if node.finished:
                message = f"`{node.name}` was left with a new output {entry.name!r}"
                raise refuse("VER0906", message, location=location)
            if entry.name in node.states:
                message = f"`{node.name}` has two outputs of the name {entry.name!r}"
                raise refuse("VER0903", message, location=location)
            known = OutputMark(port, self._session.states.output_number(node))
            node.outputs[entry.name] = known
        elif not node.finished:
            message = f"`{node.name}` has two outputs of the name {entry.name!r}"
            raise refuse("VER0903", message, location=location)
        elif not same_port(known.port, port):
            message = (
                f"output {port.name!r} of `{node.name}` is {port.dtype}{list(port.shape)} where "
                f"its first pass had {known.port.dtype}{list(known.port.shape)}"
            )
            raise refuse("VER0906", message, location=location)
        return known

    def traced_tensor(
        self, node: TracedNode, running: Pass, entry: Entry, location: str
    ) -> torch.Tensor:
        """Return the tensor of an output, which must come from the inputs."""
        value = entry.value
        if running.light and isinstance(value, numpy.ndarray | numpy.generic):
            value = self._traced_at_last(node, entry)
        tensor = arrays.tensor_of(value) if arrays.is_traced(value) else value
        if not isinstance(tensor, torch.Tensor):
            kind = type(value).__name__
            message = f"{entry.name!r} of `{node.name}` is a {kind} that was not computed from its"
            hint = "compute it with torch from what `input_tensors` returned"
            raise refuse("VER0908", f"{message} inputs", location=location, hints=(hint,))
        if not running.light and not self._session.recorder.is_traced(tensor):
            # What could not be followed comes first: it may be the reason.
            reasons = [
                Diagnostic(code, "error", message, place or location, ())
                for code, message, place in self._session.recorder.take_faults()
            ]
            untraced = findings.problem("untraced", location, node.name, None, [entry.name])
            if reasons or not self._session.recorder.is_older(running.execution, tensor):
                raise error_from_diagnostics([*reasons, untraced])
            # It may be a value of an earlier pass, that waited in a queue.
            running.older.add(entry.name)
            if not node.finished:
                node.untraced[entry.name] = untraced
        return tensor

    def _traced_at_last(self, node: TracedNode, entry: Entry) -> Any:
        """Return an array that was computed while nothing is recorded, as a traced one.

        It is kept until there is a new one: whoever reads it next must be seen to read it.
        """
        found = arrays.trace_array(numpy.asarray(entry.value))
        self._session.recorder.share(arrays.tensor_of(found))
        self._unrecorded[node.name, entry.name] = found
        return found

    def _keep_statics(
        self, node: TracedNode, running: Pass, statics: list[Entry], location: str
    ) -> None:
        for entry in statics:
            value = entry.value
            if isinstance(value, numpy.ndarray) and not arrays.is_traced(value):
                value = torch.from_numpy(value)
            if not isinstance(value, torch.Tensor):
                kind = type(value).__name__
                message = f"the static output {entry.name!r} of `{node.name}` is a {kind}"
                raise refuse("VER0902", message, location=location)
            if not running.light and self._session.recorder.is_traced(value):
                message = f"the static output {entry.name!r} of `{node.name}` depends on its inputs"
                raise refuse("VER0908", message, location=location)
            self._keep_static(node, running, entry, value, location)

    def _keep_static(
        self,
        node: TracedNode,
        running: Pass,
        entry: Entry,
        value: torch.Tensor,
        location: str,
    ) -> None:
        known = node.static_outputs.get(entry.name)
        if known is None:
            if entry.name in node.result_marks():
                message = f"`{node.name}` has two outputs of the name {entry.name!r}"
                raise refuse("VER0903", message, location=location)
            port = port_of(entry.name, value, entry.semantics, location)
            known = (port, value.detach().clone())
            node.static_outputs[entry.name] = known
        elif not torch.equal(known[1], value):
            what = f"the static output `{entry.name}`"
            self._session.tell(findings.missed_input(node.name, location, what))
        running.outputs[entry.name] = known[1]
