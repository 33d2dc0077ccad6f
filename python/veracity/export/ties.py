"""Puts values that tie in the order that engines give them in: the first one first.

Torch promises no order of equal values, neither for `topk` nor for `sort` without `stable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_ATEN = torch.ops.aten


class FirstOfEqualsFirst(TorchDispatchMode):
    """What runs in it takes the first of equal values first.

    Attributes:
        matters: Whether values tied where their order is not promised.
    """

    def __init__(self) -> None:
        """Nothing tied so far."""
        super().__init__()
        self.matters = False

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an operator; what orders values does it stably."""
        given = dict(kwargs or {})
        if func is _ATEN.topk.default:
            return self._top(*args, **given)
        if func is _ATEN.sort.default:
            return self._ordered(*args, **given)
        return func(*args, **given)

    def _top(
        self,
        values: torch.Tensor,
        k: int,
        dim: int = -1,
        largest: bool = True,
        sorted: bool = True,  # what torch calls it
    ) -> tuple[torch.Tensor, torch.Tensor]:
        ordered, places = self._ordered(values, dim, largest)
        return ordered.narrow(dim, 0, k).clone(), places.narrow(dim, 0, k).clone()

    def _ordered(
        self, values: torch.Tensor, dim: int = -1, descending: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        ordered, places = torch.sort(values, dim=dim, descending=descending, stable=True)
        if values.dim():
            self.matters |= bool((ordered.diff(dim=dim) == 0).any())
        return ordered, places
