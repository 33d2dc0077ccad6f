"""A session: between `start` and `stop`, annotations cut what torch does into nodes."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch

from veracity._native import Recorder
from veracity.errors import Diagnostic, refuse
from veracity.export.log import ExportLog
from veracity.tracing import arrays, carry, chance, decisions, memory, operations, replaying, trail
from veracity.tracing.array_states import ArrayStates
from veracity.tracing.calls import Calls
from veracity.tracing.closing import Closing
from veracity.tracing.inputs import Inputs
from veracity.tracing.modes import Modes, RecordedThreads
from veracity.tracing.node import Pass, TracedNode
from veracity.tracing.options import Options
from veracity.tracing.outputs import Outputs
from veracity.tracing.patches import PatchSet
from veracity.tracing.paths import Paths
from veracity.tracing.python_state import PythonStates
from veracity.tracing.queues import Queues
from veracity.tracing.reads import Reads
from veracity.tracing.skipping import Skips
from veracity.tracing.states import States
from veracity.tracing.surroundings import Surroundings
from veracity.tracing.witness import Witness

#: Passes that are recorded in a row before one is left alone, to be compared with the program.
OBSERVED_FIRST = 2
#: Passes that are left alone to find one that can be compared.
MOST_RESTS = 2
#: Passes that are recorded in full, at least, before a node is only followed by its marks.
MIN_COMPARED = 3


def _weakly(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method without its object: the recorder must not keep its session alive."""
    held = weakref.WeakMethod(method)

    def call(*args: Any) -> Any:
        found = held()
        assert found is not None, "the recorder is used only while its session is there"
        return found(*args)

    return call


