"""Operators of other libraries than torch, such as those of torchvision.

They need not look at what they are given: torchvision's `roi_align` and `deform_conv2d` read memory
anywhere when a coordinate is NaN, which ends the process. Recorded values are what the user's code
gave them; values that are made up here are looked at before.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from veracity.tracing.nodes import Node
from veracity.tracing.slice import Call

#: Where torch's own operators are.
_OWN_LIBRARIES = ("aten", "prims", "prim", "")


def operators(node: Node) -> list[str]:
    """Return the operators of other libraries that a node calls: `torchvision::roi_align`."""
    called = {_qualified(step.func) for step in node.slice.steps if isinstance(step, Call)}
    return sorted(name for name in called if _is_foreign(name))


def guarded(node: Node) -> AbstractContextManager[Any]:
    """Return a context in which these operators refuse values that are not finite."""
    return _OnlyFinite() if operators(node) else nullcontext()


class _OnlyFinite(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = _qualified(func)
        if _is_foreign(name) and not all(map(_is_finite, args)):
            raise ValueError(f"`{name}` is given values that are not finite")
        return func(*args, **(kwargs or {}))


def _is_finite(value: Any) -> bool:
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return not floating or bool(value.isfinite().all())


def _is_foreign(name: str) -> bool:
    return name.split("::")[0] not in _OWN_LIBRARIES


def _qualified(func: Any) -> str:
    """Return `library::operator`, or nothing for what is no operator by itself."""
    if isinstance(func, torch._ops.OpOverload):
        func = func.overloadpacket
    return str(getattr(func, "_qualified_op_name", ""))
