"""Special functions and transforms that ONNX has no operators for.

They compute in float64, so that what they give for float32 is right to a few units in its last
place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

#: What torch takes for an operation that is to stay.
_AS_IT_IS = cast(Tensor, NotImplemented)
#: Values of a transform that is written as a product with a matrix.
_LONGEST_TRANSFORM = 1024


def _wide(value: Tensor) -> bool:
    return value.dtype in (torch.float32, torch.float64)


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """Evaluate a polynomial, its highest power first."""
    found = torch.full_like(x, coefficients[0])
    for one in coefficients[1:]:
        found = found * x + one
    return found


# Of Giles, "Approximating the erfinv function", for the centre and for the tails.
_CENTRE = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087),
    *(-0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
)
_TAIL = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773),
    *(-0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
)


def erfinv(value: Tensor) -> Tensor:
    """Do what `torch.erfinv` does to float32."""
    if value.dtype != torch.float32:
        return _AS_IT_IS
    x = value.double()
    inside = torch.where(x.abs() < 1, x, 0.0)
    w = -torch.log((1 - inside) * (1 + inside))
    root = torch.where(w < 5, 0.0, w).sqrt()
    near = _polynomial(torch.where(w < 5, w, 0.0) - 2.5, _CENTRE)
    far = _polynomial(root - 3, _TAIL)
    found = torch.where(w < 5, near, far) * inside
    found = torch.where(x.abs() == 1, x * math.inf, found)
    return torch.where(x.abs() <= 1, found, math.nan).to(value.dtype)


# Of "Numerical Recipes": a fit whose relative error is below 1.2e-7 everywhere.
_COMPLEMENT = (
    *(0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418),
    *(0.37409196, 1.00002368, -1.26551223),
)


def erfc(value: Tensor) -> Tensor:
    """Do what `torch.erfc` does to float32. `1 - erf(x)` keeps nothing of the tail."""
    if value.dtype != torch.float32:
        return _AS_IT_IS
    x = value.double()
    t = 1 / (1 + 0.5 * x.abs())
    tail = t * torch.exp(_polynomial(t, _COMPLEMENT) - x * x)
    return torch.where(x >= 0, tail, 2 - tail).to(value.dtype)


#: How far an argument is shifted up before a series in its reciprocal is used.
_SHIFT = 10
#: Bernoulli numbers by 2k (2k - 1), of Stirling's series; and by 2k, of its derivative.
_STIRLING = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_HARMONIC = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)


def lgamma(value: Tensor) -> Tensor:
    """Do what `torch.lgamma` does."""
    if not _wide(value):
        return _AS_IT_IS
    x = value.double()
    is_low = x < 0.5
    up = torch.where(is_low, 1 - x, x)
    product = torch.ones_like(up)
    for step in range(_SHIFT):
        product = product * (up + step)
    z = up + _SHIFT
    series = _polynomial(1 / (z * z), _STIRLING) / z
    found = (z - 0.5) * z.log() - z + 0.5 * math.log(2 * math.pi) + series - product.log()
    # Of arguments beyond this no product is needed, and none is finite.
    large = torch.where(up > 1e8, up, 1e8)
    found = torch.where(up > 1e8, (large - 0.5) * large.log() - large, found)
    sine = torch.sin(math.pi * (x - _nearest(x))).abs()
    found = torch.where(is_low, math.log(math.pi) - sine.log() - found, found)
    return torch.where(x.abs() == math.inf, math.inf, found).to(value.dtype)


def _nearest(x: Tensor) -> Tensor:
    """Round; not every engine rounds float64."""
    return torch.floor(x + 0.5)


def digamma(value: Tensor) -> Tensor:
    """Do what `torch.digamma` does."""
    if not _wide(value):
        return _AS_IT_IS
    x = value.double()
    is_low = x < 0
    up = torch.where(is_low, 1 - x, x)
    rest = torch.zeros_like(up)
    for step in range(_SHIFT):
        rest = rest + 1 / (up + step)
    z = up + _SHIFT
    square = 1 / (z * z)
    found = z.log() - 0.5 / z - _polynomial(square, _HARMONIC) * square - rest
    angle = math.pi * (x - _nearest(x))
    found = torch.where(is_low, found - math.pi * torch.cos(angle) / torch.sin(angle), found)
    found = torch.where(is_low & (x == _nearest(x)), math.nan, found)
    # The sign of a zero is the side from which one comes.
    return torch.where(x == 0, -1 / x, found).to(value.dtype)


def mvlgamma(value: Tensor, p: int) -> Tensor:
    """Do what `torch.mvlgamma` does."""
    if not _wide(value):
        return _AS_IT_IS
    found = torch.full((), p * (p - 1) / 4 * math.log(math.pi), dtype=torch.float64)
    for step in range(p):
        found = found + lgamma(value.double() - step / 2)
    return found.to(value.dtype)


def vander(value: Tensor, *, N: int | None = None) -> Tensor:  # noqa: N803  # torch's name
    """Do what `torch.linalg.vander` does."""
    powers = torch.arange(value.shape[-1] if N is None else N, dtype=value.dtype)
    return value.unsqueeze(-1) ** powers


def _turns(frequencies: int, length: int) -> Tensor:
    """Return the angle of each frequency at each place."""
    products = torch.arange(frequencies, dtype=torch.float64).unsqueeze(-1) * torch.arange(
        length, dtype=torch.float64
    )
    return (2 * math.pi / length) * products


def rfft(value: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Do what `torch.fft.rfft` does, as a product with a matrix: any length, padded or cut."""
    if value.dtype != torch.float32 or value.dim() == 0:
        return _AS_IT_IS
    length = value.shape[dim] if n is None else n
    if not 0 < length <= _LONGEST_TRANSFORM:
        return _AS_IT_IS
    rows = value.movedim(dim, -1)[..., :length].double()
    turn = _turns(length // 2 + 1, length)[:, : rows.shape[-1]].mT
    scale = _scale(length, _FORWARD.get(norm, norm))
    parts = (rows @ (turn.cos() * scale), rows @ (turn.sin() * -scale))
    return torch.view_as_complex(torch.stack(parts, -1).float()).movedim(-1, dim)


#: What a norm is called from the other side.
_FORWARD = {None: "forward", "backward": "forward", "forward": "backward"}


def irfft(spectrum: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Do what `torch.fft.irfft` does, as a product with a matrix: any length, padded or cut."""
    if spectrum.dtype != torch.complex64:
        return _AS_IT_IS
    given = spectrum.shape[dim]
    length = 2 * (given - 1) if n is None else n
    if not 0 < length <= _LONGEST_TRANSFORM:
        return _AS_IT_IS
    used = min(given, length // 2 + 1)
    parts = torch.view_as_real(spectrum.movedim(dim, -1))[..., :used, :].double()
    turn = _turns(used, length)
    # All but the first and, of an even length, the middle stand for two: one is the conjugate.
    numbers = torch.arange(used)
    weight = torch.where((numbers == 0) | (2 * numbers == length), 1.0, 2.0).double()
    weight = weight.unsqueeze(-1) * _scale(length, norm)
    found: Tensor = parts[..., 0] @ (weight * turn.cos()) - parts[..., 1] @ (weight * turn.sin())
    return found.to(torch.float32).movedim(-1, dim)


def _scale(length: int, norm: str | None) -> float:
    return {"forward": 1.0, "ortho": 1 / math.sqrt(length)}.get(norm or "", 1 / length)


_ATEN = torch.ops.aten
#: Operations of torch, and what is computed instead.
TABLE: dict[Any, Callable[..., Any]] = {
    _ATEN.erfinv.default: erfinv,
    _ATEN.special_erfinv.default: erfinv,
    _ATEN.erfc.default: erfc,
    _ATEN.special_erfc.default: erfc,
    _ATEN.lgamma.default: lgamma,
    _ATEN.special_gammaln.default: lgamma,
    _ATEN.digamma.default: digamma,
    _ATEN.special_digamma.default: digamma,
    _ATEN.special_psi.default: digamma,
    _ATEN.mvlgamma.default: mvlgamma,
    _ATEN.special_multigammaln.default: mvlgamma,
    _ATEN.linalg_vander.default: vander,
    _ATEN.fft_rfft.default: rfft,
    _ATEN.fft_irfft.default: irfft,
}
