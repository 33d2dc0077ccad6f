"""Constructors of tensors that no mode sees: `torch.FloatTensor([...])`, `torch.Tensor([...])`.

torch fills their tensors below every mode, so that a tensor of literals would count as one that
was made out of sight, and traced values in the list would leave for Python. While a session lasts
they make the same tensor with `torch.tensor`, which is recorded.

Sizes (`torch.Tensor(3, 4)`) and other arguments go to torch as they are: those it makes where a
mode sees it.
"""

from __future__ import annotations

from typing import Any

import numpy
import torch

from veracity.tracing import arrays
from veracity.tracing.replaced import Replaced

_KINDS = "Bool Byte Char Short Int Long Half BFloat16 Float Double"


def install(replaced: Replaced) -> None:
    """Put the replacements in place until `replaced` is removed."""
    for kind in _KINDS.split():
        name = f"{kind}Tensor"
        original = getattr(torch, name, None)
        if original is not None:
            legacy = _Legacy(f"torch.{name}", (), {"original": original})
            replaced.put(torch, name, legacy)
    if "__new__" not in vars(torch.Tensor):
        replaced.put(torch.Tensor, "__new__", staticmethod(_new))


class _Legacy(type):
    """A class for an old type of tensors: torch reads the type that is meant from its name."""

    original: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and _is_data(args):
            return torch.tensor(args[0], dtype=cls.original.dtype, device="cpu")
        return cls.original(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.original)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.original, name)

    def __repr__(cls) -> str:
        return repr(cls.original)


def _new(cls: type, *args: Any, **kwargs: Any) -> Any:
    if cls is torch.Tensor and not kwargs and _is_data(args):
        default: Any = torch._C
        if default._get_default_device() == "cpu":
            return torch.tensor(args[0], dtype=torch.get_default_dtype(), device="cpu")
    return torch._C.TensorBase.__new__(cls, *args, **kwargs)


def _is_data(args: tuple[Any, ...]) -> bool:
    """Whether a constructor is given elements, in a thread that is recorded."""
    if len(args) != 1 or not arrays.active():
        return False
    return isinstance(args[0], (list, tuple, numpy.ndarray)) and not isinstance(args[0], torch.Size)
