"""`veracity.annotate`: marks in existing code. Without a session every mark is free.

Nothing here imports torch; what is recorded is the business of `veracity.tracing`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from veracity import _current
from veracity._places import user_line
from veracity.errors import VeracityError, refuse
from veracity.semantics import TensorSemantics

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Entry(NamedTuple):
    """A named value given to an annotation; `parameter` when it is an argument of a function."""

    name: str
    value: Any
    semantics: TensorSemantics | None
    parameter: bool = False


class Annotations:
    """The marks; use the one instance `veracity.annotate`."""

    __slots__ = ()

    def input_tensors(self, node_name: str, tensors: Any) -> Any:
        """Mark inputs of a node; code from here to `output_tensors` belongs to it.

        Args:
            node_name: Name of the node; it is begun on its first use.
            tensors: `{name: value}` where a value is a tensor, an array or a nest of them, or
                `TensorSemantics`, or a list of those.

        Returns:
            The values to go on with: one, or a tuple in the given order.
        """
        session = _current.active
        if session is None:
            return _plain(tensors)
        return session.inputs.input_tensors(node_name, entries_of(tensors))

    def output_tensors(
        self,
        node_name: str,
        tensors: Any,
        static_outputs: Any = None,
        export_with: str | None = None,
        backend_params: Mapping[str, Any] | None = None,
        **unknown: Any,
    ) -> Any:
        """Mark outputs of a node and finish it.

        Args:
            node_name: The node.
            tensors: As for `input_tensors`.
            static_outputs: Outputs that do not depend on the inputs, likewise.
            export_with: Backend: `jit`, `jit-trace`, `onnx`, `onnx-torchscript`, `pt2` or `None`.
            backend_params: Options of the backend.
            **unknown: Told, and otherwise ignored.

        Returns:
            The given values, unchanged.
        """
        session = _current.active
        if session is None:
            return _plain(tensors)
        statics = [] if static_outputs is None else entries_of(static_outputs)
        params = dict(backend_params or {})
        session.outputs.tell_unknown_options("output_tensors", node_name, unknown)
        return session.outputs.output_tensors(
            node_name, entries_of(tensors), statics, export_with, params
        )

    def state_tensors(self, node_name: str, tensors: Mapping[str, Any]) -> Any:
        """Declare values that a node hands to its own next pass."""
        entries = _flat_entries(tensors)
        session = _current.active
        if session is None:
            return _single_or_tuple([entry.value for entry in entries])
        return session.states.state_tensors(node_name, entries)

    def update_state(self, node_name: str, tensors: Mapping[str, Any]) -> Any:
        """Say what declared states become."""
        entries = _flat_entries(tensors)
        session = _current.active
        if session is None:
            return _single_or_tuple([entry.value for entry in entries])
        return session.states.update_state(node_name, entries)

    def module(self, node_name: str, model: Any, buffer_names: list[str] | None = None) -> None:
        """Follow the buffers of a module: what the node changes becomes state.

        Args:
            node_name: A node that was begun.
            model: The module, before its forward pass.
            buffer_names: The buffers to follow; all by default.
        """
        session = _current.active
        if session is not None:
            session.states.module(node_name, model, buffer_names)

    def register_buffer(self, node_name: str, tensors: Any) -> Any:
        """Name tensors that the node writes in place. Plain writes are followed without it."""
        session = _current.active
        if session is None:
            return registered(tensors)
        return session.states.register_buffer(node_name, tensors)

    def mirror_leapp_tags(self, source: Any, target: Any) -> Any:
        """Let `target`, which must equal `source`, pass for it."""
        session = _current.active
        if session is None:
            return target
        return session.calls.mirror(source, target)

    def warp_op(
        self, node_name: str, inputs: Any = None, outputs: Any = None, **_options: Any
    ) -> contextlib.AbstractContextManager[None]:
        """Stand for LEAPP's mark around Warp kernels: free without a session, refused in one."""
        if _current.active is not None:
            message = f"the Warp kernels of `{node_name}` cannot be exported"
            raise _refusal("VER0920", message, hints=("compute it with torch",))
        return contextlib.nullcontext()

    def method(
        self,
        node_name: str | None = None,
        export_with: str | None = None,
        backend_params: Mapping[str, Any] | None = None,
        **unknown: Any,
    ) -> Callable[[_Function], _Function]:
        """Make a function a node: its arguments are the inputs, what it returns the outputs.

        A returned tuple is several outputs, named as in the `return` statement; a list or a dict
        is one, and its parts are named after it (`action_0`, `action_1`).

        Args:
            node_name: The function's name by default.
            export_with: As for `output_tensors`.
            backend_params: As for `output_tensors`.
            **unknown: Told once, and otherwise ignored.
        """
        if callable(node_name):
            hint = "write `@annotate.method()`"
            raise _refusal("VER0902", "`annotate.method` needs parentheses", hints=(hint,))

        def decorate(function: _Function) -> _Function:
            name = node_name or function.__name__

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                session = _current.active
                if session is None:
                    return function(*args, **kwargs)
                params = dict(backend_params or {})
                session.outputs.tell_unknown_options("annotate.method", name, unknown)
                return session.calls.call_method(function, name, args, kwargs, export_with, params)

            return call  # type: ignore[return-value]

        return decorate


