"""What a session changes in the process while it lasts, and what it must know of it."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from veracity.tracing import arrays

if TYPE_CHECKING:
    from veracity.tracing.session import Session


class Surroundings:
    """The process around a session."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session

    def hook_arrays(self, undo: contextlib.ExitStack) -> None:
        """Let NumPy arrays report to this session."""
        for name, hook in (
            ("pause", self._session.modes.paused),
            ("escaped", self._array_escaped),
            ("active", lambda: self._session.modes.installed),
            ("user_location", self._session.recorder.here),
        ):
            undo.callback(setattr, arrays, name, getattr(arrays, name))
            setattr(arrays, name, hook)
        if self._session.options.global_patching:
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
                with self._session.modes.paused():
                    tensor = make(*args, **kwargs)
                    if not self._session.arrays_are_out:
                        self._session.recorder.remember([tensor])
                return tensor

            return make_and_remember

        for name in ("from_numpy", "frombuffer"):
            original = getattr(torch, name)
            undo.callback(setattr, torch, name, original)
            setattr(torch, name, watched(original))

    def run_eagerly(self, undo: contextlib.ExitStack) -> None:
        """Keep `torch.compile` out: seen through modes, it would stay eager after the session."""
        if "torch._dynamo" in sys.modules:
            undo.enter_context(torch.compiler.set_stance("force_eager"))

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

    def _array_escaped(self, tensor: torch.Tensor, how: str) -> None:
        with self._session.modes.paused():
            self._session.recorder.escape(tensor, how, 0)


def _kinds_of(base: type) -> set[type]:
    """Return a class and all classes below it."""
    subclasses: list[type] = type.__subclasses__(base)
    below = [_kinds_of(kind) for kind in subclasses]
    return {base}.union(*below)
