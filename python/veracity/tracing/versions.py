"""What older torches do not have, or cannot do."""

from __future__ import annotations

import torch

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def default_device() -> torch.device:
    """Return the device that tensors are made on; torch 2.6 has none once it was set to `None`."""
    try:
        return torch.get_default_device()
    except AttributeError:
        return torch.device("cpu")


def is_exporting() -> bool:
    """Say whether `torch.export` runs this code; torch 2.6 only knows that it is compiled."""
    asked = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)
    return bool(asked())


def rows_of(value: torch.Tensor, rows: torch.Tensor | list[int]) -> torch.Tensor:
    """Return some rows of a tensor, of any type; torch 2.6 selects no unsigned ones."""
    signed = _SIGNED.get(value.dtype)
    return value[rows] if signed is None else value.view(signed)[rows].view(value.dtype)
