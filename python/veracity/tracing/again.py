"""Running the code of a node again, after its session, on other inputs.

Two kinds of nodes can be run again: decorated functions, and nodes that do nothing but call a
module that `annotate.module` was told of. Tensors are handed over as copies; what the code changes
on the way (attributes of the owner, buffers of modules, torch's random state) is put back
afterwards. What lies deeper, such as a list that an attribute holds, is not: whoever runs code
again compares it with the recorded values before and after.

A node of another kind has no `Again`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy
import torch

from veracity._generators import generators_kept
from veracity.tracing import arrays, method
from veracity.tracing.flatten import flatten, rebuild
from veracity.tracing.node import Pass

if TYPE_CHECKING:
    from veracity.annotations import Entry
    from veracity.tracing.session import Session

Tensors = dict[str, torch.Tensor]

#: Arguments that hold more bytes are not kept alive for the sake of running again.
MAX_KEPT_BYTES = 16 << 20


@dataclass
class Again:
    """A node's code, ready to be run on other inputs.

    Attributes:
        arguments: Calls the code with a function from names and leaves to leaves; gives results by
            the names of outputs.
        takes: Names of the inputs that can be given, without those of `buffers`.
        owners: Objects whose attributes are put back afterwards.
        buffers: Buffers that are states of the node, by the name of the state.
    """

    arguments: Callable[[Callable[[str, Any], Any]], dict[str, Any]]
    takes: set[str]
    owners: list[Any]
    buffers: dict[str, tuple[torch.nn.Module, str]] = field(default_factory=dict)

    def __call__(self, inputs: Tensors) -> Tensors:
        """Run the code on copies of these inputs; results and updated states by name."""

        def given(name: str, leaf: Any) -> Any:
            return _like(leaf, inputs[name]) if name in inputs and _is_tensor(leaf) else leaf

        with torch.no_grad(), _put_back(self.owners):
            for name, (owner, attribute) in self.buffers.items():
                if name in inputs:
                    setattr(owner, attribute, inputs[name].detach().clone())
            found = {
                name: _tensor(leaf)
                for name, leaf in flatten(self.arguments(given))
                if _is_tensor(leaf)
            }
            states = {
                name: getattr(owner, attribute) for name, (owner, attribute) in self.buffers.items()
            }
            return {name: value.detach().clone() for name, value in (found | states).items()}


def of_method(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Again | None:
    """Return how to run a decorated function again; `None` when its arguments are too large."""
    named = method.named_arguments(function, args, kwargs)
    if _bytes(named) > MAX_KEPT_BYTES:
        return None

    def call(given: Callable[[str, Any], Any]) -> dict[str, Any]:
        replaced = rebuild(named, given)
        return method.named_results(
            function, method.call_with(function, args, kwargs, replaced), ""
        )

    given = {id(value) for value in named.values()}
    owners = [value for value in args if id(value) not in given]
    owners += [leaf for _, leaf in flatten(named) if isinstance(leaf, torch.nn.Module)]
    bound = getattr(function, "__self__", None)
    takes = {name for name, leaf in flatten(named) if _is_tensor(leaf)}
    return Again(call, takes, [*owners, *([] if bound is None else [bound])])


class ModuleCalls:
    """Watches the calls of one module during the first pass of a node."""

    def __init__(self, session: Session, model: torch.nn.Module, running: Pass) -> None:
        """Watch from now on, until `settle`."""
        self._session, self._model, self._running = session, model, running
        self._writes = {name: self._count(value) for name, value in running.marked.items()}
        self._calls: list[tuple[tuple[Any, ...], dict[str, Any], Any, list[int]]] = []
        self._handle = model.register_forward_hook(self._called, with_kwargs=True)
        session.undo.callback(self._handle.remove)

    def _count(self, tensor: torch.Tensor) -> int:
        return self._session.recorder.write_count(tensor)

    def _called(
        self, _model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        with self._session.modes.paused():
            counts = [self._count(leaf) for leaf in _leaves(result)]
        self._calls.append((args, kwargs, result, counts))

    def settle(self, entries: list[Entry]) -> Again | None:
        """Stop watching; return the call if it is all that the node does.

        The module must have been called once, on the very inputs of the node, and what it returned
        must be the very outputs, neither written in between.
        """
        self._handle.remove()
        calls, self._calls = self._calls, []
        if len(calls) != 1:
            return None
        args, kwargs, result, counts = calls[0]
        names = self._names_of(list(args), kwargs)
        outputs = [
            (name, leaf) for entry in entries for name, leaf in flatten({entry.name: entry.value})
        ]
        leaves = _leaves(result)
        same = len(outputs) == len(leaves) and all(
            leaf is output and self._count(leaf) == count
            for leaf, (_, output), count in zip(leaves, outputs, counts, strict=True)
        )
        if names is None or not same:
            return None
        buffers = {one.name: (one.owner, one.attribute) for one in self._running.buffers}
        model, labels = self._model, [name for name, _ in outputs]

        def call(given: Callable[[str, Any], Any]) -> dict[str, Any]:
            def replaced(path: str, leaf: Any) -> Any:
                return given(names[path], leaf) if path in names else leaf

            named = rebuild({"args": list(args), "kwargs": dict(kwargs)}, replaced)
            found = model(*named["args"], **named["kwargs"])
            return dict(zip(labels, _leaves(found), strict=True))

        return Again(call, set(names.values()), [model], buffers)

    def _names_of(self, args: list[Any], kwargs: dict[str, Any]) -> dict[str, str] | None:
        """Return the input behind each tensor of the arguments; `None` if one is no input."""
        inputs = {id(value): name for name, value in self._running.marked.items()}
        names: dict[str, str] = {}
        for path, leaf in flatten({"args": args, "kwargs": kwargs}):
            if not _is_tensor(leaf):
                continue
            name = inputs.get(id(leaf))
            if name is None or self._count(leaf) != self._writes[name]:
                return None
            names[path] = name
        return names


def with_module(
    known: Again | ModuleCalls | None, session: Session, model: torch.nn.Module, running: Pass
) -> Again | ModuleCalls | None:
    """Return how to run a node again once `annotate.module` has told of a module in it."""
    if isinstance(known, Again):
        known.buffers |= {one.name: (one.owner, one.attribute) for one in running.buffers}
        known.owners.append(model)
    if known is None and not isinstance(model, torch.jit.ScriptModule):  # which takes no hooks
        return ModuleCalls(session, model, running)
    return known


def _leaves(value: Any) -> list[torch.Tensor]:
    return [leaf for _, leaf in flatten({"value": value}) if isinstance(leaf, torch.Tensor)]


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor | numpy.ndarray) or arrays.is_traced(leaf)


def _tensor(leaf: Any) -> torch.Tensor:
    return leaf if isinstance(leaf, torch.Tensor) else torch.from_numpy(numpy.array(leaf))


def _like(leaf: Any, value: torch.Tensor) -> Any:
    copy = value.detach().clone()
    return copy if isinstance(leaf, torch.Tensor) else copy.cpu().numpy()


def _bytes(named: dict[str, Any]) -> int:
    return sum(
        int(leaf.nbytes)
        for _, leaf in flatten(named)
        if isinstance(leaf, torch.Tensor | numpy.ndarray)
    )


@contextlib.contextmanager
def _put_back(owners: list[Any]) -> Iterator[None]:
    """Restore attributes, tensors in them, and torch's random state."""
    kept = [_Kept(holder) for owner in owners for holder in _holders(owner)]
    try:
        with generators_kept():
            yield
    finally:
        for one in kept:
            one.restore()


def _holders(owner: Any) -> list[dict[str, Any]]:
    """Return the dicts that hold an object's attributes, those of inner modules included."""
    if isinstance(owner, torch.nn.Module):
        modules = list(owner.modules())
        return [
            held
            for module in modules
            for held in (vars(module), module._buffers, module._parameters)
        ]
    held = getattr(owner, "__dict__", None)
    if type(held) is not dict:
        return []
    inner = [value for value in held.values() if isinstance(value, torch.nn.Module)]
    return [held, *(one for module in inner for one in _holders(module))]


class _Kept:
    """What a dict held, and the values of the buffers among it."""

    def __init__(self, holder: dict[str, Any]) -> None:
        self._holder, self._items = holder, dict(holder)
        # Parameters are not written by code that runs without gradients.
        self._values = [
            (value, value.detach().clone())
            for value in self._items.values()
            if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter)
        ]

    def restore(self) -> None:
        if self._holder.keys() != self._items.keys() or any(
            self._holder[key] is not value for key, value in self._items.items()
        ):
            self._holder.clear()
            self._holder.update(self._items)
        for tensor, value in self._values:
            # Unchanged tensors keep their write counters, which others look at.
            if not torch.equal(tensor, value):
                tensor.copy_(value)
