"""A session: between `start` and `stop`, annotations cut what torch does into nodes."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import torch

from veracity._native import Recorder
from veracity._places import user_line
from veracity.annotations import Entry
from veracity.errors import Diagnostic, error_from_diagnostics, refuse
from veracity.export.log import ExportLog
from veracity.tracing import arrays, findings, memory, method, operations, passes
from veracity.tracing.flatten import flatten, rebuild
from veracity.tracing.modes import Modes, RecordedThreads
from veracity.tracing.node import (
    InputMark,
    OutputMark,
    Pass,
    TracedNode,
    TrackedBuffer,
    port_of,
    same_port,
)
from veracity.tracing.nodes import Port, Sample
from veracity.tracing.patches import PatchSet

#: Passes that are recorded in full, at least, before a node is only followed by its marks.
MIN_COMPARED = 3
#: First passes whose inputs are kept because they may turn out to be initial values.
EARLY_PASSES = 8
#: Larger tensors are kept only as samples.
EARLY_BYTES = 1 << 20


@dataclass(frozen=True)
class Options:
    """What `start` was told."""

    name: str
    folder: Path
    verbose: bool
    dry_run: bool
    non_traced: frozenset[str]
    max_cached_io: int
    global_patching: bool
    patching: tuple[Any, ...]
    glue: str

    @classmethod
    def checked(
        cls,
        *,
        name: Any,
        save_path: Any,
        verbose: bool,
        dry_run: bool,
        non_traced: str | Iterable[str] | None,
        max_cached_io: int,
        global_patching: bool,
        patching: Iterable[Any] | None,
        glue: str,
    ) -> Options:
        """Return the options, or refuse them."""
        if not isinstance(name, str):
            message = f"the name of a graph is text, not {type(name).__name__}"
            raise refuse("VER0902", message, location=user_line())
        path = os.path.normpath(os.path.expanduser(name)) if name else ""
        if path in ("", ".", "/") or Path(path).name == "..":
            message = f"{name!r} cannot be the name of a graph"
            raise refuse("VER0903", message, location=user_line())
        if glue not in ("warn", "error"):
            hints = ('"warn" or "error"',)
            raise refuse("VER0903", f"`glue` is {glue!r}", location=user_line(), hints=hints)
        folder = Path(save_path).expanduser() / path
        excluded = [non_traced] if isinstance(non_traced, str) else list(non_traced or ())
        return cls(
            name=folder.name,
            folder=folder,
            verbose=verbose,
            dry_run=dry_run,
            non_traced=frozenset(excluded),
            max_cached_io=max(1, int(max_cached_io)),
            global_patching=global_patching,
            patching=tuple(patching or ()),
            glue=glue,
        )


class Session:
    """Everything between one `start` and its `stop`."""

    def __init__(self, options: Options) -> None:
        """Prepare a session; nothing of the process is changed before `begin`."""
        self.options = options
        hooks = SimpleNamespace(
            classify=operations.classify,
            owner_of_file=operations.owner_of_file,
            snapshot=self._snapshot,
            array_from_tensor=self._hand_out_array,
        )
        self.recorder = Recorder(hooks)
        self.modes = Modes(self.recorder)
        self.nodes: dict[str, TracedNode] = {}
        self.diagnostics: list[Diagnostic] = []
        self.escapes: dict[str, list[tuple[str, str, int]]] = {}
        self._threads = RecordedThreads(self.modes)
        self._patches = PatchSet(options.patching, self._is_traced_value)
        self._undo = contextlib.ExitStack()
        self._clock = 0
        self._recording = True
        self._arrays_are_out = False
        self._published: dict[tuple[int, int, int], torch.Tensor] = {}
        self.log = ExportLog(options.folder, verbose=options.verbose)

    # Life

    def begin(self) -> None:
        """Change the process so that torch is recorded; undone by `finish`."""
        with contextlib.ExitStack() as undo:
            undo.callback(self.log.close)
            self._patches.install()
            undo.callback(self._patches.uninstall)
            self._hook_arrays(undo)
            self._run_eagerly(undo)
            self._remember_everything()
            self._threads.install()
            undo.callback(self._threads.remove)
            self.modes.install()
            undo.callback(self.modes.remove)
            self._undo = undo.pop_all()
        self.log.note(f"recording `{self.options.name}`")

    def finish(self) -> None:
        """Restore the process."""
        self._undo.close()

    def _hook_arrays(self, undo: contextlib.ExitStack) -> None:
        """Let NumPy arrays report to this session."""
        for name, hook in (
            ("pause", self._unrecorded),
            ("escaped", self._array_escaped),
            ("active", lambda: self.modes.installed),
            ("user_location", self.recorder.here),
        ):
            undo.callback(setattr, arrays, name, getattr(arrays, name))
            setattr(arrays, name, hook)
        if self.options.global_patching:
            arrays.install_patches()
            undo.callback(arrays.remove_patches)
            self._watch_foreign_memory(undo)

    def _watch_foreign_memory(self, undo: contextlib.ExitStack) -> None:
        """Know tensors on memory from outside; no mode sees them being made.

        Once an array of traced values was handed out, memory from outside may hold what became of
        it, and stays suspicious.
        """

        def watched(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
            @functools.wraps(make)
            def make_and_remember(*args: Any, **kwargs: Any) -> torch.Tensor:
                with self.modes.paused():
                    tensor = make(*args, **kwargs)
                    if not self._arrays_are_out:
                        self.recorder.remember([tensor])
                return tensor

            return make_and_remember

        for name in ("from_numpy", "frombuffer"):
            original = getattr(torch, name)
            undo.callback(setattr, torch, name, original)
            setattr(torch, name, watched(original))

    def _run_eagerly(self, undo: contextlib.ExitStack) -> None:
        """Keep `torch.compile` out: seen through modes, it would stay eager after the session."""
        if "torch._dynamo" in sys.modules:
            undo.enter_context(torch.compiler.set_stance("force_eager"))

    def _remember_everything(self) -> None:
        """Know every tensor there is: what appears later without being seen is suspicious."""
        tensors, modules = _kinds_of(torch.Tensor), _kinds_of(torch.jit.ScriptModule)
        kinds = tensors | modules
        # By type, not by `isinstance`: it is quicker, and proxies of other libraries warn.
        objects = [item for item in gc.get_objects() if type(item) in kinds]
        found = [item for item in objects if type(item) in tensors]
        scripts = [item for item in objects if type(item) in modules]
        for script in scripts:
            with contextlib.suppress(RuntimeError):
                found += [*script.parameters(), *script.buffers()]
        self.recorder.remember(found)

    @contextlib.contextmanager
    def _unrecorded(self) -> Iterator[None]:
        with self.modes.paused():
            yield

    @staticmethod
    def _snapshot(tensor: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return memory.snapshot(tensor)

    def _hand_out_array(self, tensor: torch.Tensor, array: Any) -> Any:
        self._arrays_are_out = True
        return arrays.array_from_tensor(tensor)

    def _array_escaped(self, tensor: torch.Tensor, how: str) -> None:
        with self.modes.paused():
            self.recorder.escape(tensor, how, 0)

    def _is_traced_value(self, value: Any) -> bool:
        with self.modes.paused():
            if isinstance(value, torch.Tensor):
                return self.recorder.is_traced(value)
            return arrays.is_traced(value) and self.recorder.is_traced(arrays.tensor_of(value))

    def tell(self, found: Diagnostic) -> None:
        """Keep a finding; the same finding is kept once."""
        if found not in self.diagnostics:
            self.diagnostics.append(found)
            self.log.finding(found)

    # Passes

    def _open(self, node_name: str, location: str) -> tuple[TracedNode, Pass]:
        """Return the node and its running pass, beginning both if need be."""
        if not isinstance(node_name, str) or not node_name:
            raise refuse("VER0902", f"{node_name!r} is no name for a node", location=location)
        if "/" in node_name:
            hint = "`/` stands between node and port in a bundle"
            raise refuse("VER0903", f"{node_name!r} holds a `/`", location=location, hints=(hint,))
        node = self.nodes.get(node_name)
        if node is None:
            node = TracedNode(len(self.nodes), node_name, location)
            self.nodes[node_name] = node
        if node.open_pass is None:
            node.open_pass = self._begin_pass(node)
        return node, node.open_pass

    def _begin_pass(self, node: TracedNode) -> Pass:
        self._clock += 1
        node.last_seen = self._clock
        light = not self._arm(node)
        sampled = node.completed < self.options.max_cached_io
        return Pass(self.recorder.open(node.number, light), light, sampled or not light)

    def _arm(self, node: TracedNode) -> bool:
        """Say whether this pass is recorded in full, and switch the recorder on or off.

        Passes are compared with the first until enough agreed; then only marks are kept, and the
        rest is looked at again on passes that are further and further apart, two in a row.
        """
        wanted = self._wants_comparison(node) or self._is_review(node.completed)
        if self.recorder.has_open():
            return self._recording
        if wanted and not self._recording:
            self._remember_everything()
            self._recording = True
        elif not wanted and self._recording and not self._others_want_comparison():
            self._recording = False
        return self._recording

    def _wants_comparison(self, node: TracedNode) -> bool:
        return node.completed < max(MIN_COMPARED, self.options.max_cached_io)

    @staticmethod
    def _is_review(completed: int) -> bool:
        return any(count > 0 and count & (count - 1) == 0 for count in (completed, completed - 1))

    def _others_want_comparison(self) -> bool:
        """Nodes that did not run for a while are not waited for."""
        horizon = self._clock - 2 * len(self.nodes) - 1
        return any(
            self._wants_comparison(node) and node.last_seen > horizon
            for node in self.nodes.values()
        )

    def _running(self, node_name: str, location: str) -> tuple[TracedNode, Pass]:
        node = self.nodes.get(node_name)
        if node is None or node.open_pass is None:
            hint = f"call `input_tensors({node_name!r}, ...)` first"
            message = f"the node {node_name!r} was not begun"
            raise refuse("VER0904", message, location=location, hints=(hint,))
        return node, node.open_pass

    @contextlib.contextmanager
    def _marking(self) -> Iterator[str]:
        """Give the user's line; nothing that the body does with torch is recorded."""
        self.modes.ensure()
        location = self.recorder.here()
        if self.modes.installed:
            self.modes.remove()
        try:
            yield location
        finally:
            if self._recording:
                self.modes.install()

    # Inputs

    def input_tensors(self, node_name: str, entries: list[Entry]) -> Any:
        """Mark inputs; see `veracity.annotate`."""
        with self._marking() as location:
            node, running = self._open(node_name, location)
            values = [self._mark_entry(node, running, entry, location) for entry in entries]
        return values[0] if len(values) == 1 else tuple(values)

    def _mark_entry(self, node: TracedNode, running: Pass, entry: Entry, location: str) -> Any:
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
            return self._mark_input(node, running, name, leaf, entry, location)
        if isinstance(leaf, numpy.ndarray) or arrays.is_traced(leaf):
            self._arrays_are_out = True
            array = arrays.forwards(leaf if arrays.is_traced(leaf) else arrays.trace_array(leaf))
            tensor = arrays.tensor_of(array)
            self.recorder.share(tensor)
            marked = self._mark_input(node, running, name, tensor, entry, location)
            return array if marked is tensor else arrays.array_from_tensor(marked)
        # Parameters of a function are what they are; a number among marked inputs is not.
        self._keep_opaque(node, name, leaf, location, told=not entry.parameter)
        return leaf

    def _keep_opaque(
        self, node: TracedNode, name: str, value: Any, location: str, *, told: bool
    ) -> None:
        """Values that are no tensors are fixed; they must not change."""
        if name not in node.opaque:
            node.opaque[name] = value
            # A number is often meant to be an input; flags and texts never are.
            if type(value) in (int, float) and told:
                self.tell(findings.fixed_number(node.name, name, location))
            self.log.note(f"`{name}` of `{node.name}` is no tensor: it is fixed ({location})")
            return
        with contextlib.suppress(Exception):
            if isinstance(value, int | float | str | bool) and value != node.opaque[name]:
                self.tell(findings.missed_input(node.name, location, f"the value `{name}`"))

    def _mark_input(
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
        if name in running.marked or name in node.static_outputs:
            message = f"`{node.name}` has two inputs of the name {name!r}"
            raise refuse("VER0903", message, location=location)
        port = port_of(name, tensor, entry.semantics, location)
        mark = self._known_input(node, port, location, state)
        marked = self._apart(running, tensor)
        running.marked[name] = marked
        origin = self.recorder.mark_input(running.execution, mark.number, marked)
        self._sample_input(node, running, mark, marked, origin)
        return marked

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
        self.recorder.adopt_origin(tensor, copy)
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
        kept = self._published.get(origin) if origin is not None else None
        value = kept if kept is not None else tensor.detach().clone()
        running.inputs[mark.port.name] = value
        if node.completed < EARLY_PASSES and value.nbytes <= EARLY_BYTES:
            mark.early.append(value)

    # States and buffers

    def state_tensors(self, node_name: str, entries: list[Entry]) -> Any:
        """Declare states; see `veracity.annotate`."""
        with self._marking() as location:
            node, running = self._running(node_name, location)
            values = [self._mark_state(node, running, entry, location) for entry in entries]
        return values[0] if len(values) == 1 else tuple(values)

    def _mark_state(
        self, node: TracedNode, running: Pass, entry: Entry, location: str
    ) -> torch.Tensor:
        if entry.name in running.marked:
            self.log.caution(f"state `{entry.name}` of `{node.name}` is declared twice")
            return running.marked[entry.name]
        if not isinstance(entry.value, torch.Tensor):
            kind = type(entry.value).__name__
            message = f"the state {entry.name!r} of `{node.name}` is a {kind}, not a tensor"
            raise refuse("VER0902", message, location=location)
        return self._mark_input(node, running, entry.name, entry.value, entry, location, state=True)

    def update_state(self, node_name: str, entries: list[Entry]) -> Any:
        """Say what states become; see `veracity.annotate`."""
        entries = [self._forwards(entry) for entry in entries]
        with self._marking() as location:
            node, running = self._running(node_name, location)
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
        tensor = self._traced_tensor(node, running, entry, location)
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
            mark = OutputMark(node.inputs[name].port, self._output_number(node))
            node.states[name] = mark
        running.updated.add(name)
        self._publish(running, mark, name, tensor)

    @staticmethod
    def _output_number(node: TracedNode) -> int:
        taken = [mark.number for mark in node.result_marks().values()]
        return max(taken, default=-1) + 1

    def _publish(self, running: Pass, mark: OutputMark, name: str, tensor: torch.Tensor) -> None:
        self.recorder.mark_output(running.execution, mark.number, tensor)
        if running.sampled:
            running.outputs[name] = tensor.detach().clone()

    def module(
        self, node_name: str, model: torch.nn.Module, buffer_names: list[str] | None
    ) -> None:
        """Follow buffers; see `veracity.annotate`."""
        with self._marking() as location:
            node, running = self._running(node_name, location)
            if not isinstance(model, torch.nn.Module):
                kind = type(model).__name__
                raise refuse("VER0902", f"{kind} is no torch module", location=location)
            wanted = None if buffer_names is None else set(buffer_names)
            for path, tensor in list(model.named_buffers()):
                if wanted is None or path in wanted:
                    self._follow(node, running, model, path, tensor, location)

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
        if name in node.demoted:
            return
        holder, _, attribute = path.rpartition(".")
        owner = model.get_submodule(holder)
        entry = Entry(name, tensor, None)
        marked = self._mark_input(node, running, name, tensor, entry, location, state=True)
        if marked is not tensor:
            setattr(owner, attribute, marked)
        count = self.recorder.write_count(marked)
        running.buffers.append(TrackedBuffer(owner, attribute, name, marked, count))

    def _settle_buffers(self, node: TracedNode, running: Pass) -> None:
        """Buffers that the pass changed are states; the others are constants."""
        for buffer in running.buffers:
            current = getattr(buffer.owner, buffer.attribute)
            reassigned = current is not buffer.tensor
            written = self.recorder.write_count(buffer.tensor) != buffer.write_count
            if isinstance(current, torch.Tensor) and (reassigned or written):
                self._mark_state_output(node, running, buffer.name, current)
            elif running.light:
                continue
            else:
                self._demote(node, running, buffer.name)

    def _demote(self, node: TracedNode, running: Pass, name: str) -> None:
        if node.finished and name in node.states:
            # A state that one pass leaves alone keeps its value.
            self._publish(running, node.states[name], name, running.marked[name])
            return
        tensor = running.marked[name]
        self.recorder.drop_input(running.execution, node.inputs[name].number, tensor)
        running.inputs.pop(name, None)
        node.demoted.add(name)

    def register_buffer(self, node_name: str, tensors: Any) -> Any:
        """Name tensors that are written in place; see `veracity.annotate`."""
        from veracity.annotations import _registered

        with self._marking() as location:
            _node, _running = self._running(node_name, location)
            values = _registered(tensors)
            for value in values if isinstance(values, tuple) else (values,):
                if not isinstance(value, torch.Tensor):
                    kind = type(value).__name__
                    raise refuse("VER0902", f"a buffer is a tensor, not {kind}", location=location)
                if self.recorder.is_traced(value):
                    message = "a buffer is a plain tensor, not a value of the node"
                    raise refuse("VER0908", message, location=location)
        return values

    # Outputs

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
        entries = [self._forwards(entry) for entry in entries]
        with self._marking() as location:
            node, running = self._running(node_name, location)
            self._check_backend(node, export_with, location)
            if not entries:
                hint = "constants alone make no node"
                message = f"`{node_name}` has no outputs"
                raise refuse("VER0908", message, location=location, hints=(hint,))
            for entry in entries:
                self._mark_outputs(node, running, entry, location)
            self._settle_buffers(node, running)
            self._keep_statics(node, running, statics, location)
            self._close(node, running, export_with, backend_params, location)
        return values[0] if len(values) == 1 else tuple(values)

    @staticmethod
    def _forwards(entry: Entry) -> Entry:
        """Turn arrays that run backwards around, while it is still recorded."""

        def turned(_name: str, leaf: Any) -> Any:
            return arrays.forwards(leaf) if arrays.is_traced(leaf) else leaf

        return entry._replace(value=rebuild({entry.name: entry.value}, turned)[entry.name])

    def _check_backend(self, node: TracedNode, export_with: str | None, location: str) -> None:
        from veracity.export import backends

        if export_with is not None:
            backends.find(export_with, location=location)

    def tell_unknown_options(self, node_name: str, unknown: dict[str, Any]) -> None:
        """Tell about arguments that mean nothing."""
        for name in unknown:
            message = f"`output_tensors({node_name!r})` has no argument {name!r}: it is ignored"
            self.tell(Diagnostic("VER1002", "warning", message, self.recorder.here(), ()))

    def _mark_outputs(self, node: TracedNode, running: Pass, entry: Entry, location: str) -> None:
        for name, leaf in flatten({entry.name: entry.value}, location=location):
            single = Entry(name, leaf, entry.semantics)
            tensor = self._traced_tensor(node, running, single, location)
            mark = self._known_output(node, single, tensor, location)
            self._publish(running, mark, name, tensor)

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
            known = OutputMark(port, self._output_number(node))
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

    def _traced_tensor(
        self, node: TracedNode, running: Pass, entry: Entry, location: str
    ) -> torch.Tensor:
        value = entry.value
        tensor = arrays.tensor_of(value) if arrays.is_traced(value) else value
        if not isinstance(tensor, torch.Tensor):
            kind = type(value).__name__
            message = f"{entry.name!r} of `{node.name}` is a {kind} that was not computed from its"
            hint = "compute it with torch from what `input_tensors` returned"
            raise refuse("VER0908", f"{message} inputs", location=location, hints=(hint,))
        if not running.light and not self.recorder.is_traced(tensor):
            # What could not be followed comes first: it may be the reason.
            reasons = [
                Diagnostic(code, "error", message, place or location, ())
                for code, message, place in self.recorder.take_faults()
            ]
            untraced = findings.problem("untraced", location, node.name, None, [entry.name])
            raise error_from_diagnostics([*reasons, untraced])
        return tensor

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
            if not running.light and self.recorder.is_traced(value):
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
            self.tell(findings.missed_input(node.name, location, what))
        running.outputs[entry.name] = known[1]

    # The end of a pass

    def _close(
        self,
        node: TracedNode,
        running: Pass,
        export_with: str | None,
        backend_params: dict[str, Any],
        location: str,
    ) -> None:
        closed = self.recorder.close(running.execution)
        node.open_pass = None
        self._tell_faults(location)
        self._judge_problems(node, closed, location)
        if not running.light:
            self._judge_glue(node, closed)
        if not node.finished:
            self._finish_first(node, closed, export_with, backend_params)
        elif running.light:
            self.recorder.drop_slice(closed["slice"])
        else:
            passes.compare(self, node, running, closed)
        self._keep_sample(node, running)
        node.completed += 1

    def _finish_first(
        self,
        node: TracedNode,
        closed: dict[str, Any],
        export_with: str | None,
        backend_params: dict[str, Any],
    ) -> None:
        node.slice_number = closed["slice"]
        node.constant_versions = passes.versions_of(passes.slice_of(self, node))
        names = node.input_names()
        node.used = {names[number] for number, _, _, used in closed["inputs"] if used}
        self.escapes[node.name] = list(closed["escapes"])
        excluded = node.name in self.options.non_traced
        node.export_with = None if excluded else export_with
        node.backend_params = {} if excluded else backend_params
        for name in names:
            if name not in node.used and name not in node.demoted:
                self.log.note(f"`{node.name}/{name}` has no influence and is left out")
        for name, mark in node.inputs.items():
            if mark.state and name not in node.states and name not in node.demoted:
                message = f"state {name!r} of `{node.name}` is never updated: it is an input"
                hints = ("call `update_state`",)
                self.tell(Diagnostic("VER0910", "warning", message, mark.location, hints))

    def _keep_sample(self, node: TracedNode, running: Pass) -> None:
        number = node.number
        if len(node.samples) < self.options.max_cached_io and not running.light:
            node.samples.append(Sample(running.inputs, running.outputs))
        # The next consumer of an unchanged output shares the sample.
        self._published = {key: value for key, value in self._published.items() if key[0] != number}
        for name, mark in node.result_marks().items():
            if name in running.outputs and len(node.samples) <= self.options.max_cached_io:
                self._published[number, node.completed, mark.number] = running.outputs[name]

    def _tell_faults(self, location: str) -> None:
        for code, message, place in self.recorder.take_faults():
            severity = "error" if code == "VER0920" else "warning"
            self.tell(Diagnostic(code, severity, message, place or location, ()))

    def _judge_problems(self, node: TracedNode, closed: dict[str, Any], location: str) -> None:
        names = list(self.nodes)
        fatal: list[Diagnostic] = []
        for what, place, other, ports in closed["problems"]:
            labels = node.input_names()
            if what == "untraced":
                by_number = {mark.number: name for name, mark in node.result_marks().items()}
                port_names = [by_number.get(port, "?") for port in ports]
            else:
                port_names = [labels[port] for port in ports]
            other_name = None if other is None else names[other]
            if what == "unseen" and closed["escapes"]:
                # The escape is told; this is where it came back.
                self.log.note(f"`{node.name}` uses a tensor from out of sight at {place}")
                continue
            found = findings.problem(what, place or location, node.name, other_name, port_names)
            if findings.is_fatal(what):
                fatal.append(found)
            else:
                self.tell(found)
        if fatal:
            raise error_from_diagnostics(fatal)

    def _judge_glue(self, node: TracedNode, closed: dict[str, Any]) -> None:
        """On the first pass glue lies within a tick; later it may be the world's answer."""
        names = node.input_names()
        for number, origin, glue, _used in closed["inputs"]:
            if glue is None or origin is not None:
                continue
            if node.finished:
                self.log.note(f"`{node.name}/{names[number]}` is computed between passes at {glue}")
                continue
            refused = self.options.glue == "error"
            self.tell(findings.loose_glue(node.name, names[number], glue, refused=refused))

    # Decorated functions and mirrors

    def call_method(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        export_with: str | None,
        backend_params: dict[str, Any],
    ) -> Any:
        """Run a decorated function as a node."""
        named = method.named_arguments(function, args, kwargs)
        code = getattr(function, "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}" if code else self.recorder.here()
        with self._marking():
            node, running = self._open(name, place)
            marked = {
                key: self._mark_entry(node, running, Entry(key, value, None, True), place)
                for key, value in named.items()
            }
        try:
            result = method.call_with(function, args, kwargs, marked)
        except BaseException:
            self._abandon(node)
            raise
        results = method.named_results(function, result, place)
        entries = [Entry(key, value, None) for key, value in results.items()]
        self.output_tensors(name, entries, [], export_with, backend_params)
        return result

    def _abandon(self, node: TracedNode) -> None:
        if node.open_pass is not None:
            self.recorder.abandon(node.open_pass.execution)
            node.open_pass = None

    def mirror(self, source: Any, target: Any) -> Any:
        """Let `target` pass for `source`; see `veracity.annotate`."""
        with self._marking() as location:
            pairs = list(
                zip(
                    flatten({"value": source}, location=location),
                    flatten({"value": target}, location=location),
                    strict=False,
                )
            )
            for left, right in pairs:
                self._mirror_leaf(left.value, right.value, location)
        return target

    def _mirror_leaf(self, source: Any, target: Any, location: str) -> None:
        left = arrays.tensor_of(source) if arrays.is_traced(source) else source
        right = target
        if isinstance(right, numpy.ndarray):
            right = (
                torch.from_numpy(right) if not arrays.is_traced(right) else arrays.tensor_of(right)
            )
        if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor):
            return
        same = (
            left.shape == right.shape
            and left.dtype == right.dtype
            and left.device == right.device
            and torch.equal(left, right)
        )
        if not same:
            message = "the two values differ; only an equal value can stand for another"
            raise refuse("VER0902", message, location=location)
        if self.recorder.is_traced(left):
            self.recorder.assert_call(torch.clone, (left,), right)
        self.recorder.adopt_origin(left, right)


def _kinds_of(base: type) -> set[type]:
    """Return a class and all classes below it."""
    subclasses: list[type] = type.__subclasses__(base)
    below = [_kinds_of(kind) for kind in subclasses]
    return {base}.union(*below)
