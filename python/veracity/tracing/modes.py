"""Where calls are seen: a function mode over plain tensors, and a dispatch mode below as a net.

Both sit at the bottom of their stacks. On top, a `with torch.device(...)` of the user's that began
before the session would take ours off when it ends, and leave its own.
"""

from __future__ import annotations

import _thread
import collections
import concurrent.futures.thread
import contextlib
import functools
import queue
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from veracity._native import FunctionMode, Recorder
from veracity.tracing import arrays
from veracity.tracing.replaced import Replaced
from veracity.tracing.sparse import Sparse

#: How deep a message is searched for tensors.
MOST_NESTED = 3
_native = torch._C


#: Ways in which Python gets the values of a tensor.
_LEAVING: dict[Any, str] = {
    **dict.fromkeys((torch.Tensor.item, torch.Tensor.__float__, torch.Tensor.__int__), "value"),
    torch.Tensor.tolist: "value",
    torch.Tensor.__index__: "index",
    torch.Tensor.numpy: "array",
    **dict.fromkeys((torch.Tensor.__bool__, torch.Tensor.is_nonzero), "branch"),
    **dict.fromkeys((torch.Tensor.equal, torch.equal, torch.allclose), "branch"),
}


#: Functions that take only form and type of a tensor, and what makes the same from those.
_FORMED = {
    torch.zeros_like: torch.zeros,
    torch.ones_like: torch.ones,
    torch.full_like: torch.full,
    torch.Tensor.new_zeros: torch.zeros,
    torch.Tensor.new_ones: torch.ones,
    torch.Tensor.new_full: torch.full,
}
_FORM_OPTIONS = frozenset({"dtype", "device", "requires_grad", "size", "fill_value"})
_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)


class RecordingMode(TorchFunctionMode):
    """Hands every call of torch to the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        """Record with `recorder`."""
        super().__init__()
        self._call = recorder.call
        # Native, and still a method of this object: torch insists on that.
        handler = FunctionMode(recorder, _has_own_way, _usual)
        vars(self)["__torch_function__"] = types.MethodType(handler, self)
        self._has_open = recorder.has_open
        self.sparse = Sparse(recorder)
        #: Given tensors of which Python gets a value while no node is open.
        self.left_between: Callable[[torch.Tensor, str], None] | None = None

    def own_way(
        self, kind: Any, func: Callable[..., Any], kinds: Any, args: Any, kwargs: Any
    ) -> Any:
        """Let a subclass of tensors compute: what it calls is recorded, and not what called it."""
        with self:
            return kind.__torch_function__(func, kinds, args, kwargs or {})

    def look(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None
    ) -> Any:
        """Run and record a call that may be one of a special kind."""
        if self.sparse.concerns(func):
            with _native.DisableTorchFunctionSubclass(), _without_dispatch():
                result = self.sparse.call(func, args, kwargs)
            if result is not NotImplemented:
                return result
        if func in _LEAVING and self.left_between is not None and not self._has_open():
            self.left_between(args[0], _LEAVING[func])
        if func in _FORMED and type(args[0]) in _PLAIN_TENSORS:
            formed = self._formed(func, args, kwargs or {})
            if formed is not None:
                return self._call(*formed)
        return self._call(func, args, kwargs)

    def _formed(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the call without the tensor, whose values do not matter: `torch.zeros(2, 3)`.

        A state that begins as `torch.zeros_like(x)` would seem to begin with the first input.
        """
        tensor, *given = args
        like = func.__name__.endswith("_like")
        if kwargs.keys() - _FORM_OPTIONS or (like and not tensor.is_contiguous()):
            return None
        size = self._call(torch.Tensor.size, (tensor,), None) if like else None
        options = {"dtype": tensor.dtype, "device": tensor.device} | kwargs
        return _FORMED[func], tuple(given) if size is None else (size, *given), options


