"""Linear algebra that ONNX has no operators for, written with those that it has.

Each function is unrolled for the size of its matrices and computes in float64: what it gives for
float32 is the float64 result, rounded once. Work is done on whole matrices: a step is a handful of
operators, whatever the size, and a batch costs no more operators than one matrix.

Where torch raises because of the values of a matrix, a model cannot: it gives NaN.

The vectors of `eigh` and `svd` have no sign of their own. What is made of them is right where the
signs cancel (`U @ Vh`, `V @ diag(f(L)) @ V.mT`); a model whose outputs show the signs is disproved
where they are not LAPACK's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

#: Rows or columns over which is unrolled; larger matrices are left to the exporter to refuse.
LARGEST = 64
#: Rotations take a round of operators for each column and sweep.
LARGEST_ROTATED = 16
#: Rows that are not unrolled.
LONGEST = 4096
#: Terms of the exponential for a matrix of norm one: 1/21! is below the rounding of float64.
_TERMS = 20
#: Squarings of the exponential: norms up to 2^20.
_SQUARINGS = 20

#: What torch takes for an operation that is to stay.
_AS_IT_IS = cast(Tensor, NotImplemented)


def _fits(matrix: Tensor, largest: int) -> bool:
    if matrix.dtype not in (torch.float32, torch.float64) or matrix.dim() < 2:
        return False
    short, long = sorted(matrix.shape[-2:])
    return 0 < short <= largest and long <= LONGEST


def _wide(largest: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compute in float64 where the matrix is small enough to be unrolled."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def compute(first: Tensor, *rest: Any, **named: Any) -> Any:
            if not _fits(first, largest):
                return _AS_IT_IS
            given = [one.double() if isinstance(one, Tensor) else one for one in (first, *rest)]
            named = {k: v.double() if isinstance(v, Tensor) else v for k, v in named.items()}
            return _narrow(function(*given, **named), first.dtype)

        return compute

    return decorate


def _narrow(found: Any, dtype: torch.dtype) -> Any:
    if isinstance(found, tuple):
        return tuple(_narrow(one, dtype) for one in found)
    return found.to(dtype) if found.is_floating_point() else found


def _column(matrix: Tensor, number: int) -> Tensor:
    return matrix[..., :, number : number + 1]


def _row(matrix: Tensor, number: int) -> Tensor:
    return matrix[..., number : number + 1, :]


def _rows(matrix: Tensor) -> Tensor:
    """Number the rows, in a column."""
    return torch.arange(matrix.shape[-2]).unsqueeze(-1)


def _lower(matrix: Tensor, below: int = 0) -> Tensor:
    """Keep the lower triangle, or what lies further below; every engine has masks."""
    columns = torch.arange(matrix.shape[-1])
    return torch.where(_rows(matrix) >= columns + below, matrix, 0.0)


def _symmetric(half: Tensor) -> Tensor:
    """Return the whole of a matrix by its lower triangle."""
    return _lower(half) + _lower(half, 1).mT


def _broadcast(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    return left.expand(*batch, *left.shape[-2:]), right.expand(*batch, *right.shape[-2:])


def _first(places: Tensor) -> Tensor:
    """Return the number of the first place that is true, counted from one; zero where none is."""
    size = places.shape[-1]
    numbers = torch.arange(1, size + 1, dtype=torch.int32)
    found = torch.where(places, numbers, size + 1).amin(-1)
    return torch.where(found > size, 0, found).to(torch.int32)


# Elimination


def _eliminated(matrix: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Solve as Gauss and Jordan do, with the largest element of a column as its pivot.

    Returns:
        The solution, the pivots in the last dimension, and the sign of the exchanges.
    """
    matrix, right = _broadcast(matrix, right)
    size = matrix.shape[-1]
    joined = torch.cat([matrix, right], -1)
    rows = _rows(matrix)
    pivots, signs = [], []
    for number in range(size):
        sizes = torch.where(rows < number, -1.0, _column(joined, number).abs())
        chosen = sizes.argmax(-2, keepdim=True)
        best = joined.gather(-2, chosen.expand(*joined.shape[:-2], 1, joined.shape[-1]))
        pivot = _column(best, number)
        best = best / torch.where(pivot == 0, 1.0, pivot)
        joined = torch.where(rows == chosen, _row(joined, number), joined)
        joined = torch.where(rows == number, best, joined - _column(joined, number) * best)
        pivots.append(pivot[..., 0])
        signs.append(torch.where(chosen[..., 0] == number, 1.0, -1.0).to(matrix.dtype))
    found = torch.cat(pivots, -1)
    is_singular = ((found == 0).to(found.dtype).sum(-1) > 0)[..., None, None]
    return (
        torch.where(is_singular, math.nan, joined[..., size:]),
        found,
        torch.cat(signs, -1).prod(-1),
    )