class Session:
    """Everything between one `start` and its `stop`."""

    def __init__(self, options: Options) -> None:
        """Prepare a session; nothing of the process is changed before `begin`."""
        self.options = options
        hooks = SimpleNamespace(
            classify=operations.classify,
            owner_of_file=operations.owner_of_file,
            keep_trail=trail.keep_trail,
            snapshot=self._snapshot,
            array_from_tensor=_weakly(self._hand_out_array),
            without_arrays=_weakly(self._without_arrays),
            without_scalars=self._without_scalars,
            array_class=arrays.TracedArray,
            scalar_class=arrays.TracedScalar,
        )
        self.recorder = Recorder(hooks)
        self.modes = Modes(self.recorder)
        self.nodes: dict[str, TracedNode] = {}
        self.diagnostics: list[Diagnostic] = []
        self.escapes: dict[str, list[tuple[str, str, int]]] = {}
        self._patches = PatchSet(options.patching, self._is_traced_value)
        self.undo = contextlib.ExitStack()
        self._clock = 0
        self._thread = threading.get_ident()
        self._threads_seen: set[int] = set()
        self.recording = True
        self.arrays_are_out = False
        self.published: dict[tuple[int, int, int], torch.Tensor] = {}
        self.versions: dict[tuple[int, int, int], int | None] = {}
        self.inputs = Inputs(self)
        self.states = States(self)
        self.outputs = Outputs(self)
        self.closing = Closing(self)
        self.calls = Calls(self)
        self.python_states = PythonStates(self)
        self.witness = Witness(self)
        self.paths = Paths(self)
        self.array_states = ArrayStates(self)
        self.queues = Queues(self)
        self.reads = Reads()
        self.skips = Skips(self)
        self.modes.listen_between(self._left_between)
        self.surroundings = Surroundings(self)
        self._replaced = self.surroundings.replaced
        self._threads = RecordedThreads(self.modes, self.recorder, self._replaced)
        self.log = ExportLog(options.folder, verbose=options.verbose)

    # Life

    def begin(self) -> None:
        """Change the process so that torch is recorded; undone by `finish`."""
        with contextlib.ExitStack() as undo:
            undo.callback(self.log.close)
            self._patches.install()
            undo.callback(self._patches.uninstall)
            undo.callback(self._replaced.remove)
            self.surroundings.hook_arrays(undo)
            self.surroundings.run_eagerly(undo)
            self.surroundings.fill_lazy_modules_unseen()
            self.surroundings.remember_everything()
            self._threads.install()
            self.modes.install()
            undo.callback(self.modes.remove)
            self.undo = undo.pop_all()
        self.log.note(f"recording `{self.options.name}`")

    def finish(self) -> None:
        """Restore the process."""
        self.witness.stop()
        self.recorder.finish()
        self.undo.close()

    @contextlib.contextmanager
    def _unrecorded(self) -> Iterator[None]:
        with self.modes.paused():
            yield

    @staticmethod
    def _snapshot(tensor: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return memory.snapshot(tensor)

    def _hand_out_array(self, tensor: torch.Tensor, array: Any) -> Any:
        self.arrays_are_out = True
        self.recorder.escape(tensor, decisions.LIBRARY, 0)
        return arrays.array_from_tensor(tensor)

    def _without_arrays(self, value: Any) -> Any:
        """Return arguments with tensors for arrays of traced values, and plain arrays else."""
        if type(value) is tuple:
            return tuple(self._without_arrays(item) for item in value)
        if not arrays.is_traced(value):
            return value
        if arrays.is_constant(value):
            return arrays.plain(value)
        tensor = arrays.tensor_of(value)
        return tensor if self.recorder.is_traced(tensor) else arrays.plain(value)

    @staticmethod
    def _without_scalars(
        args: tuple[Any, ...], kwargs: dict[str, Any] | None, as_numbers: bool
    ) -> tuple[tuple[Any, ...], dict[str, Any] | None]:
        change = arrays.numbers_for_scalars if as_numbers else arrays.tensors_for_scalars
        changed, named = change(args, kwargs or {})
        return changed, named or None

    def _is_traced_value(self, value: Any) -> bool:
        with self.modes.paused():
            if isinstance(value, torch.Tensor):
                return self.recorder.is_traced(value)
            if not arrays.is_traced(value) or arrays.is_constant(value):
                return False
            return self.recorder.is_traced(arrays.tensor_of(value))

    def _left_between(self, tensor: Any, what: str) -> None:
        if isinstance(tensor, torch.Tensor):
            self.skips.left_between(tensor, what)

    def tell(self, found: Diagnostic) -> None:
        """Keep a finding, once; the console gets it when the graph is compiled."""
        if found not in self.diagnostics:
            self.diagnostics.append(found)
            self.log.note(str(found))

    # Passes

    def open_pass(self, node_name: str, location: str) -> tuple[TracedNode, Pass]:
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

    def abandon(self, node: TracedNode) -> None:
        """Forget the running pass of a node: an exception ended it."""
        self.paths.stop()
        self.witness.drop(node)
        if node.open_pass is not None:
            self.recorder.abandon(node.open_pass.execution)
            node.open_pass = None

    def _begin_pass(self, node: TracedNode) -> Pass:
        self._clock += 1
        self._threads_seen.add(threading.get_ident())
        node.last_seen = self._clock
        light = not self._arm(node)
        sampled = node.completed < self.options.max_cached_io or node.is_small
        node.rested += light
        execution = self.recorder.open(node.number, light)
        begun = None if node.finished else chance.state()
        return Pass(execution, light, sampled or not light, self._tick(node), chance=begun)

    def _tick(self, node: TracedNode) -> int:
        """Return the tick of the pass that begins: ticks begin with the node that came first."""
        first = next(iter(self.nodes.values()))
        if node is first:
            return node.completed
        begun = first.completed + (first.open_pass is not None)
        return max(begun - 1, 0)

    def _arm(self, node: TracedNode) -> bool:
        """Say whether this pass is recorded in full, and switch the recorder on or off.

        Passes are compared with the first until enough agreed; then only marks are kept, and the
        rest is looked at again on passes that are further and further apart, two in a row, and
        whenever a constant of the node was written.
        """
        wanted = self._wants_comparison(node) or self._is_review(node.completed)
        wanted = replaying.constants_written(self, node) or wanted
        if self.recorder.has_open():
            return self.recording
        if self._wants_rest(node) and len(self._threads_seen) < 2:
            self._leave_alone()
        elif wanted and not self.recording:
            self._replaced.put_back()
            self.surroundings.remember_everything()
            self.recorder.resume()
            self.recording = True
        elif not wanted and self.recording and self._may_rest():
            self._leave_alone()
        return self.recording

    def _leave_alone(self) -> None:
        """Let the program run as it does without a session, until a pass is recorded again."""
        self.recording = False
        self._replaced.withdraw()

    @staticmethod
    def _wants_rest(node: TracedNode) -> bool:
        """Say whether a pass must be left alone: recording may change what is computed."""
        due = node.completed >= OBSERVED_FIRST and not carry.is_waiting(node)
        return due and node.rested < MOST_RESTS and not node.unobserved

    def _wants_comparison(self, node: TracedNode) -> bool:
        few = node.completed < max(MIN_COMPARED, self.options.max_cached_io)
        return few or carry.is_waiting(node)

    @staticmethod
    def _is_review(completed: int) -> bool:
        return any(count > 0 and count & (count - 1) == 0 for count in (completed, completed - 1))

    def _may_rest(self) -> bool:
        """Say whether nobody needs a full record.

        Nodes that did not run for a while are not waited for. With several threads one of them
        would decide for the others.
        """
        if len(self._threads_seen) > 1:
            return False
        horizon = self._clock - 2 * len(self.nodes) - 1
        return not any(
            self._wants_comparison(node) and node.last_seen > horizon
            for node in self.nodes.values()
        )

    def running(self, node_name: str, location: str) -> tuple[TracedNode, Pass]:
        """Return a node and its pass, which must have begun."""
        node = self.nodes.get(node_name)
        if node is None or node.open_pass is None:
            hint = f"call `input_tensors({node_name!r}, ...)` first"
            message = f"the node {node_name!r} was not begun"
            raise refuse("VER0904", message, location=location, hints=(hint,))
        return node, node.open_pass

    @contextlib.contextmanager
    def marking(self) -> Iterator[str]:
        """Give the user's line; nothing that the body does with torch is recorded."""
        self.modes.ensure()
        location = self.recorder.here()
        # A thread that is older than the session is not recorded, and stays so.
        followed = self.modes.installed or threading.get_ident() == self._thread
        if self.modes.installed:
            self.modes.remove()
        try:
            yield location
        finally:
            # A guard of inference mode puts the modes back that it found when it was entered.
            if followed and (self.recording or torch.is_inference_mode_enabled()):
                self.modes.install()
