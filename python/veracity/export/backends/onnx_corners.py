"""Operations that ONNX has no operator for, and that torch's exporter gets wrong on corners.

Its `atan2` gives -pi for pi where the first argument is zero and the second negative, and knows no
sign of zeros; its `logaddexp` overflows from 89 on, and its `logsigmoid` below -88. ONNX gives NaN
for the sign of NaN. They are taken apart before it sees them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import torch
from torch.export import ExportedProgram


def _is_below_zero(value: torch.Tensor) -> torch.Tensor:
    """Say whether the sign is minus, that of a zero included: its reciprocal is infinite."""
    return (value < 0) | ((value == 0) & (torch.reciprocal(value) < 0))


def atan2(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Do what `torch.atan2` does, by the angle between 0 and pi/2 and the two signs."""
    dtype = torch.result_type(y, x)
    if not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    y, x = torch.broadcast_tensors(y.to(dtype), x.to(dtype))
    height, width = y.abs(), x.abs()
    # Equal sizes have no ratio where both are zero or infinite.
    ratio = torch.where(height == width, torch.ones_like(height), height / width)
    ratio = torch.where((height == 0) & (width == 0), torch.zeros_like(height), ratio)
    angle = torch.atan(ratio)
    angle = torch.where(_is_below_zero(x), math.pi - angle, angle)
    return torch.where(_is_below_zero(y), -angle, angle)


def logaddexp(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Do what `torch.logaddexp` does, with exponentials of what is at most zero."""
    left, right = torch.broadcast_tensors(left, right)
    apart = torch.maximum(left, right) + torch.log1p(torch.exp(-(left - right).abs()))
    return torch.where(left == right, left + math.log(2), apart)


def sign(value: torch.Tensor) -> torch.Tensor:
    """Do what `torch.sign` does: NaN has no sign, and gives zero."""
    return (value > 0).to(value.dtype) - (value < 0).to(value.dtype)


def log_sigmoid(value: torch.Tensor) -> torch.Tensor:
    """Do what `logsigmoid` does, with exponentials of what is at most zero."""
    return torch.clamp(value, max=0) - torch.log1p(torch.exp(-value.abs()))


_TABLE: dict[Any, Callable[..., torch.Tensor]] = {
    torch.ops.aten.sign.default: sign,
    torch.ops.aten.log_sigmoid.default: log_sigmoid,
    torch.ops.aten.atan2.default: atan2,
    torch.ops.aten.logaddexp.default: logaddexp,
}


def taken_apart(program: ExportedProgram) -> ExportedProgram:
    """Return the program without these operations; the very program if it has none."""
    used = {node.target for node in program.graph.nodes} & _TABLE.keys()
    if not used:
        return program
    with torch.no_grad():
        return cast(ExportedProgram, program.run_decompositions({one: _TABLE[one] for one in used}))