def _refusal(code: str, message: str, hints: tuple[str, ...] = ()) -> VeracityError:
    return refuse(code, message, location=user_line(), hints=hints)


def entries_of(tensors: Any) -> list[Entry]:
    """Return the named values of any accepted form; refuse the others."""
    if isinstance(tensors, TensorSemantics):
        return [_entry_of_semantics(tensors)]
    if isinstance(tensors, Mapping):
        return [_entry_of_item(name, value) for name, value in tensors.items()]
    if isinstance(tensors, list | tuple):
        if not all(isinstance(item, TensorSemantics) for item in tensors):
            raise _refusal("VER0902", "a list must hold `TensorSemantics` only", hints=(_FORMS,))
        entries = [_entry_of_semantics(item) for item in tensors]
        _refuse_repeated_names(entries)
        return entries
    kind = type(tensors).__name__
    raise _refusal("VER0902", f"tensors need names, got a bare {kind}", hints=(_FORMS,))


_FORMS = "give `{name: tensor}`, or `TensorSemantics(name, tensor, ...)` or a list of those"


def _entry_of_semantics(semantics: TensorSemantics) -> Entry:
    if not semantics.name:
        raise _refusal("VER0902", "a `TensorSemantics` has no name", hints=(_FORMS,))
    return Entry(semantics.name, semantics.ref, semantics)


def _entry_of_item(name: Any, value: Any) -> Entry:
    if isinstance(value, TensorSemantics):
        hint = "give the list of `TensorSemantics` instead of a dict"
        raise _refusal("VER0902", f"`TensorSemantics` inside a dict, under {name!r}", hints=(hint,))
    if not isinstance(name, str):
        raise _refusal("VER0902", f"the name {name!r} is not text", hints=(_FORMS,))
    return Entry(name, value, None)


def _refuse_repeated_names(entries: list[Entry]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            raise _refusal("VER0903", f"the name {entry.name!r} is given twice")
        seen.add(entry.name)


def _flat_entries(tensors: Any) -> list[Entry]:
    """Return states: one tensor a name, nothing nested."""
    entries = entries_of(tensors)
    for entry in entries:
        if isinstance(entry.value, Mapping | list | tuple):
            kind = type(entry.value).__name__
            message = f"the state {entry.name!r} is a {kind}; a state is one tensor"
            raise _refusal("VER0902", message)
    return entries


def _plain(tensors: Any) -> Any:
    if type(tensors) is dict and not any(type(v) is TensorSemantics for v in tensors.values()):
        return _single_or_tuple(list(tensors.values()))
    return _single_or_tuple([entry.value for entry in entries_of(tensors)])


def registered(tensors: Any) -> Any:
    """Return the tensors of any form that `register_buffer` takes, one or a tuple."""
    if isinstance(tensors, Mapping):
        return _single_or_tuple(list(tensors.values()))
    if isinstance(tensors, list | tuple):
        return _single_or_tuple(list(tensors))
    return tensors


def _single_or_tuple(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)


annotate = Annotations()
