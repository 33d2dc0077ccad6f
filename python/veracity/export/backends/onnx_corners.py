"""Operations that torch's ONNX exporter gets wrong on corners, or does not know.

Its `atan2` gives -pi for pi where the first argument is zero and the second negative, and knows no
sign of zeros; its `logaddexp` overflows from 89 on, and its `logsigmoid` below -88. It divides
integers through float32, and 3.0 by 0.3 into ten. They are taken apart before it sees them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import fx
from torch.export import ExportedProgram

from veracity.export.backends import onnx_algebra, onnx_orders, onnx_special

#: What torch takes for an operation that is to stay.
_AS_IT_IS = cast(torch.Tensor, NotImplemented)
#: Longer sums of exponentials are left to the exporter: the way around takes the square in memory.
_LONGEST_LOG_SUM = 1024


def _is_below_zero(value: torch.Tensor) -> torch.Tensor:
    """Say whether the sign is minus, that of a zero included: its reciprocal is infinite."""
    return (value < 0) | ((value == 0) & (torch.reciprocal(value) < 0))


# Angles and signs


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


def hypot(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Do what `torch.hypot` does, without squares that overflow."""
    left, right = torch.broadcast_tensors(left.abs(), right.abs())
    long, short = torch.maximum(left, right), torch.minimum(left, right)
    ratio = short / torch.where(long == 0, torch.ones_like(long), long)
    found = long * torch.sqrt(1 + ratio * ratio)
    return torch.where(left.isinf() | right.isinf(), torch.full_like(found, math.inf), found)


def sign(value: torch.Tensor) -> torch.Tensor:
    """Do what `torch.sign` does: NaN has no sign, and gives zero."""
    return (value > 0).to(value.dtype) - (value < 0).to(value.dtype)


def signbit(value: torch.Tensor) -> torch.Tensor:
    """Do what `torch.signbit` does, except for NaN."""
    return _is_below_zero(value) if value.is_floating_point() else value < 0


def copysign(size: torch.Tensor, other: Any) -> torch.Tensor:
    """Do what `torch.copysign` does, except for the sign of NaN."""
    if not isinstance(other, torch.Tensor):
        return -size.abs() if math.copysign(1, other) < 0 else size.abs()
    dtype = torch.result_type(size, other)
    size, other = torch.broadcast_tensors(size.to(dtype).abs(), other.to(dtype))
    return torch.where(_is_below_zero(other), -size, size)


def heaviside(value: torch.Tensor, at_zero: torch.Tensor) -> torch.Tensor:
    """Do what `torch.heaviside` does: NaN is not above zero."""
    return torch.where(value == 0, at_zero, (value > 0).to(value.dtype))


# Exponentials


def log1p(value: torch.Tensor) -> torch.Tensor:
    """Do what `torch.log1p` does. `log(1 + x)` keeps nothing of a small `x`.

    What the sum lost is in its quotient as well, and cancels there.
    """
    value = value if value.is_floating_point() else value.to(torch.get_default_dtype())
    total = 1 + value
    lost = value / torch.where(total == 1, 1, total - 1)
    found = torch.where(total == 1, value, torch.log(total) * lost)
    return torch.where(total.isinf(), torch.log(total), found)


def expm1(value: torch.Tensor) -> torch.Tensor:
    """Do what `torch.expm1` does. `exp(x) - 1` keeps nothing of a small `x`."""
    value = value if value.is_floating_point() else value.to(torch.get_default_dtype())
    half = torch.tanh(value.clamp(-1, 1) / 2)
    return torch.where(value.abs() < 1, 2 * half / (1 - half), torch.exp(value) - 1)


