"""Ufuncs: operands come in the dtype of NumPy's loop."""

from __future__ import annotations

from typing import Any

import numpy
import torch

from veracity.tracing.array_table.basics import Expression, words


def _cbrt(x: torch.Tensor) -> torch.Tensor:
    return torch.sign(x) * torch.pow(torch.abs(x), 1.0 / 3.0)


def _zero_by_zero(divide: Expression) -> Expression:
    """Give zero for integers that are divided by zero, as NumPy does: torch raises."""

    def divided(x: torch.Tensor, y: Any) -> Any:
        is_integer = isinstance(y, torch.Tensor) and not (y.is_floating_point() or y.is_complex())
        if not is_integer:
            return divide(x, y)
        by_zero = torch.eq(y, 0)
        found = divide(x, torch.where(by_zero, torch.ones_like(y), y))
        return torch.where(by_zero, torch.zeros_like(found), found)

    return divided


def _floor(x: torch.Tensor, y: Any) -> torch.Tensor:
    return torch.div(x, y, rounding_mode="floor")


_floor_divide, _remainder = _zero_by_zero(_floor), _zero_by_zero(torch.remainder)


def _divmod(x: torch.Tensor, y: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _floor_divide(x, y), _remainder(x, y)


def _modf(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.frac(x), torch.trunc(x)


_SAME_NAME = words("""
    add subtract multiply float_power negative positive absolute sign sqrt
    square reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2
    hypot sinh cosh tanh arcsinh arccosh arctanh floor ceil trunc greater greater_equal less
    less_equal not_equal maximum minimum fmax fmin matmul logical_and logical_or logical_xor
    logical_not bitwise_and bitwise_or bitwise_xor isnan isinf isfinite signbit copysign deg2rad
    rad2deg heaviside logaddexp logaddexp2 gcd lcm nextafter
""")


UFUNCS: dict[Any, Expression] = {
    getattr(numpy, name): getattr(torch, name) for name in _SAME_NAME
} | {
    numpy.equal: torch.eq,  # `torch.equal` is something else
    numpy.divide: torch.true_divide,
    numpy.power: torch.pow,
    numpy.floor_divide: _floor_divide,
    numpy.remainder: _remainder,
    numpy.fmod: _zero_by_zero(torch.fmod),
    numpy.divmod: _divmod,
    numpy.modf: _modf,
    numpy.fabs: torch.abs,
    numpy.cbrt: _cbrt,
    numpy.rint: torch.round,
    numpy.invert: torch.bitwise_not,
    numpy.left_shift: torch.bitwise_left_shift,
    numpy.right_shift: torch.bitwise_right_shift,
    numpy.radians: torch.deg2rad,
    numpy.degrees: torch.rad2deg,
    numpy.conjugate: torch.conj_physical,
}


# torch takes a number as the second operand of these, which makes a plainer program than a
# constant tensor of rank 0 would.
TAKES_NUMBER: frozenset[Any] = frozenset(
    {
        numpy.add,
        numpy.subtract,
        numpy.multiply,
        numpy.divide,
        numpy.floor_divide,
        numpy.remainder,
        numpy.fmod,
        numpy.power,
        numpy.greater,
        numpy.greater_equal,
        numpy.less,
        numpy.less_equal,
        numpy.equal,
        numpy.not_equal,
    }
)