@_wide(LARGEST)
def inverse_ex(matrix: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """Do what `torch.linalg.inv_ex` does."""
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype)
    found, pivots, _ = _eliminated(matrix, eye)
    return found, _first(pivots == 0)


def inverse(matrix: Tensor) -> Tensor:
    """Do what `torch.linalg.inv` does."""
    return _only_first(inverse_ex(matrix))


@_wide(LARGEST)
def solve_ex(
    matrix: Tensor, right: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    """Do what `torch.linalg.solve_ex` does."""
    is_vector = right.dim() == 1 or (
        matrix.dim() - 1 == right.dim() and right.shape == matrix.shape[:-1]
    )
    right = right.unsqueeze(-1) if is_vector else right
    turned = not left and not is_vector
    if turned:
        matrix, right = matrix.mT, right.mT
    found, pivots, _ = _eliminated(matrix, right)
    found = found.mT if turned else found
    return found.squeeze(-1) if is_vector else found, _first(pivots == 0)


def solve(matrix: Tensor, right: Tensor, *, left: bool = True) -> Tensor:
    """Do what `torch.linalg.solve` does."""
    return _only_first(solve_ex(matrix, right, left=left))


def _only_first(found: Any) -> Tensor:
    return cast(Tensor, found if found is _AS_IT_IS else found[0])


@_wide(LARGEST)
def determinant(matrix: Tensor) -> Tensor:
    """Do what `torch.linalg.det` does."""
    _, pivots, sign = _eliminated(matrix, matrix[..., :0])
    return sign * pivots.prod(-1)


@_wide(LARGEST)
def sign_and_log_determinant(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Do what `torch.linalg.slogdet` does."""
    _, pivots, sign = _eliminated(matrix, matrix[..., :0])
    signs = (pivots > 0).to(pivots.dtype) - (pivots < 0).to(pivots.dtype)
    return sign * signs.prod(-1), pivots.abs().log().sum(-1)


def log_determinant(matrix: Tensor) -> Tensor:
    """Do what `torch.logdet` does."""
    found = sign_and_log_determinant(matrix)
    if found is _AS_IT_IS:
        return _AS_IT_IS  # type: ignore[no-any-return]
    sign, size = found
    return torch.where(sign == -1, math.nan, size)


# Triangles


def _substituted(triangle: Tensor, right: Tensor, *, upper: bool, unit: bool = False) -> Tensor:
    """Solve with a triangle, row by row; what lies on its other side is not read."""
    triangle, right = _broadcast(triangle, right)
    size = triangle.shape[-1]
    found: list[Tensor] = []
    for number in reversed(range(size)) if upper else range(size):
        row = _row(right, number)
        row = row if unit else row / _column(_row(triangle, number), number)
        right = right - _column(triangle, number) * row
        found.append(row)
    return torch.cat(found[::-1] if upper else found, -2)


@_wide(LARGEST)
def cholesky_ex(
    matrix: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    """Do what `torch.linalg.cholesky_ex` does; NaN from the first minor on that is not positive."""
    matrix = matrix.mT if upper else matrix
    rows = _rows(matrix)
    columns, pivots = [], []
    for number in range(matrix.shape[-1]):
        pivot = _row(_column(matrix, number), number)
        root = torch.where(pivot > 0, pivot, math.nan).sqrt()
        column = torch.where(rows < number, 0.0, _column(matrix, number) / root)
        matrix = matrix - column * column.mT
        columns.append(column)
        pivots.append(pivot[..., 0])
    found = torch.cat(columns, -1)
    fails = ~(torch.cat(pivots, -1) > 0)
    return (found.mT if upper else found), _first(fails)


def cholesky(matrix: Tensor, *, upper: bool = False) -> Tensor:
    """Do what `torch.linalg.cholesky` does."""
    return _only_first(cholesky_ex(matrix, upper=upper))


def cholesky_old(matrix: Tensor, upper: bool = False) -> Tensor:
    """Do what `torch.cholesky` does."""
    return cholesky(matrix, upper=upper)


@_wide(LARGEST)
def cholesky_solve(right: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    """Do what `torch.cholesky_solve` does."""
    lower = factor.mT if upper else factor
    return _substituted(lower.mT, _substituted(lower, right, upper=False), upper=True)


@_wide(LARGEST)
def cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    """Do what `torch.cholesky_inverse` does."""
    lower = factor.mT if upper else factor
    eye = torch.eye(factor.shape[-1], dtype=factor.dtype)
    return _substituted(lower.mT, _substituted(lower, eye, upper=False), upper=True)


@_wide(LARGEST)
def solve_triangular(
    triangle: Tensor, right: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Do what `torch.linalg.solve_triangular` does."""
    if left:
        return _substituted(triangle, right, upper=upper, unit=unitriangular)
    return _substituted(triangle.mT, right.mT, upper=not upper, unit=unitriangular).mT


def triangular_solve(
    right: Tensor,
    triangle: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Any:
    """Do what `torch.triangular_solve` does."""
    turned = triangle.mT if transpose else triangle
    upper = upper != transpose
    found = solve_triangular(turned, right, upper=upper, unitriangular=unitriangular)
    return found if found is _AS_IT_IS else (found, triangle.clone())


# Orthogonal factors


def _reflected(matrix: Tensor, columns: int) -> tuple[Tensor, Tensor]:
    """Return Q with so many columns, and R: reflections with LAPACK's signs."""
    rows = _rows(matrix)
    reflections = []
    for number in range(min(matrix.shape[-2:])):
        column = torch.where(rows < number, 0.0, _column(matrix, number))
        # Squares of the largest and smallest float64 are none.
        scale = column.abs().amax((-2, -1), keepdim=True)
        column = column / torch.where(scale == 0, 1.0, scale)
        first = _row(column, number)
        norm = (column * column).sum((-2, -1), keepdim=True).sqrt()
        vector = torch.where(rows == number, first + torch.where(first < 0, -norm, norm), column)
        is_done = torch.where(rows == number, 0.0, column).abs().amax((-2, -1), keepdim=True) == 0
        length = (vector * vector).sum((-2, -1), keepdim=True)
        factor = torch.where(is_done, 0.0, 2 / torch.where(length == 0, 1.0, length))
        matrix = matrix - vector * (factor * (vector.mT @ matrix))
        reflections.append((vector, factor))
    ortho = torch.eye(matrix.shape[-2], columns, dtype=matrix.dtype)
    ortho = ortho.expand(*matrix.shape[:-2], *ortho.shape)
    for vector, factor in reversed(reflections):
        ortho = ortho - vector * (factor * (vector.mT @ ortho))
    return ortho, _lower(matrix.mT).mT[..., :columns, :]


@_wide(LARGEST)
def qr(matrix: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Do what `torch.linalg.qr` does."""
    rows, columns = matrix.shape[-2:]
    ortho, upper = _reflected(matrix, rows if mode == "complete" else min(rows, columns))
    return (ortho.new_empty(0) if mode == "r" else ortho), upper


def qr_old(matrix: Tensor, some: bool = True) -> Any:
    """Do what `torch.qr` does."""
    return qr(matrix, "reduced" if some else "complete")


# Rotations


def _rotated(left: Tensor, right: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """Make columns on the left orthogonal to those beside them, in their first rows."""
    above, beside = left[..., :rows, :], right[..., :rows, :]
    product = (above * beside).sum(-2, keepdim=True)
    difference = (beside * beside - above * above).sum(-2, keepdim=True)
    is_done = product == 0
    ratio = difference / (2 * torch.where(is_done, 1.0, product))
    tangent = torch.where(ratio < 0, -1.0, 1.0) / (ratio.abs() + (1 + ratio * ratio).sqrt())
    tangent = torch.where(is_done, 0.0, tangent)
    cosine = (1 + tangent * tangent).rsqrt()
    return cosine * (left - tangent * right), cosine * (right + tangent * left)


def _moved(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Seat the columns for the next round: all but the first go round the table by one."""
    half = left.shape[-1]
    return (
        torch.cat([left[..., :1], right[..., :1], left[..., 1 : half - 1]], -1)
        if half > 2
        else torch.cat([left[..., :1], right[..., :1]], -1),
        torch.cat([right[..., 1:], left[..., half - 1 :]], -1),
    )


def _orthogonalised(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Turn a matrix so that its columns are orthogonal, the longest first; and by what it was.

    Pairs of columns are rotated, half of them at a time, until all have met; sweep by sweep
    (Hestenes). Where their number is odd, a column of zeros sits with them.
    """
    rows, size = matrix.shape[-2:]
    largest = matrix.abs().amax((-2, -1), keepdim=True)
    scale = torch.where(largest == 0, 1.0, largest)
    eye = torch.eye(size, dtype=matrix.dtype).expand(*matrix.shape[:-2], size, size)
    joined = torch.cat([matrix / scale, eye], -2)
    if size > 1:
        if size % 2:
            joined = torch.cat([joined, torch.zeros_like(joined[..., :1])], -1)
        half = joined.shape[-1] // 2
        left, right = joined[..., :half], joined[..., half:]
        for _ in range(_sweeps(size) * (2 * half - 1)):
            left, right = _rotated(left, right, rows)
            left, right = _moved(left, right) if half > 1 else (left, right)
        joined = torch.cat([left, right], -1)[..., :size]
    turned, by = joined[..., :rows, :], joined[..., rows:, :]
    longest = turned.square().sum(-2).argsort(-1, descending=True)
    return _picked(turned * scale, longest), _picked(by, longest)


def _picked(matrix: Tensor, columns: Tensor) -> Tensor:
    return matrix.gather(-1, columns.unsqueeze(-2).expand(matrix.shape))


def _sweeps(size: int) -> int:
    """Return after how many sweeps nothing is left to rotate, with one to spare."""
    return 6 + max(0, math.ceil(math.log2(size)) - 1)


def _singular(matrix: Tensor, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the parts of a tall matrix: U with so many columns, lengths, V."""
    turned, by = _orthogonalised(matrix)
    ortho, upper = _reflected(turned, columns)
    size = upper.shape[-1]
    signed = (upper[..., :size, :] * torch.eye(size, dtype=upper.dtype)).sum(-1)
    signs = torch.where(signed < 0, -1.0, 1.0).to(matrix.dtype)
    if columns > size:
        signs = torch.cat([signs, torch.ones_like(ortho[..., 0, size:])], -1)
    return ortho * signs.unsqueeze(-2), signed.abs(), by


@_wide(LARGEST_ROTATED)
def singular_values(
    matrix: Tensor,
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Do what `torch._linalg_svd` does, up to signs."""
    is_wide = matrix.shape[-2] < matrix.shape[-1]
    tall = matrix.mT if is_wide else matrix
    if full_matrices and compute_uv and tall.shape[-2] > LARGEST:
        return _AS_IT_IS  # type: ignore[return-value]
    if not compute_uv:
        turned, _ = _orthogonalised(tall)
        scale = turned.abs().amax((-2, -1), keepdim=True)
        scale = torch.where(scale == 0, 1.0, scale)
        lengths = (turned / scale).square().sum(-2).sqrt() * scale[..., 0]
        return matrix.new_empty(0), lengths, matrix.new_empty(0)
    left, lengths, right = _singular(tall, tall.shape[-2 if full_matrices else -1])
    if is_wide:
        left, right = right, left
    return left, lengths, right.mT


@_wide(LARGEST_ROTATED)
def eigenvalues(
    matrix: Tensor,
    UPLO: str = "L",  # noqa: N803  # torch's name
    compute_v: bool = True,
) -> tuple[Tensor, Tensor]:
    """Do what `torch._linalg_eigh` does, up to signs.

    With the largest sum of a row added to its diagonal a symmetric matrix has no negative
    eigenvalues, and its vectors are those that make its columns orthogonal.
    """
    whole = _symmetric(matrix if UPLO.upper() == "L" else matrix.mT)
    shift = whole.abs().sum(-1).amax(-1)[..., None]
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype)
    _, vectors = _orthogonalised(whole + shift[..., None] * eye)
    vectors = vectors.flip(-1)
    values = (vectors * (whole @ vectors)).sum(-2)
    return values, (vectors if compute_v else matrix.new_empty(0))


# What is made of singular values


def svd(matrix: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """Do what `torch.linalg.svd` does, up to signs."""
    return singular_values(matrix, full_matrices)


def svd_old(matrix: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """Do what `torch.svd` does, up to signs."""
    parts = singular_values(matrix, not some) if compute_uv else _AS_IT_IS
    return parts if parts is _AS_IT_IS else (*parts[:2], parts[2].mT)


def svdvals(matrix: Tensor, *, driver: str | None = None) -> Tensor:
    """Do what `torch.linalg.svdvals` does."""
    parts = singular_values(matrix, compute_uv=False)
    return _AS_IT_IS if parts is _AS_IT_IS else parts[1]  # type: ignore[no-any-return]


def eigvalsh(matrix: Tensor, UPLO: str = "L") -> Tensor:  # noqa: N803  # torch's name
    """Do what `torch.linalg.eigvalsh` does."""
    parts = eigenvalues(matrix, UPLO, compute_v=False)
    return _AS_IT_IS if parts is _AS_IT_IS else parts[0]  # type: ignore[no-any-return]


def _number(value: Any, like: Tensor) -> Tensor:
    """Return a tolerance, or a tensor of one for each matrix, beside singular values."""
    if isinstance(value, Tensor):
        return value.to(like.dtype)[..., None]
    return torch.full((1,), value, dtype=like.dtype)


def _least(lengths: Tensor, atol: Any, rtol: Any, default: float) -> Tensor:
    """Return what a singular value must exceed; an absolute tolerance takes the other's place."""
    absolute = _number(0.0 if atol is None else atol, lengths)
    if rtol is None:
        relative = torch.where(absolute > 0, 0.0, default).to(lengths.dtype)
    else:
        relative = _number(rtol, lengths)
    return torch.maximum(*torch.broadcast_tensors(absolute, relative * lengths[..., :1]))


def _rounding(matrix: Tensor) -> float:
    return torch.finfo(matrix.dtype).eps * max(matrix.shape[-2:])


def pseudo_inverse(
    matrix: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False
) -> Tensor:
    """Do what `torch.linalg.pinv` does."""
    if not _fits(matrix, LARGEST_ROTATED):
        return _AS_IT_IS
    wide = matrix.double()
    whole = _symmetric(wide) if hermitian else wide
    left, lengths, right = singular_values(whole)
    kept = lengths > _least(lengths, atol, rtol, _rounding(matrix))
    inverted = torch.where(kept, 1 / torch.where(kept, lengths, 1.0), 0.0)
    return ((right.mT * inverted.unsqueeze(-2)) @ left.mT).to(matrix.dtype)  # type: ignore[no-any-return]


def pseudo_inverse_old(matrix: Tensor, rcond: Any = 1e-15) -> Tensor:
    """Do what `torch.pinverse` does."""
    return pseudo_inverse(matrix, rtol=rcond)


def rank(matrix: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """Do what `torch.linalg.matrix_rank` does."""
    if not _fits(matrix, LARGEST_ROTATED):
        return _AS_IT_IS
    wide = matrix.double()
    lengths = svdvals(_symmetric(wide) if hermitian else wide)
    return (lengths > _least(lengths, atol, rtol, _rounding(matrix))).double().sum(-1).long()


def rank_old(matrix: Tensor, tol: Any, hermitian: bool = False) -> Tensor:
    """Do what `torch.linalg.matrix_rank` does with a tolerance."""
    return rank(matrix, atol=tol, rtol=0.0, hermitian=hermitian)


def condition(matrix: Tensor, p: Any = None) -> Tensor:
    """Do what `torch.linalg.cond` does by singular values."""
    lengths = svdvals(matrix) if p in (None, 2, -2) else _AS_IT_IS
    if lengths is _AS_IT_IS:
        return _AS_IT_IS
    ends = (lengths[..., 0], lengths[..., -1])
    return ends[1] / ends[0] if p == -2 else ends[0] / ends[1]


def norm(
    matrix: Tensor,
    ord: Any,
    dim: tuple[int, int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Do what `torch.linalg.matrix_norm` does by singular values."""
    reduce = {
        2: lambda one: one[..., 0],
        -2: lambda one: one[..., -1],
        "nuc": lambda one: one.sum(-1),
    }
    if ord not in reduce:
        return _AS_IT_IS
    lengths = svdvals(matrix.to(dtype or matrix.dtype).movedim(list(dim), (-2, -1)))
    if lengths is _AS_IT_IS:
        return _AS_IT_IS
    found = reduce[ord](lengths)
    for one in sorted(at % matrix.dim() for at in dim) if keepdim else ():
        found = found.unsqueeze(one)
    return found  # type: ignore[no-any-return]


def power(matrix: Tensor, n: int) -> Tensor:
    """Do what `torch.linalg.matrix_power` does with negative exponents."""
    base = inverse(matrix) if n < 0 else _AS_IT_IS
    if base is _AS_IT_IS:
        return _AS_IT_IS
    return functools.reduce(torch.matmul, [base] * -n)


# Exponential


@_wide(LARGEST)
def exponential(matrix: Tensor) -> Tensor:
    """Do what `torch.matrix_exp` does: halved until its norm is below one, and squared again."""
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype)
    norm = matrix.abs().sum(-2).amax(-1)[..., None, None]
    halvings = torch.where(norm > 1, norm, 1.0).log2().ceil().clamp(0, _SQUARINGS)
    scaled = matrix * torch.exp2(-halvings)
    found = eye.expand(matrix.shape)
    for number in range(_TERMS, 0, -1):
        found = eye + scaled @ found / number
    for number in range(_SQUARINGS):
        found = torch.where(halvings > number, found @ found, found)
    return found


_ATEN = torch.ops.aten
#: Operations of torch, and what is computed instead.
TABLE: dict[Any, Callable[..., Any]] = {
    _ATEN.linalg_inv.default: inverse,
    _ATEN.inverse.default: inverse,
    _ATEN.linalg_inv_ex.default: inverse_ex,
    _ATEN.linalg_solve.default: solve,
    _ATEN.linalg_solve_ex.default: solve_ex,
    _ATEN.linalg_det.default: determinant,
    _ATEN.det.default: determinant,
    _ATEN.linalg_slogdet.default: sign_and_log_determinant,
    _ATEN.slogdet.default: sign_and_log_determinant,
    _ATEN.logdet.default: log_determinant,
    _ATEN.linalg_cholesky.default: cholesky,
    _ATEN.linalg_cholesky_ex.default: cholesky_ex,
    _ATEN.cholesky_solve.default: cholesky_solve,
    _ATEN.cholesky_inverse.default: cholesky_inverse,
    _ATEN.linalg_solve_triangular.default: solve_triangular,
    _ATEN.triangular_solve.default: triangular_solve,
    _ATEN.linalg_qr.default: qr,
    _ATEN._linalg_svd.default: singular_values,
    _ATEN._linalg_eigh.default: eigenvalues,
    _ATEN.linalg_pinv.atol_rtol_tensor: pseudo_inverse,
    _ATEN.linalg_pinv.atol_rtol_float: pseudo_inverse,
    _ATEN.pinverse.default: pseudo_inverse_old,
    _ATEN.matrix_exp.default: exponential,
    _ATEN.linalg_matrix_exp.default: exponential,
    _ATEN.linalg_svd.default: svd,
    _ATEN.svd.default: svd_old,
    _ATEN.linalg_svdvals.default: svdvals,
    _ATEN.linalg_eigh.default: eigenvalues,
    _ATEN.linalg_eigvalsh.default: eigvalsh,
    _ATEN.linalg_matrix_norm.default: norm,
    _ATEN.linalg_matrix_norm.str_ord: norm,
    _ATEN.linalg_cond.default: condition,
    _ATEN.linalg_matrix_rank.default: rank_old,
    _ATEN.linalg_matrix_rank.atol_rtol_tensor: rank,
    _ATEN.linalg_matrix_rank.atol_rtol_float: rank,
    _ATEN.linalg_matrix_power.default: power,
}
#: Torch 2.15 has them no more.
_OLD = {"cholesky": cholesky_old, "qr": qr_old}
TABLE |= {getattr(_ATEN, name).default: made for name, made in _OLD.items() if hasattr(_ATEN, name)}
