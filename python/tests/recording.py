"""A small recorder for tests of the exporters: the calls of one function, as a slice.

It keys tensors by object and keeps every one of them alive, so it is exact for pure functions and
for in-place operations; aliases that are made outside of torch calls are not its business.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from veracity.export.lowering import RESHAPING_IN_PLACE
from veracity.tracing.slice import Call, ConstantUse, InputUse, Ref, Slice


class Recorder(TorchFunctionMode):
    """Records every torch call that touches a tensor while it is active."""

    def __init__(self, inputs: dict[str, torch.Tensor]) -> None:
        """Begin with these inputs."""
        super().__init__()
        self.refs: dict[int, Ref] = {}
        self.alive: list[Any] = []
        self.calls: list[Call] = []
        self.constants: list[torch.Tensor] = []
        self.snapshots: list[torch.Tensor] = []
        self.ports = list(inputs)
        self.written: set[int] = set()
        for number, tensor in enumerate(inputs.values()):
            self._name(tensor, Ref("input", number))

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the call and write it down."""
        kwargs = kwargs or {}
        found: list[torch.Tensor] = []
        collect(args, found)
        collect(kwargs, found)
        if not any(id(tensor) in self.refs for tensor in found):
            return func(*args, **kwargs)
        recorded_args = self._recorded(args)
        recorded_kwargs = {key: self._recorded(value) for key, value in kwargs.items()}
        before = versions(found)
        result = func(*args, **kwargs)
        after = versions(found)
        for tensor, old, new in zip(found, before, after, strict=True):
            if old != new:
                self.written.add(tensor.untyped_storage()._cdata)
        paths: list[tuple[tuple[int | str, ...], torch.Tensor]] = []
        collect_paths(result, (), paths)
        number = len(self.calls)
        for position, (_, tensor) in enumerate(paths):
            # A method such as `squeeze_` lays its tensor out anew: what follows means the new one.
            reshaped = getattr(func, "__name__", "") in RESHAPING_IN_PLACE
            if reshaped or id(tensor) not in self.refs:
                self._name(tensor, Ref("step", number, position))
        if paths or before != after:
            outputs = tuple(path for path, _ in paths)
            self.calls.append(Call(func, recorded_args, recorded_kwargs, outputs, user_line()))
        return result

    def _name(self, tensor: torch.Tensor, ref: Ref) -> None:
        self.refs[id(tensor)] = ref
        self.alive.append(tensor)

    def _recorded(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self.refs:
                self._name(value, Ref("constant", len(self.constants)))
                self.constants.append(value)
                self.snapshots.append(value.detach().clone())
            return self.refs[id(value)]
        if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
            return type(value)(self._recorded(item) for item in value)
        if isinstance(value, dict):
            return {key: self._recorded(item) for key, item in value.items()}
        if isinstance(value, slice):
            return slice(*(self._recorded(part) for part in (value.start, value.stop, value.step)))
        return value

    def slice(self, outputs: Sequence[torch.Tensor]) -> Slice:
        """Return all that was recorded, with these outputs."""
        return Slice(
            inputs=[
                InputUse(port, tensor.untyped_storage()._cdata in self.written)
                for port, tensor in zip(self.ports, self.alive, strict=False)
            ],
            constants=[
                ConstantUse(
                    snapshot if tensor.untyped_storage()._cdata in self.written else tensor,
                    tensor.untyped_storage()._cdata in self.written,
                )
                for tensor, snapshot in zip(self.constants, self.snapshots, strict=True)
            ],
            steps=list(self.calls),
            outputs=[self.refs[id(tensor)] for tensor in outputs],
        )


def record(
    function: Callable[..., Any], inputs: dict[str, torch.Tensor]
) -> tuple[Slice, list[torch.Tensor]]:
    """Run a function once; return its slice and its results."""
    copies = {name: tensor.clone() for name, tensor in inputs.items()}
    recorder = Recorder(copies)
    with torch.no_grad(), recorder:
        result = function(*copies.values())
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    return recorder.slice(results), results


def versions(tensors: Sequence[torch.Tensor]) -> list[int]:
    """Return how often each was written; tensors of inference mode do not count that."""
    return [0 if tensor.is_inference() else tensor._version for tensor in tensors]


def collect(value: Any, found: list[torch.Tensor]) -> None:
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            collect(item, found)
    elif isinstance(value, dict):
        collect(list(value.values()), found)
    elif isinstance(value, slice):
        collect([value.start, value.stop, value.step], found)


def collect_paths(
    value: Any,
    path: tuple[int | str, ...],
    found: list[tuple[tuple[int | str, ...], torch.Tensor]],
) -> None:
    if isinstance(value, torch.Tensor):
        found.append((path, value))
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            collect_paths(item, (*path, number), found)
    elif isinstance(value, dict):
        for key, item in value.items():
            collect_paths(item, (*path, key), found)


def user_line() -> str:
    """Return the innermost line outside of torch and of this file."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if "/torch/" not in name and name != __file__:
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