def logaddexp(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Do what `torch.logaddexp` does, with exponentials of what is at most zero."""
    left, right = torch.broadcast_tensors(left, right)
    apart = torch.maximum(left, right) + torch.log1p(torch.exp(-(left - right).abs()))
    return torch.where(left == right, left + math.log(2), apart)


def logaddexp2(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Do what `torch.logaddexp2` does, with powers of two that are at most one."""
    left, right = torch.broadcast_tensors(left, right)
    small = torch.log1p(torch.exp2(-(left - right).abs())) / math.log(2)
    return torch.where(left == right, left + 1, torch.maximum(left, right) + small)


def log_sigmoid(value: torch.Tensor) -> torch.Tensor:
    """Do what `logsigmoid` does, with exponentials of what is at most zero."""
    return torch.clamp(value, max=0) - torch.log1p(torch.exp(-value.abs()))


def logcumsumexp(value: torch.Tensor, dim: int) -> torch.Tensor:
    """Do what `torch.logcumsumexp` does, each sum by itself: its largest value is its own."""
    if value.dim() == 0 or value.shape[dim] > _LONGEST_LOG_SUM:
        return _AS_IT_IS
    rows = value.movedim(dim, -1)
    count = rows.shape[-1]
    reached = torch.ones(count, count, dtype=torch.bool, device=value.device).tril()
    parts = torch.where(reached, rows.unsqueeze(-2), torch.full((), -math.inf, dtype=value.dtype))
    return parts.logsumexp(-1).movedim(-1, dim)


def cross_entropy_of_logits(
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    pos_weight: torch.Tensor | None = None,
    reduction: int = 1,
) -> torch.Tensor:
    """Do what `binary_cross_entropy_with_logits` does, by `log_sigmoid`."""
    logs = log_sigmoid(logits)
    scaled = logs if pos_weight is None else logs * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * logits - scaled
    loss = loss if weight is None else loss * weight
    return (lambda one: one, torch.mean, torch.sum)[reduction](loss)


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Do what attention with a mask of floats does: a row that is masked altogether gives zeros.

    The exporter divides zero by zero there; with masks of truth values it does not.
    """
    masked = attn_mask is not None and attn_mask.is_floating_point()
    if attn_mask is None or not masked or dropout_p or enable_gqa or is_causal:
        return _AS_IT_IS
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = torch.matmul(query * factor, key.transpose(-2, -1)) + attn_mask
    none = scores.amax(-1, keepdim=True) == -math.inf
    weights = torch.where(none, torch.zeros_like(scores), scores.softmax(-1))
    found = torch.matmul(weights, value)
    # What follows was recorded on memory in the order of the query.
    order = sorted(range(found.dim()), key=query.stride().__getitem__, reverse=True)
    back = sorted(range(found.dim()), key=order.__getitem__)
    return found.permute(order).contiguous().permute(back)


# Division


def _pair(left: Any, right: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both operands as tensors of the type in which torch computes; one may be a number."""
    dtype = torch.result_type(left, right)
    device = (left if isinstance(left, torch.Tensor) else right).device
    return _tensor(left, dtype, device), _tensor(right, dtype, device)


def _tensor(value: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value.to(dtype)
    return torch.full((), value, dtype=dtype, device=device)


def _other_sign(rest: torch.Tensor, divisor: torch.Tensor) -> torch.Tensor:
    return (rest != 0) & ((rest < 0) != (divisor < 0))


def remainder(left: torch.Tensor, right: Any) -> torch.Tensor:
    """Do what `torch.remainder` does to floats, by the exact remainder of C."""
    left, right = _pair(left, right)
    if not left.is_floating_point():
        return _AS_IT_IS
    rest = torch.fmod(left, right)
    return torch.where(_other_sign(rest, right), rest + right, rest)


def floor_divide(left: torch.Tensor, right: Any) -> torch.Tensor:
    """Do what `torch.floor_divide` does to floats: floor of the exact quotient."""
    left, right = _pair(left, right)
    if not left.is_floating_point():
        return _AS_IT_IS
    rest = torch.fmod(left, right)
    quotient = (left - rest) / right
    quotient = torch.where(_other_sign(rest, right), quotient - 1, quotient)
    whole = torch.floor(quotient)
    whole = torch.where(quotient - whole > 0.5, whole + 1, whole)
    whole = torch.where(quotient == 0, torch.zeros_like(whole) * (left / right), whole)
    return torch.where(right == 0, left / right, whole)


def _truncated(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return quotients of integers, rounded to zero."""
    quotient = torch.floor_divide(left, right)
    return quotient + _other_sign(left - quotient * right, left).to(quotient.dtype)


def divide(left: torch.Tensor, right: Any, rounding_mode: str | None = None) -> torch.Tensor:
    """Do what `torch.div` does with a rounding mode, to integers without floats."""
    first, second = _pair(left, right)
    if rounding_mode == "floor":
        return torch.floor_divide(first, second)
    if rounding_mode == "trunc" and not first.is_floating_point():
        return _truncated(first, second)
    return _AS_IT_IS


def fmod(left: torch.Tensor, right: Any) -> torch.Tensor:
    """Do what `torch.fmod` does to integers, without floats."""
    left, right = _pair(left, right)
    if left.is_floating_point():
        return _AS_IT_IS
    return torch.sub(left, _truncated(left, right) * right)


def shift_right(value: torch.Tensor, places: Any) -> torch.Tensor:
    """Do what `>>` does to integers with a sign: ONNX shifts only those without."""
    value, places = _pair(value, places)
    most = torch.iinfo(value.dtype).bits - 2
    divisor = torch.bitwise_left_shift(torch.ones_like(value), places.clamp(0, most))
    far = torch.where(value < 0, -torch.ones_like(value), torch.zeros_like(value))
    return torch.where(places > most, far, torch.floor_divide(value, divisor))


# Choices


def larger_number(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Do what `torch.fmax` does: NaN only if both are."""
    found = torch.maximum(left, right)
    return torch.where(left.isnan(), right, torch.where(right.isnan(), left, found))


def smaller_number(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Do what `torch.fmin` does: NaN only if both are."""
    found = torch.minimum(left, right)
    return torch.where(left.isnan(), right, torch.where(right.isnan(), left, found))


def trace(value: torch.Tensor) -> torch.Tensor:
    """Do what `torch.trace` does, without a mask of zeros: an infinity beside it would spread."""
    rows, columns = value.shape
    end = (min(rows, columns) - 1) * (columns + 1) + 1
    return value.flatten()[: max(end, 0) : columns + 1].sum()


def either(left: torch.Tensor, right: torch.Tensor, *, alpha: float = 1) -> torch.Tensor:
    """Add truth values, as `left + right` does: ONNX adds numbers only."""
    return torch.logical_or(left, right) if alpha else left


def _ints(node: fx.Node) -> bool:
    return not _dtype(node).is_floating_point


def _signed_ints(node: fx.Node) -> bool:
    return _dtype(node).is_signed and _dtype(node) != torch.bool and _ints(node)


def _floats(node: fx.Node) -> bool:
    return _dtype(node).is_floating_point


def _bools(node: fx.Node) -> bool:
    return _dtype(node) == torch.bool


def _is_masked(node: fx.Node) -> bool:
    mask = node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")
    return isinstance(mask, fx.Node) and _floats(mask)


def _through_all(node: fx.Node) -> bool:
    return len(node.args) < 3 or not node.args[2]


def _always(_: fx.Node) -> bool:
    return True


def _dtype(node: fx.Node) -> torch.dtype:
    return cast(torch.dtype, node.meta["val"].dtype)


def _everywhere(
    table: dict[Any, Callable[..., Any]],
) -> dict[Any, tuple[Callable[[fx.Node], bool], Callable[..., Any]]]:
    return {one: (_always, function) for one, function in table.items()}


_ATEN = torch.ops.aten
#: For which calls of an operation another form is used; the result of a call says it.
_TABLE: dict[Any, tuple[Callable[[fx.Node], bool], Callable[..., Any]]] = {
    **_everywhere(onnx_algebra.TABLE),
    **_everywhere(onnx_orders.TABLE),
    **_everywhere(onnx_special.TABLE),
    _ATEN.sign.default: (_floats, sign),
    _ATEN.sgn.default: (_floats, sign),
    _ATEN.signbit.default: (_always, signbit),
    _ATEN.copysign.Tensor: (_always, copysign),
    _ATEN.copysign.Scalar: (_always, copysign),
    _ATEN.heaviside.default: (_always, heaviside),
    _ATEN.atan2.default: (_always, atan2),
    _ATEN.hypot.default: (_always, hypot),
    _ATEN.log_sigmoid.default: (_always, log_sigmoid),
    **dict.fromkeys((_ATEN.log1p.default, _ATEN.special_log1p.default), (_always, log1p)),
    **dict.fromkeys((_ATEN.expm1.default, _ATEN.special_expm1.default), (_always, expm1)),
    _ATEN.logaddexp.default: (_always, logaddexp),
    _ATEN.logaddexp2.default: (_always, logaddexp2),
    _ATEN.logcumsumexp.default: (_always, logcumsumexp),
    _ATEN.binary_cross_entropy_with_logits.default: (_always, cross_entropy_of_logits),
    _ATEN.scaled_dot_product_attention.default: (_is_masked, attention),
    _ATEN.remainder.Scalar: (_floats, remainder),
    _ATEN.remainder.Tensor: (_floats, remainder),
    _ATEN.floor_divide.default: (_floats, floor_divide),
    _ATEN.floor_divide.Scalar: (_floats, floor_divide),
    _ATEN.div.Tensor_mode: (_always, divide),
    _ATEN.div.Scalar_mode: (_always, divide),
    _ATEN.fmod.Scalar: (_ints, fmod),
    _ATEN.fmod.Tensor: (_ints, fmod),
    _ATEN.__rshift__.Scalar: (_signed_ints, shift_right),
    _ATEN.__rshift__.Tensor: (_signed_ints, shift_right),
    _ATEN.bitwise_right_shift.Tensor: (_signed_ints, shift_right),
    _ATEN.bitwise_right_shift.Tensor_Scalar: (_signed_ints, shift_right),
    _ATEN.fmax.default: (_floats, larger_number),
    _ATEN.fmin.default: (_floats, smaller_number),
    _ATEN.roll.default: (_through_all, onnx_orders.roll),
    _ATEN.trace.default: (_always, trace),
    _ATEN.add.Tensor: (_bools, either),
}


def _uses(program: ExportedProgram) -> set[Any]:
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    return {one.target for one in calls if one.target in _TABLE and _TABLE[one.target][0](one)}


def taken_apart(program: ExportedProgram) -> ExportedProgram:
    """Return the program without these operations; the very program if it has none."""
    used = _uses(program)
    if not used:
        return program
    # All of them: what one is made of may be another. Only addition is everywhere.
    known = {one: function for one, (_, function) in _TABLE.items() if one != _ATEN.add.Tensor}
    if _ATEN.add.Tensor in used:
        known[_ATEN.add.Tensor] = _either_of_bools
    with torch.no_grad():
        try:
            return cast(ExportedProgram, program.run_decompositions(known))
        except ValueError:
            # A kernel of attention left its result in another order in memory.
            del known[_ATEN.scaled_dot_product_attention.default]
            return cast(ExportedProgram, program.run_decompositions(known))


def _either_of_bools(left: Any, right: Any, *, alpha: float = 1) -> torch.Tensor:
    found = [getattr(one, "dtype", None) for one in (left, right)]
    return either(left, right, alpha=alpha) if found == [torch.bool] * 2 else _AS_IT_IS
