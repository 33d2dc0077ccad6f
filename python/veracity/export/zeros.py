"""Drops the sign of zeros where engines drop it.

ONNX Runtime's `Where` gives 0.0 for a -0.0 that it chooses. Nothing shows of that until a program
divides by it or asks for an angle: `atan2(-0.0, -1.0)` is the other end of the circle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_ATEN = torch.ops.aten
_CHOICES = frozenset(
    [
        _ATEN.where.self,
        _ATEN.where.ScalarSelf,
        _ATEN.where.ScalarOther,
        _ATEN.where.Scalar,
        _ATEN.masked_fill.Scalar,
        _ATEN.masked_fill.Tensor,
    ]
)


class ChosenZerosArePositive(TorchDispatchMode):
    """What runs in it gives 0.0 for each -0.0 that it chooses.

    Attributes:
        matters: Whether there was one.
    """

    def __init__(self) -> None:
        """None so far."""
        super().__init__()
        self.matters = False

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an operator; what chooses loses signs of zeros."""
        found = func(*args, **(kwargs or {}))
        if func not in _CHOICES or not found.is_floating_point():
            return found
        self.matters |= bool(((found == 0) & found.signbit()).any())
        return found + 0.0
