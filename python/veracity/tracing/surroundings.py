"""What a session changes in the process while it lasts, and what it must know of it."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.testing
import torch.utils.dlpack

from veracity._generators import gpu_in_use
from veracity.tracing import (
    array_plain,
    arrays,
    constancy,
    constructors,
    decisions,
    fast_paths,
    findings,
    scripts,
)
from veracity.tracing.replaced import Replaced

if TYPE_CHECKING:
    from veracity.tracing.session import Session

_native: Any = torch._C
#: Ways out that are one of the recorder's by another name; what it does not know is memory.
_WAYS_OUT = {
    **dict.fromkeys(("__round__", "__floor__", "__ceil__", "__trunc__", "__hash__"), "item"),
    **dict.fromkeys(("numpy.array_equal", "numpy.array_equiv"), "equal"),
    **dict.fromkeys(("numpy.array2string", "numpy.array_str", "numpy.array_repr"), "__str__"),
    "numpy.allclose": "allclose",
}


class Surroundings:
    """The process around a session."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session
        self.replaced = Replaced()

    def hook_arrays(self, undo: contextlib.ExitStack) -> None:
        """Let NumPy arrays report to this session."""
        for name, hook in (
            ("pause", self._session.modes.paused),
            ("escaped", self._array_escaped),
            ("active", lambda: self._session.modes.installed),
            ("defers", lambda: self._session.modes.installed),
            ("user_location", self._session.recorder.here),
            ("watch", Watch(self._session)),
        ):
            undo.callback(setattr, arrays, name, getattr(arrays, name))
            setattr(arrays, name, hook)
        if self._session.options.global_patching:
            self._watch_foreign_memory()
            arrays.install_patches(self.replaced)
            undo.callback(arrays.forget)
            constructors.install(self.replaced)
            self._hear_checks()
            session = self._session
            undo.enter_context(array_plain.listening(session.recorder, session.log.caution))

    def _watch_foreign_memory(self) -> None:
        """Know tensors on memory from outside; no mode sees them being made.

        Once an array of traced values was handed out, memory from outside may hold what became of
        it, and stays suspicious, unless the source shows that nobody writes it.
        """
        fixed: dict[int, Any] = {}  # arrays that nobody writes: kept, so that ids stay theirs

        def is_fixed(array: Any) -> bool:
            if id(array) not in fixed and constancy.is_constant_array(array):
                fixed[id(array)] = array
            return id(array) in fixed

        def watched(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
            @functools.wraps(make)
            def make_and_remember(*args: Any, **kwargs: Any) -> torch.Tensor:
                with self._session.modes.paused():
                    tensor = make(*args, **kwargs)
                    if not self._session.arrays_are_out or is_fixed(args[0] if args else None):
                        self._session.recorder.remember([tensor])
                return tensor

            return make_and_remember

        for name in ("from_numpy", "frombuffer"):
            self.replaced.put(torch, name, watched(getattr(torch, name)))
        self._watch_capsules()

    def _watch_capsules(self) -> None:
        """Know memory that leaves in a capsule of DLPack: no mode sees that function.

        A tensor that is made of the capsule is the same memory, and recorded like it.
        """
        capsules: Any = torch.utils.dlpack
        original = capsules.to_dlpack

        @functools.wraps(original)
        def hand_out(tensor: torch.Tensor) -> Any:
            with self._session.modes.paused():
                if self._session.recorder.is_traced(tensor):
                    self._session.recorder.share(tensor)
                    self._session.recorder.escape(tensor, "__dlpack__", 0)
                return original(tensor)

        for owner in (capsules, torch):
            if getattr(owner, "to_dlpack", None) is original:
                self.replaced.put(owner, "to_dlpack", hand_out)

    def _hear_checks(self) -> None:
        """Know where torch's own checks are called: what is raised by one may be caught."""
        recorder, modes = self._session.recorder, self._session.modes

        def heard(check: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(check)
            def look_and_check(*args: Any, **kwargs: Any) -> Any:
                if modes.installed:
                    with modes.paused():
                        for one in (*args, *kwargs.values()):
                            if isinstance(one, torch.Tensor):
                                recorder.escape(one, decisions.RAISES, 0)
                return check(*args, **kwargs)

            return look_and_check

        for name in ("assert_close", "assert_allclose"):
            original = getattr(torch.testing, name, None)
            if original is not None:
                self.replaced.put(torch.testing, name, heard(original))

    def run_eagerly(self, undo: contextlib.ExitStack) -> None:
        """Keep `torch.compile` out: seen through modes, it would stay eager after the session.

        TorchScript must not fuse: what it makes of several operations on a GPU is one that no mode
        sees.
        """
        fast_paths.install(self.replaced, lambda: self._session.modes.installed)
        scripts.install(
            self.replaced,
            lambda: self._session.modes.installed and self._session.recording,
            self._tell_kept_by_script,
        )
        if "torch._dynamo" in sys.modules:
            undo.enter_context(torch.compiler.set_stance("force_eager"))
        if torch.cuda.is_available():
            undo.callback(
                _native._set_graph_executor_optimize, _native._get_graph_executor_optimize()
            )
            _native._set_graph_executor_optimize(False)
            if gpu_in_use():
                _forget_fused_scripts()

    def _tell_kept_by_script(self, kind: str, name: str) -> None:
        for node in self._session.nodes.values():
            if node.open_pass is not None:
                self._session.tell(findings.kept_by_script(node.name, kind, name, node.location))

    def remember_everything(self) -> None:
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
        self._session.recorder.remember(found)
        self._session.modes.sparse.remember(found)

    def fill_lazy_modules_unseen(self) -> None:
        """Keep it out of a node that lazy modules make their weights on the first pass.

        Weights that are drawn then are constants like those that were drawn before.
        """
        for kind in _kinds_of(torch.nn.modules.lazy.LazyModuleMixin):
            original = vars(kind).get("initialize_parameters")
            if original is not None:
                self.replaced.put(kind, "initialize_parameters", self._unseen(original))

    def _unseen(self, fill: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fill)
        def fill_and_remember(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            with self._session.modes.paused():
                result = fill(module, *args, **kwargs)
                known = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
                self._session.recorder.remember(known)
            return result

        return fill_and_remember

    def _array_escaped(self, tensor: torch.Tensor, how: str) -> None:
        with self._session.modes.paused():
            if not self._session.recorder.escape(tensor, _WAYS_OUT.get(how, how), 0):
                self._session.skips.left_between(tensor)


class Watch(arrays.Watch):
    """What arrays ask the recorder of a session."""

    def __init__(self, session: Session) -> None:
        """Answer for `session`."""
        self._recorder: Any = session.recorder
        self._paused = session.modes.paused

    def has_open(self) -> bool:
        """Whether a node is open."""
        return bool(self._recorder.has_open())

    def follows(self, tensor: torch.Tensor) -> bool:
        """Whether an open node reaches the memory of a tensor."""
        with self._paused():
            return bool(self._recorder.is_traced(tensor))

    def reaches(self, tensor: torch.Tensor) -> bool:
        """Whether any node, open or not, reaches the memory of a tensor."""
        with self._paused():
            return bool(self._recorder.is_traced(tensor) or self._recorder.is_derived(tensor))

    def writes(self, tensor: torch.Tensor) -> int:
        """Count the recorded writes into the memory of a tensor."""
        with self._paused():
            return int(self._recorder.write_count(tensor))

    def share(self, tensor: torch.Tensor) -> None:
        """Make known that plain arrays show the memory of a tensor."""
        with self._paused():
            self._recorder.remember([tensor])
            self._recorder.share(tensor)

    def reach_plain(self, reached: bool) -> None:
        """Say whether plain arrays may hold traced values."""
        self._recorder.set_plain_memory_reached(reached)


def _forget_fused_scripts() -> None:
    """Have scripts that ran before the session, and were fused then, compiled anew."""
    modules = _kinds_of(torch.jit.ScriptModule)
    for item in gc.get_objects():
        if type(item) is _native.ScriptFunction:
            item._debug_flush_compilation_cache()
        elif type(item) in modules:
            with contextlib.suppress(RuntimeError, AttributeError):  # not filled yet
                for name in item._c._method_names():
                    item._c._get_method(name)._debug_flush_compilation_cache()


def _kinds_of(base: type) -> set[type]:
    """Return a class and all classes below it."""
    subclasses: list[type] = type.__subclasses__(base)
    below = [_kinds_of(kind) for kind in subclasses]
    return {base}.union(*below)
