"""Runs a recorded program in double precision: the yardstick for rounding.

Constants, inputs and every dtype that the program asks for are widened. What cannot be widened, a
foreign operation or a view of bits, raises whatever torch raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from veracity.export import graph
from veracity.export.models import program_of
from veracity.tracing.nodes import Node

Tensors = dict[str, torch.Tensor]
#: Called with each step of a program: its name, arguments and result.
Observe = Callable[[str, tuple[Any, ...], dict[str, Any], Any], None]

_NARROW = frozenset({torch.float16, torch.bfloat16, torch.float32})
#: Methods that name a dtype.
_CASTS = frozenset({"float", "half", "bfloat16"})


def run_in_double(node: Node, inputs: Tensors, observe: Observe | None = None) -> Tensors:
    """Return the outputs of a node's recorded program, computed in float64.

    Integers and truth values stay what they are. Raises when the program cannot be widened.
    """
    names = [port.name for port in node.outputs]
    module = graph.build(program_of(node), names)
    given = [_wide(inputs[use.port]) for use in node.slice.inputs]
    with torch.no_grad():
        found = _InDouble(module, observe).run(*given)
    found = (found,) if isinstance(found, torch.Tensor) else found
    return dict(zip(names, found, strict=True))


class _InDouble(fx.Interpreter):
    """Runs a graph with every narrow float widened."""

    def __init__(self, module: fx.GraphModule, observe: Observe | None) -> None:
        super().__init__(module)
        self._observe = observe

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        return _wide(super().get_attr(target, args, kwargs))

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = _widened(args), _widened(kwargs)
        return self._seen(
            name_of(target), args, kwargs, super().call_function(target, args, kwargs)
        )

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = _widened(args), _widened(kwargs)
        method = "double" if target in _CASTS else target
        return self._seen(target, args, kwargs, super().call_method(method, args, kwargs))

    def _seen(self, name: str, args: Any, kwargs: Any, result: Any) -> Any:
        if self._observe is not None:
            self._observe(name, args, kwargs, result)
        return result


def name_of(target: Any) -> str:
    """Return the plain name of a function, without its namespace, overload and underscores."""
    name = getattr(target, "__name__", str(target))
    return name.removeprefix("aten.").split(".")[0].strip("_")


def _wide(value: Any) -> Any:
    narrow = isinstance(value, torch.Tensor) and value.dtype in _NARROW
    return value.double() if narrow else value


def _widened(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return torch.float64 if value in _NARROW else value
    if isinstance(value, dict):
        return {key: _widened(item) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_widened(item) for item in value)
    return value