def _usual(func: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return what is called where a call is recorded as it is; most are, and all are asked.

    A method that a session replaced to take traced scalars is the method itself: the recorder
    knows scalars.
    """
    special = func in _LEAVING or func in _FORMED or Sparse.may_concern(func)
    return None if special else getattr(func, arrays.TAKES_NUMBERS, func)


def _has_own_way(kind: Any) -> bool:
    """Say whether a subclass of tensors that the user wrote computes in a way of its own."""
    way = getattr(kind, "__torch_function__", None)
    usual = torch.Tensor.__torch_function__
    is_usual = way is None or getattr(way, "__func__", way) is getattr(usual, "__func__", usual)
    package = str(kind.__module__).partition(".")[0]
    return issubclass(kind, torch.Tensor) and not is_usual and package not in ("torch", "veracity")


@contextlib.contextmanager
def _without_dispatch() -> Iterator[None]:
    """Let the net look away."""
    kept: list[Any] = []

    def empty(modes: list[Any]) -> list[Any]:
        kept.extend(modes)
        return []

    _rebuild_dispatch_stack(empty)
    try:
        yield
    finally:
        _rebuild_dispatch_stack(lambda _: kept)


class RecordingNet(TorchDispatchMode):
    """Catches what the function mode does not see: scripts, function transforms, autocast."""

    def __init__(self, recorder: Recorder) -> None:
        """Record with `recorder`."""
        super().__init__()
        self._dispatched = recorder.dispatched

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the operator and record it."""
        # Calling an operator enters the function modes again.
        with _native.DisableTorchFunction():
            return self._dispatched(func, args, kwargs)


class Modes:
    """The two modes of a session, in whichever threads they are on."""

    def __init__(self, recorder: Recorder) -> None:
        """Make the modes; `install` puts them up."""
        self._function = RecordingMode(recorder)
        self._net = RecordingNet(recorder)
        self._local = threading.local()

    def listen_between(self, left: Callable[[torch.Tensor, str], None]) -> None:
        """Hear of values that Python gets while no node is open, and what it makes of them."""
        self._function.left_between = left

    @property
    def sparse(self) -> Sparse:
        """The sparse constants that are known."""
        return self._function.sparse

    @property
    def installed(self) -> bool:
        """Whether this thread records."""
        return bool(getattr(self._local, "installed", False))

    def install(self) -> None:
        """Record this thread from now on."""
        _rebuild_function_stack(self._with_ours)
        _rebuild_dispatch_stack(lambda modes: [self._net, *modes])
        self._local.installed = True

    def _with_ours(self, modes: list[Any]) -> list[Any]:
        """Put ours at the bottom, but above the default device, which torch wants to find there."""
        default = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
        below = 1 if modes and default is not None and modes[0] is default else 0
        return [*modes[:below], self._function, *modes[below:]]

    def remove(self) -> None:
        """Record this thread no longer."""
        _rebuild_function_stack(lambda modes: [m for m in modes if m is not self._function])
        _rebuild_dispatch_stack(lambda modes: [m for m in modes if m is not self._net])
        self._local.installed = False

    def ensure(self) -> None:
        """Put the modes back if user code took them off."""
        stack = _function_stack()
        if self.installed and not any(mode is self._function for mode in stack):
            self.remove()
            self.install()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let the body run unrecorded."""
        # Inside of a handler torch has taken our mode off already, and puts it back itself.
        if not any(mode is self._function for mode in _function_stack()):
            yield
            return
        self.remove()
        try:
            yield
        finally:
            self.install()


def _function_stack() -> list[Any]:
    return [
        _native._get_function_stack_at(index)
        for index in range(_native._len_torch_function_stack())
    ]


def _rebuild_function_stack(change: Callable[[list[Any]], list[Any]]) -> None:
    old = _function_stack()
    for _ in old:
        _native._pop_torch_function_stack()
    for mode in change(old):
        _native._push_on_torch_function_stack(mode)


def _rebuild_dispatch_stack(change: Callable[[list[Any]], list[Any]]) -> None:
    depth = _native._len_torch_dispatch_stack()
    old = [_native._get_dispatch_stack_at(index) for index in range(depth)]
    for _ in old:
        _native._pop_torch_dispatch_stack(None)
    for mode in change(old):
        _native._push_on_torch_dispatch_stack(mode)


def _memory_in(item: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Give the tensors of a message: alone, or in what people pack messages in."""
    if isinstance(item, torch.Tensor):
        yield item
    elif arrays.is_traced(item):
        yield arrays.state_of(item).tensor
    elif depth < MOST_NESTED:
        inner: Any = ()
        if isinstance(item, tuple | list | set | collections.deque):
            inner = item
        elif isinstance(item, dict):
            inner = item.values()
        elif type(getattr(item, "__dict__", None)) is dict:
            inner = vars(item).values()
        for one in inner:
            yield from _memory_in(one, depth + 1)


class RecordedThreads:
    """Threads that start during a session are recorded, and so is work given to older ones."""

    def __init__(self, modes: Modes, recorder: Recorder, replaced: Replaced) -> None:
        """Record with `modes`; nothing happens before `install`."""
        self._modes, self._recorder, self._replaced = modes, recorder, replaced

    def install(self) -> None:
        """Replace what every thread and every item of a pool goes through."""
        # Below `run`, which subclasses override.
        self._patch(threading.Thread, "_bootstrap_inner")
        self._patch(concurrent.futures.thread._WorkItem, "run")
        self._patch_bare_threads()
        if len(threading.enumerate()) > 1:
            self._watch_queues()

    def _patch_bare_threads(self) -> None:
        """Record threads that are begun without `threading`."""
        original = _thread.start_new_thread
        modes = self._modes

        @functools.wraps(original)
        def start(function: Callable[..., Any], *args: Any) -> Any:
            def recorded(*given: Any, **named: Any) -> None:
                modes.install()
                try:
                    function(*given, **named)
                finally:
                    modes.remove()

            return original(recorded if modes.installed else function, *args)

        self._replaced.put(_thread, "start_new_thread", start)

    def _watch_queues(self) -> None:
        """Notice tensors that are put into a queue: an older thread may take them, unseen."""
        original = queue.Queue.put
        modes, recorder = self._modes, self._recorder

        @functools.wraps(original)
        def put(self: Any, item: Any, *args: Any, **kwargs: Any) -> Any:
            for one in _memory_in(item) if modes.installed else ():
                with modes.paused():
                    recorder.escape(one, "another thread", 0)
            return original(self, item, *args, **kwargs)

        self._replaced.put(queue.Queue, "put", put)

    def _patch(self, owner: type, name: str) -> None:
        original = getattr(owner, name)
        modes = self._modes

        @functools.wraps(original)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            if modes.installed:
                return original(*args, **kwargs)
            modes.install()
            try:
                return original(*args, **kwargs)
            finally:
                modes.remove()

        self._replaced.put(owner, name, recorded)
